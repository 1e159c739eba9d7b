package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func collect(t *testing.T) (context.Context, *Watcher) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(timeout(t))
	w := New(ctx, 0, func(s string) { t.Skip(s) }, nil)
	t.Cleanup(func() {
		cancel()
		w.Wait()
		if left := private(t); len(left) > 0 {
			t.Errorf("%s are left", left)
		}
	})
	return ctx, w
}

// private returns the private files of watchers that have a name.
func private(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "lektor-watch-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSettle: what changed before CatchUp was called can be taken after it, also if an earlier call was given
// up. A kill leaves no file.
func TestSettle(t *testing.T) {
	ctx, w := collect(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		if err := w.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 300 {
		dir := dirs[i%3]
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := w.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if taken := w.Take(); !taken[dir] || len(taken) != 1 {
			t.Fatalf("%d: %v are taken, want %s", i, taken, dir)
		}
		if left := private(t); unlinks && len(left) > 0 {
			t.Fatalf("%s would be left by a kill", left)
		}
		if i%10 == 7 {
			given, up := context.WithCancel(ctx)
			up()
			_ = w.CatchUp(given)
		}
	}
}

// TestOverflow: if the kernel's queue overflows, any directory may have changed, and nobody waits in vain.
func TestOverflow(t *testing.T) {
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || most > 1<<16 {
		t.Skip(err, most)
	}
	ctx, w := collect(t)
	dir := t.TempDir()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock() // so that no events are read
	from := filepath.Join(dir, "0")
	err = os.Mkdir(from, 0o777)
	for i := 1; err == nil && i < most/2+5000; i++ {
		to := filepath.Join(dir, fmt.Sprint(i))
		err = os.Rename(from, to)
		from = to
	}
	w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	if taken := w.Take(); !taken[""] {
		t.Errorf("%v are taken after events were lost", taken)
	}
}

// TestMoved: watched directories are moved and removed before their events are read. The library then reports
// errors while it holds the lock that Add takes.
func TestMoved(t *testing.T) {
	ctx, w := collect(t)
	parent, away := t.TempDir(), filepath.Join(t.TempDir(), "away")
	if err := w.Add(parent); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		dir := func(i int) string { return filepath.Join(parent, fmt.Sprint(round, "-", i)) }
		const dirs = 50
		for i := range dirs {
			if err := os.Mkdir(dir(i), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := w.Add(dir(i)); err != nil {
				t.Fatal(err)
			}
		}
		w.mu.Lock() // so that no events are read
		for i := range dirs {
			if err := errors.Join(os.Rename(dir(i), away), os.Remove(away)); err != nil {
				t.Error(err)
			}
		}
		w.mu.Unlock()
		if err := w.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if taken := w.Take(); !taken[parent] && !taken[""] {
			t.Fatalf("%v are taken", taken)
		}
	}
}
