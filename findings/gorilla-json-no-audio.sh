#!/bin/sh
# gorilla/feeds writes the audio of an item into Atom and RSS, and leaves it out of the JSON Feed
# Input: an item with an enclosure of the type audio/mpeg
# Guess: atom=true rss=true json=true
# Seen with gorilla/feeds v1.2.0: atom=true rss=true json=false
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
	"strings"
	"time"

	"github.com/gorilla/feeds"
)

func main() {
	at := time.Unix(1704164645, 0).UTC()
	f := &feeds.Feed{Title: "t", Link: &feeds.Link{Href: "http://a.example/"}, Created: at}
	f.Add(&feeds.Item{Title: "i", Id: "urn:x:1", Link: &feeds.Link{Href: "http://a.example/1"}, Created: at,
		Enclosure: &feeds.Enclosure{Url: "http://a.example/1.mp3", Length: "5", Type: "audio/mpeg"}})
	a, _ := f.ToAtom()
	r, _ := f.ToRss()
	j, _ := f.ToJSON()
	has := func(s string) bool { return strings.Contains(s, "1.mp3") }
	fmt.Printf("atom=%t rss=%t json=%t", has(a), has(r), has(j))
}
G
go get github.com/gorilla/feeds@v1.2.0 2>/dev/null
got=$(go run .)
guess='atom=true rss=true json=true'
want='atom=true rss=true json=false'
echo "version: gorilla/feeds v1.2.0"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
