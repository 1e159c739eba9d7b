//go:build !linux

package viewer

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// bootID tells one running of the machine from another: when that began. What a file
// had when the power failed is not known; without an id no file is gone on with.
func bootID() string {
	data, _ := unix.SysctlRaw("kern.boottime")
	return hex.EncodeToString(data)
}
