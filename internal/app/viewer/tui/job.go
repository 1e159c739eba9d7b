package tui

import "context"

// jobState is the state of a job.
type jobState uint8

const (
	idle    jobState = iota
	running          // its result is awaited
	stale            // it still runs, but its result is dropped
)

// job is background work of which one request runs at a time. R is the type of a request.
type job[R any] struct {
	state  jobState
	id     int // number of the latest request that began
	cancel context.CancelFunc
	next   *R // request that begins when none runs
}

// replace cancels the running request and requests r.
func (j *job[R]) replace(r R) {
	j.abandon()
	j.next = &r
}

// abandon cancels the running request, and its result is dropped.
func (j *job[R]) abandon() {
	if j.state == running {
		j.cancel()
		j.state = stale
	}
}

// begin starts the next request and returns it, nil if one is running or there is none. The
// result must carry the id.
func (j *job[R]) begin(ctx context.Context) (inner context.Context, r *R, id int) {
	if j.state != idle || j.next == nil {
		return nil, nil, 0
	}
	r, j.next = j.next, nil
	j.state = running
	j.id++
	inner, j.cancel = context.WithCancel(ctx)
	return inner, r, j.id
}

// awaits reports whether a result with this id is awaited.
func (j *job[R]) awaits(id int) bool { return j.state == running && id == j.id }

// end makes the job idle, and cancels the request if it still runs.
func (j *job[R]) end() {
	if j.cancel != nil {
		j.cancel()
	}
	j.state = idle
}
