package schedule

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/testdir"
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

func write(t testing.TB, dir, name, value string) { t.Helper(); testdir.Write(t, dir, name, value) }

// dueAt is [Due] for the state in a directory.
func dueAt(dir string, now time.Time) bool {
	due, _ := isDue(func(name string) (time.Time, bool) { return feedfiles.ModTime(filepath.Join(dir, name)) }, now)
	return due
}

func value(t testing.TB, dir, name string) string { t.Helper(); return testdir.Text(t, dir, name) }

// Next returns when the feed is due, zero for at once.
func (s *Schedule) Next() time.Time { t, _ := s.values.Time(fileNext); return t }

// LastError returns the error of the last fetch, "" if it succeeded.
func (s *Schedule) LastError() string { return s.values.Get(fileError) }
