package viewer

import (
	"errors"
	"syscall"

	"github.com/lektordir/lektor/internal/units"
)

// oneCause are errors that all entries meet which are to be moved.
var oneCause = []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM}

// failures count entries that could not be moved for a cause that was told.
type failures map[syscall.Errno]int

// failed reports that an entry could not be moved. What all meet, as on a disk that
// is read-only, is told of the first, and of the others by [viewer.tellFailed].
func (v *viewer) failed(err error) {
	for _, errno := range oneCause {
		if !errors.Is(err, errno) {
			continue
		}
		if v.failures == nil {
			v.failures = failures{}
		}
		if v.failures[errno]++; v.failures[errno] > 1 {
			return
		}
	}
	v.S.Report.Print(err)
}

// tellFailed tells of how many entries besides the first nothing was said.
func (v *viewer) tellFailed() {
	for _, errno := range oneCause {
		if n := v.failures[errno] - 1; n > 0 {
			v.S.Report.Error("%s could not be moved: %v", units.Count(n, "more entry"), errno)
		}
	}
	v.failures = nil
}
