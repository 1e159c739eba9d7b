package fetcher

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

func TestSource(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a?b.xml", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"example.com":                 "https://example.com",
		"example.com/feed?x=1":        "https://example.com/feed?x=1",
		"localhost:8080/f":            "https://localhost:8080/f",
		"HTTP://Example.com:80/A#b":   "http://example.com/A",
		"feed://example.com/f":        "http://example.com/f",
		"feed:https://example.com/f":  "https://example.com/f",
		"./a?b.xml":                   "file://" + wd + "/a%3Fb.xml",
		"a?b.xml":                     "file://" + wd + "/a%3Fb.xml",
		"exec:date +%s":               "exec:date +%s",
		" https://example.com/feed\t": "https://example.com/feed",
		"file:///etc/motd":            "file:///etc/motd",
	} {
		if got, err := source(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "ftp://example.com/f", "./none.xml"} {
		if got, err := source(in); err == nil {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestPutDate(t *testing.T) {
	e, err := PutOptions{ID: "urn:x", Date: "2026-01-31T12:00:00+02:00"}.entry()
	if err != nil || e.PubDate.Format(time.RFC3339) != "2026-01-31T10:00:00Z" {
		t.Error(e.PubDate, err)
	}
	if _, err := (PutOptions{ID: "urn:x", Date: "yesterday"}).entry(); !errors.As(err, new(*cmdline.UsageError)) || !strings.Contains(err.Error(), "yesterday") {
		t.Errorf("%v", err)
	}
}

// A purge waits for another process that has locked the feed, and prints a message.
func TestPurgeWaits(t *testing.T) {
	r, s, _ := setup(t, Options{})
	entry := deliveredOne(t, r, s)
	txn, err := r.Writer.Begin(entry.Feed)
	if err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	streams := cmdline.NewStreams("lektor-fetch", strings.NewReader(""), &said, &said)
	end := make(chan error)
	go func() {
		end <- Remove(t.Context(), RemoveOptions{Common: Common{Dir: r.Dir.Path()}, Feeds: []string{entry.Feed}, Purge: true}, streams)
	}()
	eventually(t, "the message", func() bool {
		return strings.Contains(said.String(), "Feed: another process has locked the feed; waiting for it")
	})
	txn.Close()
	if err := <-end; err != nil || streams.Report.Errors() > 0 {
		t.Errorf("%v: %s", err, said.String())
	}
	for _, path := range []string{r.Dir.Join(entry.Path()), r.Dir.Join("src", entry.Feed)} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
