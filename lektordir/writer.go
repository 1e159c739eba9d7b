package lektordir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// Writer delivers entries to a lektor-dir, and keeps this promise: SIGKILL at
// any instruction, a full disk or a power cut at any moment; then run the
// fetcher again, and every entry is there exactly once and whole, and what was
// delivered before stays delivered after a viewer deleted it. It holds on file
// systems where renames are atomic and ordered, as on ext4, xfs, btrfs and zfs.
//
// It delivers many feeds by one group commit:
//
//  1. src/$feed/{id,name} and new/$feed are put in place, the entries staged
//     under tmp/, and all of it synced.
//  2. The feeds' journals, src/$feed/etc/fetch/seen, get a line for each entry,
//     and are synced. From here on the entries count as delivered.
//  3. The entries are renamed into new/. If that is interrupted, [Writer.Recover]
//     renames what the journals name.
//
// A failed sync renames and saves nothing.
//
// A Writer is safe for concurrent use; a [Txn] belongs to one goroutine at a
// time.
type Writer struct {
	d     *Dir
	delay time.Duration

	mu     sync.Mutex
	cond   *sync.Cond
	open   *group // the group that takes members, or nil
	flush  bool   // commit what there is without waiting for more
	closed bool
	done   chan struct{} // closed when the committer has ended
}

// WriterOptions say how a [Writer] works. The zero value commits as soon as it
// can.
type WriterOptions struct {
	// Delay is how long the first feed of a group waits for others to share
	// the syncs with. Feeds gather during the syncs of earlier ones anyway.
	Delay time.Duration
}

// A group that has grown this large is committed without waiting for more.
const (
	maxGroupEntries = 4096
	maxGroupTxns    = 512
)

// Few entries and journals are synced one by one: a sync of the whole file
// system would wait for everything that other programs wrote there.
const (
	fewEntries  = 4
	fewJournals = 4
)

// maxNameTries bounds the wait for a unique name (specification, "stat()").
const maxNameTries = 5

// NewWriter prepares delivery. It fails when tmp/, new/ and cur/ are not on one
// file system, as entries could not be renamed from one to the other.
func (d *Dir) NewWriter(o WriterOptions) (*Writer, error) {
	var dev [3]uint64
	for i, name := range []string{"tmp", "new", "cur"} {
		var st unix.Stat_t
		if err := unix.Stat(d.Join(name), &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: d.Join(name), Err: err}
		}
		dev[i] = uint64(st.Dev)
	}
	if dev[0] != dev[1] || dev[0] != dev[2] {
		return nil, fmt.Errorf("%s: tmp/, new/ and cur/ must be on one file system, as entries are renamed from one to the other", d.path)
	}
	w := &Writer{d: d, delay: o.Delay, done: make(chan struct{})}
	w.cond = sync.NewCond(&w.mu)
	go w.run()
	return w, nil
}

// Close commits what is pending and ends the writer, after the transactions that
// have staged something are committed or closed. Those that have not are refused
// from here on.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.cond.Broadcast()
	w.mu.Unlock()
	<-w.done
	return nil
}

// Flush makes the committer take what is pending now, without delay. It does
// not wait.
func (w *Writer) Flush() {
	w.mu.Lock()
	w.flush = true
	w.cond.Broadcast()
	w.mu.Unlock()
}

// group is a set of transactions that share their syncs.
type group struct {
	syncs   []*fsSync // of the file systems written to; none: sync each path
	members int       // transactions that stage, and have not submitted yet
	txns    []*Txn    // submitted
	entries int
	born    time.Time // when the first transaction was submitted
}

var errClosed = errors.New("delivery has ended")

// join makes a transaction a member of the open group.
func (w *Writer) join() (*group, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	if w.open == nil {
		g := &group{}
		if !w.d.opts.SlowSync {
			var devs []uint64
			for _, name := range []string{"tmp", "src"} {
				var st unix.Stat_t
				path := w.d.Join(name)
				if err := unix.Stat(path, &st); err != nil {
					g.close()
					return nil, &os.PathError{Op: "stat", Path: path, Err: err}
				}
				if slices.Contains(devs, uint64(st.Dev)) {
					continue
				}
				s, ok, err := openFSSync(path)
				if err != nil {
					g.close()
					return nil, err
				}
				if !ok {
					g.close()
					break
				}
				devs = append(devs, uint64(st.Dev))
				g.syncs = append(g.syncs, s)
			}
		}
		w.open = g
	}
	w.open.members++
	return w.open, nil
}

