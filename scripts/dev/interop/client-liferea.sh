#!/bin/sh
# Liferea, as a client of lektor-serve, on a screen without a display
# Guess: marks of others are never taken over by Liferea; the tests allow for that
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb liferea 1.14.4-3
client '^TestLiferea'
row
