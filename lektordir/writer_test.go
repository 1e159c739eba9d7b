package lektordir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
)

var ctx = context.Background()

func TestDeliver(t *testing.T) {
	for _, slow := range []bool{false, true} {
		d, _ := newDir(t)
		var vs []version
		for i := range 20 {
			vs = append(vs, sample(fmt.Sprint("urn:", i), "text"))
		}
		d.fs.SlowSync = slow
		refs := deliverBy(t, writerWith(t, d, commit.Options{}), vs...)
		if len(refs) != 20 {
			t.Fatal(len(refs))
		}
		for i, r := range refs {
			e, err := d.ReadEntry(r, AllFields)
			if err != nil || e.ID != vs[i].Entry.ID {
				t.Errorf("%v %v", e, err)
			}
		}
		j, err := journal.Read(d.journalPath(feedHash))
		if err != nil || lines(j) != 20 || j.Bad() != 0 {
			t.Errorf("%+v %v", j, err)
		}
		if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("left in tmp: %v", got)
		}
		f, err := d.ReadFeed(feedHash)
		if err != nil || f.ID != feedID || f.Name != "Example" {
			t.Errorf("%+v %v", f, err)
		}
	}
}

// Before the commit new/ is empty; it has no directory for the feed either.
func TestNothingBeforeCommit(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "new"); len(got) != 0 {
		t.Error(got)
	}
	if _, err := tx.add(ctx, sample("1", "A")); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Error(got)
	}
	tx.Close()
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %v", got)
	}
	if _, err := os.Stat(d.journalPath(feedHash)); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a journal without a delivery:", err)
	}
}

// "If stat() returned anything other than ENOENT, the program sleeps for two
// seconds, updates $time, and tries the stat() again, a limited number of times."
func TestUniqueNameTaken(t *testing.T) {
	d, c := newDir(t)
	w := writer(t, d)
	v := sample("1", "A")
	taken := func(at time.Time, seq int64) string {
		return d.Join("tmp", feedHash, entryname.Unique(at, 42, seq, v.Identity.String()[:16], "host"))
	}
	start := c.Now()
	tx, _ := w.Begin(feedHash)
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	// Reading the journal may recover tmp/, so the taken names are made after it.
	if _, err := tx.Journal(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(taken(start, 1), "title"), "another's")
	write(t, taken(start.Add(2*time.Second), 2), "a file")
	r, err := tx.add(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{2 * time.Second, 2 * time.Second}; !slices.Equal(c.slept, want) {
		t.Errorf("slept %v", c.slept)
	}
	if got := r.Delivered(); !got.Equal(start.Add(4 * time.Second).Truncate(time.Microsecond)) {
		t.Errorf("the time in the name is %v, want that of the last try", got)
	}
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(taken(start, 1), "title")); got != "another's" {
		t.Error("the other fetcher's entry was changed")
	}

	// The number of tries is limited.
	c.slept = nil
	tx, err = w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if _, err := tx.Journal(); err != nil {
		t.Fatal(err)
	}
	for i := range int64(20) {
		for s := range int64(60) {
			write(t, taken(start.Add(time.Duration(s)*time.Second), 4+i), "")
		}
	}
	if _, err := tx.add(ctx, v); err == nil || !strings.Contains(err.Error(), "unique") {
		t.Error(err)
	}
	if len(c.slept) != 5-1 {
		t.Errorf("slept %v", c.slept)
	}
}

func TestHosts(t *testing.T) {
	for _, host := range []string{"a;b:c/d", "plain", "", "hé llo"} {
		c := newClock()
		d, err := Create(filepath.Join(t.TempDir(), "d"), &Options{Now: c.Now, Sleep: c.Sleep, Host: host, PID: 1})
		if err != nil {
			t.Fatal(err)
		}
		r := deliver(t, d, sample("1", "A"))[0]
		if got := list(t, d, ListOptions{}); len(got) != 1 || got[0] != r {
			t.Errorf("host %q: %v", host, got)
		}
		to, err := d.SetFlags(r, "S", "")
		if err != nil || to.Flags() != "S" {
			t.Errorf("host %q: %v %v", host, to, err)
		}
	}
}

