#!/bin/sh
# newsboat, a reader for terminals, by its own database: Atom and RSS
# Guess: all agrees but a second author in RSS; an edit changes the item in place
# Seen: as guessed; in RSS it has the last author (findings/newsboat-last-creator.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb newsboat 2.21-1.5
command -v sqlite3 >/dev/null || skip 'needs sqlite3'
mkdir site
serve site
refresh() {
	printf '%s/feed.%s\n' "$URL" "$1" >urls
	newsboat -q -u urls -c "$1.db" -C /dev/null -x reload >/dev/null 2>&1
}
entries() {
	rm -f "$1.db"
	refresh "$1"
	sqlite3 -separator '	' "$1.db" "select row_number() over (order by pubDate desc), title, url, guid,
		strftime('%Y-%m-%dT%H:%M:%SZ', pubDate, 'unixepoch'), author, enclosure_url, enclosure_type from rss_item" |
		awk -F '\t' '{ print $1 " title\t" $2; print $1 " link\t" $3; print $1 " id\t" $4; print $1 " date\t" $5; print $1 " author\t" $6 }'
}
why='an entry without a title is shown by a word of its URL'
known 'atom 1 title' Three "$why"
known 'rss 1 title' Three "$why"
known 'atom 3 author' 'Bob, Cy' 'authors are one text'
known 'rss 3 author' Cy 'it has the last author'
reads 'atom rss' 'title link id date author'
reload() {
	sleep 1 # it compares times of a second, and not tags
	refresh "$1"
	sqlite3 "$1.db" "select count(*) from rss_item where feedurl like '%$1'"
}
rm atom.db rss.db
relives 'atom rss'
row
