package feedstate

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
)

const rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title></channel></rss>`

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday

func header(pairs ...string) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	return s
}

// client returns a client for which the whole loopback network is public.
func client(t testing.TB, change ...func(*fetch.Config)) *fetch.Client {
	t.Helper()
	cfg := fetch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, f := range change {
		f(&cfg)
	}
	c := fetch.NewClient(cfg)
	t.Cleanup(c.Close)
	return c
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

// dueAt is [Due] for the state in a directory.
func dueAt(dir string, now time.Time) bool {
	due, _ := isDue(func(name string) (time.Time, bool) { return mtime(filepath.Join(dir, name)) }, now)
	return due
}

// value returns the text of a file, or "-" if the file does not exist.
func value(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Next returns when the feed is due, zero for at once.
func (s *Schedule) Next() time.Time { t, _ := s.values.Time(fileNext); return t }

// LastError returns the error of the last fetch, "" if it succeeded.
func (s *Schedule) LastError() string { return s.values.Get(fileError) }
