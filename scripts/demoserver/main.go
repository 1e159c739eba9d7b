// Demoserver serves the feeds of "make demo" on a port of 127.0.0.1 that the
// kernel chooses. It prints its address, then serves until it is killed or its
// standard input ends.
package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/server"
)

//go:embed feeds
var feeds embed.FS

// types are what servers say about such documents, right or (the last) wrong.
var types = map[string]string{
	".rss":  "application/rss+xml; charset=utf-8",
	".atom": "application/atom+xml",
	".rdf":  "text/xml",
	".json": "application/feed+json",
	".xml":  "text/plain",
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("demoserver: ")
	s, err := server.New("127.0.0.1")
	if err != nil {
		log.Fatal(err)
	}
	err = fs.WalkDir(feeds, "feeds", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		doc, err := feeds.ReadFile(name)
		name = strings.TrimSuffix(strings.TrimPrefix(name, "feeds"), "index.html")
		s.Handle(name, server.Doc(types[path.Ext(name)], string(doc)))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.URL(""))
	io.Copy(io.Discard, os.Stdin)
	s.Close()
}
