package pages

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestIndexed: a site selects entries by the index, and shows the current contents of their files.
func TestIndexed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	d := testdir.New(t)
	const feed = "http://feed.example/"
	if _, err := d.Feed(feed, "Feed"); err != nil {
		t.Fatal(err)
	}
	for i, title := range []string{"One", "Two"} {
		if _, err := d.Entry(feed, "cur", testdir.Unique(1700000000+int64(i), i+1)+";2,S", "title="+title, "content=kernel "+title); err != nil {
			t.Fatal(err)
		}
	}
	ld, err := lektordir.Open(d.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := index.New(ld, index.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
	if err := x.Build(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	title := filepath.Join(d.Path, "cur", testdir.Hash(feed), testdir.Unique(1700000000, 1)+";2,S", "title")
	if err := os.WriteFile(title, []byte("One, put right\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := Common{Dir: d.Path, Query: []string{"kernel"}, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
	var messages bytes.Buffer
	s := cmdline.NewStreams("lektor-pages", strings.NewReader(""), &messages, &messages)
	r, err := c.open(s)
	if err != nil {
		t.Fatal(err)
	}
	view, err := r.Index.Look(context.Background())
	if err != nil || view == nil {
		t.Fatalf("the index is not used: %v %v", view, err)
	}
	view.Close()
	to := filepath.Join(t.TempDir(), "site")
	if err := HTML(t.Context(), HTMLOptions{Common: c, Output: to, PerPage: 10}, s); err != nil || messages.Len() > 0 {
		t.Fatalf("%v: %s", err, &messages)
	}
	page, err := os.ReadFile(filepath.Join(to, "index.html"))
	if err != nil || !bytes.Contains(page, []byte("One, put right")) || !bytes.Contains(page, []byte("Two")) {
		t.Errorf("%v: %s", err, page)
	}
}
