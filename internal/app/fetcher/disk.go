package fetcher

import (
	"errors"
	"sync"
	"syscall"
)

// diskErrors are what befalls all feeds at once.
var diskErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}

// disk gathers the failures that have one cause for all feeds, so that it is told
// once and not for each of them.
type disk struct {
	mu    sync.Mutex
	feeds map[syscall.Errno]int
	first map[syscall.Errno]error
}

// add takes a failure of a feed, and reports whether it is such a one.
func (d *disk) add(err error) bool {
	for _, errno := range diskErrors {
		if !errors.Is(err, errno) {
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.feeds == nil {
			d.feeds, d.first = map[syscall.Errno]int{}, map[syscall.Errno]error{}
		}
		if d.feeds[errno]++; d.feeds[errno] == 1 {
			d.first[errno] = err
		}
		return true
	}
	return false
}

// tell reports what was gathered: of one feed what went wrong, of more how many
// there are.
func (d *disk) tell(dir string, report Reporter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, errno := range diskErrors {
		switch n := d.feeds[errno]; n {
		case 0:
		case 1:
			report.Error("%v", d.first[errno])
		default:
			report.Error("%s: %v: of %d feeds nothing could be stored; what is new in them is fetched again", dir, errno, n)
		}
	}
	d.feeds, d.first = nil, nil
}
