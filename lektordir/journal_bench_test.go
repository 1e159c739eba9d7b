package lektordir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
)

// pastItems returns items of a document whose newest has number n.
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

// past makes the journal of a feed that has delivered n entries, and deletes the entries.
func past(tb testing.TB, d *Dir, n int) {
	tb.Helper()
	w, err := newFetcher(d, commit.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer w.Close()
	tx, err := w.Begin(feedHash)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tx.stageAll(tb.Context(), document("", pastItems(n, n)...)); err != nil {
		tb.Fatal(err)
	}
	if err := end(tx); err != nil {
		tb.Fatal(err)
	}
	if err := os.RemoveAll(d.Join("new", feedHash)); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkPast stages a document of 30 entries, all of which were delivered before.
func BenchmarkPast(b *testing.B) {
	for _, n := range []int{50, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := Create(filepath.Join(b.TempDir(), "d"), nil)
			if err != nil {
				b.Fatal(err)
			}
			past(b, d, n)
			w, err := newFetcher(d, commit.Options{})
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
				res, err := tx.stageAll(b.Context(), document("", items...))
				if err != nil || res.Unchanged != len(items) {
					b.Fatal(res, err)
				}
				tx.Close()
			}
		})
	}
}

// A fetch parses only the lines of the journal for the entries of the document, however many
// entries were delivered before. A line has at most 110 bytes.
func TestWorkOfAPast(t *testing.T) {
	work := func(n int) (parsed, bytes int) {
		d, _ := newDir(t)
		past(t, d, n)
		tx, err := writer(t, d).Begin(feedHash)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Close()
		items := pastItems(n+1, 30) // one is new
		res, err := tx.stageAll(t.Context(), document("", items...))
		if err != nil || len(res.New) != 1 || res.Unchanged != 29 {
			t.Fatal(res, err)
		}
		return seen(tx).Parsed, int(seen(tx).Size)
	}
	few, _ := work(50)
	many, size := work(5000)
	// A few other lines with the same hashes are parsed, too.
	if few < 29*2 || many > 2*few {
		t.Errorf("%d lines are parsed of 50, %d of 5000", few, many)
	}
	if size > 5000*110 {
		t.Errorf("%d bytes a line", size/5000)
	}
}

// The time for a document is linear in its size, even if its entries have the same guid or link.
func TestWorkOfADocument(t *testing.T) {
	for name, change := range map[string]func(*Item){
		"nothing":               func(*Item) {},
		"guid":                  func(it *Item) { it.GUID = "same" },
		"link":                  func(it *Item) { it.GUID, it.Entry.Link = "", "same" },
		"guid and link":         func(it *Item) { it.GUID, it.Entry.Link = "same", "same" },
		"all but the guid":      func(it *Item) { it.Entry = Entry{ID: it.Entry.ID, Title: "same", Link: "same"} },
		"neither guid nor link": func(it *Item) { it.GUID, it.Entry.Link = "", "" },
	} {
		work := func(n int) int {
			d, _ := newDir(t)
			items := pastItems(n, n)
			for i := range items {
				change(&items[i])
			}
			w := writer(t, d)
			parsed := 0
			for range 2 {
				tx, err := w.Begin(feedHash)
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.PutFeed(&Feed{ID: feedID, Name: "x"}); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.stageAll(t.Context(), document("", items...)); err != nil {
					t.Fatal(err)
				}
				parsed = seen(tx).Parsed
				if err := end(tx); err != nil {
					t.Fatal(err)
				}
			}
			return parsed
		}
		if few, many := work(20), work(120); many > 10*few {
			t.Errorf("the same %s: %d lines are parsed for 20 entries, %d for 120", name, few, many)
		}
	}
}
