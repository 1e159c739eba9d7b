package lektordir

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/watch"
)

// WatchOptions are the options of [Dir.Watch]. The zero value is valid.
type WatchOptions struct {
	// Poll is the interval of polling if the kernel does not report changes (default 2 s).
	Poll time.Duration
	// Notice, if not nil, is called once, with a message of one line, if Watch falls back to
	// polling.
	Notice func(string)
	// Ready, if not nil, is called once: entries that arrive after the call are yielded.
	Ready func()
}

// Watch waits for entries to arrive in new/, and yields each. If several entries of a feed arrive
// at once, it yields them in the order of delivery. Watch does not yield entries that are in
// new/ when it begins, but does yield a version that replaces one of them (see [UpdateNew]).
//
// When ctx is done, Watch ends without an error. After an error, it continues, unless new/ itself
// cannot be read.
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

// arrivals is the state of [Dir.Watch]. Its methods return false if Watch must end.
type arrivals struct {
	d       *Dir
	dir     string // new/
	watcher *watch.Watcher
	seen    map[string]map[string]bool // feed -> unique names in the last reading
	yield   func(Ref, error) bool
}

// changed yields the arrivals in a directory that has changed; "" means any directory.
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

// feeds watches the directories of new feeds, and yields their entries unless quiet.
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
		// Watching begins before reading, so that no arrival is missed.
		if err := w.watcher.Add(w.d.Join("new", feed)); err != nil {
			continue
		}
		if !w.look(feed, quiet) {
			return false
		}
	}
	return true
}

// look reads a feed's directory, and yields the entries that arrived since the last reading
// unless quiet.
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
