// Package stamp tells states of directories and files apart by what stat(2) says about them, so
// that an unchanged directory need not be read again.
package stamp

import (
	"encoding/binary"
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

// From returns the stamp of a file or directory, from stat(2).
func From(st *unix.Stat_t) Stamp { return like(st, "") }

// like is From without an allocation if the result equals known, as it mostly does.
func like(st *unix.Stat_t, known Stamp) Stamp {
	var b [size]byte
	for i, n := range [size / 8]int64{
		int64(st.Dev), int64(st.Ino), unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim), int64(st.Size), int64(st.Nlink),
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

// TimesOf returns the times of what was looked at.
func TimesOf(st *unix.Stat_t) Times { return Times{st.Mtim, st.Ctim} }

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
	return like(&st, known), TimesOf(&st)
}

// Moment is when something was looked at, by two clocks: that of the file system, and the one by
// which the kernel stamps files of this machine, if the other is not that.
type Moment struct{ Clock, Kernel time.Time }

// Now returns the current moment, by a clock of the file system. Call it before you look.
func Now(clock func() time.Time) Moment { return Moment{clock(), time.Now()} }

// Settled reports whether what was looked at then, and had such times, can be relied on:
// its last change is longer ago than a step of the clock of its file system. Any change
// sets the ctime, which nobody else can set.
func (m Moment) Settled(t Times) bool {
	step := fineStep
	if t.Ctime.Nsec == 0 || t.Mtime.Nsec == 0 {
		step = coarseStep
	}
	at := time.Unix(t.Ctime.Unix())
	return m.Clock.Sub(at) > step && m.Kernel.Sub(at) > step
}

// Settled returns the stamp if what was looked at then can be relied on.
func Settled(s Stamp, t Times, then Moment) Stamp {
	if t == (Times{}) || then.Settled(t) {
		return s
	}
	return ""
}
