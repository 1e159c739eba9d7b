#!/bin/sh
# python feedparser takes the caption of a picture for the summary of the item if the picture stands first, and the subject of the picture for a category of the item
# Input: an RSS item with a description, and a picture with a title, a caption and a category (Media RSS) that stands before or behind it
# Guess: News/Of the town/local News/Of the town/local
# Seen with python3-feedparser 6.0.10-1: News/A cat/animals+local News/Of the town/animals+local
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" python3-feedparser 2>/dev/null)" = 6.0.10-1 ] || apt-get install -y --no-install-recommends python3-feedparser=6.0.10-1 >/dev/null
got=$(/usr/bin/python3 -c '
import feedparser
m="<media:content url=\"http://a.example/1.jpg\" medium=\"image\"><media:title>Cat</media:title><media:description>A cat</media:description><media:category>animals</media:category></media:content>"
d="<description>Of the town</description><category>local</category>"
for i in (m+d,d+m):
    e=feedparser.parse("<rss version=\"2.0\" xmlns:media=\"http://search.yahoo.com/mrss/\"><channel><title>t</title><link>http://a.example/</link><description>d</description><item><title>News</title>%s</item></channel></rss>"%i).entries[0]
    print("%s/%s/%s"%(e.title,e.summary,"+".join(sorted(t.term for t in e.tags))),end=" ")' | sed 's/ $//')
guess='News/Of the town/local News/Of the town/local'
want='News/A cat/animals+local News/Of the town/animals+local'
echo "version: python3-feedparser 6.0.10-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
