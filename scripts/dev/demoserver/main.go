// Demoserver serves the feeds of "make demo" on a port of 127.0.0.1 that the
// kernel chooses. It prints its address, then serves until it is killed or its
// standard input ends.
package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"

	"github.com/lektordir/lektor/internal/testkit/must"
)

//go:embed feeds
var feeds embed.FS

// types are the content types of the documents, as servers send them. The last one is wrong.
var types = map[string]string{
	".rss":  "application/rss+xml; charset=utf-8",
	".atom": "application/atom+xml",
	".rdf":  "text/xml",
	".json": "application/feed+json",
	".xml":  "text/plain",
}

func main() {
	must.Main("demoserver", func() {
		for extension, kind := range types {
			must.Do(mime.AddExtensionType(extension, kind))
		}
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
		go http.Serve(l, http.FileServerFS(must.Get(fs.Sub(feeds, "feeds"))))
		must.Get(fmt.Printf("http://%s\n", l.Addr()))
		must.Get(io.Copy(io.Discard, os.Stdin))
	})
}
