#!/bin/sh
# Pelican, a generator of sites in Python: Atom
# Guess: a new day of a post is a new id, so it comes twice (findings/pelican-id-date.sh)
# Seen: as guessed, and a title loses what looks like an element; the host in the id was a flood before lektor-fetch knew it
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb pelican 4.8.0+dfsg-1
mkdir content
post() { printf 'Title: %s\nSlug: %s\nDate: %s 10:00\n\n%s\n' "$2" "$1" "$3" "$4" >"content/$1.md"; }
drop() { rm "content/$1.md"; }
build() {
	printf "AUTHOR='a'\nSITENAME='s'\nSITEURL='%s'\nTIMEZONE='UTC'\nFEED_ALL_ATOM='f.xml'\n" "$1" >conf.py
	/usr/bin/pelican content -o site -s conf.py -q >build.log 2>&1
}
tag='Pelican drops from a title what looks like an element'
known 'new post' 'The tag' "$tag"
known redated 'Two & more' "Pelican's id has the day, so that it is another entry"
known 'at the end' 'The tag|Two & more|Two & more|Uno|Zero' "$tag, and Pelican's id has the day"
live f.xml
row
