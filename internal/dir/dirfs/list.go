package dirfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
)

// Listing holds the names of a feed's entries.
type Listing struct {
	Names []entryname.Name // sorted, see [entryname.Sort]
	Bad   []BadName
}

// BadName is a name in new/ or cur/ that is not that of an entry.
type BadName struct {
	Path   string // relative to the lektor-dir
	Reason string
}

// UnsettledError is the error of a strict listing whose readings do not agree, because other
// programs keep changing the feed's directories.
type UnsettledError struct{ Feed string }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("new/%s and cur/%[1]s cannot be listed reliably: other programs keep changing them; try again later", e.Feed)
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
		read, change, err := d.readOnce(feed)
		if agreed++; n == 0 || !sameEntries(last.Names, read.Names) {
			agreed = 0
		}
		all, last = Listing{unite(all.Names, read.Names), read.Bad}, read
		// Two readings miss the same entry only if it is renamed during both.
		settled := agreed == 1 && change != changed || agreed == 2
		switch {
		case err != nil, !strict && (change == unchanged || settled || n+1 == mostReadings):
			return all, err
		case strict && settled:
			return read, nil
		case n+1 == strictReadings:
			return all, &UnsettledError{feed}
		}
	}
}

// change says whether directories changed while they were read.
type change uint8

const (
	unchanged      change = iota // no entry is missing
	maybeUnchanged               // the mtime is the same, but too recent, or it may be cached
	changed
)

// readOnce reads new/$feed and cur/$feed once. If a unique name is in both places, it keeps
// the one in cur/.
func (d *Dir) readOnce(feed string) (l Listing, c change, err error) {
	// new/ is read first: an entry that a viewer takes meanwhile is then seen twice, not missed.
	var looks [2]look
	for i, cur := range []bool{false, true} {
		var lerr error
		looks[i], lerr = d.lookInto(feed, cur, &l)
		err = errors.Join(err, lerr)
	}
	entryname.Sort(l.Names)
	out := l.Names[:0]
	for i, n := range l.Names {
		if i+1 < len(l.Names) && l.Names[i+1].Unique == n.Unique {
			continue
		}
		out = append(out, n)
	}
	l.Names = out
	// Both are checked after both were read, because an entry may move from one to the other.
	if d.shared() {
		c = maybeUnchanged // mtimes may be cached
	}
	for _, l := range looks {
		c = max(c, l.change())
		l.close()
	}
	return l, c, err
}

// look is a directory that is being read.
type look struct {
	path  string
	f     *os.File  // nil if the directory does not exist
	mtime time.Time // before reading
	sure  bool      // mtime is so old that any later change sets another mtime
}

// Two changes within one tick of a file system's clock have the same mtime. A tick is that of the
// kernel, or two seconds on old file systems.
const (
	fineTick   = 10 * time.Millisecond
	coarseTick = 2*time.Second + fineTick
)

// begin records the directory's mtime.
func (l *look) begin() {
	now := time.Now() // not Options.Now, because the real clock stamps files
	fi, err := l.f.Stat()
	if err != nil {
		return
	}
	l.mtime = fi.ModTime()
	tick := fineTick
	if l.mtime.Nanosecond() == 0 {
		tick = coarseTick
	}
	l.sure = now.Sub(l.mtime) > tick
}

// change compares the directory's mtime with that of begin.
func (l *look) change() change {
	same := false
	if l.f == nil {
		_, err := Lstat(l.path)
		same = isNotExist(err)
	} else if fi, err := l.f.Stat(); err == nil {
		same = fi.ModTime().Equal(l.mtime)
	}
	switch {
	case !same:
		return changed
	case !l.sure:
		return maybeUnchanged
	}
	return unchanged
}

func (l *look) close() {
	if l.f != nil {
		l.f.Close()
	}
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
	look, err := d.lookInto(feed, cur, &l)
	look.close()
	return l, err
}

// lookInto reads new/$feed or cur/$feed once, and adds its entries to l. The caller must close
// the look.
func (d *Dir) lookInto(feed string, cur bool, l *Listing) (look, error) {
	rel := "new/" + feed
	if cur {
		rel = "cur/" + feed
	}
	at := look{path: d.Join(rel)}
	f, err := open(at.path)
	if err != nil {
		if isNotExist(err) {
			at.sure, err = true, nil
		}
		return at, err
	}
	at.f = f
	at.begin()
	ents, err := d.ReadDir(f)
	if isNotExist(err) {
		at.sure, err = false, nil // removed while it was read
	}
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
			n.Mtime = Mtime(at.path+"/"+base, n.Unique)
		}
		l.Names = append(l.Names, n)
	}
	return at, err
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
