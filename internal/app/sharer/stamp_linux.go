package sharer

import (
	"cmp"
	"fmt"
	"syscall"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// changeTime is the time of the last change of an inode, renames included.
func changeTime(st *syscall.Stat_t) string { return fmt.Sprintf("%d.%d", st.Ctim.Sec, st.Ctim.Nsec) }

// bootID identifies the current boot of the machine, "-" if that is unknown.
func bootID() string { return cmp.Or(atomicfile.BootID(), "-") }
