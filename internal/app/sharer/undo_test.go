package sharer

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// killedAt syncs, and kills the sync before its n-th change of a file, from 0. It reports
// whether the sync has more than n changes.
func (m *machine) killedAt(n int) (killed bool) {
	m.t.Helper()
	c := m.common()
	count := 0
	type kill struct{}
	c.step = func() {
		if count++; count > n {
			panic(kill{})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(kill); !ok {
				panic(r)
			}
			killed = true
		}
	}()
	if err := Sync(m.t.Context(), SyncOptions{Common: c, Yes: true}, m.streams()); err != nil {
		m.t.Fatalf("%s, to be killed at change %d: %v\n%s", m.name, n, err, &m.err)
	}
	return false
}

// thing is a part of the shared state that is on or off.
type thing struct {
	name string
	is   func(m *machine) bool
	set  func(m *machine, on bool)
}

// has reports whether an entry has a flag.
func (m *machine) has(feed, n int, flag byte) bool {
	m.t.Helper()
	refs, err := m.dir().List(context.Background(), lektordir.ListOptions{Feeds: []string{testdir.Hash(feedURL(feed))}})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range refs {
		if r.Identity() == fmt.Sprintf("%08x%08x", feed, n) {
			return r.HasFlag(flag)
		}
	}
	m.t.Fatalf("%s has no entry %d of %d", m.name, n, feed)
	return false
}

func flagThing(feed, n int, flag byte) thing {
	return thing{
		fmt.Sprintf("flag %c of entry %d of feed %d", flag, n, feed),
		func(m *machine) bool { return m.has(feed, n, flag) },
		func(m *machine, on bool) {
			if on {
				m.mark(feed, n, string(flag), "")
			} else {
				m.mark(feed, n, "", string(flag))
			}
		},
	}
}

func feedThing(n int) thing {
	return thing{
		fmt.Sprintf("feed %d", n),
		func(m *machine) bool { return feedfiles.Subscribed(m.dir(), testdir.Hash(feedURL(n))) },
		func(m *machine, on bool) {
			if on {
				m.subscribe(n)
			} else {
				m.unsubscribe(n)
			}
		},
	}
}

// fileThing returns a setting of a feed that is on if its file is not empty.
func fileThing(feed int, file, text string) thing {
	path := "src/" + testdir.Hash(feedURL(feed)) + "/" + file
	return thing{
		fmt.Sprintf("%s of feed %d", file, feed),
		func(m *machine) bool {
			data, err := os.ReadFile(filepath.Join(m.Path, path))
			return err == nil && strings.TrimSpace(string(data)) != ""
		},
		func(m *machine, on bool) {
			if on {
				m.write(path, text+"\n")
			} else if err := os.Remove(filepath.Join(m.Path, path)); err != nil {
				m.t.Fatal(err)
			}
		},
	}
}

func everyThing() []thing {
	return []thing{
		flagThing(1, 0, 'F'), flagThing(1, 1, 'S'), flagThing(2, 0, 'a'), flagThing(2, 1, 'F'),
		feedThing(7), feedThing(8), fileThing(1, "etc/view/alias", "An alias"), fileThing(2, "etc/categories", "A folder/within"),
	}
}

// machinesWithEntries returns synced machines with feeds and entries.
func machinesWithEntries(t *testing.T, names string) (all []*machine, target string) {
	all, target = machines(t, names)
	subscribeAll(1, 2, all...)
	subscribeAll(2, 2, all...)
	rounds(2, all...)
	return all, target
}

