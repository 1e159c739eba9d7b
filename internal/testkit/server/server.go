// Package server is an HTTP server for tests, on a loopback address. Tests program the answer for
// each path and each request, and can read the requests.
package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is a request that the server received.
type Request struct {
	Method, Path string // Path with the query
	Header       http.Header
	Status       int // status of the answer
}

// Server is a running server. Close ends it.
type Server struct {
	ts *httptest.Server

	mu       sync.Mutex
	root     string
	handlers map[string][]http.HandlerFunc
	counts   map[string]int
	log      []*Request
}

// New starts a server on an address such as "127.0.0.2", on any free port. If the system has no
// other loopback addresses, it uses 127.0.0.1.
func New(addr string) (*Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	s := &Server{handlers: map[string][]http.HandlerFunc{}, counts: map[string]int{}}
	s.ts = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.ts.Listener.Close()
	s.ts.Listener = l
	s.ts.Start()
	return s, nil
}

// Start is like [New], for as long as the test runs.
func Start(t testing.TB, addr string) *Server {
	t.Helper()
	s, err := New(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL returns the server's URL followed by a path.
func (s *Server) URL(path string) string { return s.ts.URL + path }

// Close closes all connections, and ends the server.
func (s *Server) Close() {
	s.ts.CloseClientConnections()
	s.ts.Close()
}

// Serve also serves a directory of documents. A file is served under its path, with an ETag, to
// GET and conditional GET. The file NAME.http, beside it or alone, is a complete answer: a status
// line without the protocol ("404 Not Found"), header lines, an empty line, and the body.
// NAME.http.2 is the answer to the second and later requests, and so on. $URL in these files is
// replaced by the URL of the server.
func (s *Server) Serve(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root = dir
}

// Handle programs the answers to requests for a path. Each handler answers one request, and the
// last one all further requests.
func (s *Server) Handle(path string, handlers ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[path] = handlers
	delete(s.counts, path)
}

// Requests returns the requests for a path so far, or all for "".
func (s *Server) Requests(path string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.log {
		if path == "" || r.Path == path {
			out = append(out, *r)
		}
	}
	return out
}

// Forget forgets the requests for a path. Its sequence of answers continues.
func (s *Server) Forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = slices.DeleteFunc(s.log, func(r *Request) bool { return r.Path == path })
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RequestURI()
	s.mu.Lock()
	n := s.counts[path]
	s.counts[path]++
	entry := &Request{Method: r.Method, Path: path, Header: r.Header.Clone()}
	s.log = append(s.log, entry)
	handlers, root := s.handlers[path], s.root
	s.mu.Unlock()
	rec := &recorder{ResponseWriter: w, status: func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		entry.Status = status
	}}
	switch {
	case len(handlers) > 0:
		handlers[min(n, len(handlers)-1)](rec, r)
	case root != "":
		s.file(rec, r, root, n)
	default:
		http.NotFound(rec, r)
	}
}

// file answers a request from a directory, after n earlier ones.
func (s *Server) file(w http.ResponseWriter, r *http.Request, root string, n int) {
	path := filepath.Join(root, filepath.FromSlash(filepath.Clean("/"+r.URL.Path)))
	for k := n + 1; k >= 1; k-- {
		name := path + ".http"
		if k > 1 {
			name += "." + strconv.Itoa(k)
		}
		if data, err := os.ReadFile(name); err == nil {
			s.raw(w, strings.ReplaceAll(string(data), "$URL", s.ts.URL))
			return
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	Doc("", string(data))(w, r)
}

// raw writes an answer from its text.
func (s *Server) raw(w http.ResponseWriter, text string) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	code, _, _ := strings.Cut(lines[0], " ")
	status, err := strconv.Atoi(code)
	if err != nil {
		status = http.StatusInternalServerError
	}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ":")
		w.Header().Add(k, strings.TrimSpace(v))
	}
	w.WriteHeader(status)
	if status != http.StatusNotModified {
		w.Write([]byte(body))
	}
}

// Doc returns a handler that answers with a document, or with 304 if the client has it. An empty
// contentType is guessed.
func Doc(contentType, body string) http.HandlerFunc {
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body)))
	return func(w http.ResponseWriter, r *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, r.URL.Path, time.Time{}, bytes.NewReader([]byte(body)))
	}
}

// Answer returns a handler that answers with a status, header lines ("Retry-After: 10") and a
// body.
func Answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, h := range header {
			k, v, _ := strings.Cut(h, ":")
			// Header.Set would change the case of odd names.
			w.Header()[k] = append(w.Header()[k], strings.TrimPrefix(v, " "))
		}
		w.WriteHeader(status)
		if status != http.StatusNotModified && status != http.StatusNoContent {
			w.Write([]byte(body))
		}
	}
}

// Stall sends nothing until the client closes the connection.
func Stall(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Endless returns a handler that sends a body without end, until the client closes the
// connection.
func Endless(prefix, again string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat(again, 1+(64<<10)/len(again)))
		if _, err := w.Write([]byte(prefix)); err != nil {
			return
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
}

// Cut returns a handler that announces a body and closes the connection after a part of it.
func Cut(body string, after int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Header().Set("ETag", `"cut"`)
		w.Write([]byte(body[:after]))
		if f, ok := w.(interface{ FlushError() error }); ok {
			f.FlushError()
		}
		panic(http.ErrAbortHandler)
	}
}

// RSS returns an RSS document of n entries, numbered from first.
func RSS(title string, first, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<?xml version="1.0"?><rss version="2.0"><channel><title>%s</title><link>http://example.com/</link><description>d</description>`, title)
	for i := range n {
		fmt.Fprintf(&b,
			"<item><title>%s %d</title><link>http://example.com/%d</link><guid>%s-%d</guid><description>text %d</description></item>", title, first+i, first+i, title, first+i, first+i)
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

// recorder records the status of an answer.
type recorder struct {
	http.ResponseWriter
	status func(int)
	wrote  bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.wrote = true
		r.status(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if !r.wrote {
		r.WriteHeader(http.StatusOK)
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) FlushError() error { return http.NewResponseController(r.ResponseWriter).Flush() }
