#!/bin/sh
# GNU mailutils: a mailbox
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb mailutils 1:3.15-4
messages() {
	frm.mailutils -l all.mbox | cut -f 2,3 | nl | sort -nr | cut -f 2,3 | awk -F '\t' '{ print NR " from\t" $1; print NR " subject\t" $2 }'
}
mails 'subject from'
row
