package sharer

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// copied returns a machine whose lektor-dir is a copy of m's.
func (m *machine) copied(name string) *machine {
	m.t.Helper()
	c := &machine{Dir: testdir.New(m.t), t: m.t, name: name, clock: m.clock}
	copyDir(m.t, m.Path, c.Path)
	return c
}

// syncRefused syncs and expects a [CopiedError], because another machine is the same endpoint.
func (m *machine) syncRefused() {
	m.t.Helper()
	before, set := m.state(), m.set()
	err := Sync(m.t.Context(), SyncOptions{Common: m.common()}, m.streams())
	var copied *CopiedError
	if !errors.As(err, &copied) || !strings.Contains(err.Error(), "copied") {
		m.t.Fatalf("%s: %v", m.name, err)
	}
	if m.state() != before || m.set() != set {
		m.t.Errorf("%s: something was merged", m.name)
	}
}

// renew makes the machine an endpoint of its own.
func (m *machine) renew() {
	m.t.Helper()
	before := m.endpoint()
	if err := Init(m.t.Context(), InitOptions{Common: m.common(), Renew: true, Name: m.name}, m.streams()); err != nil {
		m.t.Fatal(err)
	}
	if now := m.endpoint(); now == before || !strings.HasPrefix(now, m.name+"-") {
		m.t.Errorf("%s has the endpoint name %s, before %s", m.name, now, before)
	}
}

// A lektor-dir was copied to a second machine with its endpoint name. The second machine to
// sync fails and changes nothing; it works after init --renew. No edit of either is lost.
func TestCopied(t *testing.T) {
	for _, first := range []string{"the original", "the copy"} {
		for _, where := range []string{"in the target", "from a peer"} {
			t.Run(first+" first, seen "+where, func(t *testing.T) {
				all, _ := machines(t, "a b")
				a, b := all[0], all[1]
				for _, m := range all {
					m.subscribe(1, "Folder")
					for n := range 4 {
						m.deliver(1, n)
					}
				}
				a.mark(1, 0, "S", "")
				rounds(2, a, b)
				c := a.copied("c")
				if where == "from a peer" {
					// The two publish in separate targets, and both exchange with b.
					for _, m := range []*machine{a, c} {
						own := b.endpoint()
						target, _ := atomicfile.Line(filepath.Join(b.Path, shareDir, targetFile))
						m.write("etc/share/peers/b", filepath.Join(target, own)+"\n")
						m.write("etc/share/target", t.TempDir()+"\n")
						me := m.endpoint()
						to, _ := atomicfile.Line(filepath.Join(m.Path, shareDir, targetFile))
						b.write("etc/share/peers/"+m.name, filepath.Join(to, me)+"\n")
					}
				}
				one, two := a, c
				if first == "the copy" {
					one, two = c, a
				}
				one.mark(1, 1, "F", "")
				two.mark(1, 2, "F", "")
				one.sync()
				if err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams()); err != nil && err != errRemote {
					t.Fatal(err) // errRemote: the other copy has not published yet
				}
				two.syncRefused()
				two.syncRefused()
				two.renew()
				if where == "from a peer" {
					me := two.endpoint()
					to, _ := atomicfile.Line(filepath.Join(two.Path, shareDir, targetFile))
					b.write("etc/share/peers/"+two.name, filepath.Join(to, me)+"\n")
				}
				rounds(3, two, b, one)
				same(t, a, b, c)
				if s := b.state(); !strings.Contains(s, "0000000100000001 F") || !strings.Contains(s, "0000000100000002 F") {
					t.Errorf("lost: %s", s)
				}
			})
		}
	}
}

// A lektor-dir that was restored from a backup does not know its later publications.
func TestRestored(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, all...)
	a.mark(1, 0, "S", "")
	rounds(2, a, b)
	backup := t.TempDir() + "/backup"
	copyDir(t, a.Path, backup)
	a.mark(1, 1, "F", "")
	a.unsubscribe(1)
	rounds(2, a, b)
	copyDir(t, backup, a.Path)
	a.syncRefused()
	a.renew()
	rounds(2, a, b)
	same(t, a, b)
	if s := a.state(); !strings.Contains(s, "0000000100000001 F") || strings.Contains(s, feedURL(1)) {
		t.Errorf("edits since the backup are lost: %s", s)
	}
}

// A copy without edits of its own has passed on an edit of a third machine, in this
// endpoint's name. The copy is detected before both have made edits as one endpoint.
func TestCopyThatPassesOn(t *testing.T) {
	for _, where := range []string{"in a directory", "on a server"} {
		var a, b *machine
		if where == "on a server" {
			a, b = onServer(t, newDAV(t, nextcloud))
		} else {
			all, _ := machines(t, "a b")
			a, b = all[0], all[1]
		}
		subscribeAll(1, 2, a, b)
		for range 2 {
			a.syncAnyway()
			b.syncAnyway()
		}
		c := a.copied("c")
		b.mark(1, 0, "F", "")
		rounds(1, b, c)
		a.mark(1, 1, "F", "")
		before, set := a.state(), a.set()
		status, text := a.trySync()
		if status != 1 || !strings.Contains(text, "is newer than the one that this lektor-dir published: the lektor-dir was copied") || !strings.Contains(text, "hint: lektor-share init --renew") {
			t.Errorf("%s: %d, %s", where, status, text)
		}
		if a.state() != before || a.set() != set {
			t.Errorf("%s: something was merged", where)
		}
	}
}
