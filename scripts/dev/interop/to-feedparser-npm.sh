#!/bin/sh
# feedparser, an npm parser with a stream
# Guess: of two authors of its own it has that of the feed (findings/node-feedparser-two-authors.sh)
# Seen: as guessed, and a title loses what looks like a tag (findings/text-title-loses-tag.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages feedparser@2.6.0
teller
cat >read.mjs <<'J'
import Parser from "feedparser";
import { say, file } from "./say.mjs";
const p = new Parser({ addmeta: false });
let n = 0;
p.on("readable", () => {
	for (let e; (e = p.read());) say(n++, { title: e.title, link: e.link, id: e.guid, date: e.pubdate, author: e.author,
		category: e.categories, enclosure: e.enclosures.map((x) => `${x.url} ${x.type} ${x.length}`), html: e.description });
});
p.end(file);
J
entries() { node read.mjs "site/feed.$1"; }
known 'atom 2 title' 'Fish & chips: 5 < 6 ' 'it removes what looks like a tag from a title that is text'
known 'rss 2 title' 'Fish & chips: 5 < 6 ' 'it removes what looks like a tag from a title that is text'
known 'atom 3 author' '' 'it has no author if there are two'
known 'rss 3 author' Bob 'it has one author'
reads 'atom rss' 'title link id date author category enclosure text'
row
