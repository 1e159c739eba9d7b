#!/bin/sh
# neomutt: a maildir and a mailbox, as mutt shows them
# Guess: all agrees
# Seen: as guessed
# shellcheck disable=SC2034 # for the row of mutt
MUTT=neomutt MUTT_VERSION=20220429+dfsg1-4.1
# shellcheck source=scripts/dev/interop/mail-mutt.sh
. "$(dirname "$0")/mail-mutt.sh"
