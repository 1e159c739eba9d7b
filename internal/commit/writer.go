// Package commit delivers entries to a lektor-dir exactly once: staging, the journal, the group
// commit, and the recovery after a kill anywhere. It knows names, digests and bytes; which
// entries of a document are new is decided by package stage.
package commit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/limiter"
)

// Writer delivers entries to a lektor-dir, and keeps this promise: SIGKILL at
// any instruction, a full disk or a power cut at any moment; then run the
// fetcher again, and every entry is there exactly once and whole, and what was
// delivered before stays delivered after a viewer deleted it. It holds on file
// systems where renames are atomic and ordered, as on ext4, xfs, btrfs and zfs.
//
// It delivers many feeds by one group commit:
//
//  1. src/$feed/{id,name} are put in place, the entries staged under tmp/, and
//     all of it synced.
//  2. The feeds' journals, src/$feed/etc/fetch/seen, get a line for each entry,
//     and are synced. From here on the entries count as delivered.
//  3. The entries are renamed into new/$feed; the first ones of a feed all at once,
//     by a rename of the directory that they were staged in. A version that replaces
//     another comes before that one leaves. If this is interrupted, [Writer.Recover]
//     renames what the journals name.
//  4. new/$feed is synced, and the commit ends: a power cut after that takes back no
//     rename.
//
// A failed sync renames and saves nothing.
//
// A Writer is safe for concurrent use; a [Txn] belongs to one goroutine at a
// time.
type Writer struct {
	d     *dirfs.Dir
	delay time.Duration
	slow  bool
	limit *limiter.Limiter // bounds the entries written concurrently

	mu     sync.Mutex
	cond   *sync.Cond
	open   *group // the group that takes members, or nil
	flush  bool   // commit what there is without waiting for more
	closed bool
	done   chan struct{} // closed when the committer has ended
}

// Options say how a [Writer] works. The zero value commits as soon as it
// can.
type Options struct {
	// Delay is how long the feeds of a group wait for one more to share the syncs
	// with: so long after the last that came, and eight times as long after the
	// first. Feeds gather during the syncs of earlier ones anyway.
	Delay time.Duration
	// SlowSync makes delivery sync every file and directory by itself even
	// where one call could sync the whole file system.
	SlowSync bool
}

// A group that has grown this large is committed without waiting for more.
const (
	maxGroupEntries = 4096
	maxGroupTxns    = 512
)

// maxDelays bounds, as a multiple of the delay, how long the first feed waits while
// others keep coming: a commit has much to do that is not for each feed.
const maxDelays = 8

// Few entries and journals are synced one by one: a sync of the whole file
// system would wait for everything that other programs wrote there.
const (
	fewEntries  = 4
	fewJournals = 4
)

// NewWriter prepares delivery. It fails when tmp/, new/ and cur/ are not on one
// file system, as entries could not be renamed from one to the other.
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
		return nil, fmt.Errorf("%s: tmp/, new/ and cur/ must be on one file system, as entries are renamed from one to the other", d.Path)
	}
	w := &Writer{d: d, delay: o.Delay, slow: o.SlowSync, limit: limiter.New(limiter.Options{All: dirfs.AtOnce, Each: dirfs.AtOnce}), done: make(chan struct{})}
	w.cond = sync.NewCond(&w.mu)
	go w.run()
	return w, nil
}

// Close commits what is pending and ends the writer, after the transactions that
// have staged something are committed or closed. It refuses other transactions.
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
	*dirfs.Syncer
	members int    // transactions that stage, and have not submitted yet
	txns    []*Txn // submitted
	entries int
	born    time.Time // when the first transaction was submitted
	last    time.Time // and the last
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
		s, err := w.d.NewSyncer(w.slow)
		if err != nil {
			return nil, err
		}
		w.open = &group{Syncer: s}
	}
	w.open.members++
	return w.open, nil
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
					g.Close()
				}
				return
			}
			w.cond.Wait()
			continue
		case w.closed || w.flush || g.entries >= maxGroupEntries || len(g.txns) >= maxGroupTxns:
		default:
			if left := min(w.delay-time.Since(g.last), maxDelays*w.delay-time.Since(g.born)); left > 0 {
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

// many reports whether the group's entries are synced by syncing the file
// systems. Once true it stays so.
func (g *group) many() bool { return g.Whole() && g.entries > fewEntries }
