package commit

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/workers"
)

// commit commits a group; see [Writer].
func (w *Writer) commit(g *group) {
	// 1. Staged entries become durable.
	g.syncAll(g.many(), (*Txn).syncStaged)
	for _, t := range g.txns {
		if t.err != nil {
			t.discard()
		}
	}
	// 2. The journals record them.
	g.each((*Txn).notes, (*Txn).note)
	withLines := g.unfailed((*Txn).notes)
	g.syncAll(g.Whole() && len(withLines) > fewJournals, (*Txn).syncJournal)
	for _, t := range withLines {
		if t.err == nil {
			continue
		}
		// An entry that is in the journal but not staged would never be delivered, so its line
		// is truncated first. If that fails, the staged entries stay.
		if err := journal.Truncate(t.d.Join(JournalPath(t.feed)), t.before); err != nil {
			t.err = errors.Join(t.err, err)
			continue
		}
		t.discard()
	}
	// 3. The entries are delivered.
	g.each((*Txn).notes, (*Txn).moveToNew)
	// 4. The renames become durable before the transactions end.
	if moved := g.unfailed(func(t *Txn) bool { return len(t.staged) > 0 }); len(moved) > 0 {
		g.syncAll(g.Whole() && len(moved) > fewJournals, (*Txn).syncDelivered)
	}
	for _, t := range g.txns {
		t.end(t.err)
	}
}

// unfailed returns the transactions that match and have not failed.
func (g *group) unfailed(match func(*Txn) bool) (live []*Txn) {
	for _, t := range g.txns {
		if t.err == nil && match(t) {
			live = append(live, t)
		}
	}
	return live
}

// notes reports whether the transaction has lines for the journal.
func (t *Txn) notes() bool { return len(t.aliases)+len(t.staged) > 0 }

// note appends the transaction's lines to the journal.
func (t *Txn) note() error {
	t.before = t.journal.Good
	// Staging may have taken long, so the directories are checked again.
	err := t.stillInside()
	if err == nil {
		err = journal.Append(t.d.Join(JournalPath(t.feed)), t.journal, slices.Concat(t.aliases, t.staged))
	}
	// Lines that could not be truncated are valid, so their entries stay, and recovery delivers
	// them.
	if uncut := (*journal.UncutError)(nil); err != nil && !errors.As(err, &uncut) {
		t.discard()
	}
	return err
}

// moveToNew renames the staged entries to new/. The journal has their lines.
func (t *Txn) moveToNew() error {
	recordSize(t.d, t.feed, t.journal.Good)
	if t.staging.first && t.d.Rename(t.d.Join(t.staging.rel), t.d.Join("new", t.feed)) == nil {
		return nil
	}
	// Another process may have made new/$feed, so the entries are renamed one by one.
	for _, r := range t.staged {
		dropped, err := MoveToNew(t.d, t.feed, t.staging.rel, r)
		if err != nil {
			return err
		}
		if dropped {
			if t.dropped == nil {
				t.dropped = map[string]bool{}
			}
			t.dropped[r.Unique] = true
		}
	}
	if t.staging.first {
		os.Remove(t.d.Join(t.staging.rel)) // fails unless it is empty
	}
	return nil
}

// syncAll syncs the writes of the transactions that have not failed: by one sync of the
// whole file system, whose error fails every transaction, or path by path, where an error
// fails only the transaction of the path. each syncs the paths of one transaction; it calls
// shared for a path that other transactions may sync too.
func (g *group) syncAll(whole bool, each func(t *Txn, shared func(string) error) error) {
	if whole {
		if err := g.Syncer.Sync(); err != nil {
			for _, t := range g.txns {
				t.err = cmp.Or(t.err, err)
			}
		}
		return
	}
	var synced sync.Map
	shared := func(p string) error {
		once, _ := synced.LoadOrStore(p, sync.OnceValue(func() error { return dirfs.SyncPath(p) }))
		return once.(func() error)()
	}
	g.each(func(*Txn) bool { return true }, func(t *Txn) error { return each(t, shared) })
}

// syncStaged syncs the staged entries, files before their directories, and the files
// written in src/.
func (t *Txn) syncStaged(shared func(string) error) error {
	if err := t.staging.sync(t.staged); err != nil {
		return err
	}
	for _, p := range t.src {
		if err := shared(p); err != nil {
			return err
		}
	}
	if len(t.staged) == 0 {
		return nil
	}
	if t.journal.Good == 0 {
		// An interrupted run may have made these without syncing them.
		src := t.d.Join("src", t.feed)
		for _, p := range []string{src + "/id", src + "/name", src + "/etc", src, t.d.Join("src"), t.d.Join("new"),
			t.d.Join("tmp"), t.d.Path} {
			if err := shared(p); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	if t.staging.first {
		if err := dirfs.SyncPath(t.d.Join(t.staging.rel)); err != nil {
			return err
		}
	}
	return dirfs.SyncPath(t.d.Join("tmp", t.feed))
}

// syncDelivered syncs the names of the delivered entries.
func (t *Txn) syncDelivered(shared func(string) error) error {
	if len(t.staged) == 0 {
		return nil
	}
	if t.staging.first {
		if err := shared(t.d.Join("new")); err != nil {
			return err
		}
	}
	if err := dirfs.SyncPath(t.d.Join("new", t.feed)); !isNotExist(err) {
		return err
	}
	return nil // another program has removed all entries
}

// syncJournal syncs the journal, and its directory if the journal is new.
func (t *Txn) syncJournal(shared func(string) error) error {
	if len(t.aliases)+len(t.staged) == 0 {
		return nil
	}
	path := t.d.Join(JournalPath(t.feed))
	if err := dirfs.SyncPath(path); err != nil || t.before > 0 {
		return err
	}
	return dirfs.SyncPath(filepath.Dir(path))
}

// each calls f for the transactions that match and have not failed. If each call waits for the disk by itself, the
// calls run concurrently.
func (g *group) each(match func(*Txn) bool, f func(*Txn) error) {
	all := workers.Limited(1)
	if !g.Whole() {
		all = workers.Limited(dirfs.AtOnce)
	}
	for _, t := range g.unfailed(match) {
		all.Go(func() error {
			t.err = f(t)
			return nil
		})
	}
	_ = all.Wait() // the transactions have the errors
}
