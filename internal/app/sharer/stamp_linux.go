package sharer

import (
	"fmt"
	"syscall"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// changeTime is the time of the last change of an inode, renames included.
func changeTime(st *syscall.Stat_t) string { return fmt.Sprintf("%d.%d", st.Ctim.Sec, st.Ctim.Nsec) }

// bootID tells one running of the machine from another.
func bootID() string {
	id, err := atomicfile.Line("/proc/sys/kernel/random/boot_id")
	if err != nil || id == "" {
		return "-"
	}
	return id
}
