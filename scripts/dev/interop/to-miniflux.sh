#!/bin/sh
# Miniflux, a reader with a server, on PostgreSQL: Atom, RSS and JSON Feed
# Guess: all agrees; an edit changes the entry in place
# Seen: entries agree; it has its own ways with a missing title or link and with two authors
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
bin=/usr/lib/postgresql/15/bin
[ -x $bin/postgres ] || skip 'needs postgresql-15'
module miniflux.app/v2@v2.3.5
go build -o miniflux miniflux.app/v2 2>build.log || skip 'go builds no Miniflux'
as() { if [ "$(id -u)" = 0 ]; then (cd / && exec runuser -u postgres -- "$@"); else "$@"; fi; }
mkdir pg
[ "$(id -u)" != 0 ] || { chmod 755 "$T"; chown postgres pg; }
as $bin/initdb -D "$PWD/pg" -A trust -U m -E UTF8 --locale=C >init.log 2>&1
DB=$(port) P=$(port)
start as $bin/postgres -D "$PWD/pg" -p "$DB" -h 127.0.0.1 -k "$PWD/pg"
until $bin/pg_isready -q -h 127.0.0.1 -p "$DB"; do sleep 0.1; done
export DATABASE_URL="postgres://m@127.0.0.1:$DB/postgres?sslmode=disable" RUN_MIGRATIONS=1 CREATE_ADMIN=1
export ADMIN_USERNAME=ann ADMIN_PASSWORD=password LISTEN_ADDR="127.0.0.1:$P" DISABLE_SCHEDULER_SERVICE=1
export FETCHER_ALLOW_PRIVATE_NETWORKS=1 POLLING_LIMIT_PER_HOST=0
start ./miniflux
api() { path=$1; shift; curl -s -u ann:password -H 'Content-Type: application/json' "http://127.0.0.1:$P/v1/$path" "$@"; }
answers "http://127.0.0.1:$P/healthcheck"
mkdir site
serve site
subscribe() { api feeds -d "{\"feed_url\": \"$URL/feed.$1\", \"category_id\": 1}" | tr -dc 0-9 >"id.$1"; }
entries() {
	subscribe "$1"
	api "feeds/$(cat "id.$1")/entries?order=published_at&direction=desc" | /usr/bin/python3 -c '
import html, json, re, sys
for n, e in enumerate(json.load(sys.stdin)["entries"], 1):
    say = lambda name, v: print("%d %s\t%s" % (n, name, v))
    say("title", e["title"]); say("link", e["url"]); say("date", e["published_at"]); say("author", e["author"])
    for t in sorted(e["tags"]): say("category", t)
    for x in e["enclosures"] or []: say("enclosure", "%s %s %s" % (x["url"], x["mime_type"], x["size"]))
    say("text", html.unescape(re.sub("<[^>]*>", "", e["content"])))'
}
title='an entry without a title gets its text for one'
for format in atom rss json; do
	known "$format 1 title" 'Only words' "$title"
	known "$format 3 author" 'Bob, Cy' 'authors are one text'
done
known 'atom 3 link' http://b.example/ 'an entry without a link gets the page of the feed'
known 'rss 3 link' 'https://a.example/2.mp3?x=1&y=2' 'an entry without a link gets its audio'
known 'rss 3 author' Cy 'it has the last author of several in RSS'
reads 'atom rss json' 'title link date author category enclosure text'
reload() {
	if [ -s "id.$1" ]; then api "feeds/$(cat "id.$1")/refresh" -X PUT >/dev/null; else subscribe "$1"; fi
	api "feeds/$(cat "id.$1")/entries" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["total"])'
}
for format in atom rss json; do api "feeds/$(cat "id.$format")" -X DELETE && rm "id.$format"; done
relives 'atom rss json'
row
