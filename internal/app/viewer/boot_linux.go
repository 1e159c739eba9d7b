package viewer

import "github.com/lektordir/lektor/internal/atomicfile"

// bootID tells one running of the machine from another. What a file had when the power
// failed is not known; without an id no file is gone on with.
func bootID() string {
	id, _ := atomicfile.Line("/proc/sys/kernel/random/boot_id")
	return id
}
