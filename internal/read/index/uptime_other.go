//go:build !linux

package index

import "time"

// upTime returns false, for unknown: other systems compute it from a clock that can be set.
func upTime() (time.Duration, bool) { return 0, false }
