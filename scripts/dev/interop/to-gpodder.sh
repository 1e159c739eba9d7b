#!/bin/sh
# gPodder, a program for podcasts, by its own database
# Guess: it has the one entry with audio
# Seen: it has all entries of Atom, and in RSS not the one without title and audio (findings/gpodder-rss-untitled.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb gpodder 3.11.1-1
mkdir site
serve site
export GPODDER_HOME="$PWD/g"
entries() {
	rm -rf g
	gpo subscribe "$URL/feed.$1" >gpo.log 2>&1
	sqlite3 -separator '	' g/Database "select case guid when 'urn:x:2' then 3 when 'https://a.example/3' then 1 else 2 end,
		title, link, guid, strftime('%Y-%m-%dT%H:%M:%SZ', published, 'unixepoch'), url, mime_type, file_size from episode" |
		awk -F '\t' '{ print $1 " title\t" $2; print $1 " link\t" $3; print $1 " id\t" $4; print $1 " date\t" $5
			if ($6) print $1 " enclosure\t" $6 " " $7 " " $8 }'
}
why='an entry with neither title nor audio is left out in RSS'
known 'rss entries' '2 3' "$why"
for value in link id date; do known "rss 1 $value" '' "$why"; done
reads 'atom rss' 'title link id date enclosure'
row
