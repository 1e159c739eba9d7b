#!/bin/sh
# rss-parser has the categories of an RSS item, and none of an Atom entry
# Input: an item with the category News, as RSS 2.0 and as Atom
# Guess: rss=News atom=News
# Seen with rss-parser 3.13.0: rss=News atom=none
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund rss-parser@3.13.0 >/dev/null 2>&1
cat >p.cjs <<'J'
const Parser = require("rss-parser");
const rss = '<rss version="2.0"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title><link>http://a.example/1</link><category>News</category></item></channel></rss>';
const atom = '<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title><updated>2026-01-02T00:00:00Z</updated><entry><id>urn:1</id><title>e</title><link href="http://a.example/1"/><updated>2026-01-02T00:00:00Z</updated><author><name>a</name></author><category term="News"/></entry></feed>';
const of = async (doc) => (await new Parser().parseString(doc)).items[0].categories?.join("+") ?? "none";
(async () => console.log(`rss=${await of(rss)} atom=${await of(atom)}`))();
J
got=$(node p.cjs)
guess='rss=News atom=News'
want='rss=News atom=none'
echo "version: rss-parser 3.13.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
