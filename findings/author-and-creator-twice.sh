#!/bin/sh
# three readers list one person twice if an RSS item names her by author, with the address, and by dc:creator
# Input: an item with author ann@a.com (Ann) and dc:creator Ann, since author must have an address and many readers show only dc:creator
# Guess: feedparser=Ann rowanmanning=Ann elfeed=Ann
# Seen with python3-feedparser 6.0.10-1, @rowanmanning/feed-parser 2.1.5, elpa-elfeed 3.4.1-1: feedparser=Ann+Ann rowanmanning=Ann+Ann elfeed=Ann+Ann
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
if [ "$(dpkg-query -W -f "\${Version}," python3-feedparser elpa-elfeed 2>/dev/null)" != 3.4.1-1,6.0.10-1, ]; then
	apt-get install -y --no-install-recommends python3-feedparser=6.0.10-1 elpa-elfeed=3.4.1-1 emacs-nox >/dev/null
fi
npm init -y >/dev/null 2>&1; npm i --silent --no-audit --no-fund @rowanmanning/feed-parser@2.1.5 >/dev/null 2>&1
cat >f.xml <<'X'
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>e</title><link>http://a.example/1</link><author>ann@a.com (Ann)</author><dc:creator>Ann</dc:creator></item></channel></rss>
X
cat >p.py <<'P'
import feedparser
print("feedparser=" + "+".join(a.get("name", "") for a in feedparser.parse("f.xml").entries[0].authors))
P
cat >p.mjs <<'J'
import { parseFeed } from "@rowanmanning/feed-parser";
import { readFileSync } from "node:fs";
console.log("rowanmanning=" + parseFeed(readFileSync("f.xml", "utf8")).items[0].authors.map((a) => a.name).join("+"));
J
cat >p.el <<'L'
(require 'elfeed)
(with-temp-buffer (insert-file-contents "f.xml")
  (princ (concat "elfeed=" (mapconcat (lambda (a) (plist-get a :name))
    (elfeed-meta (car (elfeed-entries-from-rss "http://a.example/f" (elfeed-xml-parse-region))) :authors) "+"))))
L
got="$(/usr/bin/python3 p.py) $(node p.mjs) $(HOME=$T emacs -Q --batch -L /usr/share/emacs/site-lisp/elpa-src/elfeed-3.4.1 -l p.el 2>/dev/null)"
guess='feedparser=Ann rowanmanning=Ann elfeed=Ann'
want='feedparser=Ann+Ann rowanmanning=Ann+Ann elfeed=Ann+Ann'
echo "version: python3-feedparser 6.0.10-1, @rowanmanning/feed-parser 2.1.5, elpa-elfeed 3.4.1-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
