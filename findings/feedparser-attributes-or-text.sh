#!/bin/sh
# python feedparser loses the text of a podcast element that has attributes
# Input: podcast:season and podcast:person, each once plain and once with an attribute
# Guess: season:True person:True season:True person:True
# Seen with python3-feedparser 6.0.10-1: season:True person:True season:False person:False
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" python3-feedparser 2>/dev/null)" = 6.0.10-1 ] || apt-get install -y --no-install-recommends python3-feedparser=6.0.10-1 >/dev/null
got=$(/usr/bin/python3 -c '
import feedparser
for i in ("<podcast:season>2</podcast:season><podcast:person>Ann</podcast:person>","<podcast:season name=\"Sea\">2</podcast:season><podcast:person role=\"guest\">Ann</podcast:person>"):
    e=feedparser.parse("<rss version=\"2.0\" xmlns:podcast=\"https://podcastindex.org/namespace/1.0\"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title>%s</item></channel></rss>"%i).entries[0]
    print("season:%s person:%s"%("2" in str(e.podcast_season),"Ann" in str(e.podcast_person)),end=" ")' | sed 's/ $//')
guess='season:True person:True season:True person:True'
want='season:True person:True season:False person:False'
echo "version: python3-feedparser 6.0.10-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
