package commit

import (
	"bytes"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/journal"
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
	d     *dirfs.Dir
	feed  string
	into  int              // where entries are staged
	last  []journal.Record // of the entries delivered last
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
func (t *twins) share(unique, name, data string) bool {
	if t.known == nil {
		t.known = map[twinKey]twin{}
		t.adopt(unique)
	}
	k := twinKey{name, data}
	tw, ok := t.known[k]
	if !ok || t.none || t.plain && name == "feed" {
		return false
	}
	to := unique + "/" + name
	if err := t.d.Link(tw.dir, tw.name, t.into, to); err != nil {
		delete(t.known, k)
		// It has as many names as it may, or is gone, or it is for writing a file
		// to find out what is wrong. Else there are none, and will not be.
		none := !slices.Contains([]error{unix.EMLINK, unix.ENOENT, unix.ENOSPC, unix.EDQUOT, unix.EIO}, err)
		t.plain = t.plain || none
		t.none = none && name != "feed"
		return false
	}
	// Somebody may have put another in its place, or written to it.
	var st unix.Stat_t
	if err := unix.Fstatat(t.into, to, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && idOf(&st) == tw.id {
		return true
	}
	delete(t.known, k)
	// If it stays, to write the file in its place fails.
	_ = unix.Unlinkat(t.into, to, 0)
	return false
}

// foundBefore reports, once for each, whether a file that was shared is one of an
// entry that was delivered before. Whoever put it there may not have synced it.
func (t *twins) foundBefore(name, data string) bool {
	k := twinKey{name, data}
	tw := t.known[k]
	found := tw.old
	tw.old = false
	t.known[k] = tw
	return found
}

// written tells share of a file that was written.
func (t *twins) written(unique, name, data string) {
	if t.none {
		return
	}
	path, kind := unique+"/"+name, uint32(unix.S_IFREG)
	if name == "feed" {
		kind = unix.S_IFLNK
	}
	var st unix.Stat_t
	if err := unix.Fstatat(t.into, path, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && uint32(st.Mode)&unix.S_IFMT == kind && st.Size == int64(len(data)) {
		t.known[twinKey{name, data}] = twin{dir: t.into, name: path, id: idOf(&st)}
	}
}

// adopt looks for what the entry has that was delivered last. The transaction has
// written the title of its first entry: whose files are another's, or may be read
// by others, are not for us.
func (t *twins) adopt(unique string) {
	var own unix.Stat_t
	if err := unix.Fstatat(t.into, unique+"/title", &own, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	if t.prior = t.lastDelivered(); t.prior == nil {
		return
	}
	dir := int(t.prior.Fd())
	t.adoptLink(dir, &own)
	for _, name := range repeating {
		f, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		file := os.NewFile(uintptr(f), name)
		var st unix.Stat_t
		if err := unix.Fstat(f, &st); err == nil && st.Mode == own.Mode && st.Uid == own.Uid && st.Gid == own.Gid &&
			st.Dev == own.Dev && st.Size > 0 && st.Size <= maxTwin {
			data := make([]byte, st.Size)
			if _, err := io.ReadFull(file, data); err == nil && bytes.HasSuffix(data, []byte{'\n'}) {
				t.known[twinKey{name, string(data)}] = twin{dir: dir, name: name, id: idOf(&st), old: true}
			}
		}
		file.Close()
	}
}

// adoptLink is adopt for the link to the feed.
func (t *twins) adoptLink(dir int, own *unix.Stat_t) {
	// In this order, as another link may be put in its place.
	var st unix.Stat_t
	if err := unix.Fstatat(dir, "feed", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Uid != own.Uid || st.Gid != own.Gid || st.Dev != own.Dev {
		return
	}
	leads := make([]byte, len(LinkTo(t.feed))+1)
	if n, err := unix.Readlinkat(dir, "feed", leads); err == nil && string(leads[:n]) == LinkTo(t.feed) {
		t.known[twinKey{"feed", LinkTo(t.feed)}] = twin{dir: dir, name: "feed", id: idOf(&st)}
	}
}

// lastDelivered opens the directory of the entry that was delivered last and is still
// there, or gives nil. That of an entry which is a link, and leads out of the
// lektor-dir, is none.
func (t *twins) lastDelivered() *os.File {
	for _, r := range t.last {
		for _, place := range []struct{ dir, info string }{{"new/", ""}, {"cur/", ";2,S"}, {"cur/", ";2,"}} {
			dir := place.dir + t.feed
			if t.d.Inside(dir) != nil {
				continue
			}
			path := t.d.Path + "/" + dir + "/" + r.Unique + place.info
			if fd, err := atomicfile.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC); err == nil {
				return os.NewFile(uintptr(fd), path)
			}
		}
	}
	return nil
}

// close ends the sharing of files.
func (t *twins) close() {
	if t.prior != nil {
		t.prior.Close()
	}
	*t = twins{}
}

// repeating are the files of an entry that often are those of the one before it.
var repeating = []string{"author", "type"}

func repeats(name string) bool { return slices.Contains(repeating, name) }

// LinkTo returns the target of the link feed of the entries of a feed.
func LinkTo(feed string) string { return "../../../src/" + feed }
