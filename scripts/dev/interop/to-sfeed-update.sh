#!/bin/sh
# sfeed_update, which merges each fetch into a file of lines
# Guess: all agrees; an edit of the text changes the line, as the id is a field
# Seen: a new title is another line beside the old one; all else as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb sfeed 1.7-1
mkdir site
serve site
reload() {
	printf 'sfeedpath="%s/feeds"\nfeeds() { feed %s %s/feed.%s; }\n' "$PWD" "$1" "$URL" "$1" >sfeedrc
	sfeed_update sfeedrc >/dev/null 2>&1
	grep -c . "feeds/$1"
}
why='sfeed_update knows an entry by id, link and title, so that another title is another line'
for format in atom rss; do
	known "$format retitled" 4 "$why"
	known "$format new" 5 "$why"
	known "$format withdrawn" 5 "$why"
done
relives 'atom rss'
row
