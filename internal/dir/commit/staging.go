package commit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
)

// staging is the directory in which a transaction writes entries: tmp/$feed or tmp/$feed/;first.
type staging struct {
	d          *dirfs.Dir
	feed       string
	rel        string   // path of the directory, relative to the lektor-dir
	first      bool     // it is tmp/$feed/;first
	tmp        *os.File // the open directory, so that no link can replace it; nil while it is closed
	hardlinks  hardlinks
	background *background // nil if one call syncs all entries
}

// maxNameTries is the number of times that claim tries to find a unique name.
const maxNameTries = 5

// stageFirst creates the directory [dirfs.FirstEntries] and stages entries there. It returns false if
// it cannot create the directory, for example because that exists.
func (s *staging) stageFirst() bool {
	rel := "tmp/" + s.feed + "/" + dirfs.FirstEntries
	if os.Mkdir(s.d.Join(rel), 0o777) != nil {
		return false
	}
	s.rel, s.first = rel, true
	return true
}

// open opens the directory. last holds the records of the entries that were delivered last.
func (s *staging) open(b *background, last []journal.Record) (err error) {
	if s.tmp, err = atomicfile.OpenDir(s.d.Join(s.rel)); err != nil {
		return err
	}
	s.background = b
	s.hardlinks = hardlinks{d: s.d, feed: s.feed, into: int(s.tmp.Fd()), last: last}
	return nil
}

// claim creates the directory of an entry, with a new unique name whose time is later than after.
func (s *staging) claim(ctx context.Context, identity string, after time.Time) (string, error) {
	var last error
	for try := range maxNameTries {
		if try > 0 {
			if err := s.d.Sleep(ctx, 2*time.Second); err != nil {
				return "", err
			}
		}
		now := s.d.Now()
		if !now.Truncate(time.Microsecond).After(after) {
			now = after.Add(time.Microsecond)
		}
		unique := s.d.Unique(now, identity)
		// mkdir fails if the name exists, so no stat is needed before it.
		err := unix.Mkdirat(int(s.tmp.Fd()), unique, 0o777)
		if err == nil {
			return unique, nil
		}
		last = &os.PathError{Op: "mkdir", Path: s.d.Join(s.rel, unique), Err: err}
		if err != unix.EEXIST {
			return "", last
		}
	}
	return "", fmt.Errorf("no unique name after %d tries: %w", maxNameTries, last)
}

// If no call syncs the whole file system (GlusterFS and others by FUSE, NFS, zfs), each file is
// synced separately, and each sync waits for a disk or for other machines. So entries of one feed
// and of several are synced concurrently, while more are being staged. The guarantee of
// [Writer] needs an order only between entries, journals and renames; each of these steps waits for
// all syncs of the previous one.

// background syncs entries concurrently with the staging of more. All transactions of a writer
// share limit; each entry that is being synced has up to eight files open.
type background struct {
	limit chan struct{}
	group workers.Group
}

// write writes the files of an entry. If files are synced separately, it begins that, too:
// [staging.wait] waits for the rest and returns its error.
func (s *staging) write(unique string, files iter.Seq2[string, []byte]) error {
	u := &unsynced{s: s, dir: int(s.tmp.Fd()), unique: unique}
	b := s.background
	if b == nil {
		return u.create(files)
	}
	b.limit <- struct{}{} // before the first file is opened
	if err := u.create(files); err != nil {
		<-b.limit
		return cmp.Or(err, u.close())
	}
	b.group.Go(func() error {
		defer func() { <-b.limit }()
		return u.sync()
	})
	return nil
}

// wait waits for the entries that are synced in the background.
func (s *staging) wait() error {
	if s.background == nil {
		return nil
	}
	return s.background.group.Wait()
}

// sync syncs the staged entries, or waits until that is done in the background.
func (s *staging) sync(staged []journal.Record) error {
	if s.background != nil {
		err := s.wait()
		s.close()
		return err
	}
	for _, r := range staged {
		if err := dirfs.SyncEntry(s.d.Join(s.rel, r.Unique)); err != nil {
			return err
		}
	}
	return nil
}

// staged ends the staging. Entries may still be synced in the background.
func (s *staging) staged() {
	s.hardlinks.close()
	if s.background == nil {
		s.close()
	}
}

// close closes the directory.
func (s *staging) close() {
	s.hardlinks.close()
	if s.tmp != nil {
		s.tmp.Close()
		s.tmp = nil
	}
}

// discard removes staged entries, none of which is still being written.
func (s *staging) discard(uniques []string) {
	for _, unique := range uniques {
		os.RemoveAll(s.d.Join(s.rel, unique))
	}
	if s.first {
		os.Remove(s.d.Join(s.rel))
	}
}

// unsynced is an entry that is being written, with its files open if they are synced separately.
type unsynced struct {
	s      *staging
	dir    int // descriptor of the directory in which entries are staged
	unique string
	open   []*os.File
}

// create writes the files of an entry, or shares them with other entries.
func (u *unsynced) create(files iter.Seq2[string, []byte]) error {
	links := &u.s.hardlinks
	for name, data := range files {
		var shared, old bool
		if repeats(name) {
			shared, old = links.share(u.unique, name, string(data))
		}
		switch {
		case !shared:
			if err := u.createFile(name, data); err != nil {
				return err
			}
			if repeats(name) {
				links.written(u.unique, name, string(data))
			}
		case old && u.s.background != nil:
			// The program that delivered the other entry may not have synced the file.
			f, err := os.Open(u.s.d.Join(u.s.rel, u.unique, name))
			if err != nil {
				return err
			}
			u.open = append(u.open, f)
		}
	}
	// A link cannot be synced by itself, so it is shared only if the whole file system is synced.
	to, alone := LinkTo(u.s.feed), u.s.background != nil
	if !alone {
		if shared, _ := links.share(u.unique, "feed", to); shared {
			return nil
		}
	}
	if err := unix.Symlinkat(to, u.dir, u.unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: u.s.d.Join(u.s.rel, u.unique, "feed"), Err: err}
	}
	if !alone {
		links.written(u.unique, "feed", to)
	}
	return nil
}

// createFile writes a file. If sync syncs it, the file stays open.
func (u *unsynced) createFile(name string, data []byte) error {
	name = u.unique + "/" + name
	f, err := atomicfile.Create(u.dir, name, u.s.d.Path+"/"+u.s.rel+"/"+name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if u.s.background == nil {
		return cmp.Or(err, f.Close())
	}
	// os.File.Sync repeats fsync(2) after EINTR, and uses F_FULLFSYNC on macOS.
	u.open = append(u.open, f)
	return err
}

// sync syncs the files before the directory.
func (u *unsynced) sync() error {
	var err error
	for _, f := range u.open {
		err = cmp.Or(err, f.Sync())
	}
	return cmp.Or(err, u.close(), dirfs.SyncPath(u.s.d.Join(u.s.rel, u.unique)))
}

// close closes the files. With NFS and quotas, it reports errors of writing.
func (u *unsynced) close() error {
	var err error
	for _, f := range u.open {
		err = cmp.Or(err, f.Close())
	}
	u.open = nil
	return err
}