// A sync is killed before one of its file changes. Then the user undoes an edit: one that
// was made here, or one that the sync applied. The edit stays undone on all machines. One of the
// four ways to edit each thing is tried, another one each time, and with LEKTOR_SHARE_RUNS all.
func TestTakenBackAfterAKill(t *testing.T) {
	for _, x := range everyThing() {
		way := rand.IntN(4)
		for i, own := range []bool{true, false} {
			for j, on := range []bool{true, false} {
				if os.Getenv("LEKTOR_SHARE_RUNS") == "" && 2*i+j != way {
					continue
				}
				t.Run(fmt.Sprintf("%s, own=%v, on=%v", x.name, own, on), func(t *testing.T) {
					all, target := machinesWithEntries(t, "a b")
					a, b := all[0], all[1]
					if !on {
						x.set(a, true)
						rounds(2, a, b)
					}
					if own {
						x.set(b, on)
					} else {
						x.set(a, on)
						a.sync()
					}
					snapshot := t.TempDir()
					copyDir(t, a.Path, snapshot+"/a")
					copyDir(t, b.Path, snapshot+"/b")
					copyDir(t, target, snapshot+"/sync")
					undone := 0
					for n := 0; ; n++ {
						copyDir(t, snapshot+"/a", a.Path)
						copyDir(t, snapshot+"/b", b.Path)
						copyDir(t, snapshot+"/sync", target)
						killed := b.killedAt(n)
						want := on
						if x.is(b) == on {
							x.set(b, !on)
							want = !on
							undone++
						}
						rounds(2, b, a)
						for _, m := range all {
							if x.is(m) != want {
								t.Errorf("killed at change %d: %s has %v, want %v", n, m.name, !want, want)
							}
						}
						if !killed {
							break
						}
					}
					if undone < 3 {
						t.Errorf("only %d kills left an edit to undo", undone)
					}
				})
			}
		}
	}
}

// history is a random sequence of edits, syncs and kills on several machines.
type history struct {
	t      *testing.T
	r      *rand.Rand
	all    []*machine
	things []thing
	value  []bool // value of each thing after its last edit
	turns  []int  // number of edits of each thing in this round
	log    []string
	kills  int
	undos  int
	marks  int // edits between a kill and the next sync
	backup string

	// After a kill, the user makes only one edit of an entry until the next sync. By two, the user could
	// take back an action and make another mark, which looks like another mark before the action.
	killed map[*machine]map[string]bool
}

