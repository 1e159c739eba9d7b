// Package watch reports changes in directories: by events of the kernel if possible, else by
// polling. Only this package imports fsnotify.
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

// Watcher watches a set of directories, without the directories below them. Its methods are safe
// for concurrent use.
type Watcher struct {
	// Changed receives a watched directory after names appeared in it or disappeared. It receives
	// "" if any directory may have changed: at every poll, and after the kernel lost events.
	// While nobody receives, changes are merged, and none is lost.
	Changed <-chan string

	fs     *fsnotify.Watcher // nil if the system has no events
	notice func(string)
	broken func(*workers.Panic) // called with a panic; if nil, panics end the process

	mu      sync.Mutex
	polling bool
	pending map[string]bool
	added   map[string]bool
	wake    chan struct{}
	poll    time.Duration
}

// New starts a watcher, which ends with ctx. A caller that returns earlier must cancel ctx, since
// the kernel allows each user few watchers. If the kernel has no such service, or its limit of
// watches or instances is reached, the watcher polls every directory at this interval. It then
// calls notice once, with one line of text.
func New(ctx context.Context, poll time.Duration, notice func(string)) *Watcher {
	return Guarded(ctx, poll, notice, nil)
}

// Guarded is [New] for a caller that must restore a terminal after a panic. It calls broken with
// a panic of the watcher's goroutines; changes are then no longer reported.
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

// guard runs a goroutine of the watcher, and reports its panic.
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

// Add watches one more directory. If the directory is missing, Add returns an error, unless ctx
// has ended. If the kernel refuses to watch it, the watcher polls. A directory that is removed
// and created again is still watched, if its parent is watched too.
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
			return nil // ctx has ended, and nobody receives changes
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

// read receives the kernel's events, and adds their directories to pending.
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
			// The queue overflowed, so events of unknown directories are lost.
			_ = err
			w.mark("")
		}
	}
}

// again watches a directory again after it was removed or created anew, since the kernel watches
// the removed one.
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

// missing reports whether err means that a directory does not exist. For ESTALE see
// [atomicfile.Again].
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

// send sends pending directories to Changed.
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
