#!/bin/sh
# npm feed leaves the audio of an RSS item out if the item has a picture too, and calls the audio a picture in Atom
# Input: an episode with an enclosure and an image, the fields of the README
# Guess: rss:1.m4a=audio/mp4 atom:1.m4a=audio/mp4,cover.png=image/png
# Seen with feed 6.0.0: rss:cover.png=image/png atom:1.m4a=image/m4a,cover.png=image/png
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund feed@6.0.0 >/dev/null 2>&1
cat >p.mjs <<'J'
import { Feed } from "feed";
const f = new Feed({ title: "t", id: "http://a.example/", link: "http://a.example/", updated: new Date(0) });
f.addItem({ title: "i", link: "http://a.example/1", date: new Date(0), image: "http://a.example/cover.png", enclosure: { url: "http://a.example/1.m4a", length: 5 } });
const all = (re, s) => [...s.matchAll(re)].map(m => m[1] + "=" + m[2]).join(",");
console.log("rss:" + all(/<enclosure url="[^"]*\/([^"]*)"[^>]*type="([^"]*)"/g, f.rss2()), "atom:" + all(/rel="enclosure" href="[^"]*\/([^"]*)" type="([^"]*)"/g, f.atom1()));
J
got=$(node p.mjs)
guess='rss:1.m4a=audio/mp4 atom:1.m4a=audio/mp4,cover.png=image/png'
want='rss:cover.png=image/png atom:1.m4a=image/m4a,cover.png=image/png'
echo "version: feed 6.0.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
