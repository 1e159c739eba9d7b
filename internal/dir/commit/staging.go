package commit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"sync/atomic"
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
func (s *staging) open(b *background, last []journal.Record) error {
	path := s.d.Join(s.rel)
	fd, err := atomicfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	s.tmp, s.background = os.NewFile(uintptr(fd), path), b
	s.hardlinks = hardlinks{d: s.d, feed: s.feed, into: fd, last: last}
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
// and of several are written and synced concurrently, while more are being staged. The guarantee of
// [Writer] needs an order only between entries, journals and renames; each of these steps waits for
// all writes of the previous one.

// background writes entries concurrently with the staging of more. All transactions of a writer
// share limit; each entry that is being written has up to eight files open.
type background struct {
	limit  chan struct{}
	group  workers.Group
	failed atomic.Bool // an entry could not be written
}

// write writes the files of an entry. If files are synced separately, it only begins:
// [staging.wait] waits for the rest and returns its error. The files that entries share are always
// written before write returns, so that the next entry can share them.
func (s *staging) write(unique string, files iter.Seq2[string, []byte]) error {
	u := &unsynced{s: s, dir: int(s.tmp.Fd()), unique: unique}
	b := s.background
	if b == nil {
		err := u.create(files, false)
		if err == nil && !s.hardlinks.share(unique, "feed", LinkTo(s.feed)) {
			if err = u.linkFeed(); err == nil {
				s.hardlinks.written(unique, "feed", LinkTo(s.feed))
			}
		}
		return err
	}
	if b.failed.Load() {
		return s.wait()
	}
	b.limit <- struct{}{} // before the first file is opened
	// The first entry is written whole, because its title decides which files of delivered entries
	// can be shared.
	if err := u.create(files, s.hardlinks.known != nil); err != nil {
		<-b.limit
		return cmp.Or(err, u.close())
	}
	b.group.Go(func() error {
		defer func() { <-b.limit }()
		err := u.finish()
		if err != nil {
			b.failed.Store(true)
		}
		return err
	})
	return nil
}

// wait waits for the entries that are written in the background.
func (s *staging) wait() error {
	if s.background == nil {
		return nil
	}
	return s.background.group.Wait()
}

// sync syncs the staged entries, or waits for the background writes, which sync them.
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

// staged ends the staging. Entries may still be written in the background.
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

// unsynced is an entry that is being written, with its files open.
type unsynced struct {
	s      *staging
	dir    int // descriptor of the directory in which entries are staged
	unique string
	open   []*os.File
	later  []unwritten // files that finish writes
	linked []string    // names of files shared with delivered entries, which finish syncs
}

// unwritten is a file that is not written yet.
type unwritten struct {
	name string
	data []byte
}

// create writes the files of an entry. If later is true, it writes only those
// that entries may share.
func (u *unsynced) create(files iter.Seq2[string, []byte], later bool) error {
	for name, data := range files {
		shared := repeats(name)
		if shared && u.s.hardlinks.share(u.unique, name, string(data)) {
			if u.s.hardlinks.mustSync(name, string(data)) {
				u.linked = append(u.linked, name)
			}
			continue
		}
		if later && !shared {
			u.later = append(u.later, unwritten{name, data})
			continue
		}
		if err := u.createFile(name, data); err != nil {
			return err
		}
		if shared {
			u.s.hardlinks.written(u.unique, name, string(data))
		}
	}
	return nil
}

// createFile writes a file. If finish syncs it, the file stays open.
func (u *unsynced) createFile(name string, data []byte) error {
	fd, err := createAt(u.dir, u.unique+"/"+name, data)
	if err == nil && u.s.background == nil {
		err = unix.Close(fd)
	}
	path := u.s.d.Path + "/" + u.s.rel + "/" + u.unique + "/" + name
	switch {
	case err != nil:
		return &os.PathError{Op: "write", Path: path, Err: err}
	case u.s.background != nil:
		// os.File.Sync repeats fsync(2) after EINTR, and uses F_FULLFSYNC on macOS.
		u.open = append(u.open, os.NewFile(uintptr(fd), path))
	}
	return nil
}

// linkFeed makes the link from the entry to its feed.
func (u *unsynced) linkFeed() error {
	if err := unix.Symlinkat(LinkTo(u.s.feed), u.dir, u.unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: u.s.d.Join(u.s.rel, u.unique, "feed"), Err: err}
	}
	return nil
}

// finish writes the remaining files, and syncs the files before the directory.
func (u *unsynced) finish() error {
	var err error
	for _, f := range u.later {
		if err == nil {
			err = u.createFile(f.name, f.data)
		}
	}
	if err == nil {
		err = u.linkFeed()
	}
	for _, f := range u.open {
		if err == nil {
			err = f.Sync()
		}
	}
	err = cmp.Or(err, u.close())
	dir := u.s.d.Join(u.s.rel, u.unique)
	for _, name := range u.linked {
		if err == nil {
			err = dirfs.SyncPath(dir + "/" + name)
		}
	}
	return cmp.Or(err, dirfs.SyncPath(dir))
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

// createAt writes a new file, and leaves it open.
func createAt(dir int, name string, data []byte) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0o666)
	for err == unix.EINTR {
		fd, err = unix.Openat(dir, name, flags, 0o666)
	}
	if err != nil {
		return -1, err
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			unix.Close(fd)
			return -1, err
		}
		data = data[n:]
	}
	return fd, nil
}
