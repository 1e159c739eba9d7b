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

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/journal"
)

// Txn is a delivery to one feed, from the fetcher's taking the feed's lock to
// its giving it back. Nothing is visible to viewers before [Txn.Commit].
type Txn struct {
	w      *Writer
	d      *dirfs.Dir
	feed   string
	unlock func() // nil when the lock was given back

	journal *journal.Journal
	group   *group
	staging staging
	staged  []journal.Record // Unique is a directory in tmp/
	aliases []journal.Record // other identities of entries delivered before
	src     []string         // paths written in src/, to sync
	failed  error            // an entry could not be staged whole
	dropped map[string]bool
	before  int64 // length of the journal before our lines
	end     func(error)
}

// Begin takes the lock of a feed, which it holds until [Txn.Close]. The error is
// a [*BusyError] when another fetcher has it; a fetcher skips the feed then.
// feed is the hash. A [Writer.Purge] of the feed that was interrupted is finished
// first.
func (w *Writer) Begin(feed string) (*Txn, error) {
	if !entryname.IsFeed(feed) {
		return nil, fmt.Errorf("%q is no name of a feed's directory", feed)
	}
	unlock, err := Lock(w.d, feed)
	if err != nil {
		return nil, err
	}
	if err := finishPurge(w.d, w.slow, feed); err != nil {
		unlock()
		return nil, err
	}
	return w.txn(feed, unlock), nil
}

func (w *Writer) txn(feed string, unlock func()) *Txn {
	return &Txn{w: w, d: w.d, feed: feed, unlock: unlock, staging: staging{d: w.d, feed: feed, rel: "tmp/" + feed}}
}

// A busy feed is waited for as long as this, in all.
const (
	busyPause = 100 * time.Millisecond
	busyTries = 100
)

// BeginWait is [Writer.Begin] for what cannot be done later: it waits up to ten
// seconds for another fetcher that has the feed.
func (w *Writer) BeginWait(ctx context.Context, feed string) (*Txn, error) {
	for try := 0; ; try++ {
		t, err := w.Begin(feed)
		if busy := (*BusyError)(nil); !errors.As(err, &busy) || try == busyTries {
			return t, err
		}
		if err := w.d.Sleep(ctx, busyPause); err != nil {
			return nil, err
		}
	}
}

// Feed returns the hash of the feed.
func (t *Txn) Feed() string { return t.feed }

// Dir returns the lektor-dir.
func (t *Txn) Dir() *dirfs.Dir { return t.d }

// Journal returns the feed's journal, which it reads once. A journal in which most lines say
// what later ones say again is compacted on the way.
func (t *Txn) Journal() (*journal.Journal, error) {
	if t.journal != nil {
		return t.journal, nil
	}
	path := t.d.Join(JournalPath(t.feed))
	j, err := freshJournal(t.d, t.feed)
	if err != nil {
		return nil, err
	}
	// A fetcher that was killed since this run recovered may have recorded entries in the
	// journal that are not in new/ yet, where staged entries are compared with them. Other
	// files in tmp/ do not matter: they may be another program's and stay for good.
	if unsettled(t.d, t.feed, j) {
		if err := recoverLocked(t.d, t.feed); err != nil && unsettled(t.d, t.feed, j) {
			return nil, err
		}
		if j, err = journal.Read(path); err != nil {
			return nil, err
		}
	}
	if j.WorthCompacting() && t.d.Inside(srcDirs(t.feed)...) == nil {
		// A rename that a power cut may still undo would bring an entry back
		// to tmp/ under a name that is about to be forgotten.
		settled := true
		for _, place := range []string{"new/" + t.feed, "new", "tmp/" + t.feed} {
			err := dirfs.SyncPath(t.d.Join(place))
			settled = settled && (err == nil || isNotExist(err))
		}
		if settled && nothingStaged(t.d, t.feed) {
			if j, err = journal.Compact(path, j); err != nil {
				return nil, err
			}
		}
	}
	t.journal = j
	return j, nil
}

// unsettled reports whether an entry that the journal names is in tmp/$feed still, or
// may be, or the record of a replacement.
func unsettled(d *dirfs.Dir, feed string, j *journal.Journal) bool {
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

// srcDirs are the directories on the way to the journal.
func srcDirs(feed string) []string {
	return []string{"src/" + feed, "src/" + feed + "/etc", "src/" + feed + "/etc/fetch"}
}

// mkdirs makes directories of the feed, each after the one that holds it, and
// remembers what is to be synced for them. One that is a link is refused, as it
// may lead out of the lektor-dir.
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
	// Files yields the names and the data of the entry's files, but for the link feed; the
	// title first. It is called once, when the entry is written.
	Files    iter.Seq2[string, []byte]
	Identity journal.Digest
	Key      journal.Key
	Content  journal.Digest
	// Lineage is the [journal.Record.Lineage] of the versions delivered before, whose
	// unique names this one's shares 16 digits with; "" for the first.
	Lineage string
	// Replaces is the unique name of the version in new/ that this one takes
	// the place of, or "". If a viewer takes that version before this one has
	// its place, this one is not delivered.
	Replaces string
}

