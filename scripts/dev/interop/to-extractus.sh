#!/bin/sh
# @extractus/feed-extractor, an npm parser of Atom, RSS and JSON Feed
# Guess: the date in Atom is that of the update, which is the same here
# Seen: it opens the audio if there is no link, and loses quoted tags
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages @extractus/feed-extractor@8.0.3
teller
cat >read.mjs <<'J'
import { extractFromXml, extractFromJson } from "@extractus/feed-extractor";
import { say, file } from "./say.mjs";
const feed = file[0] === "{" ? extractFromJson(file) : extractFromXml(file);
feed.entries.forEach((e, n) => say(n, { title: e.title, link: e.link, id: e.id, date: e.published, html: e.description }));
J
entries() { node read.mjs "site/feed.$1"; }
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'atom 2 text' 'One  two' 'it takes the tags that code quotes for tags'
known 'rss 2 text' 'One  two' 'it takes the tags that code quotes for tags'
reads 'atom rss json' 'title link id date text'
row
