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
	linked []string // names of files shared with delivered entries, which sync syncs
}

// create writes the files of an entry, or shares them with other entries.
func (u *unsynced) create(files iter.Seq2[string, []byte]) error {
	links := &u.s.hardlinks
	for name, data := range files {
		shared := repeats(name)
		if shared && links.share(u.unique, name, string(data)) {
			if links.mustSync(name, string(data)) {
				u.linked = append(u.linked, name)
			}
			continue
		}
		if err := u.createFile(name, data); err != nil {
			return err
		}
		if shared {
			links.written(u.unique, name, string(data))
		}
	}
	to := LinkTo(u.s.feed)
	if links.share(u.unique, "feed", to) {
		return nil
	}
	if err := unix.Symlinkat(to, u.dir, u.unique+"/feed"); err != nil {
		return &os.PathError{Op: "symlink", Path: u.s.d.Join(u.s.rel, u.unique, "feed"), Err: err}
	}
	links.written(u.unique, "feed", to)
	return nil
}

// createFile writes a file. If sync syncs it, the file stays open.
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

// sync syncs the files before the directory.
func (u *unsynced) sync() error {
	var err error
	for _, f := range u.open {
		err = cmp.Or(err, f.Sync())
	}
	err = cmp.Or(err, u.close())
	dir := u.s.d.Join(u.s.rel, u.unique)
	for _, name := range u.linked {
		err = cmp.Or(err, dirfs.SyncPath(dir+"/"+name))
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