func (g *group) close() {
	for _, s := range g.syncs {
		s.close()
	}
	g.syncs = nil
}

// run is the committer.
func (w *Writer) run() {
	defer close(w.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		g := w.open
		switch {
		case g == nil || len(g.txns) == 0:
			w.flush = false
			if w.closed {
				if g != nil && g.members > 0 {
					// Somebody still stages.
					w.cond.Wait()
					continue
				}
				if g != nil {
					g.close()
				}
				return
			}
			w.cond.Wait()
			continue
		case w.closed || w.flush || g.entries >= maxGroupEntries || len(g.txns) >= maxGroupTxns:
		default:
			if left := w.delay - time.Since(g.born); left > 0 {
				// Under the mutex, as a wakeup before Wait would be lost.
				t := time.AfterFunc(left, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.cond.Broadcast()
				})
				w.cond.Wait()
				t.Stop()
				continue
			}
		}
		w.open = nil // whoever comes now joins the next group
		for g.members > 0 {
			w.cond.Wait()
		}
		w.mu.Unlock()
		w.d.commit(g)
		g.close()
		w.mu.Lock()
	}
}

// Txn is a delivery to one feed, from the fetcher's taking the feed's lock to
// its giving it back. Nothing is visible to viewers before [Txn.Commit].
type Txn struct {
	w    *Writer
	d    *Dir
	feed string
	lock *flock.Flock

	journal *journal
	tmp     *os.File // tmp/$feed, held so that nobody can put a link in its place
	group   *group
	staged  []record // Unique is a directory in tmp/
	aliases []record // other identities of entries delivered before
	src     []string // paths written in src/, to sync
	failed  error    // an entry could not be staged whole
	refs    []Ref
	dropped map[string]bool
	before  int64 // length of the journal before our lines
	end     func(error)
}

// Begin takes the lock of a feed, which it holds until [Txn.Close]. The error is
// a [*BusyError] when another fetcher has it; a fetcher skips the feed then.
// feed is the hash.
func (w *Writer) Begin(feed string) (*Txn, error) {
	if feed == "" || strings.HasPrefix(feed, ".") || strings.ContainsAny(feed, "/\x00") {
		return nil, fmt.Errorf("%q is no name of a feed's directory", feed)
	}
	l, err := w.d.lockFeed(feed)
	if err != nil {
		return nil, err
	}
	return &Txn{w: w, d: w.d, feed: feed, lock: l}, nil
}

// Feed is the hash of the feed.
func (t *Txn) Feed() string { return t.feed }

// Dir is the lektor-dir.
func (t *Txn) Dir() *Dir { return t.d }

// Now is the time by the lektor-dir's clock.
func (t *Txn) Now() time.Time { return t.d.opts.Now() }

func (d *Dir) journalPath(feed string) string { return d.Join("src", feed, "etc/fetch/seen") }

