#!/bin/sh
# hugo dates a page without a date at the first of January of the year 1 in its feed
# Input: a site of one dated post and one page without a date; the built-in feed template
# Guess: Post: Fri, 02 Jan 2026 00:00:00 +0000, About: none
# Seen with hugo 0.111.3-1: Post: Fri, 02 Jan 2026 00:00:00 +0000, About: Mon, 01 Jan 0001 00:00:00 +0000
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" hugo 2>/dev/null)" = 0.111.3-1 ] || apt-get install -y --no-install-recommends hugo=0.111.3-1 >/dev/null
mkdir -p s/content/posts s/layouts/_default
printf 'baseURL = "https://a.example/"\ntitle = "t"\n' >s/config.toml
for l in single list; do echo '{{ .Content }}' >s/layouts/_default/$l.html; done
printf -- '---\ntitle: Post\ndate: 2026-01-02\n---\nx\n' >s/content/posts/post.md
printf -- '---\ntitle: About\n---\nx\n' >s/content/about.md
hugo -s s >/dev/null 2>&1
got=$(/usr/bin/python3 -c 'import xml.etree.ElementTree as E
print(", ".join("%s: %s" % (i.findtext("title"), i.findtext("pubDate", "none")) for i in E.parse("s/public/index.xml").iter("item")))')
guess='Post: Fri, 02 Jan 2026 00:00:00 +0000, About: none'
want='Post: Fri, 02 Jan 2026 00:00:00 +0000, About: Mon, 01 Jan 0001 00:00:00 +0000'
echo "version: hugo 0.111.3-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
