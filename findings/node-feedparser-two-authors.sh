#!/bin/sh
# node feedparser names the author of the feed for an entry that has two authors of its own
# Input: an Atom feed by Ann; one entry by Bob, and one by Bob and Cy
# Guess: one=Bob two=Bob
# Seen with feedparser 2.6.0: one=Bob two=Ann
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund feedparser@2.6.0 >/dev/null 2>&1
cat >p.cjs <<'J'
const { Readable } = require("stream"), FeedParser = require("feedparser");
const by = n => `<author><name>${n}</name></author>`;
const entry = (id, who) => `<entry><id>urn:x:${id}</id><title>${id}</title><updated>2024-01-02T03:04:05Z</updated>${who}<content>x</content></entry>`;
const p = new FeedParser(), out = [];
p.on("readable", () => { for (let i; (i = p.read());) out.push(i.title + "=" + i.author); });
p.on("end", () => console.log(out.join(" ")));
Readable.from([`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated>${by("Ann")}${entry("one", by("Bob"))}${entry("two", by("Bob") + by("Cy"))}</feed>`]).pipe(p);
J
got=$(node p.cjs)
guess='one=Bob two=Bob'
want='one=Bob two=Ann'
echo "version: feedparser 2.6.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