// readJournal reads the feed's journal, once. A journal in which most lines say
// what later ones say again is compacted on the way.
func (t *Txn) readJournal() (*journal, error) {
	if t.journal != nil {
		return t.journal, nil
	}
	path := t.d.journalPath(t.feed)
	j, err := readJournal(path)
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
	if j.worthCompacting() && t.d.inside(t.srcDirs()...) == nil {
		// A rename that a power cut may still undo would bring an entry back
		// to tmp/ under a name that is about to be forgotten.
		settled := true
		for _, place := range []string{"new", "tmp"} {
			err := syncPath(t.d.Join(place, t.feed))
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

// unsettled reports whether an entry that the journal names is in tmp/$feed still,
// or may be.
func (d *Dir) unsettled(feed string, j *journal) bool {
	names, err := readNames(d.Join("tmp", feed))
	return err != nil && !isNotExist(err) || slices.ContainsFunc(names, func(n string) bool {
		_, ok := j.named(n)
		return ok
	})
}

// nothingStaged reports whether tmp/$feed is empty.
func (d *Dir) nothingStaged(feed string) bool {
	names, err := readNames(d.Join("tmp", feed))
	return len(names) == 0 && (err == nil || isNotExist(err))
}

// PutFeed writes the feed's files in src/$feed: id and name, and those of the
// optional ones that are not empty; an optional file whose value is now empty
// is removed. Each is replaced whole, and only where it changed. The caller has
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
	for _, fd := range f.fields() {
		path := filepath.Join(base, fd.name)
		old, err := readFile(path)
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
			if err := atomicfile.WriteUnsynced(path, []byte(want+"\n")); err != nil {
				return err
			}
			t.src = append(t.src, path, filepath.Dir(path))
		case want != "":
			// A run that was killed may have written it and not synced.
			if fi, err := os.Lstat(path); err == nil && t.d.opts.Now().Sub(fi.ModTime()) < unsyncedAge {
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
		err := t.d.inside(rel)
		if err == nil {
			continue
		}
		if !isNotExist(err) {
			return err
		}
		if err := os.Mkdir(t.d.Join(rel), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := t.d.inside(rel); err != nil {
			return err
		}
		t.src = append(t.src, filepath.Dir(t.d.Join(rel)), t.d.path)
	}
	return nil
}

// inside returns an error unless all of the paths, relative to the lektor-dir,
// are directories. A link may lead out of the lektor-dir, where nothing is to be
// written, moved or deleted. The obligatory directories themselves may be links.
func (d *Dir) inside(rels ...string) error {
	for _, rel := range rels {
		path := d.path + "/" + rel
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return &os.PathError{Op: "open", Path: path, Err: errNotDir}
		}
	}
	return nil
}

var errNotDir = errors.New("it is a link or a file, where a directory of the lektor-dir belongs")

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
	// the place of, or "". If a viewer takes that version before the commit,
	// this one is not delivered.
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
		id = v.Identity.String()[:16]
	}
	fd := int(t.tmp.Fd())
	// A version is newer than those before it, whatever the clock says.
	var after time.Time
	for _, r := range t.journal.pick(t.journal.lineage[v.Lineage]) {
		if d := (Ref{Unique: r.Unique}).Delivered(); d.After(after) {
			after = d
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
		Unique: unique, Replaces: v.Replaces, Time: t.d.opts.Now(),
	})
	if err := t.write(fd, unique, &v.Entry); err != nil {
		return Ref{}, err
	}
	r := Ref{Feed: t.feed, Unique: unique, Place: New}
	t.refs = append(t.refs, r)
	return r, nil
}

// stage prepares the staging of a transaction's first entry.
func (t *Txn) stage() error {
	if t.tmp != nil {
		return nil
	}
	if err := t.join(); err != nil {
		return err
	}
	if err := t.mkdirs(append(t.srcDirs(), "new/"+t.feed, "tmp/"+t.feed)...); err != nil {
		return err
	}
	path := t.d.Join("tmp", t.feed)
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
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
			if err := t.d.opts.Sleep(ctx, 2*time.Second); err != nil {
				return "", err
			}
		}
		now := t.d.opts.Now()
		if !now.Truncate(time.Microsecond).After(after) {
			now = after.Add(time.Microsecond)
		}
		unique := uniqueName(now, t.d.opts.PID, t.d.seq.Add(1), identity, t.d.host)
		// mkdir tells what the specification's stat() would, at the same moment
		// that it takes the name.
		err := unix.Mkdirat(fd, unique, 0o777)
		if err == nil {
			return unique, nil
		}
		last = &os.PathError{Op: "mkdir", Path: t.d.Join("tmp", t.feed, unique), Err: err}
		if err != unix.EEXIST {
			return "", last
		}
	}
	return "", fmt.Errorf("no unique name after %d tries: %w", maxNameTries, last)
}

// write writes the files of an entry.
func (t *Txn) write(fd int, unique string, e *Entry) error {
	t.w.mu.Lock()
	t.group.entries++
	t.w.mu.Unlock()
	path := func(name string) string { return t.d.Join("tmp", t.feed, unique, name) }
	etc := false
	for name, data := range e.stored() {
		if !etc && strings.HasPrefix(name, "etc/") {
			etc = true
			if err := unix.Mkdirat(fd, unique+"/etc", 0o777); err != nil {
				return &os.PathError{Op: "mkdir", Path: path("etc"), Err: err}
			}
		}
		if err := writeAt(fd, unique+"/"+name, data); err != nil {
			return &os.PathError{Op: "write", Path: path(name), Err: err}
		}
	}
	if err := unix.Symlinkat("../../../src/"+t.feed, fd, unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: path("feed"), Err: err}
	}
	return nil
}

// many reports whether the group's entries are synced by syncing the file
// systems. Once true it stays so.
func (g *group) many() bool { return g.syncs != nil && g.entries > fewEntries }

// writeAt writes a new file.
func writeAt(dir int, name string, data []byte) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	for err == unix.EINTR {
		fd, err = unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	}
	if err != nil {
		return err
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			unix.Close(fd)
			return err
		}
		data = data[n:]
	}
	// What close tells must not be lost: NFS and quotas report here.
	return unix.Close(fd)
}

