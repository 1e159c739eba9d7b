package delivery

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/stage"
	"github.com/lektordir/lektor/lektordir"
)

// If the program reads entries in another way than the older version that wrote the journal, nothing
// is delivered twice, under each policy, and the new reading is recorded. The older version, which
// wrote the journals in testdata/upgrade, did not take the first of several elements.
func TestUpgradeDeliversNothingTwice(t *testing.T) {
	documents, _ := filepath.Glob("testdata/upgrade/*.xml")
	if len(documents) < 8 {
		t.Fatalf("%d documents", len(documents))
	}
	for _, name := range documents {
		for _, policy := range []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways} {
			t.Run(filepath.Base(name)+" "+string(policy), func(t *testing.T) { testUpgrade(t, name, policy) })
		}
	}
}

func testUpgrade(t *testing.T, name string, policy lektordir.Policy) {
	document, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(strings.TrimSuffix(name, ".xml") + ".seen")
	if err != nil {
		t.Fatal(err)
	}
	wo := newWorld(t, policy)
	if err := os.MkdirAll(filepath.Dir(seen(wo)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(seen(wo), old, 0o666); err != nil {
		t.Fatal(err)
	}
	fetch := func(change func(f *feedconv.Feed)) stage.Result {
		t.Helper()
		f, err := feedconv.ParseBytes(document, feedconv.Options{URL: "http://example.com/"})
		if err != nil {
			t.Fatal(err)
		}
		change(f)
		return wo.transact(func(tx *stage.Txn) (stage.Result, error) {
			return StageWith(context.Background(), tx, f, policy, Options{})
		})
	}
	known := func(what string, res stage.Result) {
		t.Helper()
		if len(res.New)+len(res.Updated)+res.Ignored > 0 || res.Unchanged == 0 {
			t.Errorf("%s: %d new, %d updated, %d ignored, %d unchanged", what, len(res.New), len(res.Updated), res.Ignored, res.Unchanged)
		}
	}
	earlier := 0
	known("after the upgrade", fetch(func(f *feedconv.Feed) {
		for _, e := range f.Entries {
			if e.Earlier != nil {
				earlier++
			}
		}
	}))
	if earlier == 0 {
		t.Error("no entry is read in another way")
	}
	known("again", fetch(func(*feedconv.Feed) {}))
	// The publisher repairs the document, so that there is no earlier reading.
	known("repaired", fetch(func(f *feedconv.Feed) {
		for i := range f.Entries {
			f.Entries[i].Earlier = nil
		}
	}))
	if res := fetch(func(f *feedconv.Feed) {
		f.Entries = append(f.Entries, feedconv.Entry{ID: "urn:new", GUID: "urn:new", Title: "New"})
	}); len(res.New) != 1 {
		t.Errorf("%d new", len(res.New))
	}
}
