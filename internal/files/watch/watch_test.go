package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// await waits until a change of dir, or of any directory, is reported.
func await(t *testing.T, ctx context.Context, w *Watcher, dir string) {
	t.Helper()
	for {
		select {
		case <-w.Wake():
			if got := w.Take(); got[dir] || got[""] {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no change of %s was reported", dir)
		}
	}
}

func TestChanges(t *testing.T) {
	ctx := timeout(t)
	a, b := t.TempDir(), t.TempDir()
	w := New(ctx, time.Hour, func(s string) {
		if strings.Contains(s, "the kernel's limit") {
			t.Skip(s) // other processes have used up the limit
		}
		t.Error(s)
	}, nil)
	for _, dir := range []string{a, b} {
		if err := w.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(a, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, w, a)
	if err := os.Rename(filepath.Join(a, "x"), filepath.Join(b, "x")); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, w, b)
	if w.Polling() {
		t.Error("it polls")
	}
}

func TestAddMissing(t *testing.T) {
	ctx := timeout(t)
	w := New(ctx, time.Hour, nil, nil)
	if err := w.Add(filepath.Join(t.TempDir(), "no")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
