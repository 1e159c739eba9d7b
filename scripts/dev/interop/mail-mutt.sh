#!/bin/sh
# mutt: a maildir and a mailbox
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb "${MUTT:=mutt}" "${MUTT_VERSION:-2.2.12-0.1~deb12u2}"
command -v script >/dev/null || skip 'needs script'
printf 'set sort=reverse-date date_format="!%%Y-%%m-%%dT%%H:%%M:%%SZ" index_format="#%%C~%%s~%%D~%%n~"\nset mbox_type=mbox folder=%s charset=utf-8\n' \
	"$PWD" >muttrc
index() {
	TERM=vt100 script -qec "stty cols 150 rows 30; $MUTT -n -F muttrc -R -f $1 -e 'push q'" screen </dev/null >/dev/null 2>&1
	grep -aoE '#?[1-3]~[^~]*~[^~]*~[^~]*~' screen | tr -d '#' | sort -u |
		awk -F '~' '{ print $1 " subject\t" $2; print $1 " date\t" $3; print $1 " from\t" $4 }'
}
for box in all.mbox mail; do
	messages() { index "$box"; }
	mails 'subject date from'
done
row
