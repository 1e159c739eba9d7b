package sharer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// published reads a document that a machine published.
func (m *machine) published(target, name string) *feedsync.Document {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(target, m.endpoint(), name))
	if err != nil {
		m.t.Fatal(err)
	}
	doc, err := feedsync.Parse(data)
	if err != nil || doc.Sharing == nil || len(doc.Problems) > 0 {
		m.t.Fatalf("%s: %v, %v", name, err, doc)
	}
	return doc
}

// Section 2.1: the publisher MUST guarantee that the value of until will increase if any
// items in the feed are updated. Here the clock stands still, or goes back.
func TestUntilGrows(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(0, 30, all...)
	a.mark(0, 0, "S", "")
	a.sync()
	until := map[string]time.Time{}
	for _, name := range documents {
		until[name] = a.published(target, name).Sharing.Until
	}
	for n, skew := range []time.Duration{0, -time.Hour, -24 * 365 * time.Hour, time.Minute, -time.Minute, 24 * time.Hour, 0} {
		a.skew = skew
		a.mark(0, n+1, "F", "")
		a.subscribe(n + 1)
		a.sync()
		for _, name := range []string{subsFile, partialFile} {
			now := a.published(target, name).Sharing.Until
			if !now.After(until[name]) {
				t.Errorf("%s, with a clock that is off by %v: until is %v, before %v", name, skew, now, until[name])
			}
			until[name] = now
		}
		// A sync without changes leaves until as it is.
		a.sync()
		for _, name := range []string{subsFile, partialFile} {
			if now := a.published(target, name).Sharing.Until; now != until[name] {
				t.Errorf("%s: until grew without a change", name)
			}
		}
	}
	rounds(2, b, a)
	same(t, a, b)
}

// Section 3.2: when an item is moved, the publisher MUST ensure that the item is updated;
// and section 2.3: the id MUST NOT be changed.
func TestMovedIsUpdated(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	hash := a.subscribe(1, "One")
	a.subscribe(2, "One") // stays there, so that the edit is not a renamed folder
	rounds(2, a, b)
	before := a.published(target, subsFile).Item(hash)
	if before == nil {
		t.Fatal("it is not published")
	}
	b.write("src/"+testdir.Hash(feedURL(1))+"/etc/categories", "Two\n")
	rounds(1, b)
	after := b.published(target, subsFile).Item(hash)
	if after == nil || after.Version != before.Version+1 || after.Parent == before.Parent || len(after.History) != 2 || after.History[1] != before.Head() {
		t.Errorf("the moved item is %+v, before %+v", after, before)
	}
	// An item of another endpoint is published unchanged (4.2).
	rounds(1, a)
	passed := a.published(target, subsFile).Item(hash)
	if passed == nil || passed.Version != after.Version || passed.Head() != after.Head() {
		t.Errorf("the item is passed on as %+v", passed)
	}
}

// An edit that b passes on may be older than the last time the reader read b. The reader
// finds it, because since and until date the changes of b's set, not the edits.
func TestPassedOnLate(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	left, right := filepath.Join(t.TempDir(), "left"), filepath.Join(t.TempDir(), "right")
	// a and b share the target left. d has the target right, and b's directory as a peer.
	a, b := newMachine(t, c, "a", left), newMachine(t, c, "b", left)
	d := newMachine(t, c, "c", right)
	for _, m := range []*machine{a, b, d} {
		m.subscribe(0)
		for n := range 40 {
			m.deliver(0, n)
		}
		m.mark(0, 39, "S", "")
	}
	d.write("etc/share/peers/b", filepath.Join(left, b.endpoint())+"\n")
	rounds(2, a, b, d)
	a.mark(0, 1, "F", "")
	a.sync()
	for n := range 3 { // b has no access to left, while d continues
		b.write("etc/share/target", filepath.Join(t.TempDir(), "away")+"\n")
		d.mark(0, 10+n, "S", "")
		d.sync()
	}
	b.write("etc/share/target", left+"\n")
	d.sync()
	b.sync() // b reads a's edit, which is older than d's last read of b
	d.sync()
	if s := d.state(); !strings.Contains(s, "0000000000000001 F") {
		t.Errorf("a's edit did not arrive: %s", s)
	}
}

// Section 2.2: a document links to the complete document and to the documents that were
// merged into it, and has a window. The complete document is written again when the partial
// one exceeds a share of it; then since of the partial document is its until.
func TestRelated(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	const entries = 60
	subscribeAll(1, entries, a, b)
	for n := range entries {
		a.mark(1, n, "S", "")
	}
	a.sync()
	b.mark(1, 0, "F", "")
	b.sync() // reads a, so b's documents name a
	for _, name := range documents {
		found := 0
		for _, r := range b.published(target, name).Sharing.Related {
			want := name
			if name == completeFile {
				want = partialFile
			}
			if r.Type == "aggregated" && r.Title == a.endpoint() && r.Link == "../"+a.endpoint()+"/"+want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s names %v", name, b.published(target, name).Sharing.Related)
		}
	}
	size := func(name string) int64 {
		fi, err := os.Stat(filepath.Join(target, a.endpoint(), name))
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	for day := range 3 {
		a.clock.now = a.clock.now.Add(24 * time.Hour)
		complete := a.published(target, completeFile).Sharing
		a.mark(1, day, "F", "")
		a.sync()
		partial := a.published(target, partialFile).Sharing
		if now := a.published(target, completeFile).Sharing; now.Until != complete.Until || !now.Since.IsZero() {
			t.Fatalf("day %d: the complete document was written anew", day)
		}
		r := partial.Related[0]
		if partial.Since != complete.Until || r.Type != "complete" || r.Link != completeFile || r.Until != complete.Until || partial.Window != day+2 {
			t.Errorf("day %d: the partial document has since %v, window %d, %+v; the complete one has until %v", day, partial.Since, partial.Window, r, complete.Until)
		}
	}
	was := a.published(target, completeFile).Sharing.Until
	for n := 3; ; n++ {
		if partial, complete := size(partialFile), size(completeFile); partial > complete/4 && partial > minPartial {
			t.Fatalf("after %d edits the partial document has %d bytes, the complete one %d", n, partial, complete)
		}
		a.mark(1, n, "F", "")
		a.sync()
		if now := a.published(target, completeFile).Sharing.Until; now != was {
			partial := a.published(target, partialFile)
			if partial.Sharing.Since != now || partial.Len() != 0 || n < 8 {
				t.Errorf("after %d edits the complete document has until %v; the partial one has since %v and %d items", n, now, partial.Sharing.Since, partial.Len())
			}
			break
		}
	}
	rounds(1, b)
	same(t, a, b)
}
