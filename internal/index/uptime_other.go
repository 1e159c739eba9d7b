//go:build !linux

package index

import "time"

// upTime is unknown: other systems set the clock by which they tell since when they run.
func upTime() (time.Duration, bool) { return 0, false }
