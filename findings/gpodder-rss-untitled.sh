#!/bin/sh
# gPodder keeps a note without a title and without audio if the feed is Atom, and drops it if it is RSS
# Input: a podcast with an episode and a short note, which has a link, a text and no title, as RSS 2.0 and as Atom
# Guess: the same number of both: rss=2 atom=2
# Seen with gpodder 3.11.1-1: rss=1 atom=2
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" gpodder 2>/dev/null)" = 3.11.1-1 ] || apt-get install -y --no-install-recommends gpodder=3.11.1-1 >/dev/null
command -v sqlite3 >/dev/null || apt-get install -y --no-install-recommends sqlite3 >/dev/null
cat >rss.xml <<'X'
<rss version="2.0"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title><guid isPermaLink="false">urn:1</guid><pubDate>Fri, 02 Jan 2026 03:04:05 GMT</pubDate><enclosure url="http://a.example/1.mp3" type="audio/mpeg" length="5"/></item><item><guid isPermaLink="false">urn:2</guid><link>http://a.example/2</link><pubDate>Sat, 03 Jan 2026 03:04:05 GMT</pubDate><description>A note</description></item></channel></rss>
X
cat >atom.xml <<'X'
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>t</title><updated>2026-01-03T03:04:05Z</updated><author><name>a</name></author><link href="http://a.example/"/><entry><id>urn:1</id><title>e</title><updated>2026-01-02T03:04:05Z</updated><link rel="enclosure" href="http://a.example/1.mp3" type="audio/mpeg" length="5"/><content>Words</content></entry><entry><id>urn:2</id><title/><updated>2026-01-03T03:04:05Z</updated><link href="http://a.example/2"/><content>A note</content></entry></feed>
X
python3 -u -m http.server -b 127.0.0.1 18983 >/dev/null 2>&1 & P=$!
trap 'rm -rf "$T"; kill "$P" 2>/dev/null || :' EXIT
sleep 2
count() {
	HOME=$T GPODDER_HOME=$T/$1 gpo subscribe "http://127.0.0.1:18983/$1.xml" >/dev/null 2>&1
	sqlite3 "$1/Database" 'select count(*) from episode'
}
got="rss=$(count rss) atom=$(count atom)"
guess='rss=2 atom=2'
want='rss=1 atom=2'
echo "version: gpodder 3.11.1-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
