package httpserver

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"
)

// serving serves a handler at a door while do runs.
func serving(t *testing.T, d *Door, s *http.Server, do func()) {
	t.Helper()
	if err := d.Serve(t.Context(), s, func(context.Context) error { do(); return nil }); err != nil {
		t.Error(err)
	}
}

// door returns a door on a free port.
func door(t *testing.T, most int) *Door {
	t.Helper()
	d, err := Open(Options{Address: "127.0.0.1:0", MaxConns: most}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// get makes a request, and reports whether its connection was used before.
func get(t *testing.T, c *http.Client, url string) (protocol string, reused bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }}
	r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "here" {
		t.Fatalf("got %q, %v", b, err)
	}
	return resp.Proto, reused
}

var here = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })

// Connections of a persistent server serve many requests, with TLS by HTTP/2. Those of others serve one.
func TestPersistent(t *testing.T) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	for _, tc := range []struct {
		tls, persistent bool
		protocol        string
	}{
		{false, false, "HTTP/1.1"},
		{false, true, "HTTP/1.1"},
		{true, false, "HTTP/1.1"},
		{true, true, "HTTP/2.0"},
	} {
		d, s, url := door(t, 8), NewServer(here, silent{}), "http://"
		if tc.tls {
			d.tls, url = &tls.Config{Certificates: cert.TLS.Certificates}, "https://"
		}
		if tc.persistent {
			Persistent(s)
		}
		c := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		serving(t, d, s, func() {
			defer c.CloseIdleConnections()
			get(t, c, url+d.Addr().String())
			protocol, reused := get(t, c, url+d.Addr().String())
			if protocol != tc.protocol || reused != tc.persistent {
				t.Errorf("%+v: got %s, reused: %v", tc, protocol, reused)
			}
		})
	}
}

// Each answer has its own deadline: one that a handler has extended is not that of the next answer.
func TestDeadlinePerAnswer(t *testing.T) {
	d, wrote := door(t, 8), make(chan error, 1)
	s := Persistent(NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.URL.Path == "/past" {
			control.SetWriteDeadline(time.Unix(1, 0))
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			wrote <- err
			return
		}
		if err := control.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "here")
	}), silent{}))
	serving(t, d, s, func() {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		get(t, c, "http://"+d.Addr().String())
		if resp, err := c.Get("http://" + d.Addr().String() + "/past"); err == nil {
			resp.Body.Close()
		}
		if err := <-wrote; err == nil {
			t.Error("an answer past its deadline was written")
		}
		get(t, c, "http://"+d.Addr().String())
	})
}

// At the limit, connections without a request are closed first, although another is older.
func TestLimitClosesIdleFirst(t *testing.T) {
	d, begun, end := door(t, 16), make(chan bool), make(chan bool)
	s := Persistent(NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			begun <- true
			<-end
		}
		io.WriteString(w, "here")
	}), silent{}))
	serving(t, d, s, func() {
		dial := func(path string) *bufio.Reader {
			c, err := net.Dial("tcp", d.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			return bufio.NewReader(c)
		}
		answer := func(c *bufio.Reader) {
			t.Helper()
			resp, err := http.ReadResponse(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "here" {
				t.Errorf("got %q, %v", b, err)
			}
		}
		busy := dial("/busy")
		<-begun
		for range 60 {
			answer(dial("/"))
		}
		end <- true
		answer(busy)
	})
}

// While many connections send nothing or very little, clients of a persistent server are served.
func TestPersistentSlowSenders(t *testing.T) {
	d := door(t, 16)
	serving(t, d, Persistent(NewServer(here, silent{})), func() {
		kept := &http.Client{Transport: &http.Transport{}}
		defer kept.CloseIdleConnections()
		for i := range 200 {
			c, err := net.Dial("tcp", d.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			switch i % 4 {
			case 1:
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
			case 2:
				io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nx")
			case 3: // it answers and waits for the next request
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			}
			if i%20 == 0 {
				get(t, kept, "http://"+d.Addr().String())
			}
		}
	})
}
