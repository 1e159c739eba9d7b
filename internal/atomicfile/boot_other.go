//go:build !linux

package atomicfile

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// BootID identifies the current boot of the machine by the time at which it began: the
// contents that a file had before a power failure are unknown after it. It is "" if the
// system has no such time.
func BootID() string {
	data, _ := unix.SysctlRaw("kern.boottime")
	return hex.EncodeToString(data)
}
