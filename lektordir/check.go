package lektordir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// Problem is something that [Dir.Check] found.
type Problem struct {
	Path     string // relative to the lektor-dir
	What     string
	Safe     bool // repairing it loses nothing, and Check does so on request
	Repaired bool
}

func (p Problem) String() string {
	s := p.Path + ": " + p.What
	if p.Repaired {
		s += " (repaired)"
	}
	return s
}

type checker struct {
	d      *Dir
	repair bool
	found  []Problem
}

// Check verifies a lektor-dir: feeds, journals, entries, and the files left in tmp/. If repair
// is true, it makes the repairs that are safe:
//
//   - it recovers tmp/ as [Dir.Recover] does;
//   - it names a feed after its id if the name is missing;
//   - it adds the lines that a journal lacks for entries in new/ and cur/, and removes damaged ones;
//   - it removes temporary files that an interrupted run left in etc/ and src/, and a feed that has
//     nothing else, no id and no entries;
//   - if an entry is in new/ and in cur/, and the copy in cur/ has all of its files, it removes
//     the one in new/;
//   - it recreates an entry's link to its feed if that is missing or dangling.
//
// The error joins the errors of files that could not be read or repaired.
func (d *Dir) Check(ctx context.Context, repair bool) ([]Problem, error) {
	c := &checker{d: d, repair: repair}
	var bad error
	for _, step := range []func(context.Context) error{c.tmp, c.feeds, c.leftovers, c.entries} {
		if err := ctx.Err(); err != nil {
			return c.found, errors.Join(bad, context.Cause(ctx))
		}
		bad = errors.Join(bad, step(ctx))
	}
	return c.found, bad
}

// report records a problem. mend repairs it without losing anything, or is nil if that is
// impossible.
func (c *checker) report(path, what string, mend func() error) error {
	p := Problem{Path: path, What: what, Safe: mend != nil}
	var err error
	if c.repair && mend != nil {
		if err = mend(); err == nil {
			p.Repaired = true
		}
	}
	c.found = append(c.found, p)
	return err
}

// tmp reports the files in tmp/ that nobody is writing, and recovers tmp/ if c.repair is true.
func (c *checker) tmp(ctx context.Context) error {
	list := func() ([]string, error) {
		var paths []string
		feeds, err := c.d.fs.Feeds("tmp")
		for _, feed := range feeds {
			names, lerr := dirfs.Names(c.d.Join("tmp", feed))
			if lerr != nil && !isNotExist(lerr) {
				err = errors.Join(err, lerr)
			}
			for _, n := range names {
				path := "tmp/" + feed + "/" + n
				if fi, err := dirfs.Lstat(c.d.Join(path)); err == nil &&
					c.d.fs.Now().Sub(fi.ModTime()) > atomicfile.Abandoned {
					paths = append(paths, path)
				}
			}
		}
		return paths, err
	}
	before, bad := list()
	var after []string
	if c.repair && bad == nil {
		bad = c.d.Recover(ctx)
		left, err := list()
		after, bad = left, errors.Join(bad, err)
	}
	for _, p := range before {
		exists := !c.repair || slices.Contains(after, p)
		what := "left by an interrupted run"
		if filepath.Base(p) == commit.Purging {
			what = "the feed is being removed, or its removal was interrupted"
		}
		c.found = append(c.found, Problem{Path: p, What: what, Safe: true, Repaired: !exists})
	}
	return bad
}

// feeds checks the feeds in src/ and their journals.
func (c *checker) feeds(context.Context) error {
	hashes, err := c.d.FeedHashes()
	for _, hash := range hashes {
		f, ferr := c.d.ReadFeed(hash)
		var malformed *MalformedError
		switch {
		case errors.As(ferr, &malformed) && f.ID == "":
			err = errors.Join(err, c.unfinished(hash, malformed))
		case errors.As(ferr, &malformed):
			err = errors.Join(err, c.report(malformed.Path, malformed.Reason, c.rename(f)))
		case ferr != nil && !isNotExist(ferr):
			err = errors.Join(err, ferr)
		}
		if f != nil && f.ID != "" && FeedHash(f.ID) != hash {
			err = errors.Join(err, c.report("src/"+hash, fmt.Sprintf("its id %q belongs in src/%s", f.ID,
				FeedHash(f.ID)), nil))
		}
		err = errors.Join(err, c.journal(hash))
	}
	return err
}

