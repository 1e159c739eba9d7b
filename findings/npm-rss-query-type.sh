#!/bin/sh
# npm rss and podcast give an enclosure the type "false" if its URL has a query
# Input: an item whose enclosure is counted by a parameter of the URL, and the same without it; no type given, as the READMEs allow
# Guess: rss:audio/mpeg,audio/mpeg podcast:audio/mpeg,audio/mpeg
# Seen with rss 1.2.2, podcast 2.0.1: rss:audio/mpeg,false podcast:audio/mpeg,false
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund rss@1.2.2 podcast@2.0.1 >/dev/null 2>&1
cat >p.mjs <<'J'
import RSS from "rss";
import { Podcast } from "podcast";
const rss = new RSS({ title: "t", feed_url: "http://a.example/f", site_url: "http://a.example/" });
const pod = new Podcast({ title: "t", feedUrl: "http://a.example/f", siteUrl: "http://a.example/", author: "Ann" });
for (const url of ["http://a.example/1.mp3", "http://a.example/1.mp3?from=feed"]) {
  rss.item({ title: "i", url: "http://a.example/1", enclosure: { url, size: 5 } });
  pod.addItem({ title: "i", url: "http://a.example/1", enclosure: { url, size: 5 } });
}
const types = s => [...s.matchAll(/<enclosure[^>]*type="([^"]*)"/g)].map(m => m[1]).join(",");
console.log("rss:" + types(rss.xml()), "podcast:" + types(pod.buildXml()));
J
got=$(node p.mjs)
guess='rss:audio/mpeg,audio/mpeg podcast:audio/mpeg,audio/mpeg'
want='rss:audio/mpeg,false podcast:audio/mpeg,false'
echo "version: rss 1.2.2, podcast 2.0.1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
