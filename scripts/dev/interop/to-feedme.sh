#!/bin/sh
# feedme, an npm parser of Atom, RSS and JSON Feed
# Guess: titles and links agree; all values are as in the document
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages feedme@2.0.2
teller
cat >read.mjs <<'J'
import FeedMe from "feedme";
import { say, file } from "./say.mjs";
const p = new FeedMe(true);
p.on("finish", () => p.done().items.forEach((e, n) => say(n, { title: e.title?.text ?? e.title,
	id: e.guid?.text ?? e.guid ?? e.id, date: e.published ?? e.pubdate ?? e.date_published })));
p.end(file);
J
entries() { node read.mjs "site/feed.$1"; }
reads 'atom rss json' 'title id date'
row
