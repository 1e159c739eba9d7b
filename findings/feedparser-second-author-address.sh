#!/bin/sh
# python feedparser gives the second author of an entry the address of the first
# Input: an Atom entry by Ann, who has an address, and by Bob, who has none
# Guess: Ann=ann@a.com Bob=None author=Ann
# Seen with python3-feedparser 6.0.10-1: Ann=ann@a.com Bob=ann@a.com author=Bob (ann@a.com)
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" python3-feedparser 2>/dev/null)" = 6.0.10-1 ] || apt-get install -y --no-install-recommends python3-feedparser=6.0.10-1 >/dev/null
got=$(/usr/bin/python3 -c '
import feedparser
e=feedparser.parse("<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated><entry><id>urn:x:1</id><title>e</title><updated>2024-01-02T03:04:05Z</updated><author><name>Ann</name><email>ann@a.com</email></author><author><name>Bob</name></author><content>x</content></entry></feed>").entries[0]
print(" ".join("%s=%s"%(a.name,a.get("email")) for a in e.authors),"author="+e.author)')
guess='Ann=ann@a.com Bob=None author=Ann'
want='Ann=ann@a.com Bob=ann@a.com author=Bob (ann@a.com)'
echo "version: python3-feedparser 6.0.10-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
