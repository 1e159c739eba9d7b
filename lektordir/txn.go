package lektordir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
)

// Txn is a delivery to one feed, from the fetcher's taking the feed's lock to
// its giving it back. Nothing is visible to viewers before [Txn.Commit].
type Txn struct {
	w      *Writer
	d      *Dir
	feed   string
	unlock func() // nil when the lock was given back

	journal *journal
	tmp     *os.File // where entries are staged, held so that nobody can put a link in its place
	initial bool     // that is tmp/$feed/;first
	group   *group
	twins   twins
	beside  beside
	staged  []record // Unique is a directory in tmp/
	aliases []record // other identities of entries delivered before
	src     []string // paths written in src/, to sync
	failed  error    // an entry could not be staged whole
	refs    []Ref
	dropped map[string]bool
	before  int64          // length of the journal before our lines
	onDisk  map[string]Ref // by unique name, once it was asked for
	shadow  shadow
	end     func(error)
}

// Begin takes the lock of a feed, which it holds until [Txn.Close]. The error is
// a [*BusyError] when another fetcher has it; a fetcher skips the feed then.
// feed is the hash. A [Writer.Purge] of the feed that was interrupted is finished
// first.
func (w *Writer) Begin(feed string) (*Txn, error) {
	if feed == "" || strings.HasPrefix(feed, ".") || strings.ContainsAny(feed, "/\x00") {
		return nil, fmt.Errorf("%q is no name of a feed's directory", feed)
	}
	unlock, err := w.d.lockFeed(feed)
	if err != nil {
		return nil, err
	}
	if err := w.d.finishPurge(feed); err != nil {
		unlock()
		return nil, err
	}
	return &Txn{w: w, d: w.d, feed: feed, unlock: unlock}, nil
}

// Feed is the hash of the feed.
func (t *Txn) Feed() string { return t.feed }

// Dir is the lektor-dir.
func (t *Txn) Dir() *Dir { return t.d }

// Now is the time by the lektor-dir's clock.
func (t *Txn) Now() time.Time { return t.d.fs.Now() }

func (d *Dir) journalPath(feed string) string { return d.Join("src", feed, "etc/fetch/seen") }

// readJournal reads the feed's journal, once. A journal in which most lines say
// what later ones say again is compacted on the way.
func (t *Txn) readJournal() (*journal, error) {
	if t.journal != nil {
		return t.journal, nil
	}
	path := t.d.journalPath(t.feed)
	j, err := t.d.freshJournal(t.feed)
	if err != nil {
		return nil, err
	}
	// A fetcher that was killed since this run recovered has noted entries in the
	// journal that are not in new/ yet, where what comes now is compared with them.
	// What else lies in tmp/ is no matter here: it may be others' and stay for good.
	if t.d.unsettled(t.feed, j) {
		if err := t.d.recoverLocked(t.feed); err != nil && t.d.unsettled(t.feed, j) {
			return nil, err
		}
		if j, err = readJournal(path); err != nil {
			return nil, err
		}
	}
	if j.worthCompacting() && t.d.fs.Inside(t.srcDirs()...) == nil {
		// A rename that a power cut may still undo would bring an entry back
		// to tmp/ under a name that is about to be forgotten.
		settled := true
		for _, place := range []string{"new/" + t.feed, "new", "tmp/" + t.feed} {
			err := dirfs.SyncPath(t.d.Join(place))
			settled = settled && (err == nil || isNotExist(err))
		}
		if settled && t.d.nothingStaged(t.feed) {
			if j, err = compactJournal(path, j); err != nil {
				return nil, err
			}
		}
	}
	t.journal = j
	return j, nil
}

// unsettled reports whether an entry that the journal names is in tmp/$feed still, or
// may be, or the record of a replacement.
func (d *Dir) unsettled(feed string, j *journal) bool {
	for _, dir := range []string{feed, feed + "/" + dirfs.FirstEntries} {
		names, err := dirfs.Names(d.Join("tmp", dir))
		if err != nil && !isNotExist(err) || slices.ContainsFunc(names, func(n string) bool {
			_, ok := j.named(n)
			return ok || strings.HasSuffix(n, replacing)
		}) {
			return true
		}
	}
	return false
}

