package sharer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// settle syncs with a change, which is not of a listing, until n feeds need not be listed again.
func (m *machine) settle(n int) {
	m.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		m.aliases++
		m.write("src/"+testdir.Hash(feedURL(0))+"/etc/view/alias", fmt.Sprintf("Alias %d\n", m.aliases))
		m.sync()
		r, err := m.common().begin(m.streams())
		if err != nil {
			m.t.Fatal(err)
		}
		l, err := r.local(m.t.Context(), r.rep.base)
		r.end()
		switch {
		case err != nil:
			m.t.Fatal(err)
		case len(l.unchanged) == n:
			return
		case time.Now().After(end):
			m.t.Fatalf("%s: %d of %d feeds are unchanged", m.name, len(l.unchanged), n)
		}
	}
}

// A feed that has not changed is not listed, unless a peer has changed its marks. An edit is
// found at any time, also while a sync reads the peers.
func TestUnchangedFeeds(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	a.clock.now = time.Now()
	for feed := range 3 {
		subscribeAll(feed, 3, a, b)
	}
	b.deliver(0, 8) // an entry that a does not have
	b.mark(0, 8, "F", "")
	rounds(2, a, b)
	a.settle(3)
	if a.sync(); !strings.Contains(a.err.String(), "1 item waiting") {
		t.Errorf("a sync without listing prints %q", &a.err)
	}

	a.mark(0, 0, "F", "") // changed by the user
	b.mark(1, 0, "S", "") // changed by a peer
	b.mark(2, 0, "FT", "")
	b.sync()
	r, err := a.common().begin(a.streams())
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.exchange()
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.note(t.Context())
	if err != nil || len(l.entries) != 1 {
		t.Errorf("listed %d feeds, want 1: %v", len(l.entries), err)
	}
	a.mark(2, 1, "S", "") // changed by the user after the listing
	if err := x.read(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	p, err := x.plan(t.Context(), l, x.origins)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.commit(p.local); err != nil {
		t.Fatal(err)
	}
	x.end() // killed
	a.sync()
	b.sync()
	for _, m := range all {
		if !m.has(0, 0, 'F') || !m.has(1, 0, 'S') || !m.has(2, 0, 'T') || !m.has(2, 1, 'S') {
			t.Errorf("%s is\n%s", m.name, m.state())
		}
	}

	// A restored set is merged with all feeds.
	a.settle(3)
	if err := os.Remove(filepath.Join(a.Path, "etc/share/replica")); err != nil {
		t.Fatal(err)
	}
	b.mark(1, 1, "F", "")
	b.sync()
	a.sync()
	if !a.has(1, 1, 'F') || !a.has(2, 1, 'S') {
		t.Errorf("with a restored set, a is\n%s", a.state())
	}
}

// A feed with an entry whose name has no identity is always listed, since the entry's id may change
// without its name.
func TestEntriesWithoutIdentityAreListed(t *testing.T) {
	all, _ := machines(t, "a")
	a := all[0]
	a.clock.now = time.Now()
	subscribeAll(0, 2, a)
	subscribeAll(1, 2, a)
	if _, err := a.Entry(feedURL(0), "new", "1503674340.script.h", "id=urn:script"); err != nil {
		t.Fatal(err)
	}
	a.settle(1)
	a.settle(1)
}

// An item of another program can be between the marks of a feed, if its id begins with the feed's
// hash. It is published once, and is not a mark.
func TestForeignItemAmongMarks(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, a, b)
	for n := range 3 {
		a.mark(1, n, "S", "")
	}
	rounds(2, a, b)
	hash := testdir.Hash(feedURL(1))
	foreign := hash + ":0000000100000000z"
	path := filepath.Join(a.Path, shareDir, storeFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(string(data), storeHeader+"\n"), "\n= ")
	_, rest, _ = strings.Cut(rest, "\n")
	mark := "mark " + stateID(hash, "0000000100000001", 'S')
	if strings.Count(first, mark) != 1 {
		t.Fatalf("the store begins with %q", first)
	}
	first = strings.Replace(first, mark, "mark "+foreign+"\t\t1\t1767225600/x\t\t<item><title>Foreign</title></item>\n"+mark, 1)
	data = appendBlock([]byte(storeHeader+"\n"), []byte(first+"\n"))
	if err := os.WriteFile(path, append(data, rest...), 0o600); err != nil {
		t.Fatal(err)
	}
	again := t.TempDir() // nothing is published here yet
	for _, m := range all {
		m.write("etc/share/target", again+"\n")
	}
	for n := range 3 {
		a.mark(1, n, "F", "")
	}
	rounds(2, a, b)
	same(t, a, b)
	found := 0
	for _, m := range a.items() {
		if strings.HasSuffix(m.ID, foreign) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the item of another program is in the set %d times", found)
	}
}

// Only the marks of feeds that are used are parsed, and each is found by its id.
func TestMarksAreParsedOnUse(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for feed := range 3 {
		subscribeAll(feed, 2, a, b)
		a.mark(feed, 0, "S", "")
		a.mark(feed, 1, "F", "")
	}
	rounds(2, a, b)
	open := func() *marks {
		r, err := a.common().begin(a.streams())
		if err != nil {
			t.Fatal(err)
		}
		r.end()
		return r.rep.set.marks
	}
	items := []*feedsync.Item{}
	for _, m := range open().sorted(nil) {
		items = append(items, m.item())
	}
	if len(items) != 6 {
		t.Fatalf("there are %d marks", len(items))
	}
	s := newSet("a", a.clock.now)
	s.marks = open()
	if len(s.marks.stored) != 3 {
		t.Errorf("the marks of %d feeds are not parsed, want 3", len(s.marks.stored))
	}
	for _, i := range []int{0, 2, 0, 2} {
		if s.mergeMark(items[i]); len(s.news) > 0 {
			t.Errorf("%s is news", items[i].ID)
		}
	}
	if len(s.marks.stored) != 1 {
		t.Errorf("the marks of %d feeds are not parsed, want 1", len(s.marks.stored))
	}
	if err := s.modify(feedsync.RSS, items[5].ID, true, nil, ""); err != nil {
		t.Fatal(err)
	}
	if m := s.marks.item(items[5].ID); m == nil || !m.Deleted {
		t.Errorf("a changed mark is %+v", m)
	}
}
