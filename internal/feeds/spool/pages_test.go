package spool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// Each lists the pages of a feed without their articles, and skips damaged ones.
func TestPages(t *testing.T) {
	d := must.Get(lektordir.Create(filepath.Join(t.TempDir(), "d"), nil))
	hash := lektordir.FeedHash("http://a.example/")
	pages := must.Get(PagesOf(d, hash))
	const count, size = 50, 1 << 20
	next := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	want := map[string]Page{}
	for i := range count {
		p := Page{URL: fmt.Sprintf("http://a.example/%d", i), Final: "http://a.example/", ETag: `"x"`}
		switch i % 3 {
		case 0:
			p.Article = bytes.Repeat([]byte{byte('a' + i%7)}, size)
		case 1:
			p.Refused = strings.Repeat("because", 1000) // longer than a buffer
		case 2:
			p.Tries, p.Next = 2, next
		}
		must.Do(pages.Put(&p))
		if got := must.Get(pages.Get(p.URL)); got == nil || !bytes.Equal(got.Article, p.Article) || got.Text != p.Text || (p.Text == "") != (p.Article == nil) {
			t.Fatalf("page %d: %+v", i, got)
		}
		p.Article = nil
		want[p.URL] = p
	}
	var found []*Page
	must.Do(pages.Each(func(p *Page) { found = append(found, p) }))
	if len(found) != count {
		t.Errorf("%d pages of %d", len(found), count)
	}
	for _, p := range found {
		w := want[p.URL]
		if fmt.Sprint(*p) != fmt.Sprint(w) {
			t.Errorf("%s: %.60q, want %.60q", p.URL, fmt.Sprint(*p), fmt.Sprint(w))
		}
	}

	// A file that was not synced may be cut off or contain zeros after a power cut.
	path := pages.path("http://a.example/0")
	whole := must.Get(os.ReadFile(path))
	for _, damaged := range [][]byte{nil, whole[:10], whole[:100], whole[:len(whole)-1], make([]byte, len(whole)), append(bytes.Clone(whole[:4096]), make([]byte, len(whole)-4096)...)} {
		must.Do(os.WriteFile(path, damaged, 0o600))
		if p, err := pages.Get("http://a.example/0"); p != nil || err != nil {
			t.Errorf("damaged file of %d bytes: %.100v, %v", len(damaged), p, err)
		}
		must.Do(pages.Each(func(p *Page) {
			if _, ok := want[p.URL]; !ok {
				t.Errorf("damaged file of %d bytes: %.100v", len(damaged), p)
			}
		}))
	}
}
