#!/bin/sh
# rss-parser and @extractus/feed-extractor open the audio file in place of the article if the link of the article has no rel, which means alternate
# Input: an Atom entry with an enclosure, then its link, written without rel, and once more with rel="alternate"
# Guess: rss-parser: 1.html 1.html; extractus: 1.html 1.html
# Seen with rss-parser 3.13.0, @extractus/feed-extractor 8.0.3: rss-parser: 1.mp3 1.html; extractus: 1.mp3 1.mp3
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund rss-parser@3.13.0 @extractus/feed-extractor@8.0.3 >/dev/null 2>&1
cat >p.mjs <<'J'
import Parser from "rss-parser";
import { extractFromXml } from "@extractus/feed-extractor";
const out = [];
for (const rel of ["", ' rel="alternate"']) {
  const x = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated><author><name>Ann</name></author><entry><id>urn:x:1</id><title>e</title><updated>2024-01-02T03:04:05Z</updated><link rel="enclosure" type="audio/mpeg" href="http://a.example/1.mp3"/><link${rel} href="http://a.example/1.html"/><content>x</content></entry></feed>`;
  out.push((await new Parser().parseString(x)).items[0].link, extractFromXml(x).entries[0].link);
}
const [a, b, c, d] = out.map(l => l.replace(/.*\//, ""));
console.log(`rss-parser: ${a} ${c}; extractus: ${b} ${d}`);
J
got=$(node p.mjs)
guess='rss-parser: 1.html 1.html; extractus: 1.html 1.html'
want='rss-parser: 1.mp3 1.html; extractus: 1.mp3 1.mp3'
echo "version: rss-parser 3.13.0, @extractus/feed-extractor 8.0.3"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
