#!/bin/sh
# sfeed_atom writes the link of an item as its id, and drops the id that the item has
# Input: a feed of two entries with identifiers of their own that link to one page, through sfeed and sfeed_atom
# Guess: urn:x:1 urn:x:2 -> urn:x:1 urn:x:2
# Seen with sfeed 1.7-1: urn:x:1 urn:x:2 -> http://a.example/day http://a.example/day
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" sfeed 2>/dev/null)" = 1.7-1 ] || apt-get install -y --no-install-recommends sfeed=1.7-1 >/dev/null
cat >f.xml <<'X'
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated><author><name>A</name></author><entry><id>urn:x:1</id><title>1</title><updated>2024-01-02T03:04:05Z</updated><link href="http://a.example/day"/></entry><entry><id>urn:x:2</id><title>2</title><updated>2024-01-02T03:04:05Z</updated><link href="http://a.example/day"/></entry></feed>
X
sfeed <f.xml >t.tsv
got="$(cut -f6 t.tsv | tr '\n' ' ')-> $(sfeed_atom <t.tsv | sed -n 's,^.*<id>\([^<]*\)</id>.*,\1,p' | grep -v '^urn:newsfeed' | tr '\n' ' ' | sed 's/ $//')"
guess='urn:x:1 urn:x:2 -> urn:x:1 urn:x:2'
want='urn:x:1 urn:x:2 -> http://a.example/day http://a.example/day'
echo "version: sfeed 1.7-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
