package lektordir

import "testing"

// Deliver takes an enclosure that comes later for a change, and replaces an unread entry of which
// another property differs, which counts as unchanged.
func TestDeliverProperties(t *testing.T) {
	for _, policy := range []Policy{UpdateNew, UpdateAlways, UpdateNever} {
		d, _ := newDir(t)
		e := Entry{ID: "urn:1", Title: "One", Content: []byte("text")}
		put := func() Result {
			t.Helper()
			res, err := d.Deliver(ctx, &Feed{ID: feedID, Name: "Example"}, policy, e)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		shown := func() *Entry {
			t.Helper()
			refs := list(t, d, ListOptions{})
			if len(refs) != 1 {
				t.Fatal(policy, refs)
			}
			got, err := d.ReadEntry(refs[0], AllFields)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		put()
		e.Enclosures = []Enclosure{{URL: "http://r.example/a.mp3?t=1", Length: -1}}
		if res := put(); (len(res.Updated) == 1) != (policy != UpdateNever) || len(shown().Enclosures) != len(res.Updated) {
			t.Errorf("%s, an enclosure: %+v", policy, res)
		}
		e.Author, e.Enclosures = "Ann", []Enclosure{{URL: "http://r.example/a.mp3?t=2", Length: -1}}
		res, got := put(), shown()
		if taken := got.Author == "Ann" && got.Enclosures[0] == e.Enclosures[0]; len(res.Updated) > 0 || taken != (policy != UpdateNever) {
			t.Errorf("%s, an author: %+v, %+v", policy, res, got)
		}
		if again, old := shown(), put(); old.Unchanged+old.Ignored != 1 || again.Replaces != got.Replaces {
			t.Errorf("%s, delivered again: %+v", policy, old)
		}
	}
}
