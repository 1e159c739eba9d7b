package feedfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

func TestTrusted(t *testing.T) {
	d, err := lektordir.Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := d.Path()
	leaf := filepath.Join(dir, "src", "f", "etc", "fetch", "filter")
	testdir.Write(t, filepath.Dir(leaf), "filter", "cat\n")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(ok bool, what string) {
		t.Helper()
		if err := Trusted(d, "f", "filter"); (err == nil) != ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	check(true, "all mine")
	for p := leaf; len(p) >= len(dir); p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, bit := range []os.FileMode{0o020, 0o002} {
			if err := os.Chmod(p, fi.Mode().Perm()|bit); err != nil {
				t.Fatal(err)
			}
			check(false, fmt.Sprintf("%s with %o", p, bit))
		}
		if err := os.Chmod(p, fi.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	check(true, "all mine again")
	if err := errors.Join(Trusted(d, "", ""), Trusted(d, "f", "")); err != nil {
		t.Error(err)
	}
	if Trusted(d, "f", "missing") == nil || Trusted(d, "g", "") == nil {
		t.Error("a missing file is trusted")
	}
	if os.Geteuid() == 0 {
		if err := os.Lchown(filepath.Dir(leaf), 12345, -1); err != nil {
			t.Fatal(err)
		}
		check(false, "another user's")
	}
}

// RecordDate keeps the greatest Date, but not one in the future.
func TestRecordDate(t *testing.T) {
	l, err := lektordir.Create(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	day := func(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }
	if got := ServerTime(l); !got.IsZero() {
		t.Errorf("at first: %v", got)
	}
	for _, step := range []struct{ date, now, want time.Time }{
		{time.Time{}, day(2), time.Time{}}, {day(2), day(2), day(2)}, {day(1), day(2), day(2)}, {day(20), day(20), day(20)},
		{day(3), day(3), day(3)}, // the clock was 17 days ahead
	} {
		if err := RecordDate(l, step.date, step.now); err != nil {
			t.Fatal(err)
		}
		if got := ServerTime(l); !got.Equal(step.want) {
			t.Errorf("after %v: %v, want %v", step.date, got, step.want)
		}
	}
	if err := os.WriteFile(l.Join("etc/fetch/date"), []byte("soon\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := ServerTime(l); !got.IsZero() {
		t.Errorf("damaged: %v", got)
	}
}
