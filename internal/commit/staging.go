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

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/journal"
	"github.com/lektordir/lektor/internal/limiter"
	"github.com/lektordir/lektor/internal/workers"
)

// staging is the place in tmp/$feed where a transaction writes entries.
type staging struct {
	d      *dirfs.Dir
	feed   string
	rel    string   // path of the place, relative to the lektor-dir
	first  bool     // it is tmp/$feed/;first
	tmp    *os.File // the place, held so that nobody can put a link there; nil while it is closed
	twins  twins
	beside *beside // nil if one call syncs all entries
}

// maxNameTries bounds the wait for a unique name (specification, "stat()").
const maxNameTries = 5

// takeFirst makes [dirfs.FirstEntries] the place. It reports false if that is taken.
func (s *staging) takeFirst() bool {
	rel := "tmp/" + s.feed + "/" + dirfs.FirstEntries
	if os.Mkdir(s.d.Join(rel), 0o777) != nil {
		return false
	}
	s.rel, s.first = rel, true
	return true
}

// open opens the place. last are records of the entries delivered last.
func (s *staging) open(b *beside, last []journal.Record) error {
	path := s.d.Join(s.rel)
	fd, err := atomicfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	s.tmp, s.beside = os.NewFile(uintptr(fd), path), b
	s.twins = twins{d: s.d, feed: s.feed, into: fd, last: last}
	return nil
}

// claim makes the directory of an entry under a fresh unique name, whose time is after the one
// given.
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
		// mkdir reports what the specification's stat() would, at the same moment
		// that it takes the name.
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

// If no call syncs the whole file system (GlusterFS and others by FUSE, NFS, zfs), each
// file is synced by itself, and each sync waits for a disk or for other machines. So
// entries of one feed and of several are written and synced concurrently, while more are
// being staged. The promise of [Writer] needs an order only between entries, journals and
// renames; each of these steps waits for all writes of the one before.

// beside holds the entries that a transaction writes while it stages more. All transactions
// of a writer share limit; each entry that is being written has up to eight files open.
type beside struct {
	limit  *limiter.Limiter
	group  workers.Group
	failed atomic.Bool // something could not be written
}

// write writes the files of an entry. If each has to be synced by itself, it only begins:
// [staging.wait] waits for the rest and returns its error. The files that entries share are
// written before write returns, in the order of the entries.
func (s *staging) write(unique string, files iter.Seq2[string, []byte]) error {
	u := &unsynced{s: s, dir: int(s.tmp.Fd()), unique: unique}
	b := s.beside
	if b == nil {
		err := u.create(files, false)
		if err == nil && !s.twins.share(unique, "feed", LinkTo(s.feed)) {
			if err = u.linkFeed(); err == nil {
				s.twins.written(unique, "feed", LinkTo(s.feed))
			}
		}
		return cmp.Or(err, u.close())
	}
	if b.failed.Load() {
		return s.wait()
	}
	place, err := b.limit.Acquire(context.Background(), "") // before the first file is opened
	if err != nil {
		return err
	}
	// The files to share are known when the first entry is written.
	if err := u.create(files, s.twins.known != nil); err != nil {
		place.Release()
		return cmp.Or(err, u.close())
	}
	b.group.Go(func() error {
		defer place.Release()
		err := u.finish()
		if err != nil {
			b.failed.Store(true)
		}
		return err
	})
	return nil
}

// wait waits for the entries that are written beside the staging.
func (s *staging) wait() error {
	if s.beside == nil {
		return nil
	}
	return s.beside.group.Wait()
}

// sync syncs the staged entries, or waits for those that do so themselves.
func (s *staging) sync(staged []journal.Record) error {
	if s.beside != nil {
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

// staged ends the staging; entries may still be written beside it.
func (s *staging) staged() {
	s.twins.close()
	if s.beside == nil {
		s.close()
	}
}

// close ends the work in tmp/$feed.
func (s *staging) close() {
	s.twins.close()
	if s.tmp != nil {
		s.tmp.Close()
		s.tmp = nil
	}
}

// discard removes entries that were staged.
func (s *staging) discard(uniques []string) {
	_ = s.wait() // which may still be writing there
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
	dir    int // where entries are staged
	unique string
	open   []*os.File
	later  []unwritten
	linked []string // files of entries delivered before
}

// unwritten is a file that is yet to be written.
type unwritten struct {
	name string
	data []byte
}

// create writes the files of an entry, and leaves them open. If later is true, it writes
// only those that entries share.
func (u *unsynced) create(files iter.Seq2[string, []byte], later bool) error {
	for name, data := range files {
		shared := repeats(name)
		if shared && u.s.twins.share(u.unique, name, string(data)) {
			if u.s.twins.foundBefore(name, string(data)) {
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
			u.s.twins.written(u.unique, name, string(data))
		}
	}
	return nil
}

// createFile writes a file, and leaves it open.
func (u *unsynced) createFile(name string, data []byte) error {
	path := u.s.d.Join(u.s.rel, u.unique, name)
	fd, err := createAt(u.dir, u.unique+"/"+name, data)
	if err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	// A file of package os, as that syncs better than fsync(2) where need be.
	u.open = append(u.open, os.NewFile(uintptr(fd), path))
	return nil
}

// linkFeed makes the link from the entry to its feed.
func (u *unsynced) linkFeed() error {
	if err := unix.Symlinkat(LinkTo(u.s.feed), u.dir, u.unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: u.s.d.Join(u.s.rel, u.unique, "feed"), Err: err}
	}
	return nil
}

// finish writes what is left to write, and syncs the files before the directory.
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

// close closes the files. NFS and quotas report errors of writing here.
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
