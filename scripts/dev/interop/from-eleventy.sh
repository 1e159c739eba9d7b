#!/bin/sh
# Eleventy with its feed plugin, a generator of sites: Atom
# Guess: all agrees but another host, since the id is the URL
# Seen: as guessed, since lektor-fetch knows a site that has moved; before, another host was a flood
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages @11ty/eleventy@3.1.8 @11ty/eleventy-plugin-rss@3.0.0
mkdir -p src/posts
echo '{"tags": "posts"}' >src/posts/posts.json
cat >eleventy.config.js <<'J'
import { feedPlugin } from "@11ty/eleventy-plugin-rss";
export default (c) => c.addPlugin(feedPlugin, {
	outputPath: "/feed.xml", collection: { name: "posts", limit: 10 },
	metadata: { title: "s", base: process.env.BASE + "/", author: { name: "a" } },
}) || { dir: { input: "src", output: "site" } };
J
post() { printf -- "---\ntitle: '%s'\ndate: %s\n---\n%s\n" "$2" "$3" "$4" >"src/posts/$1.md"; }
drop() { rm -r "src/posts/$1.md" "site/posts/$1"; }
build() { BASE=$1 npx --no eleventy --quiet >build.log 2>&1; }
live feed.xml
row
