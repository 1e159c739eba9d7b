package index

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// stamp identifies the state of a directory, or of a file that is replaced as a whole, when it was
// read: device, inode, mtime, ctime, size and number of links. The empty stamp matches none: its
// directory or file is read again.
type stamp string

// absent is the stamp of a missing directory or file.
const absent stamp = "-"

// Times of files have the steps of the kernel's clock, a few milliseconds, and on some
// file systems whole seconds. Two changes within one step look alike, so
// a stamp younger than a step, or in the future, is not trusted.
const (
	fineStep   = 100 * time.Millisecond
	coarseStep = 2100 * time.Millisecond
)

const stampSize = 48

func stampOf(st *unix.Stat_t) stamp { return stampLike(st, "") }

// stampLike is stampOf without an allocation if the result equals known, as it mostly does.
func stampLike(st *unix.Stat_t, known stamp) stamp {
	var b [stampSize]byte
	for i, n := range [stampSize / 8]int64{
		int64(st.Dev), int64(st.Ino), unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim), int64(st.Size), int64(st.Nlink),
	} {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(n))
	}
	if string(b[:]) == string(known) {
		return known
	}
	return stamp(b[:])
}

// times are the mtime and ctime of a file; zero if it does not exist.
type times struct{ mtime, ctime unix.Timespec }

func timesOf(st *unix.Stat_t) times { return times{st.Mtim, st.Ctim} }

// look returns the stamp of a path relative to the directory that is open as at. Below a
// directory that could not be opened nothing is there.
func look(at int, path string) (stamp, times) { return lookAgain(at, path, "") }

// lookAgain is look, which mostly returns known, then without an allocation.
func lookAgain(at int, path string, known stamp) (stamp, times) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, path, &st, 0); err != nil {
		if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.EBADF {
			return absent, times{}
		}
		return "", times{}
	}
	return stampLike(&st, known), timesOf(&st)
}

// moment is when something was looked at, by two clocks: that of Options, and the one by
// which the kernel stamps files of this machine, if the other is not that.
type moment struct{ clock, kernel time.Time }

// now returns the current moment. Call it before reading stamps.
func (x *Index) now() moment { return moment{x.o.Clock(), time.Now()} }

// settled reports whether what was looked at then, and had such times, can be relied on:
// its last change is longer ago than a step of the clock of its file system. Any change
// sets the ctime, which nobody else can set.
func (m moment) settled(t times) bool {
	step := fineStep
	if t.ctime.Nsec == 0 || t.mtime.Nsec == 0 {
		step = coarseStep
	}
	at := time.Unix(t.ctime.Unix())
	return m.clock.Sub(at) > step && m.kernel.Sub(at) > step
}

// settled returns the stamp if what was looked at then can be relied on.
func settled(s stamp, t times, then moment) stamp {
	if t == (times{}) || then.settled(t) {
		return s
	}
	return ""
}