func (h *history) logf(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// sync lets a machine sync, and often kills it.
func (h *history) sync(m *machine) {
	if h.r.IntN(3) == 0 {
		m.sync()
		delete(h.killed, m)
		h.logf("%s syncs", m.name)
		return
	}
	n := h.r.IntN(14)
	if !m.killedAt(n) {
		delete(h.killed, m)
		h.logf("%s syncs", m.name)
		return
	}
	h.kills++
	h.logf("%s syncs, and is killed at change %d", m.name, n)
	if h.killed[m] == nil {
		h.killed[m] = map[string]bool{}
	}
	if h.r.IntN(4) == 0 && len(h.killed[m]) == 0 {
		m.touched("*/*/*I*")
		h.logf("%s changes the modes of entries", m.name)
		m.sync()
		delete(h.killed, m)
	}
}

// mayEdit reports whether the user of a machine may edit a thing.
func (h *history) mayEdit(m *machine, i int) bool {
	_, entry, _ := strings.Cut(h.things[i].name, " of entry ")
	return h.killed[m] == nil || !h.killed[m][entry]
}

// round makes edits between syncs with kills. Each edit of a thing is made by a user who sees
// the previous one. At the end all machines sync, and all have the result of the last edits.
func (h *history) round() {
	start := slices.Clone(h.value)
	h.turns = make([]int, len(h.things))
	by := make([]*machine, len(h.things))
	few := h.r.Perm(len(h.things))[:3]
	for range 10 + h.r.IntN(20) {
		m := h.all[h.r.IntN(len(h.all))]
		i := few[h.r.IntN(len(few))]
		x := h.things[i]
		switch {
		case !h.mayEdit(m, i):
			h.sync(m)
		case h.r.IntN(2) == 0:
			h.sync(m)
		case h.turns[i] == 0 || by[i] == m:
			// This is the first edit of the round, or another one by the same user.
			h.edit(m, i)
			by[i] = m
		case h.turns[i] == 1 && h.value[i] != start[i] && x.is(m) == h.value[i]:
			// A sync brought the other user's edit to this machine; undo it.
			h.edit(m, i)
			by[i] = m
			h.undos++
		}
	}
	h.settle()
}

// settle syncs all machines, and checks that all have the result of the last edits.
func (h *history) settle() {
	for range 3 {
		for _, i := range h.r.Perm(len(h.all)) {
			h.all[i].sync()
		}
	}
	clear(h.killed)
	for i, x := range h.things {
		for _, m := range h.all {
			if x.is(m) != h.value[i] {
				h.t.Fatalf("%s has %s %v, but the last edit set it to %v:\n%s", m.name, x.name, x.is(m), h.value[i], strings.Join(h.log, "\n"))
			}
		}
	}
	h.logf("all sync")
}

func (h *history) edit(m *machine, i int) {
	x := h.things[i]
	x.set(m, !x.is(m))
	h.value[i] = x.is(m)
	h.turns[i]++
	if _, entry, ok := strings.Cut(x.name, " of entry "); ok && h.killed[m] != nil {
		h.killed[m][entry] = true
		h.marks++
	}
	h.logf("%s sets %s to %v", m.name, x.name, h.value[i])
}

// lose removes new/ of a machine, or restores it from before its marks, which the next sync refuses, and
// puts everything back.
func (h *history) lose() {
	m := h.all[h.r.IntN(len(h.all))]
	away := h.t.TempDir() + "/away"
	copyDir(h.t, m.Path, away)
	do := []losing{removing("new/*", 99), restoring(4)}[h.r.IntN(2)]
	if err := do(m); err != nil {
		h.t.Fatal(err)
	}
	if status, text := m.trySync(); status != 1 || !strings.Contains(text, "nothing is shared") {
		h.t.Fatalf("%s has lost most: %d, %s\n%s", m.name, status, text, strings.Join(h.log, "\n"))
	}
	m.replacePlaces(away)
	h.logf("%s loses most, and has it again", m.name)
	h.settle()
}

// restore replaces the lektor-dir of a machine by the backup from before the round, which becomes an
// endpoint of its own.
func (h *history) restore(m *machine) {
	copyDir(h.t, h.backup, m.Path)
	if status, text := m.trySync(); status != 0 && !strings.Contains(text, "init --renew") {
		h.t.Fatalf("%s was restored: %d, %s\n%s", m.name, status, text, strings.Join(h.log, "\n"))
	}
	m.renew()
	h.logf("%s is restored from its backup before the round", m.name)
	h.settle()
}

// In random histories with kills before any change of a file, marks by the user after a kill, and
// backups, no undone edit returns and no edit is lost. LEKTOR_SHARE_RUNS is the number of histories.
func TestNothingReturns(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("LEKTOR_SHARE_RUNS"))
	if err != nil {
		runs = 3
	}
	kills, undos, marks := 0, 0, 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 7))
		all, _ := machinesWithEntries(t, []string{"a b", "a b c", "a b c d"}[r.IntN(3)])
		h := &history{t: t, r: r, all: all, things: everyThing(), killed: map[*machine]map[string]bool{}, backup: t.TempDir() + "/backup"}
		h.things = append(h.things, flagThing(1, 0, 'S'), flagThing(1, 0, 'T'), flagThing(2, 1, 'S'))
		subscribeAll(3, 30, all...)
		subscribeAll(4, 30, all...)
		if err := marking(4, 30, "F", "")(all[0]); err != nil {
			t.Fatal(err)
		}
		rounds(2, all...)
		h.value = make([]bool, len(h.things))
		h.logf("seed %d, %d machines", seed, len(all))
		for n := range 6 {
			m := all[r.IntN(len(all))]
			copyDir(t, m.Path, h.backup)
			h.round()
			if n%3 == 1 {
				h.lose()
				h.restore(m)
			}
		}
		kills, undos, marks = kills+h.kills, undos+h.undos, marks+h.marks
	}
	if kills < 5*runs || undos < runs || marks < runs {
		t.Errorf("only %d kills, %d undone edits of others and %d edits after a kill", kills, undos, marks)
	}
	t.Logf("%d histories with %d kills, %d undone edits of others and %d edits after a kill", runs, kills, undos, marks)
}

