package part

import "context"

// Job is background work of which one request runs at a time. R is the type of a request.
type Job[R any] struct {
	ID     int  // number of the latest request that began
	Next   *R   // request that begins when none runs
	Runs   bool // a request runs, also if its result is dropped
	cancel context.CancelFunc
}

// Abandon cancels the running request, so that its result is dropped.
func (j *Job[R]) Abandon() {
	if j.Runs {
		j.cancel()
	}
}

// Begin starts the next request and returns it, nil if one is running or there is none. The
// result is awaited until inner ends.
func (j *Job[R]) Begin(ctx context.Context) (inner context.Context, r *R) {
	if j.Runs || j.Next == nil {
		return nil, nil
	}
	r, j.Next, j.Runs = j.Next, nil, true
	j.ID++
	inner, j.cancel = context.WithCancel(ctx)
	return inner, r
}

// End makes the job idle, and cancels the request if it still runs.
func (j *Job[R]) End() {
	if j.cancel != nil {
		j.cancel()
	}
	j.Runs = false
}
