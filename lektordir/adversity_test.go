package lektordir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// If a replacement fails after the old version was put aside, recovery finishes it.
func TestFailedReplacement(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	a, tx, b := replacement(t, d, w)
	rec := tx.staged[0]
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
		t.Fatal(err)
	}
	die(tx)
	if err := os.Rename(d.abs(a), d.Join("tmp", feedHash, a.Unique+dirfs.GoneReplaced)); err != nil {
		t.Fatal(err)
	}
	// A dangling link makes every rename to new/ fail.
	if err := os.Remove(d.Join("new", feedHash)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", d.Join("new", feedHash)); err != nil {
		t.Fatal(err)
	}
	if _, err := commit.MoveToNew(d.fs, feedHash, "tmp/"+feedHash, rec); err == nil {
		t.Fatal("no error")
	}
	if err := os.Remove(d.Join("new", feedHash)); err != nil {
		t.Fatal(err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 1 || got[0] != b {
		t.Errorf("%v", paths(got))
	}
}

// If an entry in tmp/ gets another identity, recovery still knows which version it replaces.
func TestAliasOfInterruptedReplacement(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	_, tx, b := replacement(t, d, w)
	rec := tx.staged[0]
	if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
		t.Fatal(err)
	}
	die(tx)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Alias(journal.DigestOf("another"), rec.Key, rec.Content, rec); err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 1 || got[0] != b {
		t.Errorf("%v", paths(got))
	}
}

// Dropping an entry leaves no part of it, even if an older removal left its ;gone directory.
func TestDropBesideLeftover(t *testing.T) {
	d, _ := newDir(t)
	name := "1700000000.M1P2Q3I0123456789abcdef.host"
	write(t, d.Join("tmp", feedHash, name, "title"), "x")
	write(t, d.Join("tmp", feedHash, name+dirfs.Gone, "title"), "x")
	if err := d.fs.Drop(feedHash, d.Join("tmp", feedHash, name)); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "tmp/"+feedHash); len(got) != 0 {
		t.Error(got)
	}
}

// If a directory was replaced by a symbolic link, nothing outside the lektor-dir is written,
// moved or deleted.
func TestPlantedLinks(t *testing.T) {
	for _, at := range []string{"src/$", "src/$/etc", "src/$/etc/fetch", "src/$/etc/fetch/seen", "new/$", "cur/$", "tmp/$"} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " ", full), func(t *testing.T) {
				d, _ := newDir(t)
				a := deliver(t, d, sample("1", "A"), sample("2", "B"))
				if _, err := d.SetFlags(a[1], "S", ""); err != nil {
					t.Fatal(err)
				}
				outside := filepath.Join(t.TempDir(), "outside")
				at := d.Join(strings.ReplaceAll(at, "$", feedHash))
				// If full, the link leads to the old file or directory, otherwise to another one.
				switch {
				case full:
					if err := os.Rename(at, outside); err != nil {
						t.Fatal(err)
					}
				case filepath.Base(at) == "seen":
					os.Remove(at)
					write(t, outside, "precious\n")
				default:
					os.RemoveAll(at)
					write(t, filepath.Join(outside, "precious"), "x")
				}
				if full && filepath.Base(at) == "seen" {
					write(t, outside, read(t, outside)+"damaged\n")
				}
				if err := os.Symlink(outside, at); err != nil {
					t.Fatal(err)
				}
				before := snapshot(t, outside)

				w := writer(t, d)
				if tx, err := w.Begin(feedHash); err == nil {
					err := tx.PutFeed(&Feed{ID: feedID, Name: "Other", Link: "x", Description: "d"})
					if err == nil {
						_, err = tx.add(ctx, sample("3", "C"))
					}
					if err == nil {
						end(tx)
					} else {
						tx.Close()
					}
				}
				// An interrupted delivery, and an interrupted removal.
				if fi, err := os.Lstat(d.Join("tmp", feedHash)); err == nil && fi.IsDir() {
					name := a[0].Unique
					write(t, d.Join("tmp", feedHash, name, "title"), "x")
					write(t, d.Join("tmp", feedHash, a[1].Unique+dirfs.Gone, "title"), "x")
				}
				w.Recover(ctx)
				d.SetFlags(a[0], "F", "")
				to, _ := a[1].WithFlags("S", "")
				d.SetFlags(to, "F", "")
				refs, _ := d.List(ctx, ListOptions{AllVersions: true})
				for _, r := range refs {
					d.SetFlags(r, "T", "S")
					d.Remove(r)
				}
				d.Check(ctx, true)
				if after := snapshot(t, outside); !slices.Equal(before, after) {
					t.Errorf("outside: got\n%q, want\n%q", after, before)
				}
			})
		}
	}
}

