#!/bin/sh
# ikiwiki, a wiki compiler with blogs: RSS and Atom
# Guess: all agrees; the guid is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb ikiwiki 3.20200202.3-1
mkdir -p src/posts
echo '[[!inline pages="posts/*" rss=yes atom=yes]]' >src/index.mdwn
post() { printf '[[!meta title="%s"]]\n[[!meta date="%s 10:00 UTC"]]\n[[!meta updated="%s 10:00 UTC"]]\n%s\n' "$2" "$3" "$3" "$4" >"src/posts/$1.mdwn"; }
drop() { rm "src/posts/$1.mdwn"; }
build() { ikiwiki --rebuild --url "$1" --rss --atom --wikiname s src site >build.log 2>&1; }
live index.atom
row
