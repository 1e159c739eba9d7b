#!/bin/sh
# htmlparser2, the npm parser of HTML, and its parseFeed
# Guess: titles, links and dates agree
# Seen: it opens the audio if there is no link, and reads no enclosures
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages htmlparser2@10.0.0
teller
cat >read.mjs <<'J'
import { parseFeed } from "htmlparser2";
import { say, file } from "./say.mjs";
parseFeed(file).items.forEach((e, n) => say(n, { title: e.title, link: e.link, id: e.id, date: e.pubDate,
	enclosure: e.media.map((m) => `${m.url} ${m.type} ${m.length}`), html: e.description }));
J
entries() { node read.mjs "site/feed.$1"; }
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'atom 3 enclosure' '' 'it reads no enclosures, in Atom and RSS'
known 'rss 3 enclosure' '' 'it reads no enclosures, in Atom and RSS'
reads 'atom rss' 'title link id date enclosure text'
row
