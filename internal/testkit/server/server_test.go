package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// get requests a path and returns the status, and the part of the body that arrived.
func get(t *testing.T, s *Server, path string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.URL(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(body)
}

func TestServer(t *testing.T) {
	s, err := New("127.0.0.3")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	root := t.TempDir()
	s.Serve(root)
	for name, text := range map[string]string{"a.xml": "doc", "b.http": "201 Created\nX: y\n\nfirst $URL", "b.http.3": "404 Not Found\n\nthird"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s.Handle("/seq", Answer(500, "one"), Doc("text/xml", "two"))
	s.Handle("/cut", Cut("0123456789", 4))
	for i, want := range []struct {
		path, body string
		status     int
	}{
		{"/a.xml", "doc", 200}, {"/b", "first " + s.URL(""), 201}, {"/b", "first " + s.URL(""), 201}, {"/b", "third", 404}, {"/b", "third", 404},
		{"/seq", "one", 500}, {"/seq", "two", 200}, {"/seq", "two", 200}, {"/cut", "0123", 200}, {"/../x", "", 404},
	} {
		status, body := get(t, s, want.path)
		if status != want.status || want.body != "" && body != want.body {
			t.Errorf("%d %s: %d %q", i, want.path, status, body)
		}
	}
	if n := len(s.Requests("/b")); n != 4 || s.Requests("/b")[3].Status != 404 {
		t.Errorf("%d requests", n)
	}
	s.Forget("/b")
	if len(s.Requests("/b")) != 0 || len(s.Requests("")) != 6 {
		t.Error("not forgotten")
	}
	if status, body := get(t, s, "/b"); status != 404 || body != "third" {
		t.Errorf("the sequence began anew: %d %s", status, body)
	}
	if status, _ := get(t, s, "/seq", "If-None-Match", `W/"x"`); status != 200 {
		t.Errorf("another validator: %d", status)
	}
	if n := strings.Count(RSS("x", 5, 3), "<item>"); n != 3 {
		t.Errorf("%d items", n)
	}
}

// TestPort: a reserved port is assigned to no other socket, refuses connections, and can be
// listened on.
func TestPort(t *testing.T) {
	port, free, err := Port(true)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if runtime.GOOS != "linux" {
		t.Skip("ports are not kept here")
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for range 2 {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, %v; want errors.Is(err, syscall.ECONNREFUSED)", c, err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
}
