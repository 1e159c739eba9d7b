package limiter

import "time"

// Backoff is a schedule of waits after failures in a row. The zero value waits only as long
// as a server asks.
type Backoff struct {
	Base time.Duration // after the first failure; doubled after each further one
	Cap  time.Duration // maximum, before Jitter; a larger Base counts as Cap

	// Steps, if set, replace Base and Cap: the wait after each failure. After the last
	// step, its wait is repeated; a caller that wants to stop there calls [Backoff.Over].
	Steps []time.Duration

	// Jitter is the random part of a wait: 0 to Jitter times the wait is added, or
	// subtracted if Jitter is negative.
	Jitter float64
}

// Wait returns the wait after a number of failures in a row, at least retryAfter, the pause
// that a server asked for (0 for none). random is a number in [0, 1). Without a failure,
// the wait is retryAfter.
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

// Over reports whether there are more failures than steps.
func (b Backoff) Over(failures int) bool { return failures > len(b.Steps) }
