package commit

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// unsyncedAge is longer than the time for which a system delays writes to the disk.
const unsyncedAge = 10 * time.Minute

// PutFeed writes files of the feed to src/$feed, by their names and texts: id, name, and optional
// ones. It removes an optional file whose text is empty. It atomically replaces files that have
// changed; a new optional file may be empty for a moment. After PutFeed, other deliveries may wait
// for this transaction's [Txn.Commit] or [Txn.Close], so do slow work before it.
func (t *Txn) PutFeed(files iter.Seq2[string, string]) error {
	id := ""
	for name, text := range files {
		switch {
		case name == "id" && text == "":
			return fmt.Errorf("feed %s has no id", t.feed)
		case name == "id" && entryname.FeedHash(text) != t.feed:
			return fmt.Errorf("feed id %q does not belong in src/%s", text, t.feed)
		case name == "id" && textfile.OneLine(text) != text:
			return fmt.Errorf("feed id %q does not fit in a line of text", text)
		case name == "id":
			id = text
		case name == "name" && textfile.OneLine(text) == "":
			return fmt.Errorf("feed %s has no name", id)
		}
	}
	// Join before the first write, because the sync reports only errors that occur after joining.
	if err := t.join(); err != nil {
		return err
	}
	// The id is written first: what a kill leaves before it is only what [Unfinished] finds.
	if err := t.mkdirs(srcDirs(t.feed)[0]); err != nil {
		return err
	}
	if _, err := dirfs.Lstat(t.d.Join("src", t.feed, "id")); isNotExist(err) {
		if err := t.putFile("id", id); err != nil {
			_ = os.Remove(t.d.Join("src", t.feed)) // fails unless it is empty
			return err
		}
	}
	if err := t.mkdirs(srcDirs(t.feed)[1:]...); err != nil {
		return err
	}
	// The directories are listed, because most feeds lack most of the files, and on a replicated
	// file system each look for a missing file asks every replica.
	there := map[string]bool{}
	for i, dir := range srcDirs(t.feed)[:2] {
		names, err := dirfs.AllNames(t.d.Join(dir))
		if err != nil {
			return err
		}
		for _, name := range names {
			there[[]string{"", "etc/"}[i]+name] = true
		}
		if slices.ContainsFunc(names, atomicfile.Temporary) {
			atomicfile.SweepTree(t.d.Join(dir), t.d.Now())
		}
	}
	for name, text := range files {
		if text == "" && !there[name] {
			continue
		}
		if err := t.putFile(name, text); err != nil {
			return err
		}
	}
	return nil
}

// Unfinished looks at a feed that has neither an id nor entries, as a killed first subscription
// leaves it. ours are the paths of its directories, of lektor's temporary files and of an id that a
// power cut has emptied, in the order in which they can be removed; others are the paths of all other
// files, relative to src/$feed. Both are nil for a feed that has an id or entries, is a link, or is not
// there.
func Unfinished(d *dirfs.Dir, feed string) (ours, others []string, err error) {
	base := d.Join("src", feed)
	switch fi, err := dirfs.Lstat(base + "/id"); {
	case err != nil && !isNotExist(err):
		return nil, nil, err
	case err == nil && fi.Size() > 0, d.Inside("src/"+feed) != nil:
		return nil, nil, nil
	}
	for _, place := range []string{"new", "cur", "tmp"} {
		if names, err := dirfs.Names(d.Join(place, feed)); len(names) > 0 || err != nil && !isNotExist(err) {
			return nil, nil, err
		}
	}
	err = filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir(), path == base+"/id", e.Type().IsRegular() && atomicfile.Temporary(e.Name()):
			ours = append(ours, path)
		default:
			others = append(others, path[len(base)+1:])
		}
		return nil
	})
	slices.Reverse(ours)
	return ours, others, err
}

// RemoveUnfinished removes a feed that has nothing but what [Unfinished] calls ours. The caller holds the
// feed's lock.
func RemoveUnfinished(d *dirfs.Dir, feed string) error {
	ours, others, err := Unfinished(d, feed)
	if len(others) > 0 || err != nil {
		return err
	}
	for _, path := range ours {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// putFile writes or removes a file of the feed if it has changed.
func (t *Txn) putFile(name, text string) error {
	obligatory := name == "id" || name == "name"
	path := filepath.Join(t.d.Join("src", t.feed), name)
	old, err := dirfs.ReadFile(path)
	if err != nil && !isNotExist(err) {
		return err
	}
	want := textfile.Clean(text)
	if obligatory || name == "language" || name == "image" {
		want = textfile.OneLine(want)
	}
	switch {
	case want == "" && err == nil:
		if err := os.Remove(path); err != nil && !isNotExist(err) {
			return err
		}
		t.src = append(t.src, filepath.Dir(path))
	case want != "" && (err != nil || textfile.Line(old) != want):
		write := atomicfile.WriteUnsynced
		if err != nil && !obligatory {
			write = atomicfile.CreateUnsynced
		}
		if err := write(path, []byte(want+"\n")); err != nil {
			return err
		}
		t.src = append(t.src, path, filepath.Dir(path))
	case want != "":
		// A killed run may have written it without syncing it.
		if fi, err := dirfs.Lstat(path); err == nil && t.d.Now().Sub(fi.ModTime()) < unsyncedAge {
			t.src = append(t.src, path, filepath.Dir(path))
		}
	}
	return nil
}