// locked returns a function that calls mend under the lock of a feed.
func (c *checker) locked(hash string, mend func() error) func() error {
	return func() error {
		unlock, err := commit.Lock(c.d.fs, hash)
		if err != nil {
			return err
		}
		defer unlock()
		if err := c.d.fs.Inside("src/" + hash); err != nil {
			return err
		}
		return mend()
	}
}

// rename returns a function that names a feed after its id, or nil if more than the name is
// missing. A fetcher that is killed before it writes the name leaves such a feed.
func (c *checker) rename(f *Feed) func() error {
	if f == nil || f.ID == "" || f.Name != "" || FeedHash(f.ID) != f.Hash {
		return nil
	}
	return c.locked(f.Hash, func() error {
		path := c.d.Join("src", f.Hash, "name")
		if _, err := dirfs.Lstat(path); !isNotExist(err) {
			return err // another process has written it
		}
		return atomicfile.Write(path, []byte(f.ID+"\n"))
	})
}

// unfinished reports a feed without an id. It looks under the feed's lock, because a fetcher may be
// about to write it; if a fetcher has the lock, it reports nothing.
func (c *checker) unfinished(hash string, bad *MalformedError) error {
	unlock, err := commit.Lock(c.d.fs, hash)
	if commit.IsBusy(err) {
		return nil
	}
	f, _ := c.d.ReadFeed(hash)
	ours, others, lerr := commit.Unfinished(c.d.fs, hash)
	if err == nil { // otherwise nobody can write
		unlock()
	}
	switch {
	case f == nil || f.ID != "":
		return nil
	case len(others) > 0:
		what := fmt.Sprintf("%s, but %s: write the id of the feed, mostly its URL, into the file id, or remove the directory", bad.Reason, strings.Join(others, ", "))
		return errors.Join(lerr, c.report(bad.Path, what, nil))
	case len(ours) > 0:
		mend := c.locked(hash, func() error { return commit.RemoveUnfinished(c.d.fs, hash) })
		return errors.Join(lerr, c.report(bad.Path, bad.Reason+": a subscription was interrupted before it began",
			mend))
	}
	return errors.Join(lerr,
		c.report(bad.Path, bad.Reason+": write the id of the feed, mostly its URL, into the file id", nil))
}

// leftovers reports the temporary files of programs that were killed while writing them.
func (c *checker) leftovers(context.Context) error {
	var bad error
	for _, sub := range []string{"etc", "src"} {
		paths, err := atomicfile.Leftovers(c.d.Join(sub), c.d.fs.Now())
		bad = errors.Join(bad, err)
		for _, path := range paths {
			rel, err := filepath.Rel(c.d.fs.Path, path)
			if err != nil {
				return err
			}
			bad = errors.Join(bad, c.report(rel, "a temporary file, left by an interrupted run",
				func() error { return os.Remove(path) }))
		}
	}
	return bad
}

// journal checks the journal of a feed. If it finds damage, it looks again under the feed's lock,
// because a fetcher may be writing. If a fetcher has the lock, it reports nothing.
func (c *checker) journal(hash string) error {
	damage, err := commit.Damage(c.d.fs, hash)
	if err != nil || damage == "" {
		return err
	}
	unlock, err := commit.Lock(c.d.fs, hash)
	if commit.IsBusy(err) {
		return nil
	}
	if err == nil { // otherwise nobody can write
		damage, err = commit.Damage(c.d.fs, hash)
		unlock()
	}
	if damage == "" {
		return err
	}
	return c.report(commit.JournalPath(hash), damage, func() error { return commit.RepairJournal(c.d.fs, hash) })
}

