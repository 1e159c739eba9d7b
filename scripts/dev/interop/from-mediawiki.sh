#!/bin/sh
# MediaWiki, by the feeds of its changes and new pages: Atom, whose ids are the URLs of the changes
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib disable=SC2016
. "$(dirname "$0")/lib"
deb mediawiki 1:1.39.17-1+deb12u2
wiki=/usr/share/mediawiki
P=$(port)
php $wiki/maintenance/install.php --dbtype sqlite --dbpath "$PWD" --dbname w --confpath "$PWD" \
	--server "http://127.0.0.1:$P" --scriptpath '' --pass 'a long password' s admin >install.log 2>&1
printf '$wgFeedCacheTimeout = 0;\n$wgEnableUploads = false;\n$wgMainCacheType = CACHE_NONE;\n' >>LocalSettings.php
export MW_CONFIG_FILE="$PWD/LocalSettings.php"
page() { printf '%s\n' "$3" | php $wiki/maintenance/edit.php -u admin -s "$2" "$1" >edit.log 2>&1; }
start php -S "127.0.0.1:$P" -t $wiki
URL=http://127.0.0.1:$P
answers "$URL/api.php"
follow "$URL/api.php?action=feedrecentchanges&feedformat=atom"
step 'first fetch' 'Main Page'
page One 'a page' 'The first text.'
step 'new page' One
page One 'a correction' 'The first text, corrected.'
page 'Two & more' 'two' 'The second text.'
step 'an edit and a page' 'One|Two & more'
php $wiki/maintenance/edit.php -u admin One <"$MW_CONFIG_FILE" >edit.log 2>&1
step 'edit without a comment' One
echo '$wgServer = "https://b.example";' >>LocalSettings.php
step 'another host, https' ''
moved "$URL/api.php?action=feedrecentchanges&feedformat=rss"
step 'RSS for Atom' ''
now 'Main Page|One|One|One|Two & more'
row
