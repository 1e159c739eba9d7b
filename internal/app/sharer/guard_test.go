package sharer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// losing removes or clears something on a machine.
type losing func(*machine) error

// removing removes up to n files or directories.
func removing(pattern string, n int) losing {
	return func(m *machine) (err error) {
		found, _ := filepath.Glob(filepath.Join(m.Path, pattern))
		for _, path := range found[:min(n, len(found))] {
			err = errors.Join(err, os.RemoveAll(path))
		}
		return err
	}
}

func marking(feed, n int, set, unset string) losing {
	return func(m *machine) error {
		for i := range n {
			m.mark(feed, i, set, unset)
		}
		return nil
	}
}

func writing(path string) losing {
	return func(m *machine) error { m.write(path, "text\n"); return nil }
}

func both(one, two losing) losing {
	return func(m *machine) error { return errors.Join(one(m), two(m)) }
}

// restoring replaces the marks of a feed by those of a time when all was unread.
func restoring(feed int) losing {
	return func(m *machine) (err error) {
		hash := testdir.Hash(feedURL(feed))
		found, _ := filepath.Glob(filepath.Join(m.Path, "cur", hash, "*"))
		for _, path := range found {
			name, _, _ := strings.Cut(filepath.Base(path), ";")
			err = errors.Join(err, os.Rename(path, filepath.Join(m.Path, "new", hash, name)))
		}
		return err
	}
}

// replacePlaces replaces new/ and cur/ of a machine by those of a copy.
func (m *machine) replacePlaces(from string) {
	m.t.Helper()
	for _, place := range []string{"new", "cur"} {
		if err := os.RemoveAll(filepath.Join(m.Path, place)); err != nil {
			m.t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(from, place)); err == nil {
			copyDir(m.t, filepath.Join(from, place), filepath.Join(m.Path, place))
		}
	}
}

// If most unread entries are gone, or most marks, a sync stops and shares nothing: a disk may not be
// mounted, or an old backup be in place of the lektor-dir. When everything is back, the next sync goes
// on; with --yes the losses are shared. Few losses, and those that lektor itself or the user made, need
// no confirmation.
func TestGuardOfLosses(t *testing.T) {
	const unread, starred = 30, 24
	for name, c := range map[string]struct {
		lose losing
		want string // message; "" if the sync goes on
	}{
		"new/ is empty":                         {removing("new/*", 99), "30 of 30 unread entries are neither in new/ nor in cur/ any more; nothing is shared"},
		"the entries are missing":               {removing("new/*/*", 99), "30 of 30 unread entries are"},
		"more than half are missing":            {removing("new/*/*", 21), "21 of 30 unread entries are"},
		"a disk is missing, and others expired": {both(writing("etc/view/expired"), removing("new/*", 99)), "30 of 30 unread entries are"},
		"few are missing":                       {removing("new/*/*", 20), ""},
		"they have expired":                     {both(removing("new/*/*", 99), writing("etc/view/expired")), ""},
		"they were deleted":                     {both(removing("new/*/*", 99), writing("etc/view/undo/0.1")), ""},
		"they were read":                        {marking(1, unread, "S", ""), ""},
		"the feed has ended":                    {both(func(m *machine) error { m.unsubscribe(1); return nil }, removing("new/"+testdir.Hash(feedURL(1)), 1)), ""},
		"the stars are missing":                 {restoring(2), "24 of 24 entries that were flagged are not flagged any more; nothing is shared"},
		"all marks are missing":                 {restoring(2), "24 of 24 entries that were read are not read any more; nothing is shared"},
		"most stars are cleared":                {marking(2, 21, "", "F"), "21 of 24 entries that were flagged are not"},
		"few stars are cleared":                 {marking(2, 20, "", "F"), ""},
		"they are unread again":                 {marking(2, starred, "", "S"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := machines(t, "a b")
			a, b := all[0], all[1]
			subscribeAll(1, unread, all...)
			subscribeAll(2, starred, all...)
			if err := marking(2, starred, "FS", "")(a); err != nil {
				t.Fatal(err)
			}
			rounds(2, a, b)
			before, set := b.state(), a.set()
			away, lost := t.TempDir()+"/away", t.TempDir()+"/lost"
			copyDir(t, a.Path, away)
			if err := c.lose(a); err != nil {
				t.Fatal(err)
			}
			status, text := a.trySync()
			if c.want == "" {
				if status != 0 {
					t.Errorf("%d, %s", status, text)
				}
				return
			}
			if status != 1 || !strings.Contains(text, c.want) || !strings.Contains(text, "lektor-share sync --yes") {
				t.Errorf("%d, %s; want %s", status, text, c.want)
			}
			for _, err := range []error{
				Sync(t.Context(), SyncOptions{Common: a.common(), DryRun: true}, a.streams()),
				Apply(t.Context(), ApplyOptions{Common: a.common()}, a.streams()),
				Publish(t.Context(), PublishOptions{Common: a.common(), To: "-"}, a.streams()),
				Resolve(t.Context(), ResolveOptions{Common: a.common(), All: true, Which: "ours"}, a.streams()),
			} {
				if err == nil || !strings.Contains(err.Error(), "nothing is shared") {
					t.Errorf("another command: %v", err)
				}
			}
			rounds(1, b)
			if s := b.state(); s != before || a.set() != set {
				t.Errorf("something is shared: %s", s)
			}
			copyDir(t, a.Path, lost)
			a.replacePlaces(away)
			rounds(2, a, b)
			if s := b.state(); s != before || a.set() != set {
				t.Errorf("after everything is back: %s", s)
			}
			a.replacePlaces(lost)
			if err := Sync(t.Context(), SyncOptions{Common: a.common(), Yes: true}, a.streams()); err != nil {
				t.Fatal(err)
			}
			if rounds(1, b); b.state() == before {
				t.Error("with --yes, nothing is shared")
			}
		})
	}
}

// The marks of a feed that has ended count like those of others, since they are shared, too.
func TestGuardOfMarksOfAnEndedFeed(t *testing.T) {
	all, _ := machines(t, "a b")
	a := all[0]
	subscribeAll(2, 24, all...)
	if err := marking(2, 24, "FS", "")(a); err != nil {
		t.Fatal(err)
	}
	rounds(2, all...)
	a.unsubscribe(2)
	rounds(2, all...)
	if err := marking(2, 21, "", "F")(a); err != nil {
		t.Fatal(err)
	}
	if status, text := a.trySync(); status != 1 || !strings.Contains(text, "21 of 24 entries that were flagged are not") {
		t.Errorf("%d, %s", status, text)
	}
}
