#!/bin/sh
# @extractus/feed-extractor has an empty title and an empty text for an Atom entry in XHTML, and the date of the last change as the date of publication
# Input: an Atom entry with title and content of type xhtml, published on 2 January and changed on 4 March
# Guess: title="A new book" text="Some words" published=2024-01-02
# Seen with @extractus/feed-extractor 8.0.3: title="" text="" published=2024-03-04
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund @extractus/feed-extractor@8.0.3 >/dev/null 2>&1
cat >p.mjs <<'J'
import { extractFromXml } from "@extractus/feed-extractor";
const div = s => `<div xmlns="http://www.w3.org/1999/xhtml">${s}</div>`;
const e = extractFromXml(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-03-04T05:06:07Z</updated><author><name>Ann</name></author><entry><id>urn:x:1</id><title type="xhtml">${div("A <i>new</i> book")}</title><published>2024-01-02T03:04:05Z</published><updated>2024-03-04T05:06:07Z</updated><link href="http://a.example/1"/><content type="xhtml">${div("<p>Some words</p>")}</content></entry></feed>`).entries[0];
console.log(`title="${e.title}" text="${e.description}" published=${e.published.slice(0, 10)}`);
J
got=$(node p.mjs)
guess='title="A new book" text="Some words" published=2024-01-02'
want='title="" text="" published=2024-03-04'
echo "version: @extractus/feed-extractor 8.0.3"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
