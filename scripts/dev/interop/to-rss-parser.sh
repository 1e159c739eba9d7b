#!/bin/sh
# rss-parser, an npm parser of Atom and RSS
# Guess: of two authors it has the first; all else agrees
# Seen: as guessed, and Atom has neither categories nor enclosures (findings/rss-parser-atom-categories.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages rss-parser@3.13.0
teller
cat >read.mjs <<'J'
import Parser from "rss-parser";
import { say, file } from "./say.mjs";
(await new Parser().parseString(file)).items.forEach((e, n) => say(n, {
	title: e.title, link: e.link, id: e.guid ?? e.id, date: e.isoDate, author: e.creator ?? e.author, category: e.categories,
	enclosure: e.enclosure && `${e.enclosure.url} ${e.enclosure.type} ${e.enclosure.length}`, text: e.contentSnippet }));
J
entries() { node read.mjs "site/feed.$1"; }
known 'atom 2 category' '' 'it reads categories in RSS only'
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'atom 3 enclosure' '' 'it reads enclosures in RSS only'
known 'atom 3 author' Bob 'it has one author'
known 'rss 3 author' Bob 'it has one author'
reads 'atom rss' 'title link id date author category enclosure text'
row
