package commit

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// Most entries have the author and the type of the previous entry, and all have the same link to
// the feed. A file with the same data becomes a hard link to the other entry's file, which saves an
// inode and a block. If it cannot be linked, it is written. No program writes to the files of a
// delivered entry (see lektor-dir(5)), so readers see no difference.

// hardlink is a file to which hard links are made.
type hardlink struct {
	dir  int    // descriptor of an open directory
	name string // path relative to dir
	id   fileID // if the file belongs to a delivered entry
}

// fileID identifies a file and its state. If the file is changed or replaced, the fileID differs.
type fileID struct {
	dev, ino    uint64
	size, mtime int64 // in nanoseconds
}

func idOf(st *unix.Stat_t) fileID {
	return fileID{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim)}
}

// hardlinkKey is the name and data of a file; the data of a symbolic link is its target.
type hardlinkKey struct{ name, data string }

// hardlinks holds the files to which a transaction can link. It is not safe for concurrent use.
type hardlinks struct {
	d     *dirfs.Dir
	feed  string
	into  int              // descriptor of the directory in which entries are staged
	last  []journal.Record // records of the entries delivered last
	known map[hardlinkKey]hardlink
	prior *os.File // the directory of the delivered entry whose files are shared, or nil
	none  bool     // the file system refuses hard links
	plain bool     // the file system refuses hard links to symbolic links
}

const (
	// priorEntries is the number of delivered entries to try, because some may have been deleted.
	priorEntries = 4
	// maxHardlink is the maximum size, in bytes, of a file of such an entry that is shared.
	maxHardlink = 4096
)

// share makes a file of an entry in tmp/ a hard link to a file of another entry with the same name
// and data. It reports whether it did; if not, the file does not exist. old reports that the other entry
// is a delivered one, which is so once for each file.
func (t *hardlinks) share(unique, name, data string) (shared, old bool) {
	if t.known == nil {
		t.known = map[hardlinkKey]hardlink{}
		t.adopt(unique)
	}
	k := hardlinkKey{name, data}
	tw, ok := t.known[k]
	if !ok || t.none || t.plain && name == "feed" {
		return false, false
	}
	to := unique + "/" + name
	if err := t.d.Link(tw.dir, tw.name, t.into, to); err != nil {
		delete(t.known, k)
		// These errors concern only this file, or writing it returns them, too. Any other error
		// means that the file system has no such links.
		none := !slices.Contains([]error{unix.EMLINK, unix.ENOENT, unix.ENOSPC, unix.EDQUOT, unix.EIO}, err)
		t.plain = t.plain || none
		t.none = none && name != "feed"
		return false, false
	}
	if tw.dir == t.into {
		return true, false
	}
	// The delivered entry's file may have been replaced or written to.
	var st unix.Stat_t
	if err := unix.Fstatat(t.into, to, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && idOf(&st) == tw.id {
		t.written(unique, name, data)
		return true, true
	}
	delete(t.known, k)
	// If this fails, writing the file fails, too.
	_ = unix.Unlinkat(t.into, to, 0)
	return false, false
}

// written records a file of an entry in tmp/, so that share can link to it.
func (t *hardlinks) written(unique, name, data string) {
	if !t.none {
		t.known[hardlinkKey{name, data}] = hardlink{dir: t.into, name: unique + "/" + name}
	}
}

// adopt records the link feed and the files of the entry that was delivered last. It skips those whose
// owner, group or mode differ from those of the title of unique, which the transaction has written.
func (t *hardlinks) adopt(unique string) {
	var own unix.Stat_t
	if err := unix.Fstatat(t.into, unique+"/title", &own, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return
	}
	if t.prior = t.lastDelivered(); t.prior == nil {
		return
	}
	dir := int(t.prior.Fd())
	for _, name := range append([]string{"feed"}, repeating...) {
		// Stat comes before the file is read, so that share notices if it is changed in between.
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil || st.Uid != own.Uid || st.Gid != own.Gid || st.Dev != own.Dev ||
			name != "feed" && st.Mode != own.Mode {
			continue
		}
		data := make([]byte, len(LinkTo(t.feed))+1) // a longer target differs
		if name == "feed" {
			var n int
			n, err = unix.Readlinkat(dir, name, data)
			data = data[:max(n, 0)]
		} else {
			data, err = atomicfile.ReadAt(dir, name, maxHardlink)
		}
		if err == nil {
			t.known[hardlinkKey{name, string(data)}] = hardlink{dir: dir, name: name, id: idOf(&st)}
		}
	}
}

// lastDelivered opens the directory of the newest of the last delivered entries that still
// exists, or returns nil. It follows no symbolic link out of the lektor-dir.
func (t *hardlinks) lastDelivered() *os.File {
	for _, r := range t.last {
		for _, place := range []struct{ dir, info string }{{"new/", ""}, {"cur/", ";2,S"}, {"cur/", ";2,"}} {
			dir := place.dir + t.feed
			if t.d.Inside(dir) != nil {
				continue
			}
			if f, err := atomicfile.OpenDir(t.d.Path + "/" + dir + "/" + r.Unique + place.info); err == nil {
				return f
			}
		}
	}
	return nil
}

// close closes the directory of the delivered entry.
func (t *hardlinks) close() {
	if t.prior != nil {
		t.prior.Close()
	}
	*t = hardlinks{}
}

// repeating lists the files of an entry that often have the data of the previous entry's.
var repeating = []string{"author", "type"}

func repeats(name string) bool { return slices.Contains(repeating, name) }

// LinkTo returns the target of the link feed of the entries of a feed.
func LinkTo(feed string) string { return "../../../src/" + feed }
