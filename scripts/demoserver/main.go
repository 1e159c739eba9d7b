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
	"net"
	"net/http"
	"os"
	"path"
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
	root, err := fs.Sub(feeds, "feeds")
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	files := http.FileServerFS(root)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := types[path.Ext(r.URL.Path)]; t != "" {
			w.Header().Set("Content-Type", t)
		}
		// Embedded files have no time; something must make a refetch cheap.
		w.Header().Set("ETag", `"demo-1"`)
		files.ServeHTTP(w, r)
	})}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}
