package lektordir

import (
	"os"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// A new version gets a later time than the old one, even if the clock was set back or another
// fetcher's clock is behind.
func TestVersionByClockBehind(t *testing.T) {
	d, c := newDir(t)
	first := deliver(t, d, sample("1", "first"))[0]
	c.now = c.now.Add(-time.Hour)
	v := sample("1", "second")
	v.Lineage = first.Identity()
	second := deliver(t, d, v)[0]
	if !second.Delivered().After(first.Delivered()) {
		t.Errorf("the second version's name %s is not after the first one's, %s", second.Unique, first.Unique)
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 || got[0].Unique != second.Unique {
		t.Errorf("List = %v, want the second version", got)
	}
	// An entry without an older version gets the time of the clock.
	if other := deliver(t, d, sample("2", "other"))[0]; other.Delivered().After(c.Now()) {
		t.Errorf("%s is in the future", other.Unique)
	}
}

// If a fetcher was killed after it recorded entries in the journal, reading the journal in the
// next transaction renames them to new/, even if no recovery has run.
func TestJournalAfterKill(t *testing.T) {
	d, _ := newDir(t)
	r := deliver(t, d, sample("1", "A"))[0]
	if err := dirfs.RenameNoReplace(d.abs(r), d.Join("tmp", r.Feed, r.Unique)); err != nil {
		t.Fatal(err)
	}
	tx, err := writer(t, d).Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if _, err := tx.Journal(); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 || got[0] != r {
		t.Errorf("List = %v, want %v", got, r)
	}
}

// Unreadable files of other programs in tmp/ do not prevent delivery.
func TestJournalBesideForeign(t *testing.T) {
	d, _ := newDir(t)
	first := deliver(t, d, sample("1", "A"))[0]
	// The journal does not have the name, and reading the link fails even for root.
	if err := os.Symlink("nowhere", d.Join("tmp", first.Feed, "1234567890.777.otherhost")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Join("cur")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.Join("cur"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, d.Join("cur", first.Feed), "no directory")
	deliver(t, d, sample("2", "B"))
	if _, err := os.Lstat(d.Join("tmp", first.Feed, "1234567890.777.otherhost")); err != nil {
		t.Error(err)
	}
}
