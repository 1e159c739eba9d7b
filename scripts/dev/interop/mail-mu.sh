#!/bin/sh
# mu, an index of mail: a maildir
# Guess: all agrees; categories are tags, by the header Keywords
# Seen: a category with a space is several tags (findings/mu-quoted-keywords.sh)
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb maildir-utils 1.8.14-1
messages() {
	mkdir -p box && rm -rf box/in && cp -r mail box/in
	mu init --muhome="$PWD/mu" --maildir="$PWD/box" >/dev/null 2>&1
	mu index --muhome="$PWD/mu" >/dev/null 2>&1
	mu find --muhome="$PWD/mu" --sortfield=date --reverse --format=json '' | /usr/bin/python3 -c '
import json, sys, time
for n, m in enumerate(json.load(sys.stdin), 1):
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(m[":date"][0] * 65536 + m[":date"][1]))
    print("%d subject\t%s\n%d from\t%s\n%d date\t%s" % (n, m[":subject"], n, m[":from"][0][":name"], n, date))
    for tag in m.get(":tags", [""]):
        print("%d category\t%s" % (n, tag))'
}
known '2 category' '"News",|"Q|&|A"' 'it divides Keywords at each space, though names are quoted'
mails 'subject from date category'
check 'a word of the text' 1 "$(mu find --muhome="$PWD/mu" body:two from:ann subject:fish 2>/dev/null | wc -l)"
row
