//go:build !linux

package atomicfile

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// BootID returns the time of the current boot of the machine, or "" if it is unknown. After a
// power failure, the contents of unsynced files are unknown.
func BootID() string {
	data, _ := unix.SysctlRaw("kern.boottime")
	return hex.EncodeToString(data)
}
