#!/bin/sh
# WordPress, on MariaDB: RSS and Atom, whose guids stay, with ETag and Last-Modified of its own
# Guess: all agrees; RSS and Atom have the same ids
# Seen: all agrees but a post that is dated back, which 304 hides until the next change (findings/wordpress-etag-newest-date.sh)
# shellcheck source=scripts/dev/interop/lib disable=SC2016
. "$(dirname "$0")/lib"
deb wordpress 6.1.9+dfsg1-0+deb12u1
dpkg-query -W mariadb-server >/dev/null 2>&1 || skip 'needs mariadb-server'
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --datadir="$PWD/db" --user="$(id -un)" >db.log 2>&1
start mariadbd --no-defaults --datadir="$PWD/db" --socket="$PWD/s" --skip-networking --skip-grant-tables --user="$(id -un)"
until mariadb -S s -e 'create database w' 2>/dev/null; do sleep 0.2; done
cp -rL /usr/share/wordpress site
mkdir -p site/wp-content/mu-plugins
P=$(port) && URL=http://127.0.0.1:$P
echo "$URL" >site/base
cat >site/wp-config.php <<P
<?php
define("DB_NAME", "w"); define("DB_USER", "root"); define("DB_PASSWORD", ""); define("DB_HOST", "localhost:$PWD/s");
\$base = trim(file_get_contents(__DIR__ . "/base")); define("WP_HOME", \$base); define("WP_SITEURL", \$base);
define("WP_HTTP_BLOCK_EXTERNAL", true); define("DISABLE_WP_CRON", true);
\$table_prefix = "wp_"; defined("ABSPATH") or define("ABSPATH", __DIR__ . "/");
require ABSPATH . "wp-settings.php";
P
wp() { printf '<?php $_SERVER += ["HTTP_HOST" => "127.0.0.1:%s"]; require "site/wp-load.php"; %s' "$P" "$1" | php; }
printf '<?php define("WP_INSTALLING", true); $_SERVER += ["HTTP_HOST" => "127.0.0.1:%s"]; require "site/wp-load.php";
	require "site/wp-admin/includes/upgrade.php"; wp_install("s", "a", "a@a.example", true); wp_delete_post(1, true);' "$P" | php >install.log 2>&1
# Times are seconds, in the validators too.
post() { sleep 1; wp "echo wp_insert_post([\"post_title\" => '$1', \"post_content\" => '$2', \"post_status\" => 'publish' ${3:-}]);"; }
edit() { sleep 1; wp "wp_update_post([\"ID\" => $1, $2]);"; }
one=$(post One 'The first text.')
two=$(post 'Two & more' 'The second text.')
start php -S "127.0.0.1:$P" -t site
answers "$URL/?feed=rss2"
follow "$URL/?feed=rss2"
step 'first fetch' 'One|Two & more'
post Three 'The third text.' >/dev/null
step 'new post' Three
known 'new post, dated back' '' 'WordPress makes ETag and date from the newest date, and answers 304'
post Zero 'The oldest text.' ', "post_date" => "2026-01-01 10:00:00"' >/dev/null
step 'new post, dated back' Zero
known edited 'One|Zero' 'the post that was dated back comes with the next change'
edit "$one" '"post_content" => "The first text, corrected."'
step edited One
edit "$one" '"post_title" => "Uno"'
step retitled Uno
edit "$two" '"post_date" => "2026-01-03 10:00:00", "post_date_gmt" => "2026-01-03 10:00:00"'
step redated ''
edit "$two" '"post_status" => "draft"'
step withdrawn ''
edit "$two" '"post_status" => "publish"'
step 'published again' ''
printf '<?php add_filter("redirect_canonical", "__return_false");' >site/wp-content/mu-plugins/here.php
echo "https://127.0.0.1:$P" >site/base
step 'http to https' ''
echo https://b.example >site/base
step 'another host' ''
moved "$URL/?feed=atom"
step 'Atom for RSS' ''
now 'Three|Two & more|Uno|Zero'
row
