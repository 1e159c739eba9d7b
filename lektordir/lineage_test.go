package lektordir

import (
	"os"
	"path/filepath"
	"testing"
)

// An identity that is not that of its entry's unique name leads to that; one that is
// leads nowhere, and a journal that is not there is none.
func TestLineages(t *testing.T) {
	d, err := Create(filepath.Join(t.TempDir(), "lektor"), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed := FeedHash("urn:x")
	if found, err := d.Lineages(feed); err != nil || len(found) > 0 {
		t.Errorf("without a journal: %v, %v", found, err)
	}
	old, renumbered := digestOf("old"), digestOf("new")
	name := "1503674340.M1P1Q1I" + old.String() + ".host"
	var b []byte
	b = record{Identity: old, Unique: name}.appendTo(b)
	b = record{Identity: renumbered, Unique: name}.appendTo(b)
	path := d.journalPath(feed)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	found, err := d.Lineages(feed)
	if err != nil || len(found) != 1 || found[renumbered.String()] != old.String() {
		t.Errorf("%v, %v", found, err)
	}
}