// snapshot returns the paths and contents of the files below a path.
func snapshot(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		s := p
		if e.Type().IsRegular() {
			s += "=" + read(t, p)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// If an entry is a link to another directory, Check does not repair it there.
func TestCheckLinkedEntry(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"))
	outside := t.TempDir()
	write(t, filepath.Join(outside, "title"), "t\n")
	if err := os.Symlink(outside, d.Join("new", feedHash, "1500000000.1.h")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Check(ctx, true); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Error("written outside:", names)
	}
}

// If an entry is in two places, it is removed from new/ only if cur/ has all of its files.
func TestCheckKeepsTheWholeEntry(t *testing.T) {
	for _, lacking := range []string{"content", "extras", "mine"} {
		d, _ := newDir(t)
		v := sample("1", "A")
		v.Entry.Summary = "short"
		r := deliver(t, d, v)[0]
		write(t, d.abs(r)+"/mine", "a note")
		half := "cur/$HASH/" + r.Unique + `\;2,S`
		shell(t, d, "mkdir -p cur/$HASH; cp -R new/$HASH/"+r.Unique+" "+half+"; rm "+half+"/"+lacking)
		ps, err := d.Check(ctx, true)
		if err != nil || len(ps) == 0 {
			t.Fatal(ps, err)
		}
		if _, err := os.Stat(d.abs(r) + "/" + lacking); err != nil {
			t.Errorf("%s was lost: %v", lacking, err)
		}
	}
	// A link that leads to the copy in new/ is not a file of the copy in cur/.
	for link, want := range map[string]bool{"": true, "mine": false, "mine/x": false} {
		d, _ := newDir(t)
		r := deliver(t, d, sample("1", "A"))[0]
		write(t, d.abs(r)+"/mine/x", "a note")
		whole := "cur/$HASH/" + r.Unique + `\;2,S`
		shell(t, d, "mkdir -p cur/$HASH; cp -R new/$HASH/"+r.Unique+" "+whole)
		if link != "" {
			shell(t, d, "rm -r "+whole+"/"+link+"; ln -s "+d.abs(r)+"/"+link+" "+whole+"/"+link)
		}
		if ps, err := d.Check(ctx, true); err != nil || len(ps) != 1 || ps[0].Repaired != want {
			t.Errorf("%q is a link: %v, %v", link, ps, err)
		}
	}
}

// A URL or path is never taken for the beginning of a hash.
func TestFindFeedByURL(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"))
	for _, name := range []string{
		"http://example.org/src/" + feedHash[:2], "http://example.org/src/" + feedHash,
		"/nowhere/src/" + feedHash, "src/" + feedHash[:2],
	} {
		if got, err := d.FindFeed(name); err == nil {
			t.Errorf("%s is taken for feed %s", name, got)
		}
	}
	for _, name := range []string{"src/" + feedHash, "src/" + feedHash + "/", d.Join("src", feedHash), feedHash[:2], feedID} {
		if got, err := d.FindFeed(name); err != nil || got != feedHash {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// Compare is a strict order: it has no cycles, and returns 0 for equal names only. Otherwise an
// entry in two places could be listed twice.
func TestCompareUniqueIsAnOrder(t *testing.T) {
	names := []string{
		"1.M9P1Q1I0123456789abcdef.h", "1.M10P1Q1I0123456789abcdef.h", "1.M5.h", "1.M10P1Q2I0123456789abcdef.h",
		"01.M10P1Q2I0123456789abcdef.h", "1.a", "1.z.h", "1.M10P2Q2I0123456789abcdef.h", "1.M9223372036854775807P2Q2I0123456789abcdef.h",
	}
	for _, a := range names {
		for _, b := range names {
			if ab, ba := entryname.Compare(a, b), entryname.Compare(b, a); (ab < 0) != (ba > 0) || (ab == 0) != (a == b) {
				t.Errorf("%s and %s: %d, %d", a, b, ab, ba)
			}
			for _, c := range names {
				if entryname.Compare(a, b) < 0 && entryname.Compare(b, c) < 0 && entryname.Compare(a, c) >= 0 {
					t.Errorf("%s < %s < %s, but not the first and the last", a, b, c)
				}
			}
		}
	}
}

func TestNormalizeIDAgain(t *testing.T) {
	for _, id := range []string{"http://x::80/", "http://x:80:/", "http://:80/", "http://x::/", "https://[::1]:/", "http://[::80]/", "http://[fe80::1%25eth0]:80/"} {
		once := NormalizeID(id)
		if again := NormalizeID(once); again != once {
			t.Errorf("%s becomes %s, and that %s", id, once, again)
		}
	}
}

// The time for malformed names is linear in their number.
func TestManyMalformedNames(t *testing.T) {
	d, _ := newDir(t)
	dir := d.Join("new", feedHash)
	os.MkdirAll(dir, 0o777)
	const n = 20000
	for i := range n {
		if err := os.Symlink("x", fmt.Sprintf("%s/%d;", dir, i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.List(ctx, ListOptions{})
	var ne *MalformedError
	if !errors.As(err, &ne) || !ne.NoEntry || ne.Optional {
		t.Fatal(err)
	}
	depth := 0
	for e := err; ; depth++ {
		j, ok := e.(interface{ Unwrap() []error })
		if !ok {
			break
		}
		e = j.Unwrap()[0]
	}
	if depth > 10 {
		t.Errorf("errors joined %d deep: their text takes quadratic time", depth)
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != n {
		t.Errorf("%d lines", got)
	}
}

// A transaction that is used after the writer was closed gets an error, and does not hang.
func TestAfterClose(t *testing.T) {
	d, _ := newDir(t)
	w, err := newFetcher(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	w.Close()
	w.Close()
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err == nil {
		t.Error("PutFeed after Close")
	}
	if _, err := tx.add(ctx, sample("1", "A")); err == nil {
		t.Error("Add after Close")
	}
}

// The function passed to Commit may begin, commit and close other transactions.
func TestCommitFromDone(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	end := make(chan error)
	var next func(i int)
	next = func(i int) {
		id := fmt.Sprint("http://example.com/", i)
		tx, err := w.Begin(FeedHash(id))
		if err == nil {
			err = tx.PutFeed(&Feed{ID: id, Name: id})
		}
		if err == nil {
			_, err = tx.add(ctx, sample("1", "A"))
		}
		if err != nil {
			end <- err
			return
		}
		tx.Commit(func(err error) {
			tx.Close()
			if err != nil || i == 5 {
				go func() { end <- err }()
				return
			}
			next(i + 1)
		})
	}
	go next(0)
	if err := <-end; err != nil {
		t.Error(err)
	}
	if got := len(list(t, d, ListOptions{})); got != 6 {
		t.Errorf("%d entries", got)
	}
}

// Short delays lose neither a group nor a wakeup.
func TestShortDelays(t *testing.T) {
	d, _ := newDir(t)
	for i := range 200 {
		w, err := newFetcher(d, commit.Options{Delay: time.Duration(i) * time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := w.Begin(feedHash)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Alias(journal.DigestOf("x"), journal.Key{}, journal.DigestOf("c"), journal.Record{Unique: "1.M1P1Q1I0123456789abcdef.h"}); err != nil {
			t.Fatal(err)
		}
		os.MkdirAll(filepath.Dir(d.journalPath(feedHash)), 0o777)
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
}

// The files of a feed in src/ are synced even if no entry is delivered with them: a file that
// cannot be synced is an error.
func TestFeedIsSynced(t *testing.T) {
	for _, name := range []string{"id", "name", "description"} {
		d, _ := newDir(t)
		w := writer(t, d)
		tx, _ := w.Begin(feedHash)
		if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example", Description: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(d.Join("src", feedHash, name)); err != nil {
			t.Fatal(err)
		}
		if err := end(tx); err == nil {
			t.Errorf("the sync of %s was omitted", name)
		}
		if _, err := os.Stat(d.journalPath(feedHash)); err == nil {
			t.Error("there is a journal without a delivery")
		}
	}
}

func TestPutFeedKeepsObligatory(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, _ := w.Begin(feedHash)
	defer tx.Close()
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "\n"}); err == nil {
		t.Error("PutFeed accepts a name without text")
	}
	if got := read(t, d.Join("src", feedHash, "name")); got != "Example\n" {
		t.Errorf("%q", got)
	}
	odd := feedID + "\nx"
	tx2, err := w.Begin(FeedHash(odd))
	if err != nil {
		t.Fatal(err)
	}
	defer tx2.Close()
	if err := tx2.PutFeed(&Feed{ID: odd, Name: "x"}); err == nil {
		t.Error("PutFeed accepts an id of two lines")
	}
}

// If another program changed the journal without the lock, the commit does not write to it.
func TestJournalChanged(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"))
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.add(ctx, sample("2", "B")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.journalPath(feedHash)); err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err == nil {
		t.Error("no error")
	}
	deliver(t, d, sample("2", "B"))
	j, err := journal.Read(d.journalPath(feedHash))
	if err != nil || j.Bad() != 0 || lines(j) != 2 { // one is restored
		t.Errorf("%d lines, %d bad, %v", lines(j), j.Bad(), err)
	}
}

// If another program removes the empty new/$feed, the commit makes it again.
func TestNewRemovedBeforeCommit(t *testing.T) {
	d, _ := newDir(t)
	if err := os.Mkdir(d.Join("new", feedHash), 0o777); err != nil {
		t.Fatal(err)
	}
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	r, err := tx.add(ctx, sample("1", "A"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.Join("new", feedHash)); err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err != nil {
		t.Error(err)
	}
	if got := list(t, d, ListOptions{}); !slices.Equal(got, []Ref{r}) {
		t.Error(paths(got))
	}
}

// An entry is not found although names are malformed, but not if a directory cannot be read.
func TestResolveDespiteNames(t *testing.T) {
	d, _ := newDir(t)
	write(t, d.Join("new", feedHash, "1.a;b", "title"), "x\n")
	if _, err := d.Resolve("1.a.x"); !errors.As(err, new(*NotFoundError)) {
		t.Error(err)
	}
	d.fs.ReadDir = func(*os.File) ([]os.DirEntry, error) { return nil, syscall.EIO }
	if _, err := d.Resolve("1.a.x"); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

// If src/$feed is removed during a fetch, the commit fails, delivers nothing and leaves nothing in
// tmp/.
func TestSrcVanishes(t *testing.T) {
	d, _ := newDir(t)
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	if _, err := tx.add(ctx, sample("1", "A")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Join("src", feedHash)); err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err == nil {
		t.Error("no error")
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Error(paths(got))
	}
	if got := tree(t, d, "tmp/"+feedHash); len(got) != 0 {
		t.Errorf("left in tmp: %v", got)
	}
	if got := deliver(t, d, sample("1", "A")); len(got) != 1 {
		t.Error(got)
	}
}

// If a delivery is killed between its renames, recovery delivers every entry once and leaves
// nothing in tmp/.
func TestKilledBetweenRenames(t *testing.T) {
	for moved := range 4 {
		for _, taken := range []bool{false, true} {
			d, _ := newDir(t)
			w := writer(t, d)
			tx, err := w.Begin(feedHash)
			if err != nil {
				t.Fatal(err)
			}
			tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
			for i := range 3 {
				if _, err := tx.add(ctx, sample(fmt.Sprint(i), "A")); err != nil {
					t.Fatal(err)
				}
			}
			if err := journal.Append(d.journalPath(feedHash), seen(tx), tx.staged); err != nil {
				t.Fatal(err)
			}
			for _, r := range tx.staged[:moved] {
				if _, err := commit.MoveToNew(d.fs, feedHash, tx.place(), r); err != nil {
					t.Fatal(err)
				}
			}
			die(tx)
			if taken { // without info, as simple viewers do
				shell(t, d, `mkdir -p cur/$HASH; for e in new/$HASH/*; do [ ! -d "$e" ] || mv "$e" cur/$HASH/; done`)
			}
			if err := w.Recover(ctx); err != nil {
				t.Fatal(err)
			}
			if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 3 {
				t.Errorf("%d moved, %v: %v", moved, taken, paths(got))
			}
			if got := tree(t, d, "tmp/"+feedHash); len(got) != 0 {
				t.Errorf("left in tmp: %v", got)
			}
		}
	}
}

// A commit after a failed Add fails, even if Add wrote nothing.
func TestCommitAfterFailedFirstAdd(t *testing.T) {
	d, _ := newDir(t)
	write(t, d.Join("new", feedHash), "a file in the way")
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	tx.PutFeed(&Feed{ID: feedID, Name: "Example"})
	if _, err := tx.add(ctx, sample("1", "A")); err == nil {
		t.Fatal("no error")
	}
	if err := end(tx); err == nil {
		t.Error("the commit succeeded")
	}
}

// Flags of other programs that are not UTF-8 are kept.
func TestFlagsThatAreNoText(t *testing.T) {
	r := Ref{Feed: "f", Unique: "1.a", Place: Cur, Info: "2,S\xff"}
	to, err := r.WithFlags("F", "S")
	if err != nil || to.Info != "2,F\xff" {
		t.Errorf("%q %v", to.Info, err)
	}
}

// If a directory cannot be read, Resolve does not return a NotFoundError, because the entry may
// be there.
func TestResolveUnreadable(t *testing.T) {
	d, _ := newDir(t)
	a := deliver(t, d, sample("1", "A"))
	if err := os.Symlink(feedHash, d.Join("cur", feedHash)); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Resolve(a[0].Unique); err != nil || r != a[0] {
		t.Errorf("%v, %v", r, err)
	}
	_, err := d.Resolve("1700000000.M1P2Q3I0123456789abcdef.host")
	if none := (*NotFoundError)(nil); err == nil || errors.As(err, &none) || !strings.Contains(err.Error(), "cur/"+feedHash) {
		t.Error(err)
	}
}
