package index

import (
	"time"

	"golang.org/x/sys/unix"
)

// upTime is how long the machine has been running, by a clock that nobody sets.
func upTime() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano()), err == nil
}
