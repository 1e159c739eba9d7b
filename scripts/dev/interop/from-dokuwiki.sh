#!/bin/sh
# DokuWiki, by the feed of its changes: RSS 1.0 by default, and Atom
# Guess: all agrees; each change has a link of its own
# Seen: as guessed; the feed is kept for five minutes by default
# shellcheck source=scripts/dev/interop/lib disable=SC2016
. "$(dirname "$0")/lib"
deb dokuwiki 0.0.20220731.a-2
cp -rL /usr/share/dokuwiki wiki
rm -rf wiki/data wiki/conf
cp -rL /etc/dokuwiki wiki/conf
cp -rL /var/lib/dokuwiki/data wiki/data
rm -f wiki/inc/preload.php wiki/conf/local.php wiki/conf/dokuwiki.local.php
printf '<?php\n$conf["title"] = "s";\n$conf["useacl"] = 0;\n$conf["rss_update"] = 1;\n$conf["savedir"] = "./data";\n' >wiki/conf/local.php
page() { printf '%s\n' "$3" >page && php wiki/bin/dwpage.php commit -m "$2" page "$1" >edit.log 2>&1; }
P=$(port)
page one 'a page' '====== One ======'
start php -S "127.0.0.1:$P" -t wiki
URL=http://127.0.0.1:$P
answers "$URL/feed.php"
follow "$URL/feed.php"
step 'first fetch' 'one - a page'
sleep 2 # the feed is kept for a second here, for five minutes by default
page one 'a correction' '====== One ======

Text'
page two new '====== Two & more ======'
step 'an edit and a page' 'one - a correction|two - new'
printf '$conf["baseurl"] = "https://b.example";\n' >>wiki/conf/local.php
step 'another host, https' ''
moved "$URL/feed.php?type=atom1"
step 'Atom for RSS' ''
now 'one - a correction|one - a page|two - new'
row
