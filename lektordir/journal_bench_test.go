package lektordir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
)

// pastItems gives items of a document whose newest has number n.
func pastItems(n, count int) []Item {
	items := make([]Item, count)
	for i := range items {
		k := n - i
		items[i] = Item{GUID: fmt.Sprint("urn:", k), Entry: Entry{
			ID: fmt.Sprint("urn:", k), Title: fmt.Sprint("Entry ", k), Link: fmt.Sprint("http://example.com/", k),
			Content: []byte("<p>Text of the entry.</p>"), Type: "text/html", PubDate: time.Unix(1600000000+int64(k), 0),
		}}
	}
	return items
}

// past writes the journal of a feed that delivered n entries.
func past(tb testing.TB, d *Dir, n int) {
	tb.Helper()
	var b []byte
	items, _ := identify(Document{Items: pastItems(n, n)})
	for i := len(items) - 1; i >= 0; i-- {
		it := items[i]
		at := time.Unix(1700000000+int64(n-i), 0)
		b = record{
			Identity: it.identity, Key: it.key, Content: it.content,
			Unique: entryname.Unique(at, 12345, int64(n-i), it.identity.String(), "host.example"),
		}.appendTo(b)
	}
	path := d.journalPath(feedHash)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkPast compares a document of 30 entries, of which none is new, with what
// a feed delivered before.
func BenchmarkPast(b *testing.B) {
	for _, n := range []int{50, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := Create(filepath.Join(b.TempDir(), "d"), nil)
			if err != nil {
				b.Fatal(err)
			}
			past(b, d, n)
			w, err := d.NewWriter(WriterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			items := pastItems(n, 30)
			for b.Loop() {
				tx, err := w.Begin(feedHash)
				if err != nil {
					b.Fatal(err)
				}
				res, err := tx.Stage(b.Context(), Document{Items: items})
				if err != nil || res.Unchanged != len(items) {
					b.Fatal(res, err)
				}
				tx.Close()
			}
		})
	}
}
