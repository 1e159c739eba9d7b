package fetcher

import (
	"errors"
	"sync"
	"syscall"
)

// diskErrors are the errors that affect all feeds at once.
var diskErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}

// disk collects failures with one cause for all feeds, so that the user reads one message instead
// of one for each feed.
type disk struct {
	mu     sync.Mutex
	failed map[syscall.Errno][]error
}

// add records a failure of a feed if its cause is one of diskErrors, and reports whether it is.
func (d *disk) add(err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, errno := range diskErrors {
		if errors.Is(err, errno) {
			if d.failed == nil {
				d.failed = map[syscall.Errno][]error{}
			}
			d.failed[errno] = append(d.failed[errno], err)
			return true
		}
	}
	return false
}

// report reports the recorded failures: a single one in full, several as their number.
func (d *disk) report(dir string, report Reporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, errno := range diskErrors {
		switch failed := d.failed[errno]; len(failed) {
		case 0:
		case 1:
			report.Error("%v", failed[0])
		default:
			report.Error("%s: %v: %d feeds could not be stored in full; missing entries are fetched again", dir, errno,
				len(failed))
		}
	}
	d.failed = nil
}
