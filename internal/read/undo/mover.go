package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Mover marks and removes entries for a command, also if other viewers move them at the same
// time, and records each rename for undo.
type Mover struct {
	store   *entrystore.Store
	journal *journal                              // nil if undo is not possible
	failed  map[syscall.Errno]int                 // number of entries that could not be moved, by reported cause
	feeds   map[string]map[string][]lektordir.Ref // results of Versions by feed hash
	others  func() bool                           // whether etc/view/repeats wants what [Mover.readOthers] does
	read    []*entrystore.Record                  // the entries that were marked as read, if it does
}

// Moving returns the mover of a command that can be undone. The journal is created when the first
// entry is moved.
func Moving(s *entrystore.Store, command string) *Mover {
	return &Mover{store: s, journal: &journal{store: s, command: command, max: maxJournal},
		others: sync.OnceValue(func() bool {
			if s.Index == nil {
				return false // the search for others may read all entries
			}
			word, _ := atomicfile.Line(s.Dir.Join("etc/view/repeats"))
			return word == "read"
		})}
}

// Continue lets the mover continue the journal that the last mover with the same chain began for the same
// client, so that one undo takes back both, unless ten minutes have passed or another command came
// after it. Movers with the same chain must not be used at the same time.
func (m *Mover) Continue(c *Chain, client string) { m.journal.chain, m.journal.client = c, client }

// Unrecorded returns the mover of a command that cannot be undone.
func Unrecorded(s *entrystore.Store) *Mover { return &Mover{store: s} }

// Close closes the journal, and reports how many more entries failed for a cause that
// [Mover.Failed] reported once.
func (m *Mover) Close() {
	m.readOthers()
	for _, errno := range oneCause {
		if n := m.failed[errno] - 1; n > 0 {
			m.store.S.Report.Error("%s could not be moved: %v", humanize.Count(n, "more entry"), errno)
		}
	}
	m.failed = nil
	m.journal.close()
}

// Span returns the part of the journal that a closed mover has written.
func (m *Mover) Span() Span { return m.journal.span }

// readOthers marks the entries of other feeds as read that have the link of an entry that was marked, if the file
// etc/view/repeats says so.
func (m *Mover) readOthers() {
	if len(m.read) == 0 {
		return
	}
	unread, _ := query.Parse("is:unread")
	others, _ := m.store.Also(context.Background(), unread, m.read...)
	for _, r := range others {
		if _, err := m.SetFlags(r.Ref, "S", ""); err != nil && !Removed(err) {
			m.Failed(err)
		}
	}
}

// oneCause are errors that affect all entries, not one.
var oneCause = []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM}

// Failed reports that an entry could not be moved. A cause that affects all entries, for example a
// read-only disk, is reported for the first entry and counted for the others, see [Mover.Close].
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

// Removed reports whether err means that another process has removed or replaced the entry.
// Commands that mark an entry after showing it ignore such an error.
func Removed(err error) bool {
	return errors.As(err, new(*lektordir.NotFoundError))
}

// SetFlags is like [lektordir.Dir.SetFlags], but finds an entry that another viewer moves at the
// same time. It returns the new name.
func (m *Mover) SetFlags(ref lektordir.Ref, set, unset string) (to lektordir.Ref, err error) {
	err = m.following(ref, func(ref lektordir.Ref) (err error) {
		if to, err = ref.WithFlags(set, unset); err != nil {
			return err
		}
		mark := func() error {
			_, err := m.store.Dir.SetFlags(ref, set, unset)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s: cannot set the flags: a copy of the entry with these flags is in cur/ already",
					ref.Path())
			}
			return err
		}
		if to == ref {
			return mark()
		}
		return m.journal.record(ref.Path(), to.Path(), mark)
	})
	if err == nil && ref.Unread() && !to.Unread() && m.others != nil && m.others() {
		m.read = append(m.read, m.store.Record(to))
	}
	return to, err
}

// Announce writes the lines of the first of many calls of SetFlags to the journal, if those that it
// wrote before are used up. It is called before each of them.
func (m *Mover) Announce(refs []lektordir.Ref, set, unset string) {
	m.journal.announce(refs, set, unset)
}

// Settings records changes of the settings of feeds, before they are made.
func (m *Mover) Settings(changes ...subscriptions.Change) { m.journal.settings(changes) }

// Trash marks an entry as trashed.
func (m *Mover) Trash(ref lektordir.Ref) error {
	_, err := m.SetFlags(ref, "T", "")
	return err
}

// Remove deletes one entry, also if another viewer moves it at the same time.
func (m *Mover) Remove(ref lektordir.Ref) error {
	return m.following(ref, func(ref lektordir.Ref) error {
		return m.journal.record(ref.Path(), removedPath(ref), func() error { return m.RemoveHere(ref) })
	})
}

// following calls move with an entry. If the entry was moved meanwhile, it calls move again with
// the new name, at most three times.
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

// RemoveHere deletes an entry without looking for its new name. For an entry in cur/ it also
// deletes the same name in new/, which may exist if a crash undid half of a move. Otherwise the
// entry would be unread again.
func (m *Mover) RemoveHere(ref lektordir.Ref) error {
	if ref.Place == lektordir.Cur {
		unread := lektordir.Ref{Feed: ref.Feed, Unique: ref.Unique, Place: lektordir.New}
		if err := m.store.Dir.Remove(unread); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return m.store.Dir.Remove(ref)
}

// RemoveAll calls remove, [Mover.Trash] or [Mover.Remove], for an entry, the first in doomed, and
// for its older versions.
func (m *Mover) RemoveAll(doomed []lektordir.Ref, remove func(*Mover, lektordir.Ref) error) {
	for i, r := range doomed {
		// An older version may be removed by another viewer first.
		if err := remove(m, r); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist) && !Removed(err)) {
			m.Failed(err)
		}
	}
}

// WithOlder returns an entry and the older versions that it hides. Each feed is listed only once.
// The error is that of ctx.
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
			break // the following versions are newer
		}
		all = append(all, old)
	}
	return all, nil
}

// Versions returns all versions of the entries of a feed by identity, oldest first. The error is
// that of ctx.
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
