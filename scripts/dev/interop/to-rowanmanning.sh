#!/bin/sh
# @rowanmanning/feed-parser, an npm parser of Atom and RSS
# Guess: all agrees
# Seen: one person is two authors, and quoted tags are lost (findings/xhtml-code-sample.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages @rowanmanning/feed-parser@2.1.5
teller
cat >read.mjs <<'J'
import { parseFeed } from "@rowanmanning/feed-parser";
import { say, file } from "./say.mjs";
parseFeed(file).items.forEach((e, n) => say(n, { title: e.title, link: e.url, id: e.id, date: e.published ?? e.updated,
	author: e.authors.map((a) => a.name), category: e.categories.map((c) => c.term ?? c.label), html: e.content ?? e.description,
	enclosure: e.media.map((m) => `${m.url} ${m.mimeType} ${m.length}`) }));
J
entries() { node read.mjs "site/feed.$1"; }
known 'atom 2 text' 'One  two' 'it takes the tags that code quotes for tags'
known 'rss 2 text' 'One  two' 'it takes the tags that code quotes for tags'
known 'rss 2 author' 'Ann, B.|Ann, B.' 'it lists author and dc:creator, which are one person, as two'
reads 'atom rss' 'title link id date author category enclosure text'
row
