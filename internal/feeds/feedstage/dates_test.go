package feedstage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/lektordir"
)

// dated returns a version of the entry "e", updated on a day of January 2020, or without dates if day
// is 0.
func dated(text string, day int) feedconv.Entry {
	e := feedconv.Entry{ID: "e", GUID: "e", Title: text, Content: text, Type: "text/plain"}
	if day > 0 {
		e.PubDate = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		e.Updated = time.Date(2020, 1, day, 0, 0, 0, 0, time.UTC)
	}
	return e
}

// apart returns a document that has no entry of another document of the transaction.
func apart(f *feedconv.Feed, p lektordir.Policy) stage.Document {
	doc := Document(f, p, nil)
	doc.NoOverlap = true
	return doc
}

func (wo *world) fetchWith(dates stage.Dates, entries ...feedconv.Entry) stage.Result {
	wo.t.Helper()
	return wo.transact(func(tx *stage.Stager) (stage.Result, error) {
		doc := Document(&feedconv.Feed{Format: feedconv.Atom10, Entries: entries}, wo.p, nil)
		doc.Dates = dates
		return tx.Stage(wo.t.Context(), doc)
	})
}

// A version that the rule for dates rejects is ignored under each policy. If the rule accepts it, the
// policy decides.
func TestDates(t *testing.T) {
	for _, policy := range []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways, lektordir.UpdateNever} {
		for _, place := range []string{"new", "cur", "deleted"} {
			for _, c := range []struct {
				dates stage.Dates
				day   int // day of the arriving version; the other has day 5
				wins  bool
			}{
				{stage.OnlyNewer, 4, false}, {stage.OnlyNewer, 5, false}, {stage.OnlyNewer, 0, false}, {stage.OnlyNewer, 6, true},
				{stage.NotOlder, 4, false}, {stage.NotOlder, 5, true}, {stage.NotOlder, 0, false}, {stage.NotOlder, 6, true},
				{stage.AnyDate, 4, true},
			} {
				wo := newWorld(t, policy)
				wo.fetch(dated("known", 5))
				refs, err := wo.d.List(t.Context(), lektordir.ListOptions{})
				if err != nil || len(refs) != 1 {
					t.Fatal(refs, err)
				}
				switch place {
				case "cur":
					_, err = wo.d.SetFlags(refs[0], "S", "")
				case "deleted":
					err = wo.d.Remove(refs[0])
				}
				if err != nil {
					t.Fatal(err)
				}
				res := wo.fetchWith(c.dates, dated("other", c.day))
				wins := c.wins && policy != lektordir.UpdateNever && (policy == lektordir.UpdateAlways || place == "new")
				if place == "deleted" {
					// An old document brings back no entry that the user deleted.
					wins = policy == lektordir.UpdateAlways && c.dates != stage.OnlyNewer
				}
				got := strings.Join(wo.contents(), " ")
				if (len(res.Updated) == 1) != wins || strings.Contains(got, "other") != wins || res.Ignored != 1-len(res.Updated) {
					t.Errorf("%s, %s, rule %d, day %d: %+v, %s; want delivered: %t", policy, place, c.dates, c.day, res, got, wins)
				}
			}
		}
	}
}

// If a document has two versions of an entry, the newer one is delivered, in either order.
func TestTwiceInOneDocument(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		wo := newWorld(t, lektordir.UpdateNew)
		both := []feedconv.Entry{dated("old", 1), dated("new", 2)}
		if reverse {
			slices.Reverse(both)
		}
		v := Document(&feedconv.Feed{Format: feedconv.Atom10, Entries: both}, "", nil).Versions()
		if len(v) != 1 {
			t.Errorf("%v", v)
		}
		for _, at := range v {
			if at.Day() != 2 {
				t.Error(at)
			}
		}
		if res := wo.fetchWith(stage.OnlyNewer, both...); len(res.New) != 1 || res.Repeated != 1 {
			t.Errorf("%+v", res)
		}
		if got := strings.Join(wo.contents(), " "); !strings.Contains(got, "new") || strings.Contains(got, "old") {
			t.Error(got)
		}
	}
}

