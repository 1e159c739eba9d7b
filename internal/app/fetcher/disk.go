package fetcher

import (
	"errors"
	"slices"
	"sync"
	"syscall"
)

// diskErrors are what befalls all feeds at once.
var diskErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}

// disk gathers the failures that have one cause for all feeds, so that the user is told
// once and not for each of them.
type disk struct {
	mu     sync.Mutex
	failed map[syscall.Errno][]error
}

// add takes a failure of a feed, and reports whether it has such a cause.
func (d *disk) add(err error) bool {
	i := slices.IndexFunc(diskErrors, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
	if i < 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = map[syscall.Errno][]error{}
	}
	d.failed[diskErrors[i]] = append(d.failed[diskErrors[i]], err)
	return true
}

// tell reports what was gathered: of one feed what went wrong, of more how many
// there are.
func (d *disk) tell(dir string, report Reporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, errno := range diskErrors {
		switch failed := d.failed[errno]; len(failed) {
		case 0:
		case 1:
			report.Error("%v", failed[0])
		default:
			report.Error("%s: %v: of %d feeds not everything could be stored; what is missing is fetched again", dir, errno, len(failed))
		}
	}
	d.failed = nil
}
