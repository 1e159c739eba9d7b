package fullscreen

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/files/watch"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/lektordir"
)

// poll is the interval for checking changes that the kernel cannot report; a variable for tests.
var poll = 5 * time.Second

func (l *diskAdapter) Watch(ctx context.Context, since time.Time, changed func(feed string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broken := make(chan *workers.Panic, 2) // room for one of each goroutine of the watcher
	w := &watching{
		Watcher: watch.Guarded(ctx, poll, nil, func(p *workers.Panic) { broken <- p }),
		dir:     l.dir, watched: map[string]bool{}, changed: changed,
		since: since.Add(-2 * time.Second), // the coarsest resolution of file times
	}
	// new/ and cur/ must exist. Other directories may be created while the reader runs.
	for _, place := range []string{"new", "cur"} {
		if err := w.Add(l.dir.Join(place)); err != nil {
			return err
		}
	}
	begun, err := os.Stat(l.dir.Join("new"))
	if err != nil {
		return err
	}
	look := time.NewTicker(poll)
	defer look.Stop()
	_ = w.Add(l.dir.Join(savedDir)) // if it exists
	if err := w.addFeeds(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-broken:
			panic(p)
		case <-look.C:
			// The kernel does not report that the lektor-dir was unmounted or moved away.
			if now, err := os.Stat(l.dir.Join("new")); err != nil || !os.SameFile(begun, now) {
				return cmp.Or(err, errors.New("another lektor-dir is in its place"))
			}
		case dir := <-w.Changed:
			if err := w.take(dir); err != nil {
				return err
			}
		}
	}
}

// watching is one run of [diskAdapter.Watch].
type watching struct {
	*watch.Watcher
	dir     *lektordir.Dir
	watched map[string]bool // directories of feeds
	since   time.Time
	changed func(feed string)
}

// take handles a change of a directory, "" if it is unknown.
func (w *watching) take(dir string) error {
	switch base := filepath.Base(dir); {
	case dir == "", dir == w.dir.Join(savedDir):
		err := w.addFeeds()
		if err == nil {
			w.changed("")
		}
		return err
	case base == "new" || base == "cur":
		return w.addFeeds()
	default:
		w.changed(base)
		return nil
	}
}

// addFeeds adds the directories of feeds that are not watched yet.
func (w *watching) addFeeds() error {
	for _, place := range []string{"new", "cur"} {
		ents, err := os.ReadDir(w.dir.Join(place))
		if err != nil {
			return err
		}
		for _, e := range ents {
			dir := w.dir.Join(place, e.Name())
			if w.watched[dir] || strings.HasPrefix(e.Name(), ".") || w.Add(dir) != nil {
				continue
			}
			w.watched[dir] = true
			// The directory may have changed before it was watched.
			if fi, err := os.Stat(dir); err != nil || fi.ModTime().After(w.since) {
				w.changed(e.Name())
			}
		}
	}
	return nil
}
