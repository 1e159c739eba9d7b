package journal

import (
	"os"
	"path/filepath"
	"testing"
)

// Lineages has an identity only if it differs from that in the entry's unique name. A missing
// journal has no lineages.
func TestLineages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	if found, err := Lineages(path); err != nil || len(found) > 0 {
		t.Errorf("without a journal: %v, %v", found, err)
	}
	old, renumbered := DigestOf("old"), DigestOf("new")
	name := "1503674340.M1P1Q1I" + old.String() + ".host"
	var b []byte
	b = Record{Identity: old, Unique: name}.appendTo(b)
	b = Record{Identity: renumbered, Unique: name}.appendTo(b)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	found, err := Lineages(path)
	if err != nil || len(found) != 1 || found[renumbered.String()] != old.String() {
		t.Errorf("%v, %v", found, err)
	}
}
