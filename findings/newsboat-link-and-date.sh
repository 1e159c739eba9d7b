#!/bin/sh
# newsboat stores an item without a guid once more if its date is written another way
# Input: RSS with a link and a date and no guid; then the same time as +0000 in place of GMT
# Guess: http://a.example/1 1704164645
# Seen with newsboat 2.21-1.5: http://a.example/1 1704164645, http://a.example/1 1704164645
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" newsboat 2>/dev/null)" = 2.21-1.5 ] || apt-get install -y --no-install-recommends newsboat=2.21-1.5 >/dev/null
echo "file://$T/f.xml" >urls
for zone in GMT +0000; do
cat >f.xml <<X
<rss version="2.0"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>One</title><link>http://a.example/1</link><pubDate>Tue, 02 Jan 2024 03:04:05 $zone</pubDate></item></channel></rss>
X
HOME=$T newsboat -u urls -c c.db -C /dev/null -x reload >/dev/null; done
got=$(/usr/bin/python3 -c 'import sqlite3
print(", ".join("%s %d"%r for r in sqlite3.connect("c.db").execute("select url, pubDate from rss_item")))')
guess='http://a.example/1 1704164645'
want='http://a.example/1 1704164645, http://a.example/1 1704164645'
echo "version: newsboat 2.21-1.5"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
