package commit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/workers"
)

// Txn is a transaction: a delivery to one feed. It holds the feed's lock from [Writer.Begin] to
// [Txn.Close]. Viewers see no entry before [Txn.Commit].
type Txn struct {
	w      *Writer
	d      *dirfs.Dir
	feed   string
	unlock func() // nil if the lock was released

	journal *journal.Journal
	group   *group
	staging staging
	staged  []journal.Record // Unique is a directory in tmp/
	aliases []journal.Record // other identities of delivered entries
	src     []string         // paths written in src/, to sync
	err     error            // error of Add, of verifying the journal, or of the commit
	dropped map[string]bool  // unique names of versions that were not delivered
	before  int64            // length of the journal before the commit, in bytes
	end     func(error)      // the function passed to Commit
}

// Begin locks a feed, given by its hash, and returns a transaction. It does not wait: if another
// fetcher holds the lock, the error is a [*BusyError]. Begin first finishes an interrupted
// [Writer.Purge] of the feed.
func (w *Writer) Begin(feed string) (*Txn, error) {
	if !entryname.IsFeed(feed) {
		return nil, fmt.Errorf("%q cannot be the name of a feed's directory", feed)
	}
	unlock, err := Lock(w.d, feed)
	if err != nil {
		return nil, err
	}
	if err := finishPurge(w.d, feed); err != nil {
		unlock()
		return nil, err
	}
	return w.txn(feed, unlock), nil
}

func (w *Writer) txn(feed string, unlock func()) *Txn {
	return &Txn{w: w, d: w.d, feed: feed, unlock: unlock, staging: staging{d: w.d, feed: feed, rel: "tmp/" + feed}}
}

