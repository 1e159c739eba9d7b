#!/bin/sh
# public-inbox, an archive of mail: Atom
# Guess: all agrees; the id is made of the Message-ID
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb public-inbox 1.9.0-1
export PI_CONFIG="$PWD/conf"
public-inbox-init -V2 list "$PWD/in" http://a.example/list list@a.example >init.log 2>&1
git config -f conf publicinboxmda.spamcheck none
mail() {
	printf 'From: A <a@a.example>\nTo: list@a.example\nSubject: %s\nDate: %s 10:00:00 +0000\nMessage-ID: <%s@a.example>\n\n%s\n' \
		"$2" "$3" "$1" "$4" | ORIGINAL_RECIPIENT=list@a.example public-inbox-mda --no-precheck 2>/dev/null
}
mail 1 One 'Thu, 01 Jan 2026' 'The first text.'
mail 2 'Two & more' 'Fri, 02 Jan 2026' 'The second text.'
P=$(port)
start public-inbox-httpd -W0 -l "127.0.0.1:$P"
URL=http://127.0.0.1:$P/list/new.atom
answers "$URL"
follow "$URL"
step 'first fetch' 'One|Two & more'
mail 3 'Re: Two & more' 'Sat, 03 Jan 2026' 'The third text.'
step 'new message' 'Re: Two & more'
mail 4 Four 'Fri, 02 Jan 2026' 'The fourth text.'
step 'message, dated back' Four
mail 1 One 'Thu, 01 Jan 2026' 'The first text.'
step 'the same message' ''
moved "http://localhost:$P/list/new.atom"
step 'another host' ''
now 'Four|One|Re: Two & more|Two & more'
row