// entries checks the entries in new/ and cur/.
func (c *checker) entries(ctx context.Context) error {
	feeds, bad := c.d.listedFeeds()
	for _, feed := range feeds {
		places := map[string]Ref{}
		for _, place := range []Place{New, Cur} {
			if err := ctx.Err(); err != nil {
				return errors.Join(bad, context.Cause(ctx))
			}
			l, err := c.d.fs.ReadPlace(feed, place == Cur)
			bad = errors.Join(bad, err)
			for _, b := range l.Bad {
				c.report(b.Path, "not an entry: "+b.Reason, nil)
			}
			for _, n := range l.Names {
				r := refOf(feed, n)
				if other, ok := places[r.Unique]; ok {
					bad = errors.Join(bad, c.duplicate(other, r))
				}
				places[r.Unique] = r
				bad = errors.Join(bad, c.entry(r))
			}
		}
	}
	return bad
}

// duplicate reports an entry that was found in two places.
func (c *checker) duplicate(first, second Ref) error {
	if _, err := dirfs.Lstat(c.d.abs(first)); err != nil {
		return nil // a viewer moved it meanwhile
	}
	var mend func() error
	if first.Place == New && second.Place == Cur && holdsAll(c.d.abs(second), c.d.abs(first)) {
		mend = func() error {
			if err := c.d.Remove(first); !isNotExist(err) {
				return err
			}
			return nil
		}
	}
	return c.report(second.Path(), "the same entry as "+first.Path(), mend)
}

// holdsAll reports whether the entry at one path has every file of the other, with the same
// bytes, so that the other can be removed.
func holdsAll(entry, other string) bool {
	return filepath.WalkDir(other+"/.", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		same := entry + strings.TrimPrefix(path, other)
		fi, err := dirfs.Lstat(same)
		if err == nil && fi.IsDir() && e.IsDir() {
			return nil
		}
		read := dirfs.ReadFile
		if e.Type()&fs.ModeSymlink != 0 {
			read = func(path string) ([]byte, error) { to, err := os.Readlink(path); return []byte(to), err }
		}
		a, aerr := read(same)
		b, berr := read(path)
		if err != nil || fi.Mode().Type() != e.Type() || aerr != nil || berr != nil || !bytes.Equal(a, b) {
			return fmt.Errorf("%s differs", path)
		}
		return nil
	}) == nil
}

// entry checks one entry.
func (c *checker) entry(r Ref) error {
	base := c.d.abs(r)
	var bad error
	for _, name := range []string{"title", "id", "content"} {
		data, err := dirfs.ReadFile(base + "/" + name)
		switch {
		case isNotExist(err):
			if _, serr := dirfs.Lstat(base); serr != nil {
				return nil // a viewer moved it
			}
			bad = errors.Join(bad, c.report(r.Path(), "it has no file "+name, nil))
		case err != nil:
			bad = errors.Join(bad, err)
		case name != "content" && (!utf8.Valid(data) || strings.ContainsRune(string(data), 0)):
			bad = errors.Join(bad, c.report(r.Path()+"/"+name, "it is not valid UTF-8, or has a NUL", nil))
		}
	}
	bad = errors.Join(bad, c.extras(r))
	link := base + "/feed"
	if _, err := dirfs.Lstat(link); err != nil {
		return errors.Join(bad, c.report(r.Path(), "it has no feed", c.relink(r)))
	}
	if _, err := os.Stat(filepath.Join(link, "id")); err != nil {
		return errors.Join(bad, c.report(r.Path()+"/feed", "it leads to no feed", c.relink(r)))
	}
	return bad
}

// relink returns a function that recreates an entry's link to its feed. It returns nil if the
// feed is not in src/, or if the entry's feed is not a link.
func (c *checker) relink(r Ref) func() error {
	if _, err := os.Stat(c.d.Join("src", r.Feed, "id")); err != nil {
		return nil
	}
	if c.d.fs.Inside(r.Place.String()+"/"+r.Feed, r.Path()) != nil {
		return nil
	}
	link := c.d.abs(r) + "/feed"
	if fi, err := dirfs.Lstat(link); err == nil && fi.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	return func() error {
		tmp := c.d.abs(r) + "/.feed"
		if err := os.Symlink(commit.LinkTo(r.Feed), tmp); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return os.Rename(tmp, link)
	}
}
