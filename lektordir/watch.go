package lektordir

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/watch"
)

// WatchOptions are the options for watching for arrivals. The zero value is valid.
type WatchOptions struct {
	// Poll is the interval of polling if the kernel does not report changes (default 2 s).
	Poll time.Duration
	// Notice, if not nil, is called once, with a message of one line, when watching
	// falls back to polling.
	Notice func(string)
	// Ready, if not nil, is called when all later arrivals will be seen.
	Ready func()
}

// Watch waits for entries to arrive in new/, and yields each as it does, in
// order of delivery if several arrive at once. Entries that were in new/
// when it began are not yielded. A version that replaces one in new/ (see [UpdateNew])
// is yielded as an arrival. Watch ends without an error when ctx ends. After
// yielding an error it continues, unless new/ itself is gone.
func (d *Dir) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if o.Poll <= 0 {
			o.Poll = 2 * time.Second
		}
		w := &arrivals{d: d, dir: d.Join("new"), watcher: watch.New(ctx, o.Poll, o.Notice), seen: map[string]map[string]bool{}, yield: yield}
		if err := w.watcher.Add(w.dir); err != nil {
			yield(Ref{}, err)
			return
		}
		if !w.feeds(true) {
			return
		}
		if o.Ready != nil {
			o.Ready()
		}
		for {
			select {
			case <-ctx.Done():
				return
			case dir := <-w.watcher.Changed:
				if !w.changed(dir) {
					return
				}
			}
		}
	}
}

// arrivals is new/ as it is watched. Its methods return false when nobody wants more.
type arrivals struct {
	d       *Dir
	dir     string // new/
	watcher *watch.Watcher
	seen    map[string]map[string]bool // feed -> unique names known
	yield   func(Ref, error) bool
}

// changed looks into a directory that has changed; "" means all of them.
func (w *arrivals) changed(dir string) bool {
	all := dir == "" || w.watcher.Polling()
	if (all || dir == w.dir) && !w.feeds(false) {
		return false
	}
	if feed, ok := strings.CutPrefix(dir, w.dir+"/"); ok && !all {
		return w.look(feed, false)
	}
	for feed := range w.seen {
		if all && !w.look(feed, false) {
			return false
		}
	}
	return true
}

// feeds finds directories of feeds that are new, watches and reads them. If quiet, it only
// learns what is there.
func (w *arrivals) feeds(quiet bool) bool {
	names, err := w.d.fs.Feeds("new")
	if err != nil {
		w.yield(Ref{}, err)
		return false
	}
	for _, feed := range names {
		if _, ok := w.seen[feed]; ok {
			continue
		}
		// Watched before it is read, so that nothing falls between.
		if err := w.watcher.Add(w.d.Join("new", feed)); err != nil {
			continue
		}
		if !w.look(feed, quiet) {
			return false
		}
	}
	return true
}

// look yields what is new in a feed's directory, unless it is quiet.
func (w *arrivals) look(feed string, quiet bool) bool {
	l, err := w.d.fs.ReadPlace(feed, false)
	if err != nil && !quiet && !w.yield(Ref{}, err) {
		return false
	}
	old := w.seen[feed]
	now := make(map[string]bool, len(l.Names))
	entryname.Sort(l.Names)
	for _, n := range l.Names {
		now[n.Unique] = true
		if !quiet && !old[n.Unique] && !w.yield(refOf(feed, n), nil) {
			return false
		}
	}
	w.seen[feed] = now
	return true
}
