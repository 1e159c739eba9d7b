package lektordir

import (
	"cmp"
	"context"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dirfs"
)

// Where no call syncs the whole file system (GlusterFS and others by FUSE, NFS, zfs),
// each file is synced by itself, and waits for a disk or for other machines. So they
// wait together: entries are written and synced beside each other, of one feed and of
// several, while more are being staged. What the promise of [Writer] asks for is an
// order between entries, journals and renames; there, all are waited for.

// atOnce is how many entries the transactions of a writer write at a time where they
// do so beside each other; each has up to eight files open. It is also how many feeds
// are synced at a time.
const atOnce = 32

// beside is what a transaction writes beside its staging.
type beside struct {
	group *errgroup.Group
	ctx   context.Context // done when something could not be written
}

// unsynced is an entry that is being written, with its files open.
type unsynced struct {
	t      *Txn
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

// write writes the files of an entry. If each has to be synced by itself, it only begins:
// [Txn.besides] waits for the rest and returns its error. The files that entries share are
// written before write returns, in the order of the entries.
func (t *Txn) write(fd int, unique string, e *Entry) error {
	t.w.mu.Lock()
	t.group.entries++
	t.w.mu.Unlock()
	u := &unsynced{t: t, dir: fd, unique: unique}
	if t.group.Whole() {
		err := u.create(e, false)
		if err == nil && !t.share(fd, unique, "feed", leadsTo(t.feed)) {
			if err = t.linkFeed(fd, unique); err == nil {
				t.written(fd, unique, "feed", leadsTo(t.feed))
			}
		}
		return cmp.Or(err, u.close())
	}
	if t.beside.group == nil {
		t.beside.group, t.beside.ctx = errgroup.WithContext(context.Background())
	}
	if t.beside.ctx.Err() != nil {
		return t.besides()
	}
	t.w.slots <- struct{}{} // before the first file is opened
	// The files to share are known when the first entry is written.
	if err := u.create(e, t.twins.known != nil); err != nil {
		err = cmp.Or(err, u.close())
		<-t.w.slots
		return err
	}
	t.beside.group.Go(func() error {
		defer func() { <-t.w.slots }()
		return u.finish()
	})
	return nil
}

// create writes the files of an entry, and leaves them open. If later is true, it writes
// only those that entries share.
func (u *unsynced) create(e *Entry, later bool) error {
	for v, data := range e.stored() {
		if v.repeats && u.t.share(u.dir, u.unique, v.name, string(data)) {
			if u.t.foundBefore(v.name, string(data)) {
				u.linked = append(u.linked, v.name)
			}
			continue
		}
		if later && !v.repeats {
			u.later = append(u.later, unwritten{v.name, data})
			continue
		}
		if err := u.createFile(v.name, data); err != nil {
			return err
		}
		if v.repeats {
			u.t.written(u.dir, u.unique, v.name, string(data))
		}
	}
	return nil
}

// createFile writes a file, and leaves it open.
func (u *unsynced) createFile(name string, data []byte) error {
	path := u.t.d.Join(u.t.stagedIn(), u.unique, name)
	fd, err := createAt(u.dir, u.unique+"/"+name, data)
	if err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	// A file of package os, as that syncs better than fsync(2) where need be.
	u.open = append(u.open, os.NewFile(uintptr(fd), path))
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
		err = u.t.linkFeed(u.dir, u.unique)
	}
	for _, f := range u.open {
		if err == nil {
			err = f.Sync()
		}
	}
	err = cmp.Or(err, u.close())
	dir := u.t.d.Join(u.t.stagedIn(), u.unique)
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

// besides waits for what is written beside, and tells how it went.
func (t *Txn) besides() error {
	if t.beside.group == nil {
		return nil
	}
	return t.beside.group.Wait()
}

// each calls f for every transaction, and gives their errors; beside each other where
// the disk is waited for in each.
func (g *group) each(txns []*Txn, f func(*Txn) error) []error {
	bad := make([]error, len(txns))
	if g.Whole() || len(txns) == 1 {
		for i, t := range txns {
			bad[i] = f(t)
		}
		return bad
	}
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, t := range txns {
		all.Go(func() error {
			bad[i] = f(t)
			return nil
		})
	}
	all.Wait()
	return bad
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