// nothingStaged reports whether tmp/$feed is empty.
func (d *Dir) nothingStaged(feed string) bool {
	names, err := dirfs.Names(d.Join("tmp", feed))
	return len(names) == 0 && (err == nil || isNotExist(err))
}

// PutFeed writes the feed's files in src/$feed: id and name, and those of the
// optional ones that are not empty; an optional file whose value is now empty
// is removed. Each is replaced whole, and only where it changed; an optional one that
// was not there may be seen empty for a moment, which is as good. The caller has
// made sure that FeedHash(f.ID) is the feed of this transaction. From here on
// other deliveries may wait for the transaction's [Txn.Commit] or [Txn.Close],
// so what takes long comes before.
func (t *Txn) PutFeed(f *Feed) error {
	if FeedHash(f.ID) != t.feed {
		return fmt.Errorf("feed id %q does not belong in src/%s", f.ID, t.feed)
	}
	if oneLine(f.ID) != f.ID {
		return fmt.Errorf("feed id %q does not fit in a line of text", f.ID)
	}
	if oneLine(f.Name) == "" {
		return fmt.Errorf("feed %s has no name", f.ID)
	}
	// Joined before the first write, as the sync tells only of errors since.
	if err := t.join(); err != nil {
		return err
	}
	base := t.d.Join("src", t.feed)
	if err := t.mkdirs(t.srcDirs()...); err != nil {
		return err
	}
	// To ask for a file that is not there costs a call to each of the replicas, where
	// there are some, and most feeds lack most of the files.
	there := map[string]bool{}
	for i, rel := range t.srcDirs()[:2] {
		names, err := dirfs.AllNames(t.d.Join(rel))
		if err != nil {
			return err
		}
		for _, name := range names {
			there[[]string{"", "etc/"}[i]+name] = true
		}
	}
	for _, fd := range f.fields() {
		path := filepath.Join(base, fd.name)
		var old []byte
		var err error = fs.ErrNotExist
		if there[fd.name] {
			old, err = dirfs.ReadFile(path)
		}
		if err != nil && !isNotExist(err) {
			return err
		}
		want := clean(*fd.value)
		if fd.obligatory || fd.name == "language" || fd.name == "image" {
			want = oneLine(want)
		}
		switch {
		case want == "" && err == nil:
			if err := os.Remove(path); err != nil && !isNotExist(err) {
				return err
			}
			t.src = append(t.src, filepath.Dir(path))
		case want != "" && (err != nil || line(old) != want):
			write := atomicfile.WriteUnsynced
			if err != nil && !fd.obligatory {
				write = atomicfile.CreateUnsynced
			}
			if err := write(path, []byte(want+"\n")); err != nil {
				return err
			}
			t.src = append(t.src, path, filepath.Dir(path))
		case want != "":
			// A run that was killed may have written it and not synced.
			if fi, err := dirfs.Lstat(path); err == nil && t.d.fs.Now().Sub(fi.ModTime()) < unsyncedAge {
				t.src = append(t.src, path, filepath.Dir(path))
			}
		}
	}
	return nil
}

// unsyncedAge is longer than a system keeps what is written from the disk.
const unsyncedAge = 10 * time.Minute

