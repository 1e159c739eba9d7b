package feedstage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// If the guid of an entry changed and then another entry has the old guid, both are delivered, in
// either order and under each policy. Neither replaces the other.
func TestOldGuidComesBack(t *testing.T) {
	for _, policy := range []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways, lektordir.UpdateNever} {
		for _, backward := range []bool{false, true} {
			for _, take := range []bool{false, true} {
				wo := newWorld(t, policy)
				x := entry("x", "X")
				y := x
				y.GUID = "y"
				wo.fetch(x)
				wo.fetch(y) // only the guid changed
				if got := len(wo.contents()); got != 1 {
					t.Fatal(got)
				}
				if take {
					wo.readAll()
				}
				y.Title, y.Content = "y", "Y"
				doc := []feedconv.Entry{x, y}
				if backward {
					slices.Reverse(doc)
				}
				for range 3 {
					wo.fetch(doc...)
				}
				what := fmt.Sprint(policy, backward, take)
				star := ""
				if take {
					star = "*"
				}
				wo.want(what, "x=X"+star, "y=Y")
				// Both change.
				doc[0].Content += "2"
				doc[1].Content += "2"
				n := len(wo.contents())
				for i := range 3 {
					res := wo.fetch(doc...)
					if i > 0 && len(res.New)+len(res.Updated) > 0 {
						t.Errorf("%s: fetch %d: %+v", what, i, res)
					}
				}
				refs, _ := wo.d.List(t.Context(), lektordir.ListOptions{})
				if len(refs) != 2 {
					t.Errorf("%s: %d entries are listed of %d versions (%d before): %q", what, len(refs), len(wo.contents()), n, wo.contents())
				}
			}
		}
	}
}

// As in TestOldGuidComesBack, but both entries have changed when the old guid comes back.
func TestOldGuidComesBackChanged(t *testing.T) {
	for _, backward := range []bool{false, true} {
		wo := newWorld(t, lektordir.UpdateNew)
		x := entry("x", "X")
		y := x
		y.GUID = "y"
		wo.fetch(x)
		wo.fetch(y)
		x.Content, y.Content = "X2", "Y2"
		doc := []feedconv.Entry{x, y}
		if backward {
			slices.Reverse(doc)
		}
		for range 3 {
			wo.fetch(doc...)
		}
		wo.want(fmt.Sprint(backward), "x=X2", "x=Y2")
		refs, _ := wo.d.List(t.Context(), lektordir.ListOptions{})
		if len(refs) != 2 {
			t.Errorf("listed: %v", refs)
		}
	}
}

// If two entries swap their guids, they are still two entries, as in the document.
func TestGuidsSwapped(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	a, b := entry("a", "A"), entry("b", "B")
	wo.fetch(a, b)
	a.GUID, b.GUID = b.GUID, a.GUID
	for range 2 {
		wo.fetch(a, b)
	}
	wo.want("swapped", "a=A", "b=B")
}

// Thousands of entries that differ only in their guids are different entries.
func TestManyAlike(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	const n = 1000
	doc := func(prefix string) []feedconv.Entry {
		es := make([]feedconv.Entry, n)
		for i := range es {
			es[i] = feedconv.Entry{ID: "urn:x", GUID: fmt.Sprint(prefix, i), Link: "http://example.com/", Title: "t", Content: "c"}
		}
		return es
	}
	if res := wo.fetch(doc("a")...); len(res.New) != n {
		t.Fatal(len(res.New))
	}
	both := append(doc("b"), doc("a")...)
	begin := time.Now()
	if res := wo.fetch(both...); len(res.New) != n || res.Unchanged != n {
		t.Errorf("%d new, %d unchanged", len(res.New), res.Unchanged)
	}
	t.Log(time.Since(begin))
}
