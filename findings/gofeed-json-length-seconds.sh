#!/bin/sh
# gofeed takes the seconds of a JSON Feed attachment for its length in bytes
# Input: an attachment with size_in_bytes 5000000 and duration_in_seconds 60
# Guess: 5000000
# Seen with gofeed v1.3.0: 60
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
	f, err := gofeed.NewParser().ParseString(`{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":"1","content_text":"x",
"attachments":[{"url":"http://a.example/1.mp3","mime_type":"audio/mpeg","size_in_bytes":5000000,"duration_in_seconds":60}]}]}`)
	if err != nil {
		panic(err)
	}
	fmt.Print(f.Items[0].Enclosures[0].Length)
}
G
go get github.com/mmcdole/gofeed@v1.3.0 2>/dev/null
got=$(go run .)
guess='5000000'
want='60'
echo "version: gofeed v1.3.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
