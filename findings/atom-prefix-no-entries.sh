#!/bin/sh
# gofeed and sfeed report neither an entry nor an error for an Atom feed whose elements have a prefix
# Input: one Atom entry, with the namespace bound to a prefix in place of the default one
# Guess: gofeed:title="t" entries=1 sfeed:entries=1 rc=0
# Seen with gofeed v1.3.0, sfeed 1.7-1: gofeed:title="" entries=0 sfeed:entries=0 rc=0
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" sfeed 2>/dev/null)" = 1.7-1 ] || apt-get install -y --no-install-recommends sfeed=1.7-1 >/dev/null
cat >f.xml <<'X'
<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:id>urn:x:f</a:id><a:title>t</a:title><a:updated>2024-01-02T03:04:05Z</a:updated><a:author><a:name>Ann</a:name></a:author><a:entry><a:id>urn:x:1</a:id><a:title>One</a:title><a:updated>2024-01-02T03:04:05Z</a:updated><a:content>x</a:content></a:entry></a:feed>
X
export GOFLAGS=-mod=mod GOMAXPROCS=1
printf "module probe\n\ngo 1.23\n" >go.mod
cat >main.go <<'G'
package main

import (
	"fmt"
	"os"

	"github.com/mmcdole/gofeed"
)

func main() {
	file, _ := os.Open("f.xml")
	f, err := gofeed.NewParser().Parse(file)
	if err != nil {
		panic(err)
	}
	fmt.Printf("title=%q entries=%d", f.Title, len(f.Items))
}
G
go get github.com/mmcdole/gofeed@v1.3.0 2>/dev/null
rc=0; sfeed <f.xml >out || rc=$?
got="gofeed:$(go run .) sfeed:entries=$(wc -l <out) rc=$rc"
guess='gofeed:title="t" entries=1 sfeed:entries=1 rc=0'
want='gofeed:title="" entries=0 sfeed:entries=0 rc=0'
echo "version: gofeed v1.3.0, sfeed 1.7-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
