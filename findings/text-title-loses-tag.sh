#!/bin/sh
# node feedparser and ruby-feedparser remove from a title that is plain text the word that looks like a tag
# Input: an Atom entry whose title, of type text, is: How to close a <code> tag
# Guess: How to close a <code> tag, by both
# Seen with feedparser 2.6.0, ruby-feedparser 0.11.2-1: node:How to close a  tag ruby:How to close a tag
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" ruby-feedparser 2>/dev/null)" = 0.11.2-1 ] || apt-get install -y --no-install-recommends ruby-feedparser=0.11.2-1 >/dev/null
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund feedparser@2.6.0 >/dev/null 2>&1
cat >f.xml <<'X'
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title><updated>2026-01-02T00:00:00Z</updated><entry><id>urn:1</id><title type="text">How to close a &lt;code> tag</title><link href="http://a.example/1"/><updated>2026-01-02T00:00:00Z</updated><author><name>a</name></author></entry></feed>
X
cat >p.cjs <<'J'
const P = require("feedparser"), p = new (P.default ?? P)({ addmeta: false });
p.on("readable", () => { for (let e; (e = p.read());) process.stdout.write(e.title); });
p.end(require("fs").readFileSync("f.xml"));
J
got="node:$(node p.cjs) ruby:$(ruby -r feedparser -e 'print FeedParser::Feed.new(File.read("f.xml")).items[0].title')"
guess='node:How to close a <code> tag ruby:How to close a <code> tag'
want='node:How to close a  tag ruby:How to close a tag'
echo "version: feedparser 2.6.0, ruby-feedparser 0.11.2-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