// Add stages an entry under tmp/, and returns the unique name that it will have in new/ after
// the commit. The name is checked and, should it be taken, tried anew after two seconds, a
// limited number of times, as the specification says. An error leaves the transaction to be
// closed, not committed.
func (t *Txn) Add(ctx context.Context, v Version) (unique string, err error) {
	defer func() {
		if err != nil {
			t.failed = err
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
	// A version is newer than those before it, whatever the clock says.
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
	// Recorded before it is written, so that Close removes what of it exists.
	t.staged = append(t.staged, journal.Record{
		Identity: v.Identity, Key: v.Key, Content: v.Content,
		Unique: unique, Replaces: v.Replaces,
	})
	t.w.mu.Lock()
	t.group.entries++
	t.w.mu.Unlock()
	return unique, t.staging.write(unique, v.Files)
}

// prepare prepares the staging of a transaction's first entry.
func (t *Txn) prepare() error {
	if t.staging.tmp != nil {
		return nil
	}
	if err := t.join(); err != nil {
		return err
	}
	alone := t.journal.Size == 0 && isNotExist(t.d.Inside("tmp/"+t.feed)) && isNotExist(t.d.Inside("new/"+t.feed))
	if err := t.mkdirs(append(srcDirs(t.feed), "tmp/"+t.feed)...); err != nil {
		return err
	}
	// If another is as fast, each entry is renamed.
	if !alone || !t.staging.takeFirst() {
		if err := t.mkdirs("new/" + t.feed); err != nil {
			return err
		}
	}
	var writing *beside
	if !t.group.Whole() {
		writing = &beside{limit: t.w.limit}
	}
	return t.staging.open(writing, t.journal.Last(priorEntries))
}

// join makes the transaction a member of the group that is open.
func (t *Txn) join() error {
	if t.group != nil {
		return nil
	}
	g, err := t.w.join()
	t.group = g
	return err
}

// Alias records another identity of an entry that was delivered as old, so that
// it is recognised under either from now on.
func (t *Txn) Alias(identity journal.Digest, k journal.Key, content journal.Digest, old journal.Record) error {
	if _, err := t.Journal(); err != nil {
		return err
	}
	if err := t.join(); err != nil {
		return err
	}
	t.aliases = append(t.aliases, journal.Record{Identity: identity, Key: k, Content: content, Unique: old.Unique, Replaces: old.Replaces})
	return nil
}

// stillInside returns an error unless the commit writes to directories of the
// lektor-dir. new/$feed is made again if somebody removed it.
func (t *Txn) stillInside() error {
	if err := t.d.Inside(srcDirs(t.feed)...); err != nil || len(t.staged) == 0 {
		return err
	}
	if err := t.d.Inside("new/" + t.feed); err != nil && !isNotExist(err) {
		return err
	}
	return t.d.Inside("tmp/"+t.feed, t.staging.rel)
}

// Commit delivers what was staged. It returns at once; done is called once,
// from another goroutine, when the entries are durable and in new/, or with the
// error, after which a later run delivers those that are not: either they are
// staged again, or, when the journal had them already, recovery renames them.
// The transaction must not be used between Commit and done, and closed after it.
// done may begin and commit other transactions, but not wait for them, nor for
// the writer's Close: the next group is committed after it returns.
func (t *Txn) Commit(done func(error)) {
	if t.failed != nil {
		// Half an entry is never delivered, nor the rest without it.
		go done(t.failed)
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
		g.entries++ // costs as much to sync
	}
	g.last = time.Now()
	if len(g.txns) == 0 {
		g.born = g.last
	}
	g.txns = append(g.txns, t)
	g.members--
	t.w.cond.Broadcast()
}

// Delivered returns, after a commit without error, the unique names of the entries that are
// in new/ now.
func (t *Txn) Delivered() []string {
	out := make([]string, 0, len(t.staged))
	for _, r := range t.staged {
		if !t.dropped[r.Unique] {
			out = append(out, r.Unique)
		}
	}
	return out
}

// Dropped reports, after a commit without error, whether a version was not delivered, because
// a viewer took the one that it replaces.
func (t *Txn) Dropped(unique string) bool { return t.dropped[unique] }

// leave takes a transaction that will not be submitted out of its group.
func (t *Txn) leave() {
	if t.group == nil {
		return
	}
	t.w.mu.Lock()
	g := t.group
	g.members--
	if t.w.open == g && g.members == 0 && len(g.txns) == 0 {
		// Nobody is left to commit; its descriptors would gather the errors of
		// other programs until somebody is.
		t.w.open = nil
		g.Close()
	}
	t.w.cond.Broadcast()
	t.w.mu.Unlock()
	t.group = nil
}

// Next returns another transaction of the feed that has the lock of this one, which is
// committed or has nothing staged, and is over then: to close it does nothing.
func (t *Txn) Next() *Txn {
	t.giveUp()
	next := t.w.txn(t.feed, t.unlock)
	t.unlock = nil
	return next
}

// Close removes entries that were staged and not committed, and releases the lock.
func (t *Txn) Close() {
	if t.unlock == nil {
		return
	}
	t.giveUp()
	t.unlock()
	t.unlock = nil
}

// Wait waits until the entries that were staged are written. Commit does so, too.
func (t *Txn) Wait() error { return t.staging.wait() }

// Abandon ends a transaction as a kill would: the lock is gone, and all else stays. It is for
// tests.
func (t *Txn) Abandon() {
	_ = t.Wait() // a process that is dead writes nothing after its lock is gone
	t.unlock()
	t.unlock = nil
	t.leave()
}

// giveUp ends the work in tmp/$feed, and removes what was staged and not committed.
func (t *Txn) giveUp() {
	if t.end == nil {
		t.discard()
		t.leave()
	}
	t.staging.close()
}

// discard removes what was staged.
func (t *Txn) discard() {
	uniques := make([]string, len(t.staged))
	for i, r := range t.staged {
		uniques[i] = r.Unique
	}
	t.staging.discard(uniques)
	t.staged = nil
}
