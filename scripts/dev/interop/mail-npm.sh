#!/bin/sh
# mailparser and postal-mime, npm parsers of mail
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages mailparser@3.7.2 postal-mime@2.4.3
cat >read.mjs <<'J'
import { simpleParser } from "mailparser";
import PostalMime from "postal-mime";
import { readdirSync, readFileSync } from "node:fs";
const files = readdirSync("mail/new").map((f) => readFileSync("mail/new/" + f));
const parsed = await Promise.all(files.map(async (f) => process.argv[2] === "mailparser" ?
	simpleParser(f).then((m) => ({ ...m, from: m.from.value[0] })) : PostalMime.parse(f)));
parsed.sort((a, b) => new Date(b.date) - new Date(a.date)).forEach((m, n) => {
	console.log(`${n + 1} subject\t${m.subject}\n${n + 1} from\t${m.from.name}\n${n + 1} text\t${m.text.split("\n")[0]}`);
	console.log(`${n + 1} date\t${new Date(m.date).toISOString().replace(".000", "")}`);
});
J
for parser in mailparser postal-mime; do
	messages() { node read.mjs "$parser"; }
	mails 'subject from date text'
done
row