// alias records another identity of an entry that was delivered as old, so that
// it is recognised under either from now on.
func (t *Txn) alias(identity digest, k key, content digest, old record) error {
	if _, err := t.readJournal(); err != nil {
		return err
	}
	if err := t.join(); err != nil {
		return err
	}
	t.aliases = append(t.aliases, record{Identity: identity, Key: k, Content: content, Unique: old.Unique, Replaces: old.Replaces, Time: t.d.opts.Now()})
	return nil
}

// srcDirs are the directories on the way to the journal.
func (t *Txn) srcDirs() []string {
	return []string{"src/" + t.feed, "src/" + t.feed + "/etc", "src/" + t.feed + "/etc/fetch"}
}

// stillInside returns an error unless the commit writes to directories of the
// lektor-dir. new/$feed is made again if somebody removed it.
func (t *Txn) stillInside() error {
	if err := t.d.inside(t.srcDirs()...); err != nil || len(t.staged) == 0 {
		return err
	}
	if err := t.d.inside("new/" + t.feed); err != nil && !isNotExist(err) {
		return err
	}
	return t.d.inside("tmp/" + t.feed)
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
	if t.tmp != nil {
		t.tmp.Close()
		t.tmp = nil
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
	if len(g.txns) == 0 {
		g.born = time.Now()
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
		g.close()
	}
	t.w.cond.Broadcast()
	t.w.mu.Unlock()
	t.group = nil
}

// Close gives the lock back. What was staged and not committed is removed.
func (t *Txn) Close() {
	if t.lock == nil {
		return
	}
	if t.end == nil {
		t.discard()
		t.leave()
	}
	if t.tmp != nil {
		t.tmp.Close()
	}
	t.lock.Unlock()
	t.lock = nil
}

// discard removes what was staged.
func (t *Txn) discard() {
	for _, r := range t.staged {
		os.RemoveAll(t.d.Join("tmp", t.feed, r.Unique))
	}
	t.staged = nil
}

// commit does the group commit.
func (d *Dir) commit(g *group) {
	fail := make(map[*Txn]error)
	live := func(yield func(*Txn) bool) {
		for _, t := range g.txns {
			if fail[t] == nil && !yield(t) {
				return
			}
		}
	}
	// 1. What is staged becomes durable.
	d.sync(g, g.many(), fail, (*Txn).syncStaged)
	for t, err := range fail {
		if err != nil {
			t.discard()
		}
	}
	// 2. The journals take note of it.
	for t := range live {
		if len(t.aliases)+len(t.staged) == 0 {
			continue
		}
		t.before = t.journal.good
		// Looked at again, as staging may have taken long.
		err := t.stillInside()
		if err == nil {
			err = appendJournal(d.journalPath(t.feed), t.journal, slices.Concat(t.aliases, t.staged))
		}
		if err != nil {
			fail[t] = err
			// Lines that could not be cut off again count, and so do their
			// entries: recovery delivers them.
			if uncut := (*uncutError)(nil); !errors.As(err, &uncut) {
				t.discard()
			}
		}
	}
	var noted []*Txn
	for t := range live {
		if len(t.aliases)+len(t.staged) > 0 {
			noted = append(noted, t)
		}
	}
	d.sync(g, g.syncs != nil && len(noted) > fewJournals, fail, (*Txn).syncJournal)
	for _, t := range noted {
		if fail[t] == nil {
			continue
		}
		// Lines that stay in the journal while their entries are gone would
		// be entries lost; so the lines go first, and the entries stay if
		// that cannot be made sure.
		if err := truncateJournal(d.journalPath(t.feed), t.before); err != nil {
			fail[t] = errors.Join(fail[t], err)
			continue
		}
		t.discard()
	}
	// 3. The entries are delivered.
	for t := range live {
		for _, r := range t.staged {
			dropped, err := d.settle(t.feed, r)
			if err != nil {
				fail[t] = errors.Join(fail[t], err)
				break
			}
			if dropped {
				if t.dropped == nil {
					t.dropped = map[string]bool{}
				}
				t.dropped[r.Unique] = true
			}
		}
	}
	for _, t := range g.txns {
		t.end(fail[t])
	}
}

// sync makes what the transactions that have not failed wrote durable: whole
// file systems, or path by path. An error of the former is everybody's, of the
// latter only that of whose path it was. each syncs what a transaction wrote: of
// its own at once, and through a function what others may have in common with it.
func (d *Dir) sync(g *group, whole bool, fail map[*Txn]error, each func(t *Txn, shared func(string) error) error) {
	if whole {
		for _, s := range g.syncs {
			if err := s.sync(); err != nil {
				for _, t := range g.txns {
					fail[t] = cmp.Or(fail[t], err)
				}
				return
			}
		}
		return
	}
	seen := make(map[string]error)
	shared := func(p string) error {
		err, ok := seen[p]
		if !ok {
			err = syncPath(p)
			seen[p] = err
		}
		return err
	}
	for _, t := range g.txns {
		if fail[t] != nil {
			continue
		}
		if err := each(t, shared); err != nil {
			fail[t] = err
		}
	}
}

// syncStaged syncs what is staged, files before the directories they are in,
// and what was written in src/.
func (t *Txn) syncStaged(shared func(string) error) error {
	for _, r := range t.staged {
		if err := syncEntry(t.d.Join("tmp", t.feed, r.Unique)); err != nil {
			return err
		}
	}
	for _, p := range t.src {
		if err := shared(p); err != nil {
			return err
		}
	}
	if len(t.staged) == 0 {
		return nil
	}
	if t.journal.good == 0 {
		// With the feed's first entries comes what an earlier run may have made
		// and not synced.
		src := t.d.Join("src", t.feed)
		for _, p := range []string{src + "/id", src + "/name", src + "/etc", src, t.d.Join("src"), t.d.Join("new"), t.d.Join("tmp"), t.d.path} {
			if err := shared(p); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	return syncPath(t.d.Join("tmp", t.feed))
}

// syncEntry syncs a directory of an entry and the files in it.
func syncEntry(dir string) error {
	ents, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range ents {
		path := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			err = syncEntry(path)
		case e.Type().IsRegular():
			err = syncPath(path)
		}
		if err != nil {
			return err
		}
	}
	return syncPath(dir)
}

// syncJournal syncs the journal, and its directory when its name is new.
func (t *Txn) syncJournal(shared func(string) error) error {
	if len(t.aliases)+len(t.staged) == 0 {
		return nil
	}
	path := t.d.journalPath(t.feed)
	if err := syncPath(path); err != nil || t.before > 0 {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// syncPath syncs a file or directory.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// settle renames a staged entry that the journal names from tmp/ to new/, after
// taking the version it replaces out of new/; should it fail, it can be done
// again. dropped tells that it was not
// delivered because a viewer had taken that version.
func (d *Dir) settle(feed string, r record) (dropped bool, err error) {
	staged := d.Join("tmp", feed, r.Unique)
	if r.Replaces != "" {
		old := d.Join("tmp", feed, r.Replaces+goneReplaced)
		err = renameNoReplace(d.Join("new", feed, r.Replaces), old)
		if errors.Is(err, os.ErrExist) {
			// A power cut undid the rename but not the directory it left.
			if err := os.RemoveAll(old); err != nil {
				return false, err
			}
			err = renameNoReplace(d.Join("new", feed, r.Replaces), old)
		}
		if isNotExist(err) {
			if _, serr := os.Lstat(old); serr != nil {
				return true, d.drop(feed, r.Unique)
			}
			err = nil
		}
		if err != nil {
			return false, err
		}
		// While the new version is not in place, the old one put aside is what
		// tells recovery to put it there.
		defer func() {
			if err == nil {
				os.RemoveAll(old)
			}
		}()
	}
	to := d.Join("new", feed, r.Unique)
	err = renameNoReplace(staged, to)
	if isNotExist(err) {
		if _, serr := os.Lstat(staged); serr != nil {
			return false, nil // somebody finished it
		}
		if err := os.Mkdir(d.Join("new", feed), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return false, err
		}
		err = renameNoReplace(staged, to)
	}
	if errors.Is(err, os.ErrExist) {
		return false, d.drop(feed, r.Unique)
	}
	return false, err
}

// drop deletes a staged entry.
func (d *Dir) drop(feed, unique string) error {
	staged := d.Join("tmp", feed, unique)
	// Renamed first, as half an entry under a name that the journal has could
	// be taken for a whole one.
	err := renameNoReplace(staged, staged+gone)
	if errors.Is(err, os.ErrExist) {
		if err := os.RemoveAll(staged + gone); err != nil {
			return err
		}
		err = renameNoReplace(staged, staged+gone)
	}
	if err != nil && !isNotExist(err) {
		return err
	}
	return os.RemoveAll(staged + gone)
}
