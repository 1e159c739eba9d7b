#!/bin/sh
# sfeed, a reader of lines
# Guess: of two authors it has the first
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb sfeed 1.7-1
entries() {
	sfeed http://a.example/ <"site/feed.$1" | awk -F '\t' '{
		gsub(/<[^>]*>/, "", $4); gsub(/&lt;/, "<", $4); gsub(/&gt;/, ">", $4); gsub(/\\n/, "", $4)
		print NR " title\t" $2; print NR " link\t" $3; print NR " text\t" $4; print NR " id\t" $6; print NR " author\t" $7
		print NR " date\t" strftime("%Y-%m-%dT%H:%M:%SZ", $1); print NR " category\t" $9 }'
}
known 'atom 3 author' Bob 'it has one author'
known 'rss 3 author' Bob 'it has one author'
reads 'atom rss' 'title link id date author category text'
row
