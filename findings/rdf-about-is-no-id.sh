#!/bin/sh
# three npm parsers ignore rdf:about, the identifier of an RSS 1.0 item, so two items with one link have the same id
# Input: RSS 1.0, two items with identifiers of their own that link to the same page
# Guess: rowanmanning: rdf:about; feedparser: rdf:about; extractus: rdf:about
# Seen with @rowanmanning/feed-parser 2.1.5, feedparser 2.6.0, @extractus/feed-extractor 8.0.3: rowanmanning: none twice; feedparser: link twice; extractus: hash twice
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund @rowanmanning/feed-parser@2.1.5 feedparser@2.6.0 @extractus/feed-extractor@8.0.3 >/dev/null 2>&1
cat >p.mjs <<'J'
import { Readable } from "stream";
import { parseFeed } from "@rowanmanning/feed-parser";
import FeedParser from "feedparser";
import { extractFromXml } from "@extractus/feed-extractor";
const ids = ["urn:x:1", "urn:x:2"];
const x = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="http://a.example/f"><title>t</title><link>http://a.example/</link><description>d</description><items><rdf:Seq>${ids.map(i => `<rdf:li rdf:resource="${i}"/>`).join("")}</rdf:Seq></items></channel>${ids.map(i => `<item rdf:about="${i}"><title>t</title><link>http://a.example/day</link></item>`).join("")}</rdf:RDF>`;
const show = l => (l[0] === ids[0] ? "rdf:about" : l[0] === null ? "none" : l[0].startsWith("http:") ? "link" : "hash") + (l[0] === l[1] ? " twice" : "");
const items = await new Promise(ok => { const p = new FeedParser(), l = []; p.on("readable", () => { for (let i; (i = p.read());) l.push(i.guid); }); p.on("end", () => ok(l)); Readable.from([x]).pipe(p); });
console.log("rowanmanning: " + show(parseFeed(x).items.map(i => i.id)) + "; feedparser: " + show(items) + "; extractus: " + show(extractFromXml(x).entries.map(i => i.id)));
J
got=$(node p.mjs)
guess='rowanmanning: rdf:about; feedparser: rdf:about; extractus: rdf:about'
want='rowanmanning: none twice; feedparser: link twice; extractus: hash twice'
echo "version: @rowanmanning/feed-parser 2.1.5, feedparser 2.6.0, @extractus/feed-extractor 8.0.3"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
