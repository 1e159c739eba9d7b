package lektordir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// thing is something that a feed writes about: what a reader takes for one entry,
// however the feed names it.
type thing struct {
	number   int
	guid     string // "" for none
	link     string
	versions int // versions of its text
}

func (x *thing) item() Item {
	return Item{GUID: x.guid, Entry: Entry{
		ID: fmt.Sprint("urn:", x.number), Title: fmt.Sprint("Thing ", x.number), Link: x.link, Type: "text/html",
		Content: fmt.Appendf(nil, "<p>Version %d</p>", x.versions), PubDate: time.Unix(1600000000+int64(x.number), 0),
	}}
}

// expectation is what the model says of a thing: it knows things by their numbers,
// and of documents only which things stand in them.
type expectation struct {
	delivered bool
	place     string // new, cur or gone
	versions  []int  // that were delivered, in order
	shown     []int  // versions in the lektor-dir
}

// newest is the version delivered last, -1 for none.
func (e *expectation) newest() int {
	if !e.delivered {
		return -1
	}
	return e.versions[len(e.versions)-1]
}

// fetched is what becomes of a thing when a document has it.
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

// Whatever a feed does with its guids, as far as section 4 of the design promises
// to see through it, each thing is one entry, and its changes are treated as the
// policy says. The model has neither digests nor identities.
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
				x.guid = "" // known by the link
			case 2:
				x.guid = "shared" // by guid and link; these always stand together
			}
			things[i] = x
		}
		for step := range 8 {
			renumber := rnd.IntN(4) == 0
			for i, x := range things {
				switch {
				case renumber && i%3 == 0 && model[i].newest() == x.versions:
					// Known by the second key: nothing else has changed since it was
					// delivered.
					x.guid = fmt.Sprintf("guid-%d-%d", i, step)
				case !renumber && rnd.IntN(3) == 0:
					x.versions = rnd.IntN(3)
				}
			}
			var doc []Item
			for _, i := range rnd.Perm(len(things)) {
				// A renumbered thing that is left out would change twice.
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
				tx.Close() // the writer waits for it
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
				t.Fatalf("seed %d, step %d, %s:\n%s\nnot\n%s", seed, step, policy, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}
