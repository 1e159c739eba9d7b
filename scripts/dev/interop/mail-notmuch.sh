#!/bin/sh
# notmuch, an index of mail: a maildir
# Guess: all agrees; a changed entry is a new message
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb notmuch 0.37-1+b1
messages() {
	printf '[database]\npath=%s/mail\n[user]\nname=a\nprimary_email=a@a.example\n' "$PWD" >config
	export NOTMUCH_CONFIG="$PWD/config"
	notmuch new >/dev/null 2>&1
	notmuch show --format=json --body=false --exclude=false '*' >all.json
	/usr/bin/python3 - <<'P'
import json, email.utils
found = []
def walk(x):
    if isinstance(x, dict) and "headers" in x:
        found.append(x)
    for y in x if isinstance(x, list) else []:
        walk(y)
walk(json.load(open("all.json")))
for n, m in enumerate(sorted(found, key=lambda m: -m["timestamp"]), 1):
    h = m["headers"]
    print("%d subject\t%s\n%d from\t%s" % (n, h["Subject"], n, email.utils.parseaddr(h["From"])[0]))
P
}
mails 'subject from'
lektor-view maildir --dir "$T/published" mail
notmuch new >/dev/null 2>&1
check 'again' 3 "$(notmuch count '*')"
check 'a word of the text' 1 "$(notmuch count 'One and two')"
row