func TestLock(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	other, _ := Open(d.Path(), nil)
	w2 := writer(t, other)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	var busy *commit.BusyError
	if _, err := w2.Begin(feedHash); !errors.As(err, &busy) || busy.Feed != feedHash {
		t.Error(err)
	}
	if err := w2.Recover(ctx); err != nil {
		t.Error("Recover fails for a locked feed:", err)
	}
	tx2, err := w2.Begin(FeedHash("another"))
	if err != nil {
		t.Error("another feed is locked, too:", err)
	}
	tx2.Close()
	tx.Close()
	tx, err = w2.Begin(feedHash)
	if err != nil {
		t.Error(err)
	}
	tx.Close()
	if _, err := os.Stat(d.Join("etc/fetch/lock", feedHash)); err != nil {
		t.Error("the lock file was removed:", err)
	}
	for _, bad := range []string{"", "..", "a/b", ".x"} {
		if _, err := w.Begin(bad); err == nil {
			t.Errorf("feed %q is accepted", bad)
		}
	}
}

func TestRecoverStagedOnly(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	tx.add(ctx, sample("1", "A"))
	die(tx)
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %v", got)
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Error("an entry the journal does not name was delivered:", got)
	}
}

func TestRecoverJournaled(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	a, _ := tx.add(ctx, sample("1", "A"))
	b, _ := tx.add(ctx, sample("2", "B"))
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
		t.Fatal(err)
	}
	// The first entry was renamed and taken by a viewer, but a copy of it is in tmp/, too.
	if _, err := commit.MoveToNew(d.fs, feedHash, tx.place(), tx.staged[0]); err != nil {
		t.Fatal(err)
	}
	shell(t, d, "cp -R new/$HASH/"+a.Unique+" tmp/$HASH/"+a.Unique)
	if _, err := d.SetFlags(a, "S", ""); err != nil {
		t.Fatal(err)
	}
	die(tx)
	for range 2 {
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
	}
	got := list(t, d, ListOptions{AllVersions: true})
	if len(got) != 2 || got[0].Place != Cur || got[1] != b {
		t.Errorf("%v", paths(got))
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %v", got)
	}
}

func TestRecoverLeavesOthers(t *testing.T) {
	d, c := newDir(t)
	w := writer(t, d)
	now := c.Now()
	tmp := func(name string) string { return d.Join("tmp", feedHash, name) }
	ours := "1700000000.M1P2Q3I0123456789abcdef.host"
	theirs := "1700000000.M1P2Q3I0123456789abcdef.elsewhere"
	shell := "1700000000.P1.host"
	old := "1600000000.P1.host"
	gone := "1700000000.M1P2Q4I0123456789abcdef.host;gone"
	for _, n := range []string{ours, theirs, shell, old, gone} {
		write(t, tmp(n+"/title"), "x")
		for _, p := range []string{"", "/title"} {
			os.Chtimes(tmp(n+p), now, now.Add(-time.Hour))
		}
	}
	os.Chtimes(tmp(old+"/title"), now, now.Add(-37*time.Hour))
	os.Chtimes(tmp(old), now, now.Add(-37*time.Hour))
	// The newest mtime of the files counts, not that of the directory.
	os.Chtimes(tmp(shell), now, now.Add(-99*time.Hour))
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	got, _ := dirfs.Names(d.Join("tmp", feedHash))
	slices.Sort(got)
	want := []string{theirs, shell}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	c.Sleep(ctx, 36*time.Hour)
	w.Recover(ctx)
	if got, _ := dirfs.Names(d.Join("tmp", feedHash)); len(got) != 0 {
		t.Errorf("left after 36 hours: %v", got)
	}
}

