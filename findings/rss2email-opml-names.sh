#!/bin/sh
# rss2email changes the names of an OPML list, and drops the folders
# Input: an OPML list of two feeds, one of them in a folder, imported and exported
# Guess: News/My town: north/C.B.
# Seen with rss2email 1:3.13.1-3: My-town-north/C.B.
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" rss2email 2>/dev/null)" = 1:3.13.1-3 ] || apt-get install -y --no-install-recommends rss2email=1:3.13.1-3 >/dev/null
export HOME="$T" XDG_CONFIG_HOME="$T/c" XDG_DATA_HOME="$T/d"
cat >in.opml <<'X'
<opml version="2.0"><head><title>t</title></head><body><outline text="News"><outline text="My town: north" type="rss" xmlUrl="http://127.0.0.1:9/f"/></outline><outline text="C.B." type="rss" xmlUrl="http://127.0.0.1:9/g"/></body></opml>
X
r2e new a@a.example >/dev/null 2>&1; r2e opmlimport in.opml >/dev/null 2>&1; r2e opmlexport out.opml >/dev/null 2>&1
got=$(/usr/bin/python3 -c 'import xml.etree.ElementTree as E
print("/".join(o.get("text") for o in E.parse("out.opml").iter("outline")))')
guess='News/My town: north/C.B.'
want='My-town-north/C.B.'
echo "version: rss2email 1:3.13.1-3"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
