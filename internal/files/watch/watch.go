// Package watch reports changes in directories: by events of the kernel if possible, else by
// polling. Only this package imports fsnotify.
package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
)

// Watcher collects changes of a set of directories, without the directories below them, until its owner
// takes them. Its methods are safe for concurrent use.
type Watcher struct {
	ctx    context.Context
	fs     *fsnotify.Watcher // nil if the system has no events
	notice func(string)
	broken func(*workers.Panic) // called with a panic; if nil, panics end the process
	wake   chan struct{}
	poll   time.Duration

	mu      sync.Mutex
	polling bool
	pending map[string]bool
	added   map[string]bool

	catchingUp catchingUp
	ended      chan struct{} // closed when no more events are read
}

// catchingUp is what [Watcher.CatchUp] waits with. Both fields change under the locks of catchingUp and of Watcher.
type catchingUp struct {
	sync.Mutex
	file    *os.File      // a private file, to which it writes
	arrived chan struct{} // closed when the event of the last write has come
}

// New starts a watcher, which ends with ctx. A caller that returns earlier must cancel ctx, since
// the kernel allows each user few watchers. If the kernel has no such service, or its limit of
// watches or instances is reached, the watcher polls every directory at this interval, unless it is 0. It then
// calls notice once, with one line of text. A caller that must restore a terminal after a panic gives broken,
// which is called with a panic of the watcher's goroutines; changes are then no longer reported.
func New(ctx context.Context, poll time.Duration, notice func(string), broken func(*workers.Panic)) *Watcher {
	w := &Watcher{ctx: ctx, notice: notice, broken: broken, pending: map[string]bool{}, added: map[string]bool{},
		wake: make(chan struct{}, 1), poll: poll, ended: make(chan struct{})}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		close(w.ended)
		w.Poll(err)
		return w
	}
	w.fs = fs
	go w.guard(func() { w.read(ctx) })
	return w
}

// Wait waits, after the context has ended, until no file of the watcher is left.
func (w *Watcher) Wait() { <-w.ended }

// Wake receives a value after changes.
func (w *Watcher) Wake() <-chan struct{} { return w.wake }

// Take returns the directories that have changed since the last call; "" stands for any.
func (w *Watcher) Take() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.pending
	w.pending = map[string]bool{}
	return taken
}

// Watches reports whether a directory was added.
func (w *Watcher) Watches(dir string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.added[dir]
}

// patience is how long CatchUp waits for its event.
const patience = 5 * time.Second

// CatchUp waits until all changes that ended before the call can be taken. For this it writes to a private
// file and waits for the event of that: the kernel has one queue of events, in their order. If the queue
// overflows, or the event does not come, any directory may have changed. If changes are not reported, see
// [Watcher.Polling], it does not wait.
func (w *Watcher) CatchUp(ctx context.Context) error {
	if w.Polling() {
		return nil
	}
	w.catchingUp.Lock()
	defer w.catchingUp.Unlock()
	arrived, err := w.write()
	if err != nil {
		w.Poll(err)
		w.mark("")
		return nil
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-arrived:
		return nil
	case <-late.C:
		w.mark("")
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-w.ctx.Done():
		err = context.Cause(w.ctx)
	}
	w.catchingUp.close()
	w.mu.Lock()
	w.catchingUp.file = nil // the event of this write is not that of a later one
	w.mu.Unlock()
	return err
}

// write writes to the private file, which it makes if there is none.
func (w *Watcher) write() (arrived chan struct{}, err error) {
	f := w.catchingUp.file
	if f == nil {
		if f, err = os.CreateTemp("", "lektor-watch-"); err != nil {
			return nil, err
		}
		err = w.fs.Add(f.Name())
		if err != nil || unlinks {
			_ = os.Remove(f.Name()) // so that a kill leaves nothing
		}
	}
	arrived = make(chan struct{})
	w.mu.Lock()
	w.catchingUp.file, w.catchingUp.arrived = f, arrived
	w.mu.Unlock()
	if err == nil {
		_, err = f.WriteAt([]byte{0}, 0)
	}
	return arrived, err
}

// unlinks is set if the system reports changes of a file without a name.
const unlinks = runtime.GOOS == "linux"

// close closes the private file.
func (s *catchingUp) close() {
	if s.file != nil {
		_ = s.file.Close()
		if !unlinks {
			_ = os.Remove(s.file.Name())
		}
	}
}

// Go runs a function in a goroutine whose panics are reported as those of the watcher.
func (w *Watcher) Go(do func()) { go w.guard(do) }

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
		w.Poll(err)
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

// Poll makes the watcher poll from now on, because of an error.
func (w *Watcher) Poll(err error) {
	w.mu.Lock()
	first := !w.polling
	w.polling = true
	w.mu.Unlock()
	if !first {
		return
	}
	instead := "comparing times"
	if w.poll > 0 {
		instead = "looking every " + w.poll.String()
		go w.guard(w.tick)
	}
	if w.notice == nil {
		return
	}
	why := err.Error()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
		why = "the kernel's limit of watches is reached (fs.inotify.max_user_watches, max_user_instances)"
	}
	w.notice("cannot watch for changes, " + instead + " instead: " + why)
}

// tick reports at each interval that any directory may have changed.
func (w *Watcher) tick() {
	for ticker := time.NewTicker(w.poll); ; {
		select {
		case <-w.ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
			w.mark("")
		}
	}
}

// read receives the kernel's events, and adds their directories to pending.
func (w *Watcher) read(ctx context.Context) {
	defer close(w.ended)
	defer func() {
		go func() {
			for range w.fs.Errors { // see renew
			}
		}()
		w.fs.Close()
		w.catchingUp.Lock()
		defer w.catchingUp.Unlock()
		w.catchingUp.close()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if ev.Op&(fsnotify.Create|fsnotify.Rename|fsnotify.Remove|fsnotify.Write|fsnotify.Chmod) != 0 {
				w.happened(ev)
			}
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			// The queue overflowed, so events of unknown directories are lost.
			_ = err
			w.Lost()
		}
	}
}

// Lost records that events were lost: any directory may have changed.
func (w *Watcher) Lost() {
	w.mark("")
	w.release()
}

// happened records that something happened to a name in a watched directory, or to the private file.
func (w *Watcher) happened(ev fsnotify.Event) {
	name, dir := ev.Name, filepath.Dir(ev.Name)
	w.mu.Lock()
	awaited := w.catchingUp.file != nil && name == w.catchingUp.file.Name() && ev.Op.Has(fsnotify.Write)
	of, itself := w.added[dir], w.added[name]
	w.mu.Unlock()
	if awaited {
		w.release()
	}
	if of {
		w.mark(dir)
	}
	if itself {
		w.mark(name)
		go w.guard(func() { w.renew(name) })
	}
}

// renew watches a directory that was removed or created anew, as the kernel watches the removed one. It must not run
// where errors are received: until an error is, the library holds the lock that Add and Close take.
func (w *Watcher) renew(dir string) {
	if err := w.fs.Add(dir); err != nil && !missing(err) && !errors.Is(err, fsnotify.ErrClosed) {
		w.Poll(err)
	}
	w.mark(dir) // it may have changed before it was watched
}

// release ends the waiting for the private file.
func (w *Watcher) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := &w.catchingUp; s.arrived != nil {
		close(s.arrived)
		s.arrived = nil
	}
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
	w.Rouse()
}

// Rouse sends a value to Wake, without a change.
func (w *Watcher) Rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
