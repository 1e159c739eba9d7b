#!/bin/sh
# WordPress hides a post that is published with an earlier date behind 304: its ETag is made of the newest date alone
# Input: a post, read with its ETag; then a post that is published with the date of last year, as imports do
# Guess: 200, since the document has an entry more
# Seen with wordpress 6.1.9+dfsg1-0+deb12u1: 304
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"; kill $P 2>/dev/null || :' EXIT
P=
cd "$T"
ver="wordpress 6.1.9+dfsg1-0+deb12u1"
if [ "$(dpkg-query -W -f "\${Version}" wordpress 2>/dev/null)" != 6.1.9+dfsg1-0+deb12u1 ] || ! command -v mariadbd php >/dev/null; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends wordpress=6.1.9+dfsg1-0+deb12u1 php-cli php-mysql mariadb-server >/dev/null
fi
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --datadir="$T/db" --user="$(id -un)" >/dev/null 2>&1
mariadbd --no-defaults --datadir="$T/db" --socket="$T/s" --skip-networking --skip-grant-tables --user="$(id -un)" >/dev/null 2>&1 & P=$!
for _ in $(seq 100); do mariadb -S s -e 'create database w' 2>/dev/null && break; sleep 0.2; done
cp -rL /usr/share/wordpress site
cat >site/wp-config.php <<X
<?php
define("DB_NAME", "w"); define("DB_USER", "root"); define("DB_PASSWORD", ""); define("DB_HOST", "localhost:$T/s");
define("WP_HOME", "http://127.0.0.1:18984"); define("WP_SITEURL", WP_HOME);
define("WP_HTTP_BLOCK_EXTERNAL", true); define("DISABLE_WP_CRON", true);
\$table_prefix = "wp_"; defined("ABSPATH") or define("ABSPATH", __DIR__ . "/");
require ABSPATH . "wp-settings.php";
X
wp() { echo "<?php $1 \$_SERVER += ['HTTP_HOST' => '127.0.0.1']; require 'site/wp-load.php'; $2" >p.php; php p.php >/dev/null 2>&1; }
wp 'define("WP_INSTALLING", true);' 'require "site/wp-admin/includes/upgrade.php"; wp_install("s", "a", "a@a.example", true);'
php -S 127.0.0.1:18984 -t site >/dev/null 2>&1 & P="$P $!"
sleep 2
etag=$(curl -si 'http://127.0.0.1:18984/?feed=rss2' | tr -d '\r' | sed -n 's/^ETag: //p')
[ -n "$etag" ]
wp '' 'wp_insert_post(["post_title" => "Old", "post_content" => "Text", "post_status" => "publish", "post_date" => "2025-01-02 03:04:05"]);'
curl -s 'http://127.0.0.1:18984/?feed=rss2' | grep -q '<title>Old</title>'
got=$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match: $etag" 'http://127.0.0.1:18984/?feed=rss2')
guess='200'
want='304'
echo "version: $ver"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
