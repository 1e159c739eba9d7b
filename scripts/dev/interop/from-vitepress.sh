#!/bin/sh
# VitePress with a feed by createContentLoader and the package feed, as its own blog has it: Atom
# Guess: all agrees; the id is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages vitepress@1.6.4 feed@6.0.0
mkdir -p .vitepress posts
cat >.vitepress/config.mjs <<'J'
import { createContentLoader } from "vitepress";
import { Feed } from "feed";
import { writeFileSync } from "node:fs";
export default { title: "s", outDir: "site", async buildEnd() {
	const base = process.env.BASE, feed = new Feed({ title: "s", id: base, link: base, copyright: "" });
	for (const { url, html, frontmatter: f } of await createContentLoader("posts/*.md", { render: true }).load())
		feed.addItem({ title: f.title, id: base + url, link: base + url, date: new Date(f.date), content: html });
	writeFileSync("site/feed.atom", feed.atom1());
} };
J
post() { printf -- "---\ntitle: '%s'\ndate: %sT10:00:00Z\n---\n%s\n" "$2" "$3" "$4" >"posts/$1.md"; }
drop() { rm "posts/$1.md"; }
build() { BASE=$1 npx --no vitepress build >build.log 2>&1; }
live feed.atom
row
