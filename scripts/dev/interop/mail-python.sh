#!/bin/sh
# Python's mailbox and email: a mailbox and a maildir
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
[ -x /usr/bin/python3 ] || skip 'needs python3'
# shellcheck disable=SC2034 # for row
VERSIONS=$(/usr/bin/python3 --version)
cat >read.py <<'P'
import mailbox, sys, email, email.policy, email.utils
box = mailbox.mbox("all.mbox") if sys.argv[1] == "mbox" else mailbox.Maildir("mail", create=False)
found = [email.message_from_bytes(m.as_bytes(), policy=email.policy.default) for m in box]
for n, m in enumerate(sorted(found, key=lambda m: m["date"].datetime, reverse=True), 1):
    print("%d subject\t%s\n%d from\t%s" % (n, m["subject"], n, m["from"].addresses[0].display_name))
    print("%d date\t%s" % (n, m["date"].datetime.strftime("%Y-%m-%dT%H:%M:%SZ")))
    print("%d text\t%s" % (n, m.get_body(("plain",)).get_content().split("\n")[0]))
    assert not m.defects and not m.get_body(("html",)).defects
P
for kind in mbox maildir; do
	messages() { /usr/bin/python3 read.py "$kind"; }
	mails 'subject from date text'
done
row
