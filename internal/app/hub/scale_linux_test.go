package hub

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A registration, a ping and its round read only files of their own feed, so their cost does
// not depend on the number of feeds.
func TestOtherFeedsAreNotLookedAt(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb0", feed)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(fd)
	watch := func(path string, events uint32) {
		t.Helper()
		if _, err := unix.InotifyAddWatch(fd, path, events); err != nil {
			t.Skip(path, err)
		}
	}
	looked := func() int {
		n, err := unix.Read(fd, make([]byte, 64<<10))
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		return max(n, 0)
	}
	for i := range 30 {
		other := fmt.Sprintf("http://f%d.example/", i)
		w.put(other, 5, func(k int) string { return fmt.Sprintf("http://s%d.example/", k) })
		watch(w.h.shared.states.feed(hashOf(other)), unix.IN_OPEN|unix.IN_ACCESS)
		watch(w.h.shared.states.subs(hashOf(other)), unix.IN_OPEN|unix.IN_ACCESS)
	}
	watch(filepath.Join(w.opts.State, "feeds"), unix.IN_ACCESS) // listing all feeds
	w.register("/cb1", feed)
	w.feed("/feed", "two")
	w.ping(feed)
	if len(w.notified("/cb0")) != 1 || len(w.notified("/cb1")) != 1 || looked() != 0 {
		t.Error("files of other feeds are read, or no subscriber was notified")
	}
	w.h.sweep(false)
	if looked() == 0 {
		t.Error("this test does not notice any access")
	}
}
