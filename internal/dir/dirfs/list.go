package dirfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
)

// Listing holds the names of a feed's entries.
type Listing struct {
	Names []entryname.Name // sorted, see [entryname.Sort]
	Bad   []BadName
}

// ByUnique maps the unique names to the names.
func (l Listing) ByUnique() map[string]entryname.Name {
	names := make(map[string]entryname.Name, len(l.Names))
	for _, n := range l.Names {
		names[n.Unique] = n
	}
	return names
}

// BadName is a name in new/ or cur/ that is not that of an entry.
type BadName struct {
	Path   string // relative to the lektor-dir
	Reason string
}

// The maximum number of times that List reads a feed's directories. From the fourth reading on, a
// strict List waits before each: first one millisecond, then twice as long each time, up to
// strictPause: about ten seconds in all.
const (
	mostReadings   = 3
	strictReadings = 100
	strictPause    = 100 * time.Millisecond
)

// List lists a feed's entries in new/ and cur/.
//
// readdir(3) skips an entry that is renamed within the directory if it passes the new name before
// the rename and the old name after it. So a feed whose directories changed is read again, up to
// mostReadings times, and List returns the entries of all readings; the last reading that has an
// entry decides where it is. If strict is true, List reads until successive readings agree, and
// returns the last one.
func (d *Dir) List(ctx context.Context, feed string, strict bool) (Listing, error) {
	var all, last Listing
	agreed := 0 // number of last readings that had the same entries as the one before
	pause := time.Millisecond
	for n := 0; ; n++ {
		if n >= mostReadings {
			if err := d.Sleep(ctx, pause); err != nil {
				return all, err
			}
			pause = min(2*pause, strictPause)
		}
		rule := d.Stamps
		rule.Shared = d.shared()
		reading := rule.Begin(unix.AT_FDCWD, nil, d.Join("new", feed), d.Join("cur", feed))
		read, err := d.readOnce(feed)
		whole := stamp.Whole(reading.End())
		if agreed++; n == 0 || !sameEntries(last.Names, read.Names) {
			agreed = 0
		}
		all, last = Listing{unite(all.Names, read.Names), read.Bad}, read
		// Two readings miss the same entry only if it is renamed during both.
		settled := agreed == 1 && !reading.Changed || agreed == 2
		switch {
		case err != nil, !strict && (whole || settled || n+1 == mostReadings):
			return all, err
		case strict && settled:
			return read, nil
		case n+1 == strictReadings:
			return all, fmt.Errorf("new/%s and cur/%[1]s cannot be listed reliably: other programs keep changing them;"+
				" try again later", feed)
		}
	}
}

// readOnce reads new/$feed and cur/$feed once. If a unique name is in both places, it keeps
// the one in cur/.
func (d *Dir) readOnce(feed string) (l Listing, err error) {
	// new/ is read first: an entry that a viewer takes meanwhile is then seen twice, not missed.
	err = errors.Join(d.readInto(feed, false, &l), d.readInto(feed, true, &l))
	entryname.Sort(l.Names)
	out := l.Names[:0]
	for i, n := range l.Names {
		if i+1 < len(l.Names) && l.Names[i+1].Unique == n.Unique {
			continue
		}
		out = append(out, n)
	}
	l.Names = out
	return l, err
}

// sameEntries reports whether two readings have the same entries; their places and flags may
// differ.
func sameEntries(a, b []entryname.Name) bool {
	return slices.EqualFunc(a, b, func(x, y entryname.Name) bool { return x.Unique == y.Unique })
}

// unite returns the entries of the last reading, and those that only earlier readings have.
func unite(earlier, last []entryname.Name) []entryname.Name {
	if len(earlier) == 0 {
		return last
	}
	in := make(map[string]struct{}, len(last))
	for _, n := range last {
		in[n.Unique] = struct{}{}
	}
	all := slices.Clone(last)
	for _, n := range earlier {
		if _, ok := in[n.Unique]; !ok {
			all = append(all, n)
		}
	}
	entryname.Sort(all)
	return all
}

// ReadPlace reads new/$feed or cur/$feed once, and returns its entries unsorted.
func (d *Dir) ReadPlace(feed string, cur bool) (Listing, error) {
	var l Listing
	err := d.readInto(feed, cur, &l)
	return l, err
}

// readInto reads new/$feed or cur/$feed once, and adds its entries to l.
func (d *Dir) readInto(feed string, cur bool, l *Listing) error {
	rel := entryname.Place(cur) + "/" + feed
	path := d.Join(rel)
	f, err := atomicfile.Optional(open(path))
	if f == nil {
		return err
	}
	defer f.Close()
	ents, err := atomicfile.Optional(d.ReadDir(f)) // it may be removed while it is read
	l.Names = slices.Grow(l.Names, len(ents))
	for _, e := range ents {
		base := e.Name()
		if strings.HasPrefix(base, ".") {
			continue
		}
		n, reason := entryname.Parse(base, cur)
		if e.Type().IsRegular() {
			reason = "it is a file, not a directory"
		}
		if reason != "" {
			l.Bad = append(l.Bad, BadName{rel + "/" + base, reason})
			continue
		}
		if !entryname.Timed(n.Unique) {
			n.Mtime = Mtime(path+"/"+base, n.Unique)
		}
		l.Names = append(l.Names, n)
	}
	return err
}

// Mtime returns the mtime of an entry's directory, in seconds since 1970, if its unique name has
// no time: [entryname.Name.Mtime]. It is 0 for a directory that is gone.
func Mtime(path, unique string) int64 {
	if entryname.Timed(unique) {
		return 0
	}
	fi, err := Lstat(path)
	if err != nil {
		return 0
	}
	return fi.ModTime().Unix()
}

// readEntries reads the rest of a directory.
func readEntries(f *os.File) ([]os.DirEntry, error) { return f.ReadDir(-1) }
