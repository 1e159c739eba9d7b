package lektordir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// thing is what users regard as one entry, whatever guid and link the feed uses for it.
type thing struct {
	number   int
	guid     string // "" for none
	link     string
	versions int // version of its text
}

func (x *thing) item() Item {
	return Item{GUID: x.guid, Entry: Entry{
		ID: fmt.Sprint("urn:", x.number), Title: fmt.Sprint("Thing ", x.number), Link: x.link, Type: "text/html",
		Content: fmt.Appendf(nil, "<p>Version %d</p>", x.versions), PubDate: time.Unix(1600000000+int64(x.number), 0),
	}}
}

// expectation is the expected state of a thing. The model identifies things by their numbers.
type expectation struct {
	delivered bool
	place     string // new, cur or gone
	versions  []int  // delivered versions, in order of delivery
	shown     []int  // versions in the lektor-dir
}

// newest returns the version that was delivered last, or -1.
func (e *expectation) newest() int {
	if !e.delivered {
		return -1
	}
	return e.versions[len(e.versions)-1]
}

// fetched updates the expectation after a document with a version of the thing.
func (e *expectation) fetched(version int, p Policy) {
	switch {
	case !e.delivered:
		*e = expectation{delivered: true, place: "new", versions: []int{version}, shown: []int{version}}
	case e.newest() == version || p == UpdateNever:
	case p == UpdateAlways:
		if !slices.Contains(e.versions, version) {
			e.versions, e.shown = append(e.versions, version), append(e.shown, version)
			e.place = "new"
		}
	case e.place == "new":
		e.versions, e.shown = append(e.versions, version), []int{version}
	}
}

// Each thing is one entry, even if the feed has no guids, shares them or renumbers them, and its
// changes are handled by the policy. The model uses neither digests nor identities.
func TestIdentityByModel(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		policy := []Policy{UpdateNew, UpdateAlways, UpdateNever}[rnd.IntN(3)]
		d, _ := newDir(t)
		w := writer(t, d)
		things := make([]*thing, 9)
		model := make([]expectation, len(things))
		for i := range things {
			x := &thing{number: i, guid: fmt.Sprint("guid-", i), link: fmt.Sprint("http://example.com/", i)}
			switch i % 3 {
			case 1:
				x.guid = "" // identified by the link
			case 2:
				x.guid = "shared" // identified by guid and link; all are in every document
			}
			things[i] = x
		}
		for step := range 8 {
			// All guids change at once: one new guid beside others that stay is a new entry.
			renumber := rnd.IntN(4) == 0
			for i, x := range things {
				renumber = renumber && (i%3 != 0 || model[i].newest() == x.versions)
			}
			for i, x := range things {
				switch {
				case renumber && i%3 == 0:
					// Identified by link, title, text and date: only the guid has changed.
					x.guid = fmt.Sprintf("guid-%d-%d", i, step)
				case !renumber && rnd.IntN(3) == 0:
					x.versions = rnd.IntN(3)
				}
			}
			var doc []Item
			for _, i := range rnd.Perm(len(things)) {
				// Things with guids are in every document: a thing that is renumbered in one
				// and changed in the next cannot be recognised.
				if i%3 != 1 || rnd.IntN(2) == 0 {
					doc = append(doc, things[i].item())
					model[i].fetched(things[i].versions, policy)
				}
			}
			doc = append(doc, doc[rnd.IntN(len(doc))]) // some feeds repeat themselves
			tx, err := w.Begin(feedHash)
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.PutFeed(&Feed{ID: feedID, Name: "x"}); err != nil {
				t.Fatal(err)
			}
			res, err := tx.stageAll(t.Context(), document(policy, doc...))
			if err != nil || res.Repeated != 1 {
				tx.Close() // otherwise the writer would wait for it
				t.Fatal(res, err)
			}
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
			// A viewer takes or removes some.
			for _, r := range list(t, d, ListOptions{AllVersions: true}) {
				e, err := d.ReadEntry(r, FieldTitle|FieldContent)
				if err != nil {
					t.Fatal(err)
				}
				var i, version int
				fmt.Sscanf(e.Title, "Thing %d", &i)
				fmt.Sscanf(string(e.Content), "<p>Version %d</p>", &version)
				m := &model[i]
				newest := version == m.newest()
				switch rnd.IntN(6) {
				case 0:
					if r.Place == New {
						if _, err := d.SetFlags(r, "S", ""); err != nil {
							t.Fatal(err)
						}
						if newest {
							m.place = "cur"
						}
					}
				case 1:
					if err := d.Remove(r); err != nil {
						t.Fatal(err)
					}
					if newest {
						m.place = "gone"
					}
					m.shown = slices.DeleteFunc(m.shown, func(v int) bool { return v == version })
				}
			}
			var got, want []string
			for _, r := range list(t, d, ListOptions{AllVersions: true}) {
				e, _ := d.ReadEntry(r, FieldTitle|FieldContent)
				got = append(got, e.Title+" "+string(e.Content))
			}
			for i, m := range model {
				for _, v := range m.shown {
					want = append(want, fmt.Sprintf("Thing %d <p>Version %d</p>", i, v))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %s: got\n%s\nwant\n%s", seed, step, policy, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}
