#!/bin/sh
# chronicle makes the guid from the title, so that a corrected title is another entry
# Input: a post in a file of its own, built; its title is corrected, and the blog built again
# Guess: the same guid twice
# Seen with chronicle 4.6-2.1: http://a.example/On.html http://a.example/One.html
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" chronicle 2>/dev/null)" = 4.6-2.1 ] || apt-get install -y --no-install-recommends chronicle=4.6-2.1 >/dev/null
mkdir in
export HOME="$T"
build() {
	printf 'Title: %s\nDate: 2026-01-02 10:00:00\n\n<p>Text</p>\n' "$1" >in/post.txt
	rm -rf out
	chronicle --input in --output out --url-prefix http://a.example/ >/dev/null 2>&1
	sed -n 's,.*<guid[^>]*>\([^<]*\)</guid>.*,\1,p' out/index.rss
}
got="$(build On) $(build One)"
guess='http://a.example/On.html http://a.example/On.html'
want='http://a.example/On.html http://a.example/One.html'
echo "version: chronicle 4.6-2.1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
