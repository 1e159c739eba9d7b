#!/bin/sh
# mblaze, mail for the shell: a maildir
# Guess: the name of a sender with commas is cut if it is encoded (findings/mblaze-encoded-comma.sh); here none is
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb mblaze 1.1-1
messages() {
	mlist mail | mblaze-sort -dr >list
	n=0
	while read -r m; do
		n=$((n + 1))
		printf '%s subject\t%s\n%s date\t%s\n' $n "$(mhdr -d -h subject "$m")" $n "$(mhdr -D -h date "$m" | sed 's/^/@/' | date -u -f - +%FT%TZ)"
		printf '%s from\t%s\n' $n "$(maddr -d -h from "$m" | sed 's/ <.*//; s/"//g')"
	done <list
}
mails 'subject date from'
row