// Ranked has the identity in the unique name of each entry, in the order of the document: for new,
// known and changed entries, and for one whose guid has changed.
func TestRanked(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	entry := func(n int, guid string) feedconv.Entry {
		return feedconv.Entry{ID: guid, GUID: guid, Link: fmt.Sprint("http://x.example/", n), Title: fmt.Sprint(n), Content: "c", Type: "text/plain"}
	}
	wo.fetch(entry(1, "a"), entry(2, "b"), entry(3, "c"))
	changed := entry(1, "a")
	changed.Title = "1 now"
	for range 2 {
		feed := []feedconv.Entry{entry(4, "d"), entry(3, "renamed"), changed, entry(2, "b"), entry(2, "b")}
		res := wo.fetchWith(stage.AnyDate, feed...)
		refs, err := wo.d.List(t.Context(), lektordir.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		titles := map[string]string{}
		for _, r := range refs {
			e, err := wo.d.ReadEntry(r, lektordir.FieldTitle)
			if err != nil {
				t.Fatal(err)
			}
			titles[r.Identity()] = e.Title
		}
		var got []string
		for _, id := range res.Ranked {
			got = append(got, titles[id])
		}
		if want := "4, 3, 1 now, 2"; strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An entry that Keep skips does not change the identities of the others.
func TestKeep(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	a, b := dated("a", 1), dated("b", 1)
	a.Link, b.Link = "http://x.example/a", "http://x.example/b"
	// Two entries share a guid, as RSS allows. Alone, each would have another identity.
	feed := &feedconv.Feed{Format: feedconv.RSS20, Entries: []feedconv.Entry{a, b}}
	var first string
	stage := func(keep func(string) bool) stage.Result {
		return wo.transact(func(tx *stage.Stager) (stage.Result, error) {
			arrived, err := tx.Arrived(Document(feed, "", nil))
			if err != nil {
				t.Fatal(err)
			}
			var unknown []string
			for id := range Document(feed, "", nil).Versions() {
				if _, known := arrived[id]; !known {
					unknown = append(unknown, id)
				}
			}
			if slices.Sort(unknown); len(unknown) > 0 && !slices.Contains(unknown, first) {
				first = unknown[0]
			}
			doc := Document(feed, wo.p, nil)
			doc.Keep = keep
			return tx.Stage(t.Context(), doc)
		})
	}
	if res := stage(func(string) bool { return false }); len(res.New) != 0 || first == "" {
		t.Errorf("%+v", res)
	}
	skipped := first
	if res := stage(func(id string) bool { return id != skipped }); len(res.New) != 1 {
		t.Errorf("%+v", res)
	}
	if res := stage(nil); len(res.New) != 1 || res.Unchanged != 1 || first != skipped {
		t.Errorf("%+v", res)
	}
}

// Arrived returns the time of an entry's first version, even if it was read, changed or got another
// guid since.
func TestArrived(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateAlways)
	e := feedconv.Entry{ID: "g", GUID: "g", Link: "http://x.example/1", Title: "T", Content: "c", Type: "text/plain", PubDate: time.Unix(1600000000, 0)}
	wo.fetch(e)
	refs, err := wo.d.List(t.Context(), lektordir.ListOptions{})
	if err != nil || len(refs) != 1 {
		t.Fatal(refs, err)
	}
	was := refs[0].Delivered()
	changed, renumbered := e, e
	changed.Content = "d"
	renumbered.ID, renumbered.GUID = "h", "h"
	other := feedconv.Entry{ID: "o", GUID: "o", Link: "http://x.example/2", Title: "O", Type: "text/plain"}
	wo.fetch(changed)
	wo.readAll()
	for what, doc := range map[string]feedconv.Entry{"as it is": changed, "as it was": e, "changed once more": {ID: "g", GUID: "g", Title: "X"}, "by another guid": renumbered} {
		wo.transact(func(tx *stage.Stager) (stage.Result, error) {
			feed := &feedconv.Feed{Format: feedconv.RSS20, Entries: []feedconv.Entry{other, doc}}
			arrived, err := tx.Arrived(Document(feed, "", nil))
			if err != nil || len(arrived) != 1 {
				t.Fatal(what, arrived, err)
			}
			for _, at := range arrived {
				if !at.Equal(was) && what != "by another guid" || at.Before(was) {
					t.Errorf("%s: %v, want %v", what, at, was)
				}
			}
			return stage.Result{}, nil
		})
	}
}

// If a document may have an entry that the transaction has staged already, Stage returns
// ErrOverlap, and the next transaction can stage the document.
func TestNoOverlap(t *testing.T) {
	base := feedconv.Entry{ID: "g", GUID: "g", Link: "http://x.example/1", Title: "T", Content: "c", Type: "text/plain", PubDate: time.Unix(1600000000, 0)}
	with := func(change func(*feedconv.Entry)) feedconv.Entry {
		e := base
		change(&e)
		return e
	}
	second := with(func(e *feedconv.Entry) { e.Link, e.Title = "http://x.example/2", "U" })
	for name, c := range map[string]struct {
		doc  []feedconv.Entry
		want int // entries in all
	}{
		"the same":                     {[]feedconv.Entry{base}, 1},
		"another version":              {[]feedconv.Entry{with(func(e *feedconv.Entry) { e.Title = "V" })}, 1},
		"its guid is shared now":       {[]feedconv.Entry{base, second}, 2},
		"its guid alone is another":    {[]feedconv.Entry{with(func(e *feedconv.Entry) { e.ID, e.GUID = "h", "h" })}, 1},
		"another":                      {[]feedconv.Entry{with(func(e *feedconv.Entry) { e.ID, e.GUID, e.Link = "h", "h", "http://x.example/h" })}, 2},
		"two that share a guid, apart": {[]feedconv.Entry{with(func(e *feedconv.Entry) { e.GUID, e.Link = "s", "http://x.example/3" }), with(func(e *feedconv.Entry) { e.GUID, e.Link = "s", "http://x.example/4" })}, 3},
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		feeds := []*feedconv.Feed{{Format: feedconv.RSS20, Entries: []feedconv.Entry{base}}, {Format: feedconv.RSS20, Entries: c.doc}}
		var overlap error
		wo.transact(func(tx *stage.Stager) (stage.Result, error) {
			for _, f := range feeds {
				if _, err := tx.Stage(t.Context(), apart(f, wo.p)); err != nil {
					overlap = err
				}
			}
			return stage.Result{}, nil
		})
		noOverlap := name == "another" || name == "two that share a guid, apart"
		if errors.Is(overlap, stage.ErrOverlap) == noOverlap {
			t.Errorf("%s: %v", name, overlap)
		}
		if overlap != nil {
			wo.transact(func(tx *stage.Stager) (stage.Result, error) {
				return tx.Stage(t.Context(), apart(feeds[1], wo.p))
			})
		}
		if refs, err := wo.d.List(t.Context(), lektordir.ListOptions{}); err != nil || len(refs) != c.want {
			t.Errorf("%s: %d entries, not %d; %v", name, len(refs), c.want, err)
		}
	}
}
