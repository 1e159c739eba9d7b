package lektordir

import (
	"context"
	"iter"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/watch"
)

// WatchOptions say how to watch for arrivals. The zero value will do.
type WatchOptions struct {
	// Poll is how often to look where the kernel cannot tell; default 2 s.
	Poll time.Duration
	// Notice is told, once and in one line, when watching falls back to
	// polling; nil ignores it.
	Notice func(string)
	// Ready is called when arrivals from now on will be seen; nil for none.
	Ready func()
}

// Arrivals waits for entries to arrive in new/, and yields each as it does, in
// order of delivery where several arrive at once. Entries that were in new/
// when it began are not yielded. It ends when ctx does, without an error; an
// error that is yielded does not end it but when new/ itself is gone.
func (d *Dir) Arrivals(ctx context.Context, o WatchOptions) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if o.Poll <= 0 {
			o.Poll = 2 * time.Second
		}
		w := watch.New(ctx, o.Poll, o.Notice)
		if err := w.Add(d.Join("new")); err != nil {
			yield(Ref{}, err)
			return
		}
		seen := map[string]map[string]bool{} // feed -> unique names known
		// look yields what is new in a feed's directory; quiet only learns.
		look := func(feed string, quiet bool) bool {
			l, err := d.fs.ReadPlace(feed, false)
			if err != nil && !quiet && !yield(Ref{}, err) {
				return false
			}
			old := seen[feed]
			now := make(map[string]bool, len(l.Names))
			entryname.Sort(l.Names)
			for _, n := range l.Names {
				now[n.Unique] = true
				if !quiet && !old[n.Unique] && !yield(refOf(feed, n), nil) {
					return false
				}
			}
			seen[feed] = now
			return true
		}
		// feeds finds directories of feeds that are new, watches and reads them.
		feeds := func(quiet bool) bool {
			names, err := d.fs.Feeds("new")
			if err != nil {
				yield(Ref{}, err)
				return false
			}
			for _, feed := range names {
				if _, ok := seen[feed]; ok {
					continue
				}
				// Watched before it is read, so that nothing falls between.
				if err := w.Add(d.Join("new", feed)); err != nil {
					continue
				}
				if !look(feed, quiet) {
					return false
				}
			}
			return true
		}
		if !feeds(true) {
			return
		}
		if o.Ready != nil {
			o.Ready()
		}
		newDir := d.Join("new")
		for {
			select {
			case <-ctx.Done():
				return
			case dir := <-w.Changed:
				if dir == "" || dir == newDir || w.Polling() {
					if !feeds(false) {
						return
					}
				}
				if dir == "" || w.Polling() {
					for feed := range seen {
						if !look(feed, false) {
							return
						}
					}
				} else if dir != newDir && len(dir) > len(newDir) {
					if !look(dir[len(newDir)+1:], false) {
						return
					}
				}
			}
		}
	}
}
