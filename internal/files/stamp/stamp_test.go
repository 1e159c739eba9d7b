package stamp_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/stamp"
)

// TestRule: a stamp is remembered if it was the same before and after a reading, and is so old that
// any later change shows.
func TestRule(t *testing.T) {
	later := func() time.Time { return time.Now().Add(time.Hour) }
	for name, c := range map[string]struct {
		rule  stamp.Rule
		quiet bool              // before the reading
		while func(path string) // during the reading
		want  bool
	}{
		"quiet":             {rule: stamp.Rule{Step: time.Nanosecond}, quiet: true, want: true},
		"recent":            {rule: stamp.Rule{}},
		"recent, by a step": {rule: stamp.Rule{Step: time.Hour}, quiet: true},
		"clock ahead":       {rule: stamp.Rule{Clock: later}},
		"changed": {rule: stamp.Rule{Step: time.Nanosecond}, quiet: true, while: func(path string) {
			_ = os.Mkdir(filepath.Join(path, "x"), 0o777)
		}},
		"removed":             {rule: stamp.Rule{Step: time.Nanosecond}, quiet: true, while: func(path string) { _ = os.Remove(path) }},
		"on other machines":   {rule: stamp.Rule{Step: time.Nanosecond, Shared: true}, quiet: true},
		"missing":             {rule: stamp.Rule{}, while: nil, want: true},
		"missing and created": {rule: stamp.Rule{}, while: func(path string) { _ = os.Mkdir(path, 0o777) }},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d")
			if name != "missing" && name != "missing and created" {
				if err := os.Mkdir(path, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			for c.quiet {
				var st unix.Stat_t
				if err := unix.Stat(path, &st); err != nil {
					t.Fatal(err)
				}
				if time.Since(time.Unix(st.Ctim.Unix())) > time.Millisecond {
					break
				}
			}
			r := c.rule.Begin(unix.AT_FDCWD, nil, path)
			if !r.Needed(nil) {
				t.Error("a path that was never read need not be read")
			}
			if c.while != nil {
				c.while(path)
			}
			kept := r.End()
			if got := stamp.Whole(kept); got != c.want {
				t.Errorf("remembered: %v, want %v", got, c.want)
			}
			if again := c.rule.Begin(unix.AT_FDCWD, kept, path); again.Needed(kept) == c.want {
				t.Errorf("needed again: %v, want %v", c.want, !c.want)
			}
		})
	}
}

// TestNeeded: a stamp that was remembered elsewhere does not count on a shared file system.
func TestNeeded(t *testing.T) {
	path := t.TempDir()
	s, _ := stamp.Look(unix.AT_FDCWD, path)
	known := []stamp.Stamp{s}
	if (stamp.Rule{}).Begin(unix.AT_FDCWD, known, path).Needed(known) {
		t.Error("an unchanged directory is read")
	}
	if !(stamp.Rule{Shared: true}).Begin(unix.AT_FDCWD, known, path).Needed(known) {
		t.Error("a directory that other machines write to is not read")
	}
}
