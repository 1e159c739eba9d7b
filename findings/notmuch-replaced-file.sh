#!/bin/sh
# notmuch goes on showing the old subject, and finding the old words, of a message whose file was replaced by a newer one with the same Message-ID
# Input: an entry as a mail; its update has the same Message-ID; first both are there, then the old file is removed
# Guess: subject=Final apples=0 pears=1
# Seen with notmuch 0.37-1+b1: subject=Draft apples=1 pears=1
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" notmuch 2>/dev/null)" = 0.37-1+b1 ] || apt-get install -y --no-install-recommends notmuch=0.37-1+b1 >/dev/null
export HOME="$T" NOTMUCH_CONFIG="$T/conf"
mkdir -p M/new M/cur M/tmp
printf '[database]\npath=%s/M\n[user]\nname=a\nprimary_email=a@a.example\n' "$T" >conf
put() { printf 'From: A <a@a.example>\nSubject: %s\nDate: Tue, 02 Jan 2024 03:04:05 +0000\nMessage-ID: <1@a.example>\n\n%s\n' "$1" "$2" >"M/new/$3"; notmuch new >/dev/null 2>&1; }
put Draft apples 1.a
put Final pears 2.a
rm M/new/1.a; notmuch new >/dev/null 2>&1
got="subject=$(notmuch search --format=json '*' | grep -o '"subject": "[^"]*"' | cut -d'"' -f4) apples=$(notmuch count apples) pears=$(notmuch count pears)"
guess='subject=Final apples=0 pears=1'
want='subject=Draft apples=1 pears=1'
echo "version: notmuch 0.37-1+b1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
