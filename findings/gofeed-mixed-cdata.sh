#!/bin/sh
# gofeed drops the words before a CDATA section, and shows the source of a comment
# Input: an RSS title that holds plain text, a CDATA section and a comment, as templates with two parts write it
# Guess: News: Q & A today
# Seen with gofeed v1.3.0: Q & A today<!-- draft -->
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
export GOFLAGS=-mod=mod GOMAXPROCS=1
printf "module probe\n\ngo 1.23\n" >go.mod
cat >main.go <<'G'
package main

import (
	"fmt"

	"github.com/mmcdole/gofeed"
)

func main() {
	f, err := gofeed.NewParser().ParseString(`<rss version="2.0"><channel><title>t</title><link>http://a.example/</link><description>d</description>
<item><title>News: <![CDATA[Q & A]]> today<!-- draft --></title></item></channel></rss>`)
	if err != nil {
		panic(err)
	}
	fmt.Print(f.Items[0].Title)
}
G
go get github.com/mmcdole/gofeed@v1.3.0 2>/dev/null
got=$(go run .)
guess='News: Q & A today'
want='Q & A today<!-- draft -->'
echo "version: gofeed v1.3.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
