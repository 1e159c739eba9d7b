package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/lektordir"
)

func someHistory(t *testing.T) (*lektordir.Dir, *History) {
	t.Helper()
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "d"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, Of(d, "0123")
}

func stored(n int) rfc5005.Stored {
	s := rfc5005.Stored{
		URL: fmt.Sprint("http://x.example/", n), Final: fmt.Sprint("http://x.example/final/", n), Digest: "00ff",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if n > 1 {
		s.Prev = fmt.Sprint("http://x.example/", n-1)
	}
	return s
}

// Archives returns exactly the whole lines of the record, even if other lines are damaged.
func TestArchiveLines(t *testing.T) {
	d, h := someHistory(t)
	for n := 1; n <= 3; n++ {
		if err := h.Store(stored(n)); err != nil {
			t.Fatal(err)
		}
	}
	path := d.Join("src/0123/etc/history/archives")
	good, err := os.ReadFile(path)
	if err != nil || bytes.Count(good, []byte{'\n'}) != 3 {
		t.Fatalf("%s, %v", good, err)
	}
	check := func(what string, want ...int) {
		t.Helper()
		r, err := h.Archives()
		if err != nil || r.Len() != len(want) {
			t.Fatalf("%s: %d, %v", what, r.Len(), err)
		}
		for _, n := range want {
			if s, ok := r.Find(stored(n).Final); !ok || s != stored(n) {
				t.Errorf("%s: %+v", what, s)
			}
		}
	}
	check("whole", 1, 2, 3)
	// If the record is truncated at any byte, its whole lines are read, and the next line follows them.
	for cut := range len(good) {
		if err := os.WriteFile(path, good[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Count(good[:cut], []byte{'\n'})
		check(fmt.Sprint("cut at ", cut), []int{1, 2, 3}[:whole]...)
		if err := h.Store(stored(9)); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint("after a cut at ", cut), append([]int{9}, []int{1, 2, 3}[:whole]...)...)
	}
	// A changed byte makes its own line invalid, and the next one if it is a newline.
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		if r, err := h.Archives(); err != nil || r.Len() < 1 || r.Len() > 2 {
			t.Fatalf("byte %d: %d, %v", i, r.Len(), err)
		}
	}
	// The record is not written through a link.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("mine\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := h.Store(stored(1)); err == nil {
		t.Error("Store follows a link")
	}
	if b, _ := os.ReadFile(target); string(b) != "mine\n" {
		t.Errorf("%s", b)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(archiveLine(stored(2)))
	f.Add([]byte("\t\t\t\t\t\t00000000"))
	f.Add([]byte("-\t-\t-\t-\t-\t-\t" + "9a71bb4c"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := parseArchive(bytes.TrimSuffix(line, []byte{'\n'}))
		if !ok {
			return
		}
		again, ok := parseArchive(bytes.TrimSuffix(archiveLine(s), []byte{'\n'}))
		if !ok || again.URL != feedfiles.OneField(s.URL) {
			t.Errorf("%q: %+v, then %+v", line, s, again)
		}
	})
}

func due(h *History, now time.Time) bool {
	due, _ := h.WalkDue(now)
	return due
}

// Baseline returns what SetBaseline has written. A damaged line
// has the modification time of the file.
func TestBaselineLines(t *testing.T) {
	_, h := someHistory(t)
	if h.Baseline().Set() {
		t.Error(h.Baseline())
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, b := range []rfc5005.Baseline{{URL: "http://x.example/9", Since: at}, {Since: at}} {
		if err := h.SetBaseline(b); err != nil {
			t.Fatal(err)
		}
		if got := h.Baseline(); got != b {
			t.Errorf("%+v, want %+v", got, b)
		}
	}
	old := at.Add(-time.Hour)
	for text, url := range map[string]string{"http://x.example/9\n": "http://x.example/9", "": "", "http://x.example/9\t2026-13": "http://x.example/9"} {
		if err := os.WriteFile(h.dir.Path(fileBaseline), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(h.dir.Path(fileBaseline), old, old); err != nil {
			t.Fatal(err)
		}
		if got := h.Baseline(); got.URL != url || !got.Since.Equal(old) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if err := h.SetBaseline(rfc5005.Baseline{}); err != nil || h.Baseline().Set() {
		t.Error(h.Baseline(), err)
	}
	// Settle moves the baseline, but does not set one for a feed without archives.
	if err := h.MoveBaseline(at); err != nil || h.Baseline().Set() {
		t.Error(h.Baseline(), err)
	}
	if err := h.SetLinked(Linked{Kind: rfc5005.Archived, Prev: "http://x.example/8"}); err != nil {
		t.Fatal(err)
	}
	for i, prev := range []string{"http://x.example/8", ""} {
		if err := h.SetLinked(Linked{Kind: rfc5005.Archived, Prev: prev}); err != nil {
			t.Fatal(err)
		}
		now := at.Add(time.Duration(i) * time.Hour)
		if err := h.MoveBaseline(now); err != nil || h.Baseline() != (rfc5005.Baseline{URL: "http://x.example/8", Since: now}) {
			t.Error(h.Baseline(), err)
		}
	}
	// A time in the future was set by a wrong clock, and is ignored.
	if w, err := h.Walk(at.Add(-time.Hour), false); err != nil || w.Baseline.Since.After(at.Add(-time.Hour)) || !w.Baseline.Set() {
		t.Error(w.Baseline, err)
	}
}

// Missing reports a gap as new once for each reason, and doubles the delay until there is progress.
func TestMissing(t *testing.T) {
	_, h := someHistory(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if h.Gap() != nil || due(h, now) {
		t.Error("a new history has a gap")
	}
	if err := h.SetLinked(Linked{Kind: rfc5005.Archived, Prev: "http://x.example/9"}); err != nil {
		t.Fatal(err)
	}
	if !due(h, now) {
		t.Error("no walk is due")
	}
	days := func(wantNew, progress bool, reason string, after time.Duration) int {
		t.Helper()
		isNew, err := h.Missing(now, "http://me:pw@x.example/1", reason, progress, after)
		if err != nil || isNew != wantNew {
			t.Errorf("%s: new %t, %v", reason, isNew, err)
		}
		if g := h.Gap(); g == nil || g.URL != "http://x.example/1" || g.Reason != strings.ReplaceAll(reason, "\n", " ") {
			t.Errorf("%+v", g)
		}
		wait := h.Retry().Sub(now)
		if due(h, now.Add(wait-time.Second)) {
			// While the first archive is not stored, a walk is due in any case.
			if r, _ := h.Archives(); r.Len() > 0 {
				t.Error("a walk is due too early")
			}
		}
		if !due(h, now.Add(wait)) {
			t.Error("no walk is due after the delay")
		}
		return int(wait / (24 * time.Hour))
	}
	var got []int
	got = append(got, days(true, true, "404", 0))
	nine := stored(9)
	nine.Prev = "http://x.example/1"
	if err := h.Store(nine); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		got = append(got, days(false, false, "404", 0))
	}
	got = append(got, days(true, false, "500\nx", 0), days(false, true, "500\nx", 0), days(false, false, "500\nx", 40*24*time.Hour))
	if want := "[1 2 4 8 16 30 30 30 1 40]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if h.Summary() != "incomplete" {
		t.Error(h.Summary())
	}
	// If the document names no archives, none is missing.
	if err := h.SetLinked(Linked{}); err != nil || h.Gap() != nil || h.Summary() != "" {
		t.Error(err, h.Gap(), h.Summary())
	}
	// The message has no control characters and line breaks of the file.
	if err := os.WriteFile(h.dir.Path(fileIncomplete), []byte("\x1b[31mx\n\n\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if g := h.Gap(); strings.ContainsAny(g.String(), "\x1b\n") || !h.Retry().IsZero() {
		t.Errorf("%q", g)
	}
}
