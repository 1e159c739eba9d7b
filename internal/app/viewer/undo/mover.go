package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Mover marks and removes entries for a command, also if other viewers move them in the
// same moment, and writes each rename down for undo.
type Mover struct {
	store   *entries.Store
	journal *journal                              // nil for what undo does not take back
	failed  map[syscall.Errno]int                 // entries that could not be moved, by a cause that was told
	feeds   map[string]map[string][]lektordir.Ref // by hash, what Versions returned
}

// Moving returns the mover of a command that undo takes back. Nothing is written until an
// entry is moved.
func Moving(s *entries.Store, command string) *Mover {
	return &Mover{store: s, journal: &journal{store: s, command: command, max: maxJournal}}
}

// Unrecorded returns the mover of a command that undo does not know of.
func Unrecorded(s *entries.Store) *Mover { return &Mover{store: s} }

// Close ends the journal, and reports how many entries could not be moved for a cause
// that was reported once.
func (m *Mover) Close() {
	for _, errno := range oneCause {
		if n := m.failed[errno] - 1; n > 0 {
			m.store.S.Report.Error("%s could not be moved: %v", units.Count(n, "more entry"), errno)
		}
	}
	m.failed = nil
	m.journal.close()
}

// oneCause are errors that all entries meet which are to be moved.
var oneCause = []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM}

// Failed reports that an entry could not be moved. A cause that all entries meet, as a
// disk that is read-only, is reported for the first, and counted for [Mover.Close].
func (m *Mover) Failed(err error) {
	for _, errno := range oneCause {
		if !errors.Is(err, errno) {
			continue
		}
		if m.failed == nil {
			m.failed = map[syscall.Errno]int{}
		}
		if m.failed[errno]++; m.failed[errno] > 1 {
			return
		}
	}
	m.store.S.Report.Print(err)
}

// Removed reports whether an entry could not be marked because somebody has removed or
// replaced it. To one who has just read it that is no failure.
func Removed(err error) bool {
	return errors.As(err, new(*lektordir.NotFoundError))
}

// SetFlags is [lektordir.Dir.SetFlags] for an entry that another viewer may move in the
// same moment.
func (m *Mover) SetFlags(ref lektordir.Ref, set, unset string) (to lektordir.Ref, err error) {
	err = m.following(ref, func(ref lektordir.Ref) (err error) {
		if to, err = ref.WithFlags(set, unset); err != nil {
			return err
		}
		mark := func() error {
			_, err := m.store.Dir.SetFlags(ref, set, unset)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s: it is in cur/ already with these flags, a second time", ref.Path())
			}
			return err
		}
		if to == ref {
			return mark()
		}
		return m.journal.record(ref.Path(), to.Path(), mark)
	})
	return to, err
}

// Trash marks an entry as trashed.
func (m *Mover) Trash(ref lektordir.Ref) error {
	_, err := m.SetFlags(ref, "T", "")
	return err
}

// Remove deletes one entry, also if another viewer moves it in the same moment.
func (m *Mover) Remove(ref lektordir.Ref) error {
	return m.following(ref, func(ref lektordir.Ref) error {
		return m.journal.record(ref.Path(), removedPath(ref), func() error { return m.RemoveHere(ref) })
	})
}

// following calls move with the place of an entry, and again if the entry has moved
// meanwhile, three times at most.
func (m *Mover) following(ref lektordir.Ref, move func(lektordir.Ref) error) error {
	for try := 0; ; try++ {
		err := move(ref)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try >= 3 {
			return err
		}
		if ref, err = m.store.Resolve(ref.Path(), 0); err != nil {
			return err
		}
	}
}

// RemoveHere deletes an entry where it is. One of cur/ is also deleted from new/: the same
// name may be there, when a machine's failure undid half of a move. It is the same entry,
// and would be unread again.
func (m *Mover) RemoveHere(ref lektordir.Ref) error {
	if ref.Place == lektordir.Cur {
		twin := lektordir.Ref{Feed: ref.Feed, Unique: ref.Unique, Place: lektordir.New}
		if err := m.store.Dir.Remove(twin); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return m.store.Dir.Remove(ref)
}

// RemoveAll calls remove, [Mover.Trash] or [Mover.Remove], for an entry, the first, and
// the older versions of it.
func (m *Mover) RemoveAll(doomed []lektordir.Ref, remove func(*Mover, lektordir.Ref) error) {
	for i, r := range doomed {
		// An older version that another viewer removed needs no removing.
		if err := remove(m, r); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist) && !Removed(err)) {
			m.Failed(err)
		}
	}
}

// WithOlder returns an entry and the older versions that it hides. Each feed is listed
// once. The error is the context's.
func (m *Mover) WithOlder(ctx context.Context, ref lektordir.Ref) ([]lektordir.Ref, error) {
	all := []lektordir.Ref{ref}
	id := ref.Identity()
	if id == "" {
		return all, nil
	}
	if m.feeds == nil {
		m.feeds = map[string]map[string][]lektordir.Ref{}
	}
	if m.feeds[ref.Feed] == nil {
		versions, err := m.Versions(ctx, ref.Feed)
		if err != nil {
			return nil, err
		}
		m.feeds[ref.Feed] = versions
	}
	for _, old := range m.feeds[ref.Feed][id] {
		if old.Unique == ref.Unique {
			break // what follows is newer
		}
		all = append(all, old)
	}
	return all, nil
}

// Versions returns a feed's entries by identity, each version, oldest first. The error is
// the context's.
func (m *Mover) Versions(ctx context.Context, feed string) (map[string][]lektordir.Ref, error) {
	refs, err := m.store.List(ctx, lektordir.ListOptions{Feeds: []string{feed}, AllVersions: true, Withdrawn: true})
	if err != nil {
		return nil, err
	}
	versions := map[string][]lektordir.Ref{}
	for _, r := range refs {
		if id := r.Identity(); id != "" {
			versions[id] = append(versions[id], r)
		}
	}
	return versions, nil
}
