package fetcher

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/limiter"
)

// queue fetches feeds, each in a goroutine of its own. Hosts take turns, so that no host
// holds up the others: [fetch.Config].PerHost feeds of a host are asked for at once, and
// [Options].Jobs feeds are fetched at once. A feed is in the queue once.
type queue struct {
	r      *Runner
	ctx    context.Context
	hosts  *limiter.Limiter // until the request is over
	jobs   *semaphore.Weighted
	coming atomic.Int64 // feeds that may still have something to commit
	group  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]int   // feeds of each host that wait for their turn
	feeds   map[string]*task // those in the queue; not nil: to be fetched once more
}

func (r *Runner) newQueue(ctx context.Context) *queue {
	return &queue{
		r: r, ctx: ctx,
		hosts:   limiter.New(limiter.Options{All: limiter.Unlimited, Each: max(r.opts.Fetch.PerHost, 1)}),
		jobs:    semaphore.NewWeighted(int64(r.opts.Jobs)),
		waiting: map[string]int{}, feeds: map[string]*task{},
	}
}

// add queues feeds. done is called when the visit of one is over; the feed leaves the queue
// when done returns. A feed that is in the queue is not added; if somebody left a marker,
// it is fetched again afterwards.
func (q *queue) add(tasks []task, done func(Outcome)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var added []task
	for _, t := range tasks {
		if _, busy := q.feeds[t.hash]; !busy {
			q.enter(t)
			added = append(added, t)
		} else if t.reason == Marked {
			again := t // alone on the heap, not each t
			q.feeds[t.hash] = &again
		}
	}
	// All of them wait by now: none takes itself for the last of its host.
	for _, t := range added {
		q.group.Go(func() {
			for again := true; again; t, again = q.next(t) {
				q.fetch(t, done)
			}
		})
	}
}

// enter counts a feed as one that waits. The caller holds mu.
func (q *queue) enter(t task) {
	q.feeds[t.hash] = nil
	q.waiting[t.host]++
	q.coming.Add(1)
}

// next takes a feed out of the queue, unless it is to be fetched again.
func (q *queue) next(t task) (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := q.feeds[t.hash]
	if again == nil || q.ctx.Err() != nil {
		delete(q.feeds, t.hash)
		return task{}, false
	}
	q.enter(*again)
	return *again, true
}

// fetch waits for the turn of a feed, and visits it. If the context ends before the turn
// comes, done is not called.
func (q *queue) fetch(t task, done func(Outcome)) {
	committing := sync.OnceFunc(func() {
		if q.coming.Add(-1) == 0 {
			q.r.Writer.Flush() // no other feed will share the commit
		}
	})
	defer committing()
	host, err := q.hosts.Acquire(q.ctx, t.host)
	if err == nil {
		if err = q.jobs.Acquire(q.ctx, 1); err != nil {
			host.Release()
		}
	}
	q.mu.Lock()
	q.waiting[t.host]--
	last := q.waiting[t.host] == 0
	if last {
		delete(q.waiting, t.host)
	}
	q.mu.Unlock()
	if err != nil {
		return
	}
	asked := sync.OnceFunc(host.Release)
	staged := sync.OnceFunc(func() { q.jobs.Release(1); committing() })
	var o Outcome
	stopped := q.ctx.Err() != nil
	if !stopped {
		o = q.r.visit(q.ctx, t, turn{last: last, asked: asked, staged: staged}, nil)
	}
	asked()
	staged()
	if !stopped {
		done(o)
	}
}

// turn is a feed's turn to be fetched. Its functions may be called again.
type turn struct {
	last   bool   // no other feed of the host waits
	asked  func() // the request is over: another feed of the host may be asked for
	staged func() // what is new is being committed, or nothing is
}

// wait waits until the queue is empty.
func (q *queue) wait() { q.group.Wait() }

// busy reports whether a feed is in the queue.
func (q *queue) busy(hash string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, busy := q.feeds[hash]
	return busy
}
