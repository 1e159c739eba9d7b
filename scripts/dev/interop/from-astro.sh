#!/bin/sh
# Astro with @astrojs/rss, a generator of sites: RSS
# Guess: all agrees; the guid is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages astro@5.16.0 @astrojs/rss@4.0.19
export ASTRO_TELEMETRY_DISABLED=1
mkdir -p src/pages/posts
cat >src/pages/rss.xml.js <<'J'
import rss from "@astrojs/rss";
export const GET = async () => rss({ title: "s", description: "d", site: process.env.BASE,
	items: await Promise.all(Object.values(import.meta.glob("./posts/*.md", { eager: true })).map(async (p) => ({
		link: p.url, title: p.frontmatter.title, pubDate: p.frontmatter.date, content: await p.compiledContent() }))) });
J
post() { printf -- "---\ntitle: '%s'\ndate: %sT10:00:00Z\n---\n%s\n" "$2" "$3" "$4" >"src/pages/posts/$1.md"; }
drop() { rm "src/pages/posts/$1.md"; }
build() { BASE=$1 npx --no astro build --site "$1" --outDir site --silent >build.log 2>&1; }
live rss.xml
row
