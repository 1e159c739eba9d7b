#!/bin/sh
# node feedparser, @rowanmanning/feed-parser and sfeed turn the tags that XHTML content quotes into tags
# Input: Atom content of type xhtml with a code element that shows the tag <hr>
# Guess: feedparser:<code>&lt;hr&gt;</code> rowanmanning:<code>&lt;hr&gt;</code> sfeed:<code>&lt;hr&gt;</code>
# Seen with feedparser 2.6.0, @rowanmanning/feed-parser 2.1.5, sfeed 1.7-1: feedparser:<code><hr></code> rowanmanning:<code><hr></code> sfeed:<code><hr></code>
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" sfeed 2>/dev/null)" = 1.7-1 ] || apt-get install -y --no-install-recommends sfeed=1.7-1 >/dev/null
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund feedparser@2.6.0 @rowanmanning/feed-parser@2.1.5 >/dev/null 2>&1
cat >f.xml <<'X'
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated><author><name>A</name></author><entry><id>urn:x:1</id><title>e</title><updated>2024-01-02T03:04:05Z</updated><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><code>&lt;hr&gt;</code></div></content></entry></feed>
X
cat >p.mjs <<'J'
import fs from "fs";
import { Readable } from "stream";
import { parseFeed } from "@rowanmanning/feed-parser";
import FeedParser from "feedparser";
const x = fs.readFileSync("f.xml", "utf8"), code = s => s.match(/<code>.*<\/code>/)[0];
const i = await new Promise(ok => { const p = new FeedParser(); p.on("readable", () => { const i = p.read(); if (i) ok(i); }); Readable.from([x]).pipe(p); });
console.log("feedparser:" + code(i.description), "rowanmanning:" + code(parseFeed(x).items[0].content));
J
got="$(node p.mjs) sfeed:$(sfeed <f.xml | grep -o '<code>.*</code>')"
guess='feedparser:<code>&lt;hr&gt;</code> rowanmanning:<code>&lt;hr&gt;</code> sfeed:<code>&lt;hr&gt;</code>'
want='feedparser:<code><hr></code> rowanmanning:<code><hr></code> sfeed:<code><hr></code>'
echo "version: feedparser 2.6.0, @rowanmanning/feed-parser 2.1.5, sfeed 1.7-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
