#!/bin/sh
# staticsite puts a corrected post into its page, and leaves the old text in the feed, until a full build
# Input: a site of one post; the post is corrected and the site built again, then once more with --full
# Guess: page=new feed=new full=new
# Seen with staticsite 2.3-1: page=new feed=old full=new
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" staticsite 2>/dev/null)" = 2.3-1 ] || apt-get install -y --no-install-recommends staticsite=2.3-1 >/dev/null
mkdir -p src/posts
printf -- '---\npages: posts/*\nsyndication: yes\n---\n# Home\n' >src/index.md
printf 'SITE_NAME = "s"\nSITE_URL = "http://a.example"\nCONTENT = "src"\nTIMEZONE = "UTC"\n' >settings.py
post() { printf -- '---\ntitle: One\ndate: 2026-01-01 10:00:00+00:00\n---\nThe %s text\n' "$1" >src/posts/one.md; }
build() { ssite build "$@" -o site settings.py >/dev/null 2>&1; }
text() { grep -oE 'The (old|new) text' "$1" | head -n 1 | cut -d ' ' -f 2; }
post old; build
sleep 1.1
post new; build
got="page=$(text site/posts/one/index.html) feed=$(text site/index.rss)"
build --full
got="$got full=$(text site/index.rss)"
guess='page=new feed=new full=new'
want='page=new feed=old full=new'
echo "version: staticsite 2.3-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
