package fetcher

import (
	"errors"
	"slices"
	"sync"
	"syscall"
)

// diskErrors are the errors that affect all feeds at once.
var diskErrors = [...]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}

// disk collects failures with one cause for all feeds, so that the user reads one message instead
// of one for each feed.
type disk struct {
	mu     sync.Mutex
	failed [len(diskErrors)][]error // by their cause
}

// add records a failure of a feed if its cause is one of diskErrors, and reports whether it is.
func (d *disk) add(err error) bool {
	i := slices.IndexFunc(diskErrors[:], func(errno syscall.Errno) bool { return errors.Is(err, errno) })
	if i < 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed[i] = append(d.failed[i], err)
	return true
}

// report reports the recorded failures: a single one in full, several as their number.
func (d *disk) report(dir string, report Reporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, failed := range d.failed {
		switch len(failed) {
		case 0:
		case 1:
			report.Error("%v", failed[0])
		default:
			report.Error("%s: %v: %d feeds could not be stored in full; missing entries are fetched again", dir,
				diskErrors[i], len(failed))
		}
	}
	clear(d.failed[:])
}
