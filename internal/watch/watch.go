// Package watch reports changes in directories: by the kernel if it can,
// by looking again and again if it cannot. It is the one door to fsnotify.
package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/workers"
)

// Watcher watches a set of directories, not what lies below them. Its methods
// are safe for concurrent use.
type Watcher struct {
	// Changed receives a watched directory after names appeared in it or
	// went from it, and "" when any of them may have changed: at every poll,
	// and after the kernel lost events. Events of a busy reader are merged,
	// never lost.
	Changed <-chan string

	fs     *fsnotify.Watcher // nil if the kernel has none
	notice func(string)
	broken func(*workers.Panic) // nil lets panics end the process

	mu      sync.Mutex
	polling bool
	pending map[string]bool
	added   map[string]bool
	wake    chan struct{}
	poll    time.Duration
}

// New starts a watcher, which ends with ctx. If the kernel's limit of
// watches or of instances is reached, or it has no such service, the watcher
// looks every poll interval, and says so once by notice (one line of text).
func New(ctx context.Context, poll time.Duration, notice func(string)) *Watcher {
	return Guarded(ctx, poll, notice, nil)
}

// Guarded is as [New]. A panic of one of the watcher's goroutines is handed to broken, for a
// caller that has a terminal to restore first, and changes are no longer reported.
func Guarded(ctx context.Context, poll time.Duration, notice func(string), broken func(*workers.Panic)) *Watcher {
	ch := make(chan string)
	w := &Watcher{Changed: ch, notice: notice, broken: broken, pending: map[string]bool{}, added: map[string]bool{}, wake: make(chan struct{}, 1), poll: poll}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		w.fallBack(err)
	} else {
		w.fs = fs
		go w.guard(func() { w.read(ctx) })
	}
	go w.guard(func() { w.send(ctx, ch) })
	return w
}

// guard does what a goroutine of the watcher does.
func (w *Watcher) guard(do func()) {
	if w.broken != nil {
		defer func() {
			if v := recover(); v != nil {
				w.broken(workers.Caught(v))
			}
		}()
	}
	do()
}

// Add watches a directory as well. One that is missing is an error, unless the
// context has ended; one that
// the kernel will not watch is polled. One that goes and comes again stays
// watched as long as the directory that holds it is watched too.
func (w *Watcher) Add(dir string) error {
	if w.fs != nil {
		err := atomicfile.Again(func() error { return w.fs.Add(dir) })
		switch {
		case err == nil:
			w.mu.Lock()
			w.added[dir] = true
			w.mu.Unlock()
			return nil
		case errors.Is(err, fsnotify.ErrClosed):
			return nil // the context has ended, and nobody listens
		case missing(err) || errors.Is(err, syscall.ENOTDIR):
			return err
		}
		w.fallBack(err)
		return nil
	}
	_, err := os.Stat(dir)
	return err
}

// Polling reports whether the watcher has fallen back to polling.
func (w *Watcher) Polling() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.polling
}

func (w *Watcher) fallBack(err error) {
	w.mu.Lock()
	first := !w.polling
	w.polling = true
	w.mu.Unlock()
	if !first {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if w.notice == nil {
		return
	}
	why := err.Error()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
		why = "the kernel's limit of watches is reached (fs.inotify.max_user_watches, max_user_instances)"
	}
	w.notice("cannot watch for changes, looking every " + w.poll.String() + " instead: " + why)
}

// read turns the kernel's events into pending directories.
func (w *Watcher) read(ctx context.Context) {
	defer w.fs.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if ev.Op&(fsnotify.Create|fsnotify.Rename|fsnotify.Remove|fsnotify.Write|fsnotify.Chmod) != 0 {
				w.mark(filepath.Dir(ev.Name))
				w.again(ev.Name)
			}
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			// The queue overflowed: events are gone, nobody knows whose.
			_ = err
			w.mark("")
		}
	}
}

// again watches a directory that was removed, or made anew, under the name of
// one that is watched: the kernel watches what had the name before.
func (w *Watcher) again(name string) {
	w.mu.Lock()
	added := w.added[name]
	w.mu.Unlock()
	if !added {
		return
	}
	if err := w.fs.Add(name); err != nil && !missing(err) && !errors.Is(err, fsnotify.ErrClosed) {
		w.fallBack(err)
	}
	w.mark(name)
}

// missing reports whether a directory is not there; of ESTALE, see [atomicfile.Again].
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESTALE)
}

func (w *Watcher) mark(dir string) {
	w.mu.Lock()
	w.pending[dir] = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// send hands pending directories to the reader.
func (w *Watcher) send(ctx context.Context, ch chan<- string) {
	var tick <-chan time.Time
	var ticker *time.Ticker
	defer func() {
		if ticker != nil {
			ticker.Stop()
		}
	}()
	for {
		if tick == nil && w.Polling() {
			ticker = time.NewTicker(w.poll)
			tick = ticker.C
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
			w.mark("")
		case <-w.wake:
		}
		w.mu.Lock()
		batch := w.pending
		w.pending = map[string]bool{}
		w.mu.Unlock()
		if batch[""] {
			batch = map[string]bool{"": true}
		}
		for dir := range batch {
			select {
			case ch <- dir:
			case <-ctx.Done():
				return
			}
		}
	}
}
