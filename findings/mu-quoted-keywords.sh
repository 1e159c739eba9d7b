#!/bin/sh
# mu divides the header Keywords at each space, so that the category "Q & A" is three tags, with the quotation marks
# Input: a message with two keywords, which RFC 5322 separates by commas; the second one is quoted, as it has a sign
# Guess: News+Q & A
# Seen with maildir-utils 1.8.14-1: News,+"Q+&+A"
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" maildir-utils 2>/dev/null)" = 1.8.14-1 ] || apt-get install -y --no-install-recommends maildir-utils=1.8.14-1 >/dev/null
mkdir -p box/in/new box/in/cur box/in/tmp
printf 'From: a@a.example\nTo: b@a.example\nSubject: s\nDate: Fri, 02 Jan 2026 03:04:05 +0000\nMessage-ID: <1@a.example>\nKeywords: News, "Q & A"\n\nx\n' >box/in/new/1
export HOME="$T"
mu init --muhome="$T/mu" --maildir="$T/box" >/dev/null 2>&1
mu index --muhome="$T/mu" >/dev/null 2>&1
got=$(mu find --muhome="$T/mu" --format=json '' | /usr/bin/python3 -c 'import json, sys; print("+".join(json.load(sys.stdin)[0].get(":tags", [])))')
guess='News+Q & A'
want='News,+"Q+&+A"'
echo "version: maildir-utils 1.8.14-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
