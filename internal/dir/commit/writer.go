// Package commit delivers entries to a lektor-dir exactly once: it stages them, records them in the
// journal, commits the entries of many feeds together, and recovers after a kill. Package stage
// decides which entries of a document are delivered.
package commit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// Writer delivers entries to a lektor-dir. If it is interrupted at any point, by SIGKILL, a full
// disk or a power cut, run the fetcher again: every entry then exists exactly once and whole, and
// entries that a viewer deleted stay deleted. This holds on file systems with atomic and ordered
// renames, such as ext4, xfs, btrfs and zfs.
//
// A Writer delivers the entries of many feeds by one group commit:
//
//  1. The files of feeds, src/$feed/{id,name,…}, are written, entries are staged in tmp/, and all
//     are synced.
//  2. A line for each entry is appended to the journal of its feed, src/$feed/etc/fetch/seen, and
//     the journals are synced. From now on the entries count as delivered.
//  3. The entries are renamed to new/$feed. The first entries of a feed are renamed together, with
//     the directory in which they were staged. A new version is renamed before the version that it
//     replaces is removed. If this step is interrupted, [Writer.Recover] renames the entries that
//     the journals name.
//  4. new/$feed is synced, so that a power cut after the commit undoes no rename.
//
// If a sync fails, the later steps are omitted.
//
// A Writer is safe for concurrent use; a [Txn] may be used by one goroutine at a time.
type Writer struct {
	d     *dirfs.Dir
	delay time.Duration
	warn  func(string)
	limit chan struct{} // bounds the entries written concurrently

	mu     sync.Mutex
	cond   *sync.Cond
	open   *group // the group that transactions join, or nil
	flush  bool   // commit the open group without waiting for more transactions
	closed bool
	done   chan struct{} // closed when the committer has ended
}

// Options are the options of a [Writer]. The zero value commits as soon as possible.
type Options struct {
	// Delay is the time for which a group waits for another transaction to share its syncs. The
	// wait starts anew with each transaction, but ends eight delays after the first one.
	// Transactions that are submitted during a commit share the next one in any case.
	Delay time.Duration
	// Warn, if not nil, is called with a message if a journal is damaged.
	Warn func(string)
}

// A group of this size is committed without waiting for more transactions.
const (
	maxGroupEntries = 4096
	maxGroupTxns    = 512
)

// maxDelays is the maximum wait of a group after its first transaction, as a multiple of the delay.
const maxDelays = 8

// Up to this number, entries and journals are synced separately: a sync of the whole file system
// would also wait for the writes of all other programs.
const (
	fewEntries  = 4
	fewJournals = 4
)

// NewWriter returns a writer, which the caller must close. It fails if tmp/, new/ and cur/ are not
// on one file system, because entries are renamed between them.
func NewWriter(d *dirfs.Dir, o Options) (*Writer, error) {
	var dev [3]uint64
	for i, name := range []string{"tmp", "new", "cur"} {
		var st unix.Stat_t
		if err := unix.Stat(d.Join(name), &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: d.Join(name), Err: err}
		}
		dev[i] = uint64(st.Dev)
	}
	if dev[0] != dev[1] || dev[0] != dev[2] {
		return nil,
			fmt.Errorf("%s: tmp/, new/ and cur/ must be on one file system, because entries are renamed from one to the other", d.Path)
	}
	w := &Writer{d: d, delay: o.Delay, warn: o.Warn,
		limit: make(chan struct{}, dirfs.AtOnce), done: make(chan struct{})}
	w.cond = sync.NewCond(&w.mu)
	go w.run()
	return w, nil
}

// Close commits all submitted transactions and stops the writer. It waits until transactions that
// have staged entries are committed or closed. Transactions that have not staged anything fail.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.cond.Broadcast()
	w.mu.Unlock()
	<-w.done
	return nil
}

// Flush starts the commit of all submitted transactions without delay. It does not wait for the
// commit.
func (w *Writer) Flush() {
	w.mu.Lock()
	w.flush = true
	w.cond.Broadcast()
	w.mu.Unlock()
}

// group is a set of transactions that share their syncs.
type group struct {
	*dirfs.Syncer
	members int       // number of transactions that are not submitted yet
	txns    []*Txn    // submitted transactions
	entries int       // number of staged entries
	born    time.Time // time at which the first transaction was submitted
	last    time.Time // time at which the last transaction was submitted
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
		s, err := w.d.NewSyncer()
		if err != nil {
			return nil, err
		}
		w.open = &group{Syncer: s}
	}
	w.open.members++
	return w.open, nil
}

// run commits groups until the writer is closed.
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
					// A transaction is not submitted yet.
					w.cond.Wait()
					continue
				}
				if g != nil {
					g.Close()
				}
				return
			}
			w.cond.Wait()
			continue
		case w.closed || w.flush || g.entries >= maxGroupEntries || len(g.txns) >= maxGroupTxns:
		default:
			if wait := min(w.delay-time.Since(g.last), maxDelays*w.delay-time.Since(g.born)); wait > 0 {
				// It locks the mutex, because a wakeup before Wait would be lost.
				t := time.AfterFunc(wait, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.cond.Broadcast()
				})
				w.cond.Wait()
				t.Stop()
				continue
			}
		}
		w.open = nil // later transactions join the next group
		for g.members > 0 {
			w.cond.Wait()
		}
		w.mu.Unlock()
		w.commit(g)
		g.Close()
		w.mu.Lock()
	}
}

// many reports whether the group's entries are synced by syncing whole file systems. Once it is
// true, it stays true.
func (g *group) many() bool { return g.Whole() && g.entries > fewEntries }
