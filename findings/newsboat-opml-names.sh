#!/bin/sh
# newsboat loses the names of an OPML list at import, and its folders at export
# Input: an OPML list of one feed, named, in a folder; imported, and exported before the feed is reached
# Guess: http://127.0.0.1:9/f "News" "~My town"; folders=1 name=My town
# Seen with newsboat 2.21-1.5: http://127.0.0.1:9/f "News"; folders=0 name=
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" newsboat 2>/dev/null)" = 2.21-1.5 ] || apt-get install -y --no-install-recommends newsboat=2.21-1.5 >/dev/null
cat >in.opml <<'X'
<opml version="2.0"><head><title>t</title></head><body><outline text="News"><outline text="My town" title="My town" type="rss" xmlUrl="http://127.0.0.1:9/f"/></outline></body></opml>
X
: >urls
HOME=$T newsboat -u urls -c c.db -C /dev/null -i in.opml >/dev/null
HOME=$T newsboat -u urls -c c.db -C /dev/null -e >out.opml
got="$(cat urls); $(/usr/bin/python3 -c 'import xml.etree.ElementTree as E
r=E.parse("out.opml"); f=r.find(".//outline[@xmlUrl]"); print("folders=%d name=%s%s" % (len(r.findall(".//outline/outline")), f.get("text", ""), f.get("title", "")))')"
guess='http://127.0.0.1:9/f "News" "~My town"; folders=1 name=My town'
want='http://127.0.0.1:9/f "News"; folders=0 name='
echo "version: newsboat 2.21-1.5"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