// prefixes parses networks.
func prefixes(t *testing.T, texts ...string) (out []netip.Prefix) {
	t.Helper()
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func emptyDocument(io.Writer) error { return nil }

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// touched changes the ctime of the file or directory of a thing, as chmod(1) does.
func (m *machine) touched(pattern string) {
	m.t.Helper()
	found, _ := filepath.Glob(filepath.Join(m.Path, pattern))
	for _, path := range found {
		if fi, err := os.Stat(path); err != nil || os.Chmod(path, fi.Mode().Perm()^0o010) != nil {
			m.t.Fatal(path, err)
		}
	}
}

// A sync that applies a mark of another machine is killed before one of its file changes. Then
// the user makes another mark of the same entry, or changes its mode. Both marks hold on all
// machines. Subscriptions, aliases and categories likewise.
func TestMarkedAfterAKill(t *testing.T) {
	type other struct {
		name string
		do   func(m *machine)
		is   func(m *machine) bool
	}
	chmod := func(pattern string) other {
		return other{"chmod " + pattern, func(m *machine) { m.touched(pattern) }, func(*machine) bool { return true }}
	}
	set := func(x thing) other { return other{x.name, func(m *machine) { x.set(m, true) }, x.is} }
	feed := testdir.Hash(feedURL(1))
	type pair struct {
		applied thing
		user    other
	}
	var pairs []pair
	for _, flag := range "FSTa" {
		applied := flagThing(1, 0, byte(flag))
		pairs = append(pairs, pair{applied, chmod("*/*/*I0000000100000000.*")})
		for _, c := range "FSTa" {
			if c != flag {
				pairs = append(pairs, pair{applied, set(flagThing(1, 0, byte(c)))})
			}
		}
	}
	// A change of alias and one of folder on two machines are a conflict, so the user changes neither.
	for _, x := range []struct {
		thing
		file string
	}{{fileThing(1, "etc/view/alias", "An alias"), "etc/view/alias"}, {fileThing(1, "etc/categories", "A folder/within"), "etc/categories"}, {feedThing(1), "etc/fetch/url"}} {
		pairs = append(pairs, pair{x.thing, chmod("src/" + feed + "/" + x.file)}, pair{x.thing, set(flagThing(1, 0, 'F'))})
	}
	some := rand.IntN(8)
	for i, p := range pairs {
		for j, on := range []bool{true, false} {
			if os.Getenv("LEKTOR_SHARE_RUNS") == "" && (i+4*j)%8 != some {
				continue
			}
			t.Run(fmt.Sprintf("%s, on=%v, then %s", p.applied.name, on, p.user.name), func(t *testing.T) {
				all, target := machinesWithEntries(t, "a b")
				a, b := all[0], all[1]
				if p.applied.is(a) == on {
					p.applied.set(a, !on)
					rounds(2, a, b)
				}
				p.applied.set(a, on)
				a.sync()
				snapshot := t.TempDir()
				copyDir(t, a.Path, snapshot+"/a")
				copyDir(t, b.Path, snapshot+"/b")
				copyDir(t, target, snapshot+"/sync")
				for n := 0; ; n++ {
					copyDir(t, snapshot+"/a", a.Path)
					copyDir(t, snapshot+"/b", b.Path)
					copyDir(t, snapshot+"/sync", target)
					killed := b.killedAt(n)
					p.user.do(b)
					rounds(2, b, a)
					for _, m := range all {
						if p.applied.is(m) != on || !p.user.is(m) {
							t.Errorf("killed at change %d: %s has %v, want %v, and the user's change is %v", n, m.name, p.applied.is(m), on, p.user.is(m))
						}
					}
					if !killed {
						break
					}
				}
			})
		}
	}
}
