#!/bin/sh
# rss2email, which sends each new entry as a mail, here into a maildir
# Guess: an edit is no new mail; a new entry is one
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb rss2email 1:3.13.1-3
mkdir site
serve site
export XDG_CONFIG_HOME="$PWD/config" XDG_DATA_HOME="$PWD/data"
reload() {
	if [ ! -e "r2e-$1.cfg" ]; then
		printf '[DEFAULT]\nto = a@a.example\nemail-protocol = maildir\nmaildir-path = %s/mail-%s\nmaildir-mailbox = in\n' "$PWD" "$1" >"r2e-$1.cfg"
		mkdir -p "mail-$1"
		r2e -c "r2e-$1.cfg" -d "r2e-$1.json" add "$1" "$URL/feed.$1" >/dev/null 2>&1
	fi
	r2e -c "r2e-$1.cfg" -d "r2e-$1.json" run >run.log 2>&1
	find "mail-$1" -type f | wc -l
}
relives 'atom rss'
row
