#!/bin/sh
# newsboat names the last author of an RSS item that has two, and both of an Atom entry
# Input: an item with dc:creator Bob and dc:creator Cy, and the same as an Atom entry
# Guess: rss=Bob, Cy atom=Bob, Cy
# Seen with newsboat 2.21-1.5: rss=Cy atom=Bob, Cy
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" newsboat 2>/dev/null)" = 2.21-1.5 ] || apt-get install -y --no-install-recommends newsboat=2.21-1.5 sqlite3 >/dev/null
command -v sqlite3 >/dev/null || apt-get install -y --no-install-recommends sqlite3 >/dev/null
cat >rss.xml <<'X'
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title><guid>1</guid><dc:creator>Bob</dc:creator><dc:creator>Cy</dc:creator></item></channel></rss>
X
cat >atom.xml <<'X'
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title><updated>2026-01-02T00:00:00Z</updated><entry><id>urn:1</id><title>e</title><updated>2026-01-02T00:00:00Z</updated><author><name>Bob</name></author><author><name>Cy</name></author><content>Words</content></entry></feed>
X
author() {
	echo "file://$T/$1.xml" >urls
	HOME=$T newsboat -q -u urls -c "$1.db" -C /dev/null -x reload >/dev/null 2>&1
	sqlite3 "$1.db" 'select author from rss_item'
}
got="rss=$(author rss) atom=$(author atom)"
guess='rss=Bob, Cy atom=Bob, Cy'
want='rss=Cy atom=Bob, Cy'
echo "version: newsboat 2.21-1.5"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
