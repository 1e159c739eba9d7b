#!/bin/sh
# Hugo, a generator of sites: RSS
# Guess: all agrees but another host, since the guid is the URL of the page
# Seen: as guessed, since lektor-fetch knows a site that has moved; before, another host was a flood
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb hugo 0.111.3-1
mkdir -p content/posts layouts/_default
echo '{{.Title}}' | tee layouts/_default/single.html layouts/_default/list.html >layouts/index.html
post() { printf -- "---\ntitle: '%s'\ndate: %sT10:00:00Z\n---\n%s\n" "$2" "$3" "$4" >"content/posts/$1.md"; }
drop() { rm "content/posts/$1.md"; }
build() {
	printf 'baseURL = "%s/"\ntitle = "s"\n' "$1" >config.toml
	hugo --quiet --cleanDestinationDir -d site
}
live posts/index.xml
row
