#!/bin/sh
# newsboat, as a client of lektor-serve by urls-source
# Guess: all agrees; the tests are those of internal/e2e/clients
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb newsboat 2.21-1.5
client '^TestNewsboat$'
row
