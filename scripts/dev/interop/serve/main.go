// Serve answers from a directory, or by a CGI program, on a port of 127.0.0.1 that the kernel
// chooses. It prints its URL, and ends with its standard input, as scripts/dev/demoserver does.
//
// usage: serve DIR, or serve --cgi PROGRAM [ARGUMENT…]; the program gets the whole environment.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path"
	"path/filepath"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// site serves the files of a directory with the headers of common servers: the date of the
// file, and a tag made of its date and size.
type site string

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := filepath.Join(string(s), path.Clean("/"+r.URL.Path))
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	}
	http.FileServer(http.Dir(s)).ServeHTTP(w, r)
}

func main() {
	must.Main("serve", func() {
		var handler http.Handler = site(os.Args[1])
		if os.Args[1] == "--cgi" {
			handler = &cgi.Handler{Path: os.Args[2], Args: os.Args[3:], Env: os.Environ()}
		}
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
		go http.Serve(l, handler)
		must.Get(fmt.Printf("http://%s\n", l.Addr()))
		must.Get(io.Copy(io.Discard, os.Stdin))
	})
}
