package fetch

import (
	"bytes"
	"compress/gzip"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/lektordir/lektor/internal/http/httpmsg"
)

const rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title></channel></rss>`

// serveOn starts a server on an address of the loopback network; some systems have only 127.0.0.1.
func serveOn(t testing.TB, ip string, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		if ip == "127.0.0.1" {
			t.Fatal(err)
		}
		t.Skipf("this system has no address %s: %v", ip, err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	return serveOn(t, "127.0.0.1", h)
}

// client returns a client for which the whole loopback network is public.
func client(t testing.TB, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Deadline: time.Minute, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, f := range change {
		f(&cfg)
	}
	c := NewClient(cfg)
	t.Cleanup(c.Close)
	return c
}

func get(t testing.TB, c *Client, url string) *httpmsg.Response {
	t.Helper()
	res, err := c.Get(t.Context(), &httpmsg.Request{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func getErr(t testing.TB, c *Client, url string) error {
	t.Helper()
	res, err := c.Get(t.Context(), &httpmsg.Request{URL: url})
	if err == nil {
		t.Fatalf("no error, but %d with %d bytes", res.Status, len(res.Body))
	}
	return err
}

func write(t testing.TB, dir, name, value string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o666); err != nil {
		t.Fatal(err)
	}
}

func compress(t testing.TB, coding string, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	switch coding {
	case "gzip":
		z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	case "br":
		w = brotli.NewWriterLevel(&buf, 2)
	case "zstd":
		z, err := zstd.NewWriter(&buf, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		t.Fatal("unknown coding ", coding)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
