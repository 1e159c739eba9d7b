package entries_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

// knowing is an index that knows everything about some entries, and may fail midway.
type knowing struct {
	hits  []entries.Hit
	fails int // after so many; 0 for never
	err   error
}

func (k *knowing) Look(context.Context) (entries.View, error)                         { return k, nil }
func (k *knowing) Failed(err error)                                                   { k.err = err }
func (k *knowing) Missed(int)                                                         {}
func (k *knowing) Tallies() (map[string]entries.Tally, error)                         { return nil, nil }
func (k *knowing) Complaints() []error                                                { return nil }
func (k *knowing) Close()                                                             {}
func (k *knowing) Dates(context.Context, bool, func(string, string, time.Time)) error { return nil }

func (k *knowing) Find(_ context.Context, _ entries.Wanted, yield func(entries.Hit) bool) error {
	for i, h := range k.hits {
		if k.fails > 0 && i == k.fails {
			return os.ErrInvalid
		}
		if !yield(h) {
			break
		}
	}
	return nil
}

// TestCollect: in whatever parts entries are collected, and wherever an index fails, they
// come in order, each once, with all that was known of them.
func TestCollect(t *testing.T) {
	made := dir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	k := &knowing{}
	for i := range 60 {
		feed := fmt.Sprintf("http://%d.example/", i%7)
		title := fmt.Sprint("title ", random.IntN(9))
		place, name := "new", dir.Unique(1700000000+int64(i), i+1)
		if i%3 == 0 {
			place, name = "cur", name+[]string{"", ";2,S", ";2,FS"}[i%9/3]
		}
		path, err := made.Entry(feed, place, name, "title="+title, "content=x", "extras=category\tc\nenclosure\thttp://x.example/a\taudio/mpeg\t7\n")
		if err != nil {
			t.Fatal(err)
		}
		ref, err := lektordir.ParsePath(strings.TrimPrefix(path, made.Path+"/"))
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.ReadEntry(ref, lektordir.FieldTitle|lektordir.FieldAuthor|lektordir.FieldPubDate|lektordir.FieldType|lektordir.FieldCategories|lektordir.FieldEnclosures)
		if err != nil {
			t.Fatal(err)
		}
		// What an index knows is told from what is read.
		e.Title += " known"
		k.hits = append(k.hits, entries.Hit{Ref: ref, Feed: d.FeedOf(ref), Entry: *e, Have: lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldType | lektordir.FieldCategories | lektordir.FieldEnclosures})
	}
	order := func(a, b *entries.Record) int {
		return cmp.Or(strings.Compare(a.Get(lektordir.FieldTitle).Title, b.Get(lektordir.FieldTitle).Title), strings.Compare(b.Ref.Unique, a.Ref.Unique))
	}
	row := func(r *entries.Record) string {
		e := r.Get(lektordir.FieldTitle | lektordir.FieldPubDate | lektordir.FieldID | lektordir.FieldCategories | lektordir.FieldEnclosures)
		return fmt.Sprintf("%s %q %s %s %q %+v %s", r.Ref.Path(), e.Title, e.ID, r.Date(), e.Categories, e.Enclosures, r.Feed().Title())
	}
	for _, with := range []int{-1, 0, 1, 33} {
		var want []string
		for _, most := range []int{1000, 1, 7, 16, 60} {
			s := entries.New(d, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), command.NewStreams("test", nil, os.Stdout, os.Stderr))
			if with >= 0 {
				k.fails = with
				s.Index = k
			}
			noted := map[lektordir.Ref]int{}
			l, err := s.Collect(context.Background(), entries.Selection{Query: &query.Query{}, All: true}, entries.Collecting{
				Order: order, Most: most, Keep: func(r *entries.Record) bool { return !r.Ref.HasFlag('F') },
				Note: func(r *entries.Record) { noted[r.Ref]++ }, Again: func() { clear(noted) },
			})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // it can be gone through again
				var got []string
				for r, err := range l.All() {
					if err != nil {
						t.Fatal(err)
					}
					if noted[r.Ref] != 1 {
						t.Errorf("%s was told %d times", r.Ref.Path(), noted[r.Ref])
					}
					got = append(got, row(r))
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) || len(got) != l.Len() || len(noted) != len(got) {
					t.Fatalf("index %d, %d in memory: %d, %d, %d:\n%s\nnot\n%s", with, most, len(got), l.Len(), len(noted), strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
			l.Close()
		}
		if len(want) < 50 || strings.Contains(want[0], "known") != (with == 0) {
			t.Errorf("index %d: %d entries, the first %s", with, len(want), want[0])
		}
	}
}

// TestCollectNowhere: where no file can be made, entries are in memory.
func TestCollectNowhere(t *testing.T) {
	made := dir.New(t)
	for i := range 9 {
		if _, err := made.Entry("http://a.example/", "new", dir.Unique(1700000000+int64(i), i+1), "title=T"); err != nil {
			t.Fatal(err)
		}
	}
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", made.Path+"/nowhere")
	s := entries.New(d, time.Now(), command.NewStreams("test", nil, os.Stdout, os.Stderr))
	l, err := s.Collect(context.Background(), entries.Selection{Query: &query.Query{}}, entries.Collecting{Order: entries.ByDate, Most: 2, Keep: func(*entries.Record) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := 0
	for _, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 9 {
		t.Errorf("%d of 9", n)
	}
}
