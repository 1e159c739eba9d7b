package entrystore

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestKept: a saved file is read if it is a regular file of the owner of its record, and not too large.
func TestKept(t *testing.T) {
	d := testdir.New(t)
	if _, err := d.Feed("http://feed.example/", "Feed"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Entry("http://feed.example/", "new", "1700000000.1.h"); err != nil {
		t.Fatal(err)
	}
	l, err := lektordir.Open(d.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := l.List(t.Context(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := New(l, time.Now(), cmdline.NewStreams("x", nil, io.Discard, io.Discard)).Record(refs[0])
	const url = "http://feed.example/t"
	if r.Saved(url) != "" || r.Kept(url) != nil {
		t.Error("a file before it was saved")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "t.txt")
	if err := os.WriteFile(path, []byte("Said"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := r.SetSaved(url, path); err != nil || r.Saved(url) != path || string(r.Kept(url)) != "Said" {
		t.Errorf("%v, %s, %q", err, r.Saved(url), r.Kept(url))
	}
	if r.Saved(url+"2") != "" {
		t.Error("another URL has the file")
	}
	// A URL is shown without its password.
	if err := r.SetSaved("http://ann:secret@feed.example/p", path); err != nil || string(r.Kept("http://feed.example/p")) != "Said" {
		t.Errorf("%v, %q", err, r.Kept("http://feed.example/p"))
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		if got := r.Kept(url); got != nil {
			t.Errorf("of another owner: %q", got)
		}
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte(strings.Repeat("x", maxKept+1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := r.SetSaved(url, large); err != nil || r.Kept(url) != nil {
		t.Errorf("a large file: %v, %d bytes", err, len(r.Kept(url)))
	}
	for _, odd := range []string{dir, "/dev/zero", filepath.Join(dir, "gone")} {
		if err := r.SetSaved(url, odd); err != nil || r.Saved(url) != "" || r.Kept(url) != nil {
			t.Errorf("%s: %v, %s", odd, err, r.Saved(url))
		}
	}
}
