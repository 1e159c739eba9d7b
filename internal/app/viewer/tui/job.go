package tui

import "context"

// jobState says what a job does.
type jobState uint8

const (
	idle    jobState = iota
	running          // its answer is awaited
	stale            // it still runs, but its answer is dropped
)

// job is work beside the screen, of which one request runs at a time. R is a request.
type job[R any] struct {
	state  jobState
	id     int // of the latest request that began
	cancel context.CancelFunc
	next   *R // begins when none runs
}

// replace asks for r instead of the request that runs.
func (j *job[R]) replace(r R) {
	if j.state == running {
		j.cancel()
		j.state = stale
	}
	j.next = &r
}

// begin returns the request that begins now, nil if one runs or none is wanted. Its answer
// must carry the id.
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

// awaits reports whether an answer with this id is awaited.
func (j *job[R]) awaits(id int) bool { return j.state == running && id == j.id }

// end makes the job idle: its request has ended, or another one need not wait for it.
func (j *job[R]) end() {
	if j.cancel != nil {
		j.cancel()
	}
	j.state = idle
}
