#!/bin/sh
# RSS Guard, as a client of lektor-serve
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb rssguard 4.0.4+dfsg-1+b1
client '^TestRSSGuard'
row
