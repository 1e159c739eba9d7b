#!/bin/sh
# Jekyll with jekyll-feed, a generator of sites in Ruby: Atom
# Guess: the title "The <em> tag" loses its tag (findings/jekyll-feed-title-brackets.sh), and the id is the URL
# Seen: as guessed; a move to another host was a flood before lektor-fetch knew it
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb jekyll 4.3.1+dfsg-3+deb12u1
deb ruby-jekyll-feed 0.17.0-1
mkdir _posts
post() {
	rm -f _posts/*-"$1.md"
	printf -- "---\ntitle: '%s'\ndate: %s 10:00 +0000\npermalink: /%s.html\n---\n%s\n" "$2" "$3" "$1" "$4" >"_posts/$3-$1.md"
}
drop() { rm _posts/*-"$1.md"; }
build() {
	printf 'url: %s\ntitle: s\nplugins: [jekyll-feed]\ntimezone: UTC\n' "$1" >_config.yml
	jekyll build -q -d site
}
tag='jekyll-feed drops from a title what looks like an element'
known 'new post' 'The tag' "$tag"
known 'at the end' 'The tag|Two & more|Uno|Zero' "$tag"
live feed.xml
row
