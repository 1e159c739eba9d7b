package lektordir

import (
	"bytes"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// The author and the type of an entry are mostly those of the one before it, and its
// link to the feed always. Such a file is a further name (a hard link) of the other
// entry's: an inode and a block less. What cannot be linked is made anew, and means the
// same. As nobody writes to the files of an entry that was delivered (lektor-dir(5)),
// nothing is seen of it.

// twin is a file that entries may have in common.
type twin struct {
	dir  int    // a directory that is open
	name string // in it
	id   fileID
	old  bool // it is of an entry that was delivered before
}

// fileID tells a file, as it was, from others and from what became of it.
type fileID struct {
	dev, ino    uint64
	size, mtime int64 // in nanoseconds
}

func idOf(st *unix.Stat_t) fileID {
	return fileID{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim)}
}

// twinKey is what makes files the same; the data of a symbolic link is where it leads.
type twinKey struct{ name, data string }

// twins are those that a transaction knows. It belongs to its goroutine.
type twins struct {
	known map[twinKey]twin
	prior *os.File // the entry that was delivered before, or nil
	none  bool     // there are no links here
	// plain tells that there are none of symbolic links, which not every system has.
	plain bool
}

// The entry delivered before may have been deleted; then the one before it will do.
const (
	priorEntries = 4
	maxTwin      = 4096 // bytes of a file of that entry
)

// share makes a file of an entry in tmp a further name of one that another entry has,
// with the same data. It reports whether it did; if not, there is no such file.
func (t *Txn) share(fd int, unique, name, data string) bool {
	if t.twins.known == nil {
		t.twins.known = map[twinKey]twin{}
		t.adopt(fd, unique)
	}
	k := twinKey{name, data}
	tw, ok := t.twins.known[k]
	if !ok || t.twins.none || t.twins.plain && name == "feed" {
		return false
	}
	to := unique + "/" + name
	if err := t.d.link(tw.dir, tw.name, fd, to); err != nil {
		delete(t.twins.known, k)
		// It has as many names as it may, or is gone, or it is for writing a file
		// to find out what is wrong. Else there are none, and will not be.
		none := !slices.Contains([]error{unix.EMLINK, unix.ENOENT, unix.ENOSPC, unix.EDQUOT, unix.EIO}, err)
		t.twins.plain = t.twins.plain || none
		t.twins.none = none && name != "feed"
		return false
	}
	// Somebody may have put another in its place, or written to it.
	var st unix.Stat_t
	if err := unix.Fstatat(fd, to, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && idOf(&st) == tw.id {
		return true
	}
	delete(t.twins.known, k)
	// If it stays, to write the file in its place fails.
	_ = unix.Unlinkat(fd, to, 0)
	return false
}

// foundBefore reports, once for each, whether a file that was shared is one of an
// entry that was delivered before. Whoever put it there may not have synced it.
func (t *Txn) foundBefore(name, data string) bool {
	k := twinKey{name, data}
	tw := t.twins.known[k]
	found := tw.old
	tw.old = false
	t.twins.known[k] = tw
	return found
}

// written tells share of a file that was written.
func (t *Txn) written(fd int, unique, name, data string) {
	if t.twins.none {
		return
	}
	path, kind := unique+"/"+name, uint32(unix.S_IFREG)
	if name == "feed" {
		kind = unix.S_IFLNK
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, path, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && uint32(st.Mode)&unix.S_IFMT == kind && st.Size == int64(len(data)) {
		t.twins.known[twinKey{name, data}] = twin{dir: fd, name: path, id: idOf(&st)}
	}
}

// adopt looks for what the entry has that was delivered last. The transaction has
// written the title of its first entry: whose files are another's, or may be read
// by others, are not for us.
func (t *Txn) adopt(fd int, unique string) {
	var own unix.Stat_t
	if err := unix.Fstatat(fd, unique+"/title", &own, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	if t.twins.prior = t.lastDelivered(); t.twins.prior == nil {
		return
	}
	dir := int(t.twins.prior.Fd())
	t.adoptLink(dir, &own)
	for i := range files {
		v := &files[i]
		if !v.repeats {
			continue
		}
		f, err := unix.Openat(dir, v.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		file := os.NewFile(uintptr(f), v.name)
		var st unix.Stat_t
		if err := unix.Fstat(f, &st); err == nil && st.Mode == own.Mode && st.Uid == own.Uid && st.Gid == own.Gid &&
			st.Dev == own.Dev && st.Size > 0 && st.Size <= maxTwin {
			data := make([]byte, st.Size)
			if _, err := io.ReadFull(file, data); err == nil && bytes.HasSuffix(data, []byte{'\n'}) {
				t.twins.known[twinKey{v.name, string(data)}] = twin{dir: dir, name: v.name, id: idOf(&st), old: true}
			}
		}
		file.Close()
	}
}

// adoptLink is adopt for the link to the feed.
func (t *Txn) adoptLink(dir int, own *unix.Stat_t) {
	// In this order, as another link may be put in its place.
	var st unix.Stat_t
	if err := unix.Fstatat(dir, "feed", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Uid != own.Uid || st.Gid != own.Gid || st.Dev != own.Dev {
		return
	}
	leads := make([]byte, len(leadsTo(t.feed))+1)
	if n, err := unix.Readlinkat(dir, "feed", leads); err == nil && string(leads[:n]) == leadsTo(t.feed) {
		t.twins.known[twinKey{"feed", leadsTo(t.feed)}] = twin{dir: dir, name: "feed", id: idOf(&st)}
	}
}

// lastDelivered opens the directory of the entry that was delivered last and is still
// there, or gives nil. That of an entry which is a link, and leads out of the
// lektor-dir, is none.
func (t *Txn) lastDelivered() *os.File {
	looked := 0
	for i := range slices.Backward(t.journal.ends) {
		r, ok := t.journal.record(i)
		if !ok {
			continue
		}
		if looked++; looked > priorEntries {
			break
		}
		for _, place := range []struct{ dir, info string }{{"new/", ""}, {"cur/", ";2,S"}, {"cur/", ";2,"}} {
			dir := place.dir + t.feed
			if t.d.fs.Inside(dir) != nil {
				continue
			}
			path := t.d.fs.Path + "/" + dir + "/" + r.Unique + place.info
			if fd, err := atomicfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC); err == nil {
				return os.NewFile(uintptr(fd), path)
			}
		}
	}
	return nil
}

// forgetTwins ends the sharing of files.
func (t *Txn) forgetTwins() {
	if t.twins.prior != nil {
		t.twins.prior.Close()
	}
	t.twins = twins{}
}

// linkat makes a further name of a file, never of what a link leads to.
func linkat(fromDir int, from string, toDir int, to string) error {
	return atomicfile.Again(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
}
