package commit

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/journal"
	"github.com/lektordir/lektor/internal/workers"
)

// commit does the group commit.
func (w *Writer) commit(g *group) {
	fail := make(map[*Txn]error)
	// those gives the transactions for which something holds and that have not failed.
	those := func(has func(*Txn) bool) (live []*Txn) {
		for _, t := range g.txns {
			if fail[t] == nil && has(t) {
				live = append(live, t)
			}
		}
		return live
	}
	// 1. What is staged becomes durable.
	g.syncAll(g.many(), fail, (*Txn).syncStaged)
	for t, err := range fail {
		if err != nil {
			t.discard()
		}
	}
	// 2. The journals take note of it.
	noted := those((*Txn).notes)
	for i, err := range g.each(noted, (*Txn).note) {
		fail[noted[i]] = err
	}
	noted = those((*Txn).notes)
	g.syncAll(g.Whole() && len(noted) > fewJournals, fail, (*Txn).syncJournal)
	for _, t := range noted {
		if fail[t] == nil {
			continue
		}
		// Lines that stay in the journal while their entries are gone would
		// be entries lost; so the lines go first, and the entries stay if
		// that cannot be made sure.
		if err := journal.Truncate(t.d.Join(JournalPath(t.feed)), t.before); err != nil {
			fail[t] = errors.Join(fail[t], err)
			continue
		}
		t.discard()
	}
	// 3. The entries are delivered.
	noted = those((*Txn).notes)
	for i, err := range g.each(noted, (*Txn).settle) {
		fail[noted[i]] = err
	}
	// 4. The renames become durable, before anybody is told of them.
	if moved := those(func(t *Txn) bool { return len(t.staged) > 0 }); len(moved) > 0 {
		g.syncAll(g.Whole() && len(moved) > fewJournals, fail, (*Txn).syncDelivered)
	}
	for _, t := range g.txns {
		t.end(fail[t])
	}
}

// notes reports whether the transaction has lines for the journal.
func (t *Txn) notes() bool { return len(t.aliases)+len(t.staged) > 0 }

// note appends the transaction's lines to the journal.
func (t *Txn) note() error {
	t.before = t.journal.Good
	// Looked at again, as staging may have taken long.
	err := t.stillInside()
	if err == nil {
		err = journal.Append(t.d.Join(JournalPath(t.feed)), t.journal, slices.Concat(t.aliases, t.staged))
	}
	// Lines that could not be cut off again count, and so do their entries: recovery
	// delivers them.
	if uncut := (*journal.UncutError)(nil); err != nil && !errors.As(err, &uncut) {
		t.discard()
	}
	return err
}

// settle delivers what was staged, which the journal has.
func (t *Txn) settle() error {
	if t.staging.first && t.d.Rename(t.d.Join(t.staging.rel), t.d.Join("new", t.feed)) == nil {
		return nil
	}
	// Or somebody has made new/$feed meanwhile.
	for _, r := range t.staged {
		dropped, err := Settle(t.d, t.feed, t.staging.rel, r)
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
		os.Remove(t.d.Join(t.staging.rel)) // if nothing is left in it
	}
	return nil
}

// sync makes what the transactions that have not failed wrote durable: whole
// file systems, or path by path. An error of the former is everybody's, of the
// latter only that of whose path it was. each syncs what a transaction wrote: of
// its own at once, and through a function what others may have in common with it.
func (g *group) syncAll(whole bool, fail map[*Txn]error, each func(t *Txn, shared func(string) error) error) {
	if whole {
		if err := g.Syncer.Sync(); err != nil {
			for _, t := range g.txns {
				fail[t] = cmp.Or(fail[t], err)
			}
		}
		return
	}
	var mu sync.Mutex
	seen := make(map[string]func() error)
	shared := func(p string) error {
		mu.Lock()
		once := seen[p]
		if once == nil {
			once = sync.OnceValue(func() error { return dirfs.SyncPath(p) })
			seen[p] = once
		}
		mu.Unlock()
		return once()
	}
	var live []*Txn
	for _, t := range g.txns {
		if fail[t] == nil {
			live = append(live, t)
		}
	}
	for i, err := range g.each(live, func(t *Txn) error { return each(t, shared) }) {
		fail[live[i]] = err
	}
}

// syncStaged syncs what is staged, files before the directories they are in,
// and what was written in src/.
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
		// With the feed's first entries comes what an earlier run may have made
		// and not synced.
		src := t.d.Join("src", t.feed)
		for _, p := range []string{src + "/id", src + "/name", src + "/etc", src, t.d.Join("src"), t.d.Join("new"), t.d.Join("tmp"), t.d.Path} {
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

// syncDelivered syncs the names of what was delivered.
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
	return nil // somebody has removed all of it
}

// syncJournal syncs the journal, and its directory when its name is new.
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

// each calls f for every transaction, and returns their errors; beside each other if
// the disk is waited for in each.
func (g *group) each(txns []*Txn, f func(*Txn) error) []error {
	bad := make([]error, len(txns))
	if g.Whole() || len(txns) == 1 {
		for i, t := range txns {
			bad[i] = f(t)
		}
		return bad
	}
	all := workers.Limited(dirfs.AtOnce)
	for i, t := range txns {
		all.Go(func() error {
			bad[i] = f(t)
			return nil
		})
	}
	_ = all.Wait() // f's errors are in bad
	return bad
}
