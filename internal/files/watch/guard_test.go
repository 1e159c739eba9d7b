package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/workers"
)

// TestGuarded: a panic in the goroutine that reads the kernel's events is reported. It does not
// end the process, which may have to restore its terminal.
func TestGuarded(t *testing.T) {
	ctx := timeout(t)
	dir := t.TempDir()
	broken := make(chan *workers.Panic, 2)
	w := New(ctx, time.Hour, func(s string) { t.Skip(s) }, func(p *workers.Panic) { broken <- p })
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.pending = nil // a write to a nil map panics
	w.mu.Unlock()
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	select {
	case p := <-broken:
		if len(p.Stack) == 0 {
			t.Errorf("got %v; want len(p.Stack) != 0", p)
		}
	case <-ctx.Done():
		t.Fatal("no panic is reported")
	}
}
