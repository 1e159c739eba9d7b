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
// link to the feed always. A file with equal data becomes a hard link to the other entry's,
// which saves an inode and a block. If it cannot be linked, a file with the same data is written. No
// program writes to the files of a delivered entry (lektor-dir(5)), so readers see no
// difference.

// twin is a file that entries may have in common.
type twin struct {
	dir  int    // a directory that is open
	name string // in it
	id   fileID
	old  bool // it is of an entry that was delivered before
}

// fileID identifies a file and its state: a changed or replaced file has another.
type fileID struct {
	dev, ino    uint64
	size, mtime int64 // in nanoseconds
}

func idOf(st *unix.Stat_t) fileID {
	return fileID{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim)}
}

// twinKey is the name and data of a file; the data of a symbolic link is its target.
type twinKey struct{ name, data string }

// twins holds the files that a transaction can link to. It belongs to the transaction's
// goroutine.
type twins struct {
	d     *dirfs.Dir
	feed  string
	into  int              // where entries are staged
	last  []journal.Record // records of the entries delivered last
	known map[twinKey]twin
	prior *os.File // the entry that was delivered before, or nil
	none  bool     // the file system refuses hard links
	// plain reports that it refuses hard links to symbolic links, as some systems do.
	plain bool
}

// The entry delivered before may have been deleted; then the one before it will do.
const (
	priorEntries = 4
	maxTwin      = 4096 // bytes of a file of that entry
)

// share makes a file of an entry in tmp/ a hard link to the file of another entry with the
// same data. It reports whether it did; if not, it leaves no file.
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
		// These errors concern this file, or writing it reports them. Any other error
		// means that the file system has no such links.
		none := !slices.Contains([]error{unix.EMLINK, unix.ENOENT, unix.ENOSPC, unix.EDQUOT, unix.EIO}, err)
		t.plain = t.plain || none
		t.none = none && name != "feed"
		return false
	}
	// The linked file may have been replaced or written to.
	var st unix.Stat_t
	if err := unix.Fstatat(t.into, to, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && idOf(&st) == tw.id {
		return true
	}
	delete(t.known, k)
	// If this fails, writing the file fails, too.
	_ = unix.Unlinkat(t.into, to, 0)
	return false
}

// foundBefore reports, once for each, whether a file that was shared is one of an
// entry that was delivered before, as the program that delivered it may not have synced it.
func (t *twins) foundBefore(name, data string) bool {
	k := twinKey{name, data}
	tw := t.known[k]
	found := tw.old
	tw.old = false
	t.known[k] = tw
	return found
}

// written records a file that was written, for share to link to.
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

// adopt records the files of the entry delivered last. It skips files whose owner, group or
// mode differ from those of the title that the transaction has written.
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

// adoptLink records the link to the feed of the entry delivered last.
func (t *twins) adoptLink(dir int, own *unix.Stat_t) {
	// Stat comes first, as another link may take its place before it is read.
	var st unix.Stat_t
	if err := unix.Fstatat(dir, "feed", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Uid != own.Uid || st.Gid != own.Gid || st.Dev != own.Dev {
		return
	}
	leads := make([]byte, len(LinkTo(t.feed))+1)
	if n, err := unix.Readlinkat(dir, "feed", leads); err == nil && string(leads[:n]) == LinkTo(t.feed) {
		t.known[twinKey{"feed", LinkTo(t.feed)}] = twin{dir: dir, name: "feed", id: idOf(&st)}
	}
}

// lastDelivered opens the directory of the newest of the last delivered entries that still
// exists, or returns nil. It follows no symbolic link out of the lektor-dir.
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
