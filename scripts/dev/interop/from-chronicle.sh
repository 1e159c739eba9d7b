#!/bin/sh
# chronicle, a compiler of blogs in Perl: RSS
# Guess: all agrees; the guid is the URL
# Seen: the guid is made of the title, so that a new title is a new entry beside the old one; all else agrees
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb chronicle 4.6-2.1
mkdir -p in
post() { printf 'Title: %s\nDate: %s 10:00:00\n\n<p>%s</p>\n' "$2" "$3" "$4" >"in/$1.txt"; }
drop() { rm "in/$1.txt"; }
build() { chronicle --input in --output site --url-prefix "$1/" >build.log 2>&1; }
known 'at the end' 'One|The <em> tag|Two & more|Uno|Zero' "chronicle's guid is made of the title, so that another title is another entry"
live index.rss
row
