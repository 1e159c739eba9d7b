#!/bin/sh
# Docusaurus, a generator of documentation with blogs: Atom, by the package feed
# Guess: all agrees; the id is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
echo '{"private": true}' >package.json
packages @docusaurus/core@3.10.2 @docusaurus/plugin-content-blog@3.10.2 @docusaurus/theme-classic@3.10.2 react@19.2.0 react-dom@19.2.0
mkdir blog
cat >docusaurus.config.mjs <<'J'
export default { title: "s", url: process.env.BASE, baseUrl: "/", onBrokenLinks: "ignore",
	themes: ["@docusaurus/theme-classic"], plugins: [["@docusaurus/plugin-content-blog",
		{ routeBasePath: "/", onInlineAuthors: "ignore", onUntruncatedBlogPosts: "ignore", feedOptions: { type: "all", title: "s", description: "d" } }]] };
J
post() { printf -- "---\ntitle: '%s'\nslug: %s\ndate: %sT10:00:00Z\n---\n%s\n" "$2" "$1" "$3" "$4" >"blog/$1.md"; }
drop() { rm "blog/$1.md"; }
build() { BASE=$1 npx --no docusaurus build --no-minify --out-dir site >build.log 2>&1; }
live atom.xml
row
