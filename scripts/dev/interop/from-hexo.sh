#!/bin/sh
# Hexo with hexo-generator-feed, a generator of blogs: Atom
# Guess: all agrees but another host, since the id is the URL
# Seen: as guessed, since lektor-fetch knows a site that has moved; before, another host was a flood
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages hexo@8.1.2 hexo-generator-feed@3.0.0 hexo-renderer-marked@7.0.1
echo '{"private": true, "hexo": {"version": "8.1.2"}, "dependencies":
	{"hexo": "8.1.2", "hexo-generator-feed": "3.0.0", "hexo-renderer-marked": "7.0.1"}}' >package.json
mkdir -p source/_posts
post() { printf -- "---\ntitle: '%s'\ndate: %s 10:00:00\n---\n%s\n" "$2" "$3" "$4" >"source/_posts/$1.md"; }
drop() { rm "source/_posts/$1.md"; }
build() {
	printf 'url: %s\ntitle: s\nauthor: a\ntimezone: UTC\npermalink: :title/\npublic_dir: site\nupdated_option: date\n' "$1" >_config.yml
	npx --no hexo clean >build.log 2>&1 && npx --no hexo generate >build.log 2>&1
}
live atom.xml
row