// BeginWait is like [Writer.Begin], but waits up to ten seconds if another fetcher holds the lock.
func (w *Writer) BeginWait(ctx context.Context, feed string) (t *Txn, err error) {
	err = workers.WhileBusy(ctx, w.d.Sleep, workers.Patience, nil, IsBusy, func() error {
		t, err = w.Begin(feed)
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Feed returns the hash of the feed.
func (t *Txn) Feed() string { return t.feed }

// Dir returns the lektor-dir.
func (t *Txn) Dir() *dirfs.Dir { return t.d }

// Journal returns the feed's journal. The first call reads it, and compacts it if that is worth it.
// If a killed fetcher left entries in tmp/ that the journal names, the call first delivers them.
func (t *Txn) Journal() (*journal.Journal, error) {
	if t.journal != nil {
		return t.journal, nil
	}
	path := t.d.Join(JournalPath(t.feed))
	j, err := freshJournal(t.d, t.feed)
	if err != nil {
		return nil, err
	}
	// If a fetcher was killed since this run recovered, the journal may name entries that are still in
	// tmp/. They are delivered now, because a replacement looks for the old version in new/. Other
	// files in tmp/ do not matter; they may be another program's.
	if interrupted(t.d, t.feed, j) {
		if err := recoverLocked(t.d, t.feed); err != nil && interrupted(t.d, t.feed, j) {
			return nil, err
		}
		if j, err = journal.Read(path); err != nil {
			return nil, err
		}
	}
	if j.WorthCompacting() && j.Bad() == 0 {
		if j, err = t.compact(j); err != nil {
			return nil, err
		}
	}
	if j.Good == 0 {
		if err := t.verify(j); err != nil {
			return nil, err
		}
	} else {
		j.Verify = func() { t.err = errors.Join(t.err, t.verify(j)) }
	}
	t.journal = j
	return j, nil
}

// compact compacts the journal. It returns j if entries are staged, or if it cannot sync their names.
func (t *Txn) compact(j *journal.Journal) (*journal.Journal, error) {
	// A power cut may undo renames that are not synced. An entry would be in tmp/ again, under a name
	// that the compacted journal may not have.
	for _, place := range []string{"new/" + t.feed, "new", "tmp/" + t.feed} {
		if err := dirfs.SyncPath(t.d.Join(place)); err != nil && !isNotExist(err) {
			return j, nil
		}
	}
	if !nothingStaged(t.d, t.feed) || t.d.Inside(srcDirs(t.feed)...) != nil {
		return j, nil
	}
	recordSize(t.d, t.feed, 0) // the journal becomes shorter
	j, err := journal.Compact(t.d.Join(JournalPath(t.feed)), j)
	if err == nil {
		recordSize(t.d, t.feed, j.Good)
	}
	return j, err
}

// interrupted reports whether tmp/$feed has an entry that the journal names, or the record of a
// replacement. It returns true if it cannot list the directory.
func interrupted(d *dirfs.Dir, feed string, j *journal.Journal) bool {
	for _, dir := range []string{feed, feed + "/" + dirfs.FirstEntries} {
		names, err := dirfs.Names(d.Join("tmp", dir))
		if err != nil && !isNotExist(err) || slices.ContainsFunc(names, func(n string) bool {
			_, ok := j.Named(n)
			return ok || strings.HasSuffix(n, Replacing)
		}) {
			return true
		}
	}
	return false
}

// nothingStaged reports whether tmp/$feed is empty.
func nothingStaged(d *dirfs.Dir, feed string) bool {
	names, err := dirfs.Names(d.Join("tmp", feed))
	return len(names) == 0 && (err == nil || isNotExist(err))
}

// srcDirs returns the directories on the path of the journal.
func srcDirs(feed string) []string {
	return []string{"src/" + feed, "src/" + feed + "/etc", "src/" + feed + "/etc/fetch"}
}

// mkdirs creates directories of the feed, parents first, and records their parents to be synced. It
// refuses symbolic links, because they may lead out of the lektor-dir.
func (t *Txn) mkdirs(rels ...string) error {
	for _, rel := range rels {
		err := t.d.Inside(rel)
		if err == nil {
			continue
		}
		if !isNotExist(err) {
			return err
		}
		if err := os.Mkdir(t.d.Join(rel), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := t.d.Inside(rel); err != nil {
			return err
		}
		t.src = append(t.src, filepath.Dir(t.d.Join(rel)), t.d.Path)
	}
	return nil
}

// Version is a version of an entry, ready for delivery.
type Version struct {
	// Files yields the names and the data of the entry's files except the link feed, the title
	// first. It is called once, when the entry is written.
	Files    iter.Seq2[string, []byte]
	Identity journal.Digest
	Key      journal.Key
	Content  journal.Digest
	// Lineage is the [journal.Record.Lineage] of the older versions, or "" for the first one. It
	// becomes a part of the unique name.
	Lineage string
	// Replaces is the unique name of the version in new/ that this one replaces, or "". If a
	// viewer takes that version first, this one is not delivered.
	Replaces string
}

// Add stages an entry in tmp/, and returns the unique name that it will have in new/ after the
// commit. If the name exists, Add tries another one after two seconds, five times in all. After an
// error, the transaction cannot be committed; close it.
func (t *Txn) Add(ctx context.Context, v Version) (unique string, err error) {
	defer func() {
		if err != nil {
			t.err = err
		}
	}()
	if _, err := t.Journal(); err != nil {
		return "", err
	}
	if err := t.prepare(); err != nil {
		return "", err
	}
	id := v.Lineage
	if id == "" {
		id = v.Identity.String()
	}
	// A version gets a later time than all older ones, even if the clock was set back.
	var after time.Time
	if v.Lineage != "" {
		for _, r := range t.journal.Lineage(v.Lineage) {
			if d := entryname.Delivered(r.Unique); d.After(after) {
				after = d
			}
		}
	}
	if unique, err = t.staging.claim(ctx, id, after); err != nil {
		return "", err
	}
	// Recorded before it is written, so that Close removes it even if writing fails.
	t.staged = append(t.staged, journal.Record{
		Identity: v.Identity, Key: v.Key, Content: v.Content,
		Unique: unique, Replaces: v.Replaces,
	})
	t.w.mu.Lock()
	t.group.entries++
	t.w.mu.Unlock()
	return unique, t.staging.write(unique, v.Files)
}

// prepare opens the directory for staging, when the first entry is added.
func (t *Txn) prepare() error {
	if t.staging.tmp != nil {
		return nil
	}
	if err := t.join(); err != nil {
		return err
	}
	firstEntries := t.journal.Size == 0 && isNotExist(t.d.Inside("tmp/"+t.feed)) &&
		isNotExist(t.d.Inside("new/"+t.feed))
	if err := t.mkdirs(append(srcDirs(t.feed), "tmp/"+t.feed)...); err != nil {
		return err
	}
	if !firstEntries || !t.staging.stageFirst() {
		if err := t.mkdirs("new/" + t.feed); err != nil {
			return err
		}
	}
	var writing *background
	if !t.group.Whole() {
		writing = &background{limit: t.w.limit}
	}
	return t.staging.open(writing, t.journal.Last(priorEntries))
}

// join makes the transaction a member of the open group.
func (t *Txn) join() error {
	if t.group != nil {
		return nil
	}
	g, err := t.w.join()
	t.group = g
	return err
}

// Alias records another identity of a delivered entry. After the commit, the entry is recognised by
// either identity.
func (t *Txn) Alias(identity journal.Digest, k journal.Key, content journal.Digest, old journal.Record) error {
	if _, err := t.Journal(); err != nil {
		return err
	}
	if err := t.join(); err != nil {
		return err
	}
	t.aliases = append(t.aliases, journal.Record{Identity: identity, Key: k, Content: content, Unique: old.Unique,
		Replaces: old.Replaces})
	return nil
}

// stillInside returns an error if a directory to which the commit writes is missing or was replaced
// by a link. new/$feed may be missing: the commit creates it.
func (t *Txn) stillInside() error {
	if err := t.d.Inside(srcDirs(t.feed)...); err != nil || len(t.staged) == 0 {
		return err
	}
	if err := t.d.Inside("new/" + t.feed); err != nil && !isNotExist(err) {
		return err
	}
	return t.d.Inside("tmp/"+t.feed, t.staging.rel)
}

// Commit submits the transaction and returns at once. done is called once, from another goroutine:
// with nil when the entries are in new/ and durable, or with an error. After an error, a later run
// delivers the missing entries: recovery delivers those that the journal has; the others must be
// staged again.
//
// Do not use the transaction until done was called, and close it then. done may begin and commit
// other transactions, but must not wait for them or for the writer's Close: the next group is
// committed after done returns.
func (t *Txn) Commit(done func(error)) {
	if t.err != nil {
		// An entry is incomplete, so none is delivered.
		go done(t.err)
		return
	}
	t.end = done
	t.staging.staged()
	if t.group == nil || len(t.staged)+len(t.aliases)+len(t.src) == 0 {
		t.leave()
		go done(nil)
		return
	}
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	g := t.group
	if len(t.staged) == 0 && len(t.src) > 0 {
		g.entries++ // files of a feed cost as much to sync as an entry
	}
	g.last = time.Now()
	if len(g.txns) == 0 {
		g.born = g.last
	}
	g.txns = append(g.txns, t)
	g.members--
	t.w.cond.Broadcast()
}

// Delivered returns the unique names of the entries that the transaction has delivered. Call it
// after a commit without error.
func (t *Txn) Delivered() []string {
	out := make([]string, 0, len(t.staged))
	for _, r := range t.staged {
		if !t.dropped[r.Unique] {
			out = append(out, r.Unique)
		}
	}
	return out
}

// Dropped reports whether a version was not delivered, because a viewer took the version that it
// replaces. Call it after a commit without error.
func (t *Txn) Dropped(unique string) bool { return t.dropped[unique] }

// leave removes the transaction from its group; it will not be submitted.
func (t *Txn) leave() {
	if t.group == nil {
		return
	}
	t.w.mu.Lock()
	g := t.group
	g.members--
	if t.w.open == g && g.members == 0 && len(g.txns) == 0 {
		// The group is empty. If it stayed open, its descriptors would collect the write errors
		// of other programs until the next transaction.
		t.w.open = nil
		g.Close()
	}
	t.w.cond.Broadcast()
	t.w.mu.Unlock()
	t.group = nil
}

// Next ends the transaction, and returns another one of the feed, which takes over the lock. Entries
// that were staged and not committed are removed. Closing the old transaction does nothing.
func (t *Txn) Next() *Txn {
	t.abort()
	next := t.w.txn(t.feed, t.unlock)
	t.unlock = nil
	return next
}

// Close removes entries that were staged and not committed, and releases the lock.
func (t *Txn) Close() {
	if t.unlock == nil {
		return
	}
	t.abort()
	t.unlock()
	t.unlock = nil
}

// Wait waits until the staged entries are written, and returns the error of writing them. Commit
// waits for them, too.
func (t *Txn) Wait() error { return t.staging.wait() }

// Abandon ends a transaction as a kill would, for tests: it releases the lock and leaves the files.
func (t *Txn) Abandon() {
	_ = t.Wait() // a killed process writes nothing after its lock is released
	t.unlock()
	t.unlock = nil
	t.leave()
}

// abort closes the staging directory, and removes entries that were staged and not committed.
func (t *Txn) abort() {
	_ = t.Wait() // entries may still be written in the background, into the directory
	if t.end == nil {
		t.discard()
		t.leave()
	}
	t.staging.close()
}

// discard removes the staged entries.
func (t *Txn) discard() {
	uniques := make([]string, len(t.staged))
	for i, r := range t.staged {
		uniques[i] = r.Unique
	}
	t.staging.discard(uniques)
	t.staged = nil
}
