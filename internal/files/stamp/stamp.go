// Package stamp tells states of directories and files apart by what stat(2) says about them, so
// that an unchanged directory need not be read again. A [Rule] decides which stamps are remembered.
package stamp

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp identifies the state of a directory, or of a file that is replaced as a whole, when it was
// read: device, inode, mtime, ctime, size and number of links. The empty stamp matches none: its
// directory or file is read again.
type Stamp string

// Absent is the stamp of a missing directory or file.
const Absent Stamp = "-"

// Times of files have the steps of the kernel's clock, a few milliseconds, and on some
// file systems whole seconds. Two changes within one step look alike, so
// a stamp younger than a step, or in the future, is not trusted.
const (
	fineStep   = 100 * time.Millisecond
	coarseStep = 2100 * time.Millisecond
)

const size = 48

// like returns the stamp of a file or directory; it is known, without an allocation, if that is equal.
func like(st *unix.Stat_t, known Stamp) Stamp {
	var b [size]byte
	for i, n := range [size / 8]int64{
		int64(st.Dev), int64(st.Ino), unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim), int64(st.Size),
		int64(st.Nlink),
	} {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(n))
	}
	if string(b[:]) == string(known) {
		return known
	}
	return Stamp(b[:])
}

// Times are the mtime and ctime of a file; zero if it does not exist.
type Times struct{ Mtime, Ctime unix.Timespec }

// Look returns the stamp of a path relative to the directory that is open as at. Below a
// directory that could not be opened nothing is there.
func Look(at int, path string) (Stamp, Times) { return LookAgain(at, path, "") }

// LookAgain is Look, which mostly returns known, then without an allocation.
func LookAgain(at int, path string, known Stamp) (Stamp, Times) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, path, &st, 0); err != nil {
		if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.EBADF {
			return Absent, Times{}
		}
		return "", Times{}
	}
	return like(&st, known), Times{st.Mtim, st.Ctim}
}

// Rule decides which stamps are remembered: those of which any later change shows. For what a
// reading has found, the stamps must be the same before and after it, and so old at the moment
// before the first look that a change since then gets other times.
type Rule struct {
	// Clock is that of the file system (default [time.Now]).
	Clock func() time.Time
	// Shared is set if other machines write to the file system. Times and names may then be cached, each
	// for a time of its own, so that no stamp is remembered.
	Shared bool
	// Step replaces the steps of clocks, in tests that do not wait for them.
	Step time.Duration
}

// Moment is when something was looked at, by two clocks: that of the file system, and the one by
// which the kernel stamps files of this machine, if the other is not that.
type Moment struct {
	rule          Rule
	clock, kernel time.Time
}

// Now returns the present moment. Call it before you look.
func (r Rule) Now() Moment {
	now := time.Now()
	if r.Clock == nil {
		return Moment{r, now, now}
	}
	return Moment{r, r.Clock(), now}
}

// Reliable reports whether what was looked at then, and had such times, can be relied on:
// its last change is longer ago than a step of the clock of its file system. Any change
// sets the ctime, which nobody else can set.
func (m Moment) Reliable(t Times) bool {
	step := fineStep
	if t.Ctime.Nsec == 0 || t.Mtime.Nsec == 0 {
		step = coarseStep
	}
	if m.rule.Step != 0 {
		step = m.rule.Step
	}
	at := time.Unix(t.Ctime.Unix())
	return m.clock.Sub(at) > step && m.kernel.Sub(at) > step
}

// Reading is a reading of directories and files, such as those of a feed.
type Reading struct {
	// Before has the stamp of each path as it was before the reading.
	Before []Stamp
	// Changed reports, after End, whether a path looked different then.
	Changed bool

	then  Moment
	times []Times
	at    int
	paths []string
}

// Begin looks at paths relative to the directory that is open as at, before they are read. known has
// the stamps that are remembered of them, or is nil.
func (r Rule) Begin(at int, known []Stamp, paths ...string) *Reading {
	b := &Reading{Before: make([]Stamp, len(paths)), then: r.Now(), times: make([]Times, len(paths)), at: at,
		paths: paths}
	copy(b.Before, known)
	for i, path := range paths {
		b.Before[i], b.times[i] = LookAgain(at, path, b.Before[i])
	}
	return b
}

// Needed reports whether any path must be read, since it is not as it was when known was remembered.
func (b *Reading) Needed(known []Stamp) bool {
	for i, s := range b.Before {
		if b.then.rule.Shared || s == "" || i >= len(known) || s != known[i] {
			return true
		}
	}
	return false
}

// End looks again after the reading. It returns the stamps to remember, of which those of paths that
// may have changed meanwhile, or may yet change without a trace, are empty.
func (b *Reading) End() []Stamp {
	kept := make([]Stamp, len(b.paths))
	for i, path := range b.paths {
		after, _ := LookAgain(b.at, path, b.Before[i])
		b.Changed = b.Changed || after != b.Before[i]
		if after == b.Before[i] && !b.then.rule.Shared && (after == Absent || b.then.Reliable(b.times[i])) {
			kept[i] = after
		}
	}
	return kept
}

// Whole reports whether nothing changed during a reading that returned these stamps.
func Whole(kept []Stamp) bool {
	return !slices.Contains(kept, "")
}
