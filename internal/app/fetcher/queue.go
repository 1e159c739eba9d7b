package fetcher

import (
	"context"
	"sync"
	"time"
)

// queue hands out tasks so that workers are not held up by one host: of a host
// at most perHost tasks are out at a time, and the hosts take turns. A feed is
// in the queue once.
type queue struct {
	perHost int

	mu     sync.Mutex
	cond   *sync.Cond
	hosts  map[string]*hostQueue
	ready  []*hostQueue // with tasks, and fewer than perHost out
	queued map[string]bool
	out    map[string]bool // handed out, not done yet
	again  map[string]task // added while out
	left   int             // queued or out
	coming int             // of these, may still have something to commit
	closed bool
}

type hostQueue struct {
	tasks  []task
	active int
	ready  bool
}

// task is a feed to fetch.
type task struct {
	hash, url, host string
	force           bool      // due or not
	named           bool      // by the user: a failure is his business
	quiet           bool      // the caller reports failures
	marked          bool      // somebody left a due marker
	last            bool      // of its host that is queued
	history         bool      // all its archives are wanted
	fullText        bool      // pages of entries that were delivered without are wanted
	began           time.Time // result.began of the visit before its walk
	pages           int       // so many of its pages are wanted, or AllPages; 0 for none
}

func newQueue(perHost int) *queue {
	q := &queue{perHost: max(perHost, 1), hosts: map[string]*hostQueue{}, queued: map[string]bool{}, out: map[string]bool{}, again: map[string]task{}}
	q.cond = sync.NewCond(&q.mu)
	return q
}

// add queues a task. One whose feed is queued already is not added; one whose
// feed is being fetched just now follows after that if somebody left a marker
// meanwhile, and is not added otherwise.
func (q *queue) add(t task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.push(t)
}

func (q *queue) push(t task) bool {
	switch {
	case q.closed || q.queued[t.hash]:
		return false
	case q.out[t.hash]:
		if t.marked {
			q.again[t.hash] = t
		}
		return false
	}
	q.queued[t.hash] = true
	q.left++
	q.coming++
	h := q.hosts[t.host]
	if h == nil {
		h = &hostQueue{}
		q.hosts[t.host] = h
	}
	h.tasks = append(h.tasks, t)
	q.wake(h)
	return true
}

// wake puts a host that can do with another worker into the ready list.
func (q *queue) wake(h *hostQueue) {
	if !h.ready && len(h.tasks) > 0 && h.active < q.perHost {
		h.ready = true
		q.ready = append(q.ready, h)
		q.cond.Signal()
	}
}

// next waits for a task. It gives none when the queue is closed, or (once) all
// tasks are done.
func (q *queue) next(once bool) (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed || once && q.left == 0 {
			return task{}, false
		}
		if len(q.ready) > 0 {
			h := q.ready[0]
			q.ready = q.ready[1:]
			h.ready = false
			t := h.tasks[0]
			h.tasks = h.tasks[1:]
			h.active++
			t.last = len(h.tasks) == 0
			delete(q.queued, t.hash)
			q.out[t.hash] = true
			q.wake(h)
			return t, true
		}
		q.cond.Wait()
	}
}

// freed tells that the request of a task is over, whatever else is to be done.
func (q *queue) freed(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[t.host]
	h.active--
	if h.active == 0 && len(h.tasks) == 0 {
		delete(q.hosts, t.host)
		return
	}
	q.wake(h)
}

// submitted tells that a task has committed what it will, or never will. It
// reports whether that was the last one: nobody else will share the commit.
func (q *queue) submitted() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.coming--
	return q.coming == 0
}

// done tells that a task is over.
func (q *queue) done(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.out, t.hash)
	q.left--
	if again, ok := q.again[t.hash]; ok {
		delete(q.again, t.hash)
		q.push(again)
	}
	if q.left == 0 {
		q.cond.Broadcast()
	}
}

// close ends the queue: next gives no more tasks.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.cond.Broadcast()
}

// closeAt closes the queue when ctx ends.
func (q *queue) closeAt(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, q.close)
}

// busy reports whether a feed is queued or being fetched.
func (q *queue) busy(hash string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued[hash] || q.out[hash]
}