// If the clock is far ahead, recovery does not remove an entry that another program is writing. It
// knows the real time by the Date of servers or by the last changes of the feed.
func TestRecoverClockAhead(t *testing.T) {
	const day = 24 * time.Hour
	theirs := "1700000000.M1P2Q3I0123456789abcdef.elsewhere"
	for name, test := range map[string]struct {
		clock, date, used time.Duration // after the entry was written; date 0: no Date is known
		kept              bool
	}{
		"an hour later":                         {clock: time.Hour, used: time.Hour, kept: true},
		"two days later":                        {clock: 2 * day, used: 2 * day},
		"two days later, with a Date":           {clock: 2 * day, date: 2 * day, used: 2 * day},
		"a jump":                                {clock: 400 * day, used: time.Minute, kept: true},
		"a jump of two days, with a Date":       {clock: 2 * day, date: time.Minute, used: time.Minute, kept: true},
		"a jump, with a Date, used since":       {clock: 400 * day, date: time.Minute, used: 400 * day, kept: true},
		"a jump, with a Date of 37 hours later": {clock: 400 * day, date: 37 * time.Hour, used: 400 * day},
		"a Date that is ahead":                  {clock: time.Hour, date: 400 * day, used: time.Hour, kept: true},
		"a year later":                          {clock: 400 * day, used: 399 * day},
	} {
		t.Run(name, func(t *testing.T) {
			d, c := newDir(t)
			deliver(t, d, sample("1", "A"))
			written := c.Now()
			at := func(after time.Duration, rels ...string) {
				for _, rel := range rels {
					if err := os.Chtimes(d.Join(rel), time.Time{}, written.Add(after)); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(t, d.Join("tmp", feedHash, theirs, "title"), "x")
			at(0, "tmp/"+feedHash+"/"+theirs+"/title", "tmp/"+feedHash+"/"+theirs)
			if test.date != 0 {
				write(t, d.Join("etc/fetch/date"), written.Add(test.date).UTC().Format(time.RFC3339)+"\n")
			}
			at(test.used, "new", "src", "new/"+feedHash, "src/"+feedHash, "src/"+feedHash+"/etc/fetch/seen")
			c.Sleep(ctx, test.clock)
			w := writer(t, d)
			for range 2 {
				if err := w.Recover(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if left := tree(t, d, "tmp/"+feedHash); (len(left) > 0) != test.kept {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// replacement delivers A and stages B in its place, and returns both.
func replacement(t *testing.T, d *Dir, w *fetcher) (a Ref, tx *delivery, b Ref) {
	t.Helper()
	a = deliver(t, d, sample("1", "A"))[0]
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	v := sample("1", "B")
	v.Replaces, v.Lineage = a.Unique, a.Identity()
	if b, err = tx.add(ctx, v); err != nil {
		t.Fatal(err)
	}
	return a, tx, b
}

func TestReplace(t *testing.T) {
	d, _ := newDir(t)
	_, tx, b := replacement(t, d, writer(t, d))
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	got := list(t, d, ListOptions{AllVersions: true})
	if len(got) != 1 || got[0] != b || len(tx.refs()) != 1 {
		t.Errorf("%v", paths(got))
	}
	e, _ := d.ReadEntry(b, AllFields)
	if e.Replaces == "" || string(e.Content) != "B" {
		t.Errorf("%+v", e)
	}
}

// If a viewer takes or removes the old version before the commit, the new version is not delivered.
func TestReplaceTooLate(t *testing.T) {
	for _, viewer := range []func(*Dir, Ref) error{
		func(d *Dir, r Ref) error { _, err := d.SetFlags(r, "S", ""); return err },
		func(d *Dir, r Ref) error { return d.Remove(r) },
	} {
		d, _ := newDir(t)
		a, tx, _ := replacement(t, d, writer(t, d))
		if err := viewer(d, a); err != nil {
			t.Fatal(err)
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		if len(tx.refs()) != 0 {
			t.Error(tx.refs())
		}
		if got := list(t, d, ListOptions{Places: []Place{New}, AllVersions: true}); len(got) != 0 {
			t.Errorf("%v", paths(got))
		}
		if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("left in tmp: %v", got)
		}
	}
}

// Recovery finishes a replacement of an older version of the program, which put the old version aside
// first.
func TestRecoverReplacement(t *testing.T) {
	for step := range 4 {
		d, _ := newDir(t)
		w := writer(t, d)
		a, tx, b := replacement(t, d, w)
		if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
			t.Fatal(err)
		}
		aside := d.Join("tmp", feedHash, a.Unique+dirfs.GoneReplaced)
		if step >= 1 {
			if err := os.Rename(d.abs(a), aside); err != nil {
				t.Fatal(err)
			}
		}
		if step >= 2 {
			if err := os.Rename(d.Join("tmp", feedHash, b.Unique), d.abs(b)); err != nil {
				t.Fatal(err)
			}
		}
		if step >= 3 {
			os.Remove(filepath.Join(aside, "title"))
		}
		die(tx)
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		got := list(t, d, ListOptions{AllVersions: true})
		if len(got) != 1 || got[0] != b {
			t.Errorf("step %d: %v", step, paths(got))
		}
		if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
			t.Errorf("step %d: left in tmp: %v", step, got)
		}
	}
}

// If writing an entry fails, the transaction delivers no entry.
func TestFailedWrite(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	if _, err := tx.add(ctx, sample("1", "A")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.Wait(), os.RemoveAll(d.Join("tmp", feedHash))); err != nil {
		t.Fatal(err) // every call on the directory fails now
	}
	if _, err := tx.add(ctx, sample("2", "B")); err == nil {
		t.Fatal("no error")
	}
	if err := end(tx); err == nil {
		t.Error("a commit after a failed Add succeeded")
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Errorf("%v", paths(got))
	}
}

// If a journal cannot be written, only its feed fails, and none of its entries is delivered. With
// slow syncs, entries are written in the background, as on a file system that one call cannot sync.
func TestFailedJournal(t *testing.T) {
	for _, slow := range []bool{false, true} {
		failedJournal(t, slow)
	}
}

func failedJournal(t *testing.T, slow bool) {
	t.Helper()
	d, _ := newDir(t)
	d.fs.SlowSync = slow
	w, err := newFetcher(d, commit.Options{Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	other := "http://example.org/"
	var txs []*delivery
	for _, id := range []string{feedID, other} {
		tx, err := w.Begin(FeedHash(id))
		if err != nil {
			t.Fatal(err)
		}
		tx.PutFeed(&Feed{ID: id, Name: "Example"})
		for i := range 4 {
			if _, err := tx.add(ctx, sample(fmt.Sprint(i), "A")); err != nil {
				t.Fatal(err)
			}
		}
		txs = append(txs, tx)
	}
	// The journal cannot be written, because it is a directory.
	if err := os.Mkdir(d.journalPath(feedHash), 0o777); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, tx := range txs {
		wg.Add(1)
		tx.Commit(func(err error) { errs[i] = err; wg.Done() })
	}
	w.Close()
	wg.Wait()
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "seen") || errs[1] != nil {
		t.Error(errs)
	}
	for _, tx := range txs {
		tx.Close()
	}
	got := list(t, d, ListOptions{})
	if len(got) != 4 || got[0].Feed != FeedHash(other) {
		t.Errorf("%v", paths(got))
	}
	if names, _ := dirfs.Names(d.Join("tmp", feedHash)); len(names) != 0 {
		t.Errorf("left in tmp: %v", names)
	}
}

// If a sync fails, no entry is renamed or recorded in the journal.
func TestFailedSync(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	if _, err := tx.add(ctx, sample("1", "A")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.Join("src", feedHash, "name")); err != nil {
		t.Fatal(err) // so it cannot be synced
	}
	if err := end(tx); err == nil {
		t.Fatal("no error")
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Errorf("%v", paths(got))
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Errorf("left in tmp: %v", got)
	}
	if j, err := journal.Read(d.journalPath(feedHash)); err != nil || lines(j) != 0 {
		t.Error(j, err)
	}
	// Without the fault, another run delivers the entries.
	if got := deliver(t, d, sample("1", "A")); len(got) != 1 {
		t.Error(got)
	}
}

// Transactions of many feeds are committed together, and every entry is delivered.
func TestGroupCommit(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	const feeds, entries = 40, 5
	var wg sync.WaitGroup
	errs := make(chan error, feeds)
	for i := range feeds {
		wg.Add(1)
		go func() {
			id := fmt.Sprintf("http://example.com/%d", i)
			tx, err := w.Begin(FeedHash(id))
			if err != nil {
				errs <- err
				wg.Done()
				return
			}
			if err := tx.PutFeed(&Feed{ID: id, Name: id}); err != nil {
				errs <- err
			}
			for k := range entries {
				if _, err := tx.add(ctx, sample(fmt.Sprint(k), id)); err != nil {
					errs <- err
				}
			}
			if i%10 == 0 { // some give up
				tx.Close()
				wg.Done()
				return
			}
			tx.Commit(func(err error) {
				if err != nil {
					errs <- err
				}
				tx.Close()
				wg.Done()
			})
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := len(list(t, d, ListOptions{})); got != (feeds-feeds/10)*entries {
		t.Errorf("%d entries", got)
	}
}

func TestCommitOfNothing(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	if err := end(tx); err != nil {
		t.Error(err)
	}
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	tx.Close()
	tx.Close()
}

func TestPutFeed(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	defer tx.Close()
	f := &Feed{ID: feedID, Name: "Na\nme", Description: "two\nlines", Language: "en", Author: "A", Link: "http://example.com/"}
	if err := tx.PutFeed(f); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d.Join("src", feedHash, "name")); got != "Na me\n" {
		t.Errorf("%q", got)
	}
	write(t, d.Join("src", feedHash, "etc/view/alias"), "Mine\n")
	write(t, d.Join("src", feedHash, "unknown"), "kept\n")
	before, _ := os.Stat(d.Join("src", feedHash, "description"))
	f.Name, f.Author = "Other", ""
	if err := tx.PutFeed(f); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadFeed(feedHash)
	if err != nil || got.Name != "Other" || got.Author != "" || got.Description != f.Description || got.Title() != "Mine" || got.Link != f.Link {
		t.Errorf("%+v %v", got, err)
	}
	if after, _ := os.Stat(d.Join("src", feedHash, "description")); !os.SameFile(before, after) {
		t.Error("an unchanged file was written again")
	}
	if got := read(t, d.Join("src", feedHash, "unknown")); got != "kept\n" {
		t.Error(got)
	}
	if err := tx.PutFeed(&Feed{ID: "another", Name: "x"}); err == nil {
		t.Error("PutFeed accepts the id of another feed")
	}
	if err := tx.PutFeed(&Feed{ID: feedID}); err == nil {
		t.Error("PutFeed accepts a feed without a name")
	}
}

// If tmp/$feed is a symbolic link, no entry is written.
func TestPlantedLink(t *testing.T) {
	d, _ := newDir(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, d.Join("tmp", feedHash)); err != nil {
		t.Fatal(err)
	}
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	defer tx.Close()
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	if _, err := tx.add(ctx, sample("1", "A")); err == nil {
		t.Error("no error")
	}
	if names, _ := os.ReadDir(outside); len(names) != 0 {
		t.Error("written outside:", names)
	}
}

func TestCheck(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"))
	if ps, err := d.Check(ctx, false); err != nil || len(ps) != 0 {
		t.Fatalf("a sound lektor-dir: %v %v", ps, err)
	}
	r := list(t, d, ListOptions{})[0]
	shell(t, d, `
cp -R new/$HASH/`+r.Unique+` "cur/x"; rm -r cur/x
mkdir -p cur/$HASH; cp -R new/$HASH/`+r.Unique+` "cur/$HASH/`+r.Unique+`;2,S"
mkdir "new/$HASH/what;"
mkdir -p new/$HASH/1500000000.1.h; echo t >new/$HASH/1500000000.1.h/title; echo i >new/$HASH/1500000000.1.h/id
ln -s /nowhere new/$HASH/1500000000.1.h/feed
mkdir src/0000; echo other >src/0000/id; echo n >src/0000/name
printf garbage >>src/$HASH/etc/fetch/seen
mkdir -p "tmp/$HASH/1700000000.M1P2Q4I0123456789abcdef.host;gone"
touch -d @1600000000 "tmp/$HASH/1700000000.M1P2Q4I0123456789abcdef.host;gone"
mkdir -p tmp/$HASH/1700000000.M1P2Q5I0123456789abcdef.host # being written
`)
	find := func(ps []Problem, path, what string) *Problem {
		for i := range ps {
			if strings.HasPrefix(ps[i].Path, path) && strings.Contains(ps[i].What, what) {
				return &ps[i]
			}
		}
		t.Errorf("nothing about %s %q in %v", path, what, ps)
		return &Problem{}
	}
	ps, err := d.Check(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 7 {
		t.Errorf("%d problems: %v", len(ps), ps)
	}
	find(ps, "new/"+feedHash+"/what", "not an entry")
	find(ps, "new/"+feedHash+"/1500000000.1.h", "no file content")
	find(ps, "src/0000", "belongs in")
	for _, p := range ps {
		if p.Repaired {
			t.Error("repaired without being asked:", p)
		}
	}
	ps, err = d.Check(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"cur/" + feedHash, "same entry"}, {"new/" + feedHash + "/1500000000.1.h/feed", "no feed"},
		{"src/" + feedHash + "/etc/fetch/seen", "7 bytes"}, {"tmp/", "interrupted"},
	} {
		if p := find(ps, c[0], c[1]); !p.Repaired {
			t.Errorf("not repaired: %+v", p)
		}
	}
	ps, err = d.Check(ctx, false)
	if err != nil || len(ps) != 3 {
		t.Errorf("after the repair: %v %v", ps, err)
	}
}
