#!/bin/sh
# staticsite, a generator of sites in Python: RSS
# Guess: all agrees; the guid is the URL
# Seen: as guessed with --full; without it an edit stays out of the feed (findings/staticsite-edit-missed.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb staticsite 2.3-1
mkdir -p src/posts
printf -- '---\npages: posts/*\nsyndication: yes\n---\n# Home\n' >src/index.md
post() { printf -- "---\ntitle: '%s'\ndate: %s 10:00:00+00:00\n---\n%s\n" "$2" "$3" "$4" >"src/posts/$1.md"; }
drop() { rm "src/posts/$1.md"; }
build() {
	printf 'SITE_NAME = "s"\nSITE_URL = "%s"\nCONTENT = "src"\nTIMEZONE = "UTC"\n' "$1" >settings.py
	ssite build --full -o site settings.py >build.log 2>&1
}
live index.rss
row
