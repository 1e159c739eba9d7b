package fullscreen

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/watch"
)

// TestWatchEnds: a watcher ends with the call that made it, so that attempts to watch a lektor-dir
// that is gone do not use up the user's inotify instances.
func TestWatchEnds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted by /proc")
	}
	watch.New(t.Context(), time.Hour, func(why string) { t.Skip(why) })
	f := newFixture(t)
	f.Add("new", "1773000000.1.h")
	l := f.adapter(10)
	descriptors := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	if err := os.Rename(l.dir.Join("new"), l.dir.Join("away")); err != nil {
		t.Fatal(err)
	}
	before := descriptors()
	for range 100 {
		if err := l.Watch(t.Context(), time.Time{}, func(string) {}); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	after := descriptors()
	for end := time.Now().Add(10 * time.Second); after > before && time.Now().Before(end); after = descriptors() {
		time.Sleep(time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors, and then %d", before, after)
	}
}

// TestWatchAway: the kernel reports neither that a lektor-dir was unmounted nor that it was moved away; a
// watch of one ends all the same, also if another has its place.
func TestWatchAway(t *testing.T) {
	defer func(was time.Duration) { poll = was }(poll)
	poll = time.Millisecond
	for _, again := range []bool{false, true} {
		f := newFixture(t)
		f.Add("new", "1773000000.1.h")
		l := f.adapter(10)
		began, ended := make(chan bool, 1), make(chan error)
		go func() { ended <- l.Watch(t.Context(), time.Time{}, func(string) { began <- true }) }()
		<-began
		if err := os.Rename(l.dir.Path(), l.dir.Path()+"-away"); err != nil {
			t.Fatal(err)
		}
		if again {
			if err := os.CopyFS(l.dir.Path(), os.DirFS(l.dir.Path()+"-away")); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("it ends without an error")
			}
		case <-time.After(10 * time.Second):
			t.Errorf("it watches on; again = %t", again)
			return
		}
	}
}
