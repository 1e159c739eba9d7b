#!/bin/sh
# python feedparser has the id of an Atom entry as its link if the entry has none, even if it is no URL
# Input: an Atom entry with content needs no link; its id is urn:x:2, once in Atom and once as a guid with isPermaLink="false" in RSS
# Guess: atom= rss=
# Seen with python3-feedparser 6.0.10-1: atom=urn:x:2 rss=
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" python3-feedparser 2>/dev/null)" = 6.0.10-1 ] || apt-get install -y --no-install-recommends python3-feedparser=6.0.10-1 >/dev/null
cat >p.py <<'P'
import feedparser
atom = '<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title><updated>2026-01-02T00:00:00Z</updated><entry><id>urn:x:2</id><title>e</title><updated>2026-01-02T00:00:00Z</updated><author><name>a</name></author><content>Words</content></entry></feed>'
rss = '<rss version="2.0"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title><guid isPermaLink="false">urn:x:2</guid></item></channel></rss>'
print("atom=%s rss=%s" % tuple(feedparser.parse(d).entries[0].get("link", "") for d in (atom, rss)))
P
got=$(/usr/bin/python3 p.py)
guess='atom= rss='
want='atom=urn:x:2 rss='
echo "version: python3-feedparser 6.0.10-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
