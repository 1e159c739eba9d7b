#!/bin/sh
# s-nail, the program mail: a mailbox
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb s-nail 14.9.24-2
messages() {
	for n in 1 2 3; do
		s-nail -:/ -R -Sttycharset=utf-8 -Y "type $((4 - n))" -Y xit -f all.mbox 2>/dev/null </dev/null |
			sed -n "s/^Subject: /$n subject	/p; s/^From: \"*\([^\"]*\)\"* <.*/$n from	\1/p"
	done
}
mails 'subject from'
row
