package lektordir

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is an injected clock; sleeping moves it on.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{now: time.Unix(1700000000, 123456000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return nil
}

const feedID = "http://example.com/rss.xml"

var feedHash = FeedHash(feedID)

// newDir makes a lektor-dir with an injected clock, host and pid.
func newDir(t *testing.T) (*Dir, *clock) {
	t.Helper()
	c := newClock()
	d, err := Create(filepath.Join(t.TempDir(), "feeds"), &Options{Now: c.Now, Sleep: c.Sleep, Host: "host", PID: 42})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// writer opens a writer that ends with the test.
func writer(t *testing.T, d *Dir) *Writer {
	t.Helper()
	w, err := d.NewWriter(WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// version is a version of the entry with an id.
func sample(id, content string) version {
	rest := digestOf(id, content)
	return version{
		Entry:    Entry{Title: "Title of " + id, ID: id, Content: []byte(content)},
		Identity: digestOf("guid", id),
		Key:      key{Link: [4]byte{1}, Rest: [4]byte(rest[:4])},
		Content:  digestOf("content", content),
	}
}

// commit commits and waits.
func commit(t *Txn) error {
	ch := make(chan error)
	t.Commit(func(err error) { ch <- err })
	err := <-ch
	t.Close()
	return err
}

// deliver delivers versions in one transaction.
func deliver(t *testing.T, d *Dir, vs ...version) []Ref {
	t.Helper()
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if _, err := tx.add(context.Background(), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := commit(tx); err != nil {
		t.Fatal(err)
	}
	return tx.Delivered()
}

// list lists all entries and fails on errors.
func list(t *testing.T, d *Dir, o ListOptions) []Ref {
	t.Helper()
	refs, err := d.List(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

// paths gives the paths of entries.
func paths(refs []Ref) []string {
	var ps []string
	for _, r := range refs {
		ps = append(ps, r.Path())
	}
	return ps
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tree lists the files and directories below a directory of the lektor-dir.
func tree(t *testing.T, d *Dir, sub string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(d.Join(sub), func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(d.Join(sub), p)
		if rel != "." {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// shell runs a script in the lektor-dir.
func shell(t *testing.T, d *Dir, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-eu", "-c", script)
	cmd.Dir = d.Path()
	cmd.Env = append(os.Environ(), "LEKTORDIR="+d.Path(), "HASH="+feedHash)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errOut.String())
	}
	return string(out)
}

// Len counts the lines that count.
func (j *journal) Len() int { return len(j.ends) - j.bad() }
