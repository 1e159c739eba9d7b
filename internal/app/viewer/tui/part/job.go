package part

import "context"

// jobState is the state of a job.
type jobState uint8

const (
	idle    jobState = iota
	running          // its result is awaited
	stale            // it still runs, but its result is dropped
)

// Job is background work of which one request runs at a time. R is the type of a request.
type Job[R any] struct {
	state  jobState
	ID     int // number of the latest request that began
	cancel context.CancelFunc
	Next   *R // request that begins when none runs
}

// Replace cancels the running request and requests r.
func (j *Job[R]) Replace(r R) {
	j.Abandon()
	j.Next = &r
}

// Abandon cancels the running request, and its result is dropped.
func (j *Job[R]) Abandon() {
	if j.state == running {
		j.cancel()
		j.state = stale
	}
}

// Begin starts the next request and returns it, nil if one is running or there is none. The
// result must carry the id.
func (j *Job[R]) Begin(ctx context.Context) (inner context.Context, r *R, id int) {
	if j.state != idle || j.Next == nil {
		return nil, nil, 0
	}
	r, j.Next = j.Next, nil
	j.state = running
	j.ID++
	inner, j.cancel = context.WithCancel(ctx)
	return inner, r, j.ID
}

// Awaits reports whether a result with this id is awaited.
func (j *Job[R]) Awaits(id int) bool { return j.state == running && id == j.ID }

// End makes the job idle, and cancels the request if it still runs.
func (j *Job[R]) End() {
	if j.cancel != nil {
		j.cancel()
	}
	j.state = idle
}

// Runs reports whether a request runs, also if its result is dropped.
func (j *Job[R]) Runs() bool { return j.state != idle }

// Idle reports whether no request runs or waits.
func (j *Job[R]) Idle() bool { return j.state == idle && j.Next == nil }
