#!/bin/sh
# fossil, a version control system with wiki and tickets: RSS
# Guess: all agrees; the guid is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb fossil 1:2.21-1+deb12u1
export USER=a
fossil init --date-override 2025-12-31 r.fossil >/dev/null
mkdir c
(cd c && fossil open -f ../r.fossil >/dev/null)
commit() { (cd c && echo "$1" >f && fossil add f >/dev/null 2>&1 && fossil commit -m "$1" --date-override "$2 10:00:00" --no-warnings >/dev/null 2>&1); }
printf '#!/usr/bin/fossil\nrepository: %s/r.fossil\n' "$PWD" >cgi
chmod +x cgi
commit One 2026-01-01
commit 'Two <b> & more' 2026-01-02
serve --cgi "$PWD/cgi"
follow "$URL/timeline.rss?y=ci"
step 'first fetch' 'One (tags: trunk)|Two <b> & more (tags: trunk)|initial empty check-in (tags: trunk)'
commit Three 2026-01-03
step 'new check-in' 'Three (tags: trunk)'
commit Four 2026-01-04
step 'another check-in' 'Four (tags: trunk)'
(cd c && fossil amend current -m Vier >/dev/null)
step amended 'Vier (tags: trunk)'
moved "http://localhost:${URL##*:}/timeline.rss?y=ci"
step 'another host' ''
now 'One (tags: trunk)|Three (tags: trunk)|Two <b> & more (tags: trunk)|Vier (tags: trunk)|initial empty check-in (tags: trunk)'
row