// mkdirs makes directories of the feed, each after the one that holds it, and
// remembers what is to be synced for them. One that is a link is refused, as it
// may lead out of the lektor-dir.
func (t *Txn) mkdirs(rels ...string) error {
	for _, rel := range rels {
		err := t.d.fs.Inside(rel)
		if err == nil {
			continue
		}
		if !isNotExist(err) {
			return err
		}
		if err := os.Mkdir(t.d.Join(rel), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := t.d.fs.Inside(rel); err != nil {
			return err
		}
		t.src = append(t.src, filepath.Dir(t.d.Join(rel)), t.d.fs.Path)
	}
	return nil
}

// version is a version of an entry, ready for delivery.
type version struct {
	Entry    Entry
	Identity digest
	Key      key
	Content  digest
	// Lineage is the record.lineage of the versions delivered before, whose
	// unique names this one's shares 16 digits with; "" for the first.
	Lineage string
	// Replaces is the unique name of the version in new/ that this one takes
	// the place of, or "". If a viewer takes that version before this one has
	// its place, this one is not delivered.
	Replaces string
}

// add stages an entry under tmp/ and gives the place it will have in new/ after
// the commit. Its unique name is checked and, should it be taken, tried anew
// after two seconds, a limited number of times, as the specification says.
func (t *Txn) add(ctx context.Context, v version) (_ Ref, err error) {
	defer func() {
		if err != nil {
			t.failed = err
		}
	}()
	if _, err := t.readJournal(); err != nil {
		return Ref{}, err
	}
	if err := t.stage(); err != nil {
		return Ref{}, err
	}
	id := v.Lineage
	if id == "" {
		id = v.Identity.String()
	}
	fd := int(t.tmp.Fd())
	// A version is newer than those before it, whatever the clock says.
	var after time.Time
	if v.Lineage != "" {
		for _, r := range t.journal.lineage(v.Lineage) {
			if d := (Ref{Unique: r.Unique}).Delivered(); d.After(after) {
				after = d
			}
		}
	}
	unique, err := t.claim(ctx, fd, id, after)
	if err != nil {
		return Ref{}, err
	}
	v.Entry.Replaces = cmp.Or(v.Replaces, v.Entry.Replaces)
	// Recorded before it is written, so that Close removes what of it exists.
	t.staged = append(t.staged, record{
		Identity: v.Identity, Key: v.Key, Content: v.Content,
		Unique: unique, Replaces: v.Replaces,
	})
	if err := t.write(fd, unique, &v.Entry); err != nil {
		return Ref{}, err
	}
	r := Ref{Feed: t.feed, Unique: unique, Place: New}
	t.refs = append(t.refs, r)
	return r, nil
}

// stagedIn is the directory, relative to the lektor-dir, where entries are staged.
func (t *Txn) stagedIn() string {
	if t.initial {
		return "tmp/" + t.feed + "/" + dirfs.FirstEntries
	}
	return "tmp/" + t.feed
}

// stage prepares the staging of a transaction's first entry.
func (t *Txn) stage() error {
	if t.tmp != nil {
		return nil
	}
	if err := t.join(); err != nil {
		return err
	}
	alone := t.journal.size == 0 && isNotExist(t.d.fs.Inside("tmp/"+t.feed)) && isNotExist(t.d.fs.Inside("new/"+t.feed))
	if err := t.mkdirs(append(t.srcDirs(), "tmp/"+t.feed)...); err != nil {
		return err
	}
	if alone {
		// If another is as fast, each entry is renamed.
		t.initial = os.Mkdir(t.d.Join("tmp", t.feed, dirfs.FirstEntries), 0o777) == nil
	}
	if !t.initial {
		if err := t.mkdirs("new/" + t.feed); err != nil {
			return err
		}
	}
	path := t.d.Join(t.stagedIn())
	fd, err := atomicfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	t.tmp = os.NewFile(uintptr(fd), path)
	return nil
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

// claim makes the directory of an entry in tmp/$feed under a fresh unique name,
// whose time is after the one given.
func (t *Txn) claim(ctx context.Context, fd int, identity string, after time.Time) (string, error) {
	var last error
	for try := range maxNameTries {
		if try > 0 {
			if err := t.d.fs.Sleep(ctx, 2*time.Second); err != nil {
				return "", err
			}
		}
		now := t.d.fs.Now()
		if !now.Truncate(time.Microsecond).After(after) {
			now = after.Add(time.Microsecond)
		}
		unique := t.d.fs.Unique(now, identity)
		// mkdir tells what the specification's stat() would, at the same moment
		// that it takes the name.
		err := unix.Mkdirat(fd, unique, 0o777)
		if err == nil {
			return unique, nil
		}
		last = &os.PathError{Op: "mkdir", Path: t.d.Join(t.stagedIn(), unique), Err: err}
		if err != unix.EEXIST {
			return "", last
		}
	}
	return "", fmt.Errorf("no unique name after %d tries: %w", maxNameTries, last)
}

// linkFeed makes the link from an entry to its feed.
func (t *Txn) linkFeed(fd int, unique string) error {
	if err := unix.Symlinkat(leadsTo(t.feed), fd, unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: t.d.Join(t.stagedIn(), unique, "feed"), Err: err}
	}
	return nil
}

// leadsTo is the link feed of the entries of a feed.
func leadsTo(feed string) string { return "../../../src/" + feed }

// alias records another identity of an entry that was delivered as old, so that
// it is recognised under either from now on.
func (t *Txn) alias(identity digest, k key, content digest, old record) error {
	if _, err := t.readJournal(); err != nil {
		return err
	}
	if err := t.join(); err != nil {
		return err
	}
	t.aliases = append(t.aliases, record{Identity: identity, Key: k, Content: content, Unique: old.Unique, Replaces: old.Replaces})
	return nil
}

// srcDirs are the directories on the way to the journal.
func (t *Txn) srcDirs() []string {
	return []string{"src/" + t.feed, "src/" + t.feed + "/etc", "src/" + t.feed + "/etc/fetch"}
}

// stillInside returns an error unless the commit writes to directories of the
// lektor-dir. new/$feed is made again if somebody removed it.
func (t *Txn) stillInside() error {
	if err := t.d.fs.Inside(t.srcDirs()...); err != nil || len(t.staged) == 0 {
		return err
	}
	if err := t.d.fs.Inside("new/" + t.feed); err != nil && !isNotExist(err) {
		return err
	}
	return t.d.fs.Inside("tmp/"+t.feed, t.stagedIn())
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
	t.forgetTwins()
	if t.beside.group == nil {
		t.closeTmp()
	}
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

// Delivered lists, after a commit without error, the entries that are in new/ now.
func (t *Txn) Delivered() []Ref {
	out := make([]Ref, 0, len(t.refs))
	for _, r := range t.refs {
		if !t.dropped[r.Unique] {
			out = append(out, r)
		}
	}
	return out
}

// Outcome returns a result of [Txn.Stage] after a commit without error: without the
// versions that were not delivered, because a viewer took the one that they replace.
func (t *Txn) Outcome(staged Result) Result {
	staged.Updated = slices.DeleteFunc(slices.Clone(staged.Updated), func(r Ref) bool { return t.dropped[r.Unique] })
	return staged
}

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

// Next gives another transaction of the feed that has the lock of this one, which is
// committed or has nothing staged, and is over then: to close it does nothing.
func (t *Txn) Next() *Txn {
	if t.end == nil {
		t.discard()
		t.leave()
	}
	t.closeTmp()
	next := &Txn{w: t.w, d: t.d, feed: t.feed, unlock: t.unlock}
	t.unlock = nil
	return next
}

// Close gives the lock back. What was staged and not committed is removed.
func (t *Txn) Close() {
	if t.unlock == nil {
		return
	}
	if t.end == nil {
		t.discard()
		t.leave()
	}
	t.forgetTwins()
	t.closeTmp()
	t.unlock()
	t.unlock = nil
}

// closeTmp ends the work in tmp/$feed.
func (t *Txn) closeTmp() {
	if t.tmp != nil {
		t.tmp.Close()
		t.tmp = nil
	}
}

// discard removes what was staged.
func (t *Txn) discard() {
	_ = t.besides() // which may still be writing there
	for _, r := range t.staged {
		os.RemoveAll(t.d.Join(t.stagedIn(), r.Unique))
	}
	t.staged = nil
	if t.initial {
		os.Remove(t.d.Join(t.stagedIn()))
	}
}
