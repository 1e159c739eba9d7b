package lektordir

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
)

// If the document of a feed is complete, List omits entries that are not in it, read or unread.
// They come back with their flags.
func TestComplete(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("1", "one"), sample("2", "two"), sample("3", "three"))
	feed := refs[0].Feed
	cur, err := d.SetFlags(refs[1], "FS", "")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{refs[0].Path(), cur.Path(), refs[2].Path()}
	slices.Sort(all)
	shown := func(want ...string) {
		t.Helper()
		got := paths(list(t, d, ListOptions{}))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		with := paths(list(t, d, ListOptions{Withdrawn: true}))
		if slices.Sort(with); !slices.Equal(with, all) {
			t.Errorf("with withdrawn entries: %q, want %q", with, all)
		}
	}
	path := d.Join("src", feed, completeFile)
	set := func(text string) {
		t.Helper()
		if err := os.MkdirAll(strings.TrimSuffix(path, "/complete"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	shown(all...)
	set(refs[2].Identity() + "\n" + cur.Identity() + "\n")
	shown(cur.Path(), refs[2].Path())
	if ids, ok, err := d.Complete(feed); !ok || err != nil || !slices.Equal(ids, []string{refs[2].Identity(), cur.Identity()}) {
		t.Error(ids, ok, err)
	}
	set("")
	shown()
	set(cur.Identity()) // an editor may omit the newline
	shown(cur.Path())
	// A malformed file hides no entry.
	for _, text := range []string{"x", "\n", cur.Identity() + "\n\x00\x00", "0123456789ABCDEF\n"} {
		set(text)
		refs, err := d.List(t.Context(), ListOptions{})
		var bad *MalformedError
		if len(refs) != 3 || !errors.As(err, &bad) || !strings.Contains(err.Error(), "16 digits") {
			t.Errorf("%q: %d, %v", text, len(refs), err)
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	if refs, err := d.List(t.Context(), ListOptions{}); len(refs) != 3 || err == nil {
		t.Error(refs, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	shown(all...)
	// An entry without an identity, by another fetcher, is listed: it may be in the document.
	set("")
	foreign := d.Join("new", feed, "1700000000.77.elsewhere")
	if err := os.MkdirAll(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 || got[0].Unique != "1700000000.77.elsewhere" {
		t.Error(got)
	}
}

// Next hands the lock over: no other fetcher can take it in between.
func TestNext(t *testing.T) {
	d, _ := newDir(t)
	refs := deliver(t, d, sample("1", "one"))
	w := writer(t, d)
	tx, err := w.Begin(refs[0].Feed)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"2", "3"} {
		next := tx.Next()
		tx.Close()
		tx = next
		if _, err := w.Begin(refs[0].Feed); !errors.As(err, new(*commit.BusyError)) {
			t.Error(err)
		}
		if _, err := tx.add(t.Context(), sample(id, "more")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		tx.Commit(func(err error) { done <- err })
		w.Flush()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// Next removes an entry that was staged and not committed.
	tx = tx.Next()
	if _, err := tx.add(t.Context(), sample("4", "never")); err != nil {
		t.Fatal(err)
	}
	tx = tx.Next()
	tx.Close()
	if again, err := w.Begin(refs[0].Feed); err != nil {
		t.Error(err)
	} else {
		again.Close()
	}
	if got := list(t, d, ListOptions{}); len(got) != 3 || len(tree(t, d, "tmp")) > 1 {
		t.Error(got, tree(t, d, "tmp"))
	}
}
