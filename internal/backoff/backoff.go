// Package backoff computes how long to wait before something that failed is tried again.
package backoff

import "time"

// Backoff is a schedule of waits after failures in a row. The zero value waits only for
// as long as a server asks.
type Backoff struct {
	Base time.Duration // after the first failure; each further one doubles it
	Cap  time.Duration // the most, before Jitter; a Base above it is the Cap

	// Steps replace Base and Cap where they are set: the wait after each failure. After
	// the last step the wait is that of the last step; a caller that gives up then asks
	// [Backoff.Over].
	Steps []time.Duration

	// Jitter is the part of a wait that is random: from 0 to Jitter times the wait is
	// added, or taken away if Jitter is negative.
	Jitter float64
}

// Wait returns the wait after failures failures in a row, at least retryAfter, which is
// the pause that a server asked for (0 for none). random is a number in [0, 1). Without a
// failure the wait is retryAfter.
func (b Backoff) Wait(failures int, random float64, retryAfter time.Duration) time.Duration {
	if failures < 1 {
		return retryAfter
	}
	d := b.wait(failures)
	return max(d+time.Duration(random*b.Jitter*float64(d)), retryAfter)
}

func (b Backoff) wait(failures int) time.Duration {
	if n := len(b.Steps); n > 0 {
		return b.Steps[min(failures, n)-1]
	}
	d := b.Base
	for range failures - 1 {
		if d *= 2; d >= b.Cap {
			return max(b.Base, b.Cap)
		}
	}
	return d
}

// Over reports whether there is no step after this many failures.
func (b Backoff) Over(failures int) bool { return failures > len(b.Steps) }
