package fetcher

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lektordir/lektor/internal/http/limiter"
)

// queue fetches each feed in a goroutine of its own, which begins when a place is free. Hosts take
// turns, so that a slow host does not delay the others: at most [fetch.Config].PerHost feeds of a
// host are requested at once, and at most [Options].Jobs feeds fetched at once. A feed is in the
// queue at most once.
type queue struct {
	r       *Runner
	ctx     context.Context
	places  *limiter.Limiter
	pending atomic.Int64 // feeds in the queue that may still commit entries
	group   sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]int  // number of feeds waiting, by host
	feeds   map[string]bool // feeds in the queue
}

func (r *Runner) newQueue(ctx context.Context) *queue {
	return &queue{
		r: r, ctx: ctx,
		places:  limiter.New(limiter.Options{All: r.opts.Jobs, Each: max(r.opts.Fetch.PerHost, 1)}),
		waiting: map[string]int{}, feeds: map[string]bool{},
	}
}

// add queues feeds. It calls done after each visit; the feed leaves the queue when done returns. A
// feed that is in the queue already is not added.
func (q *queue) add(tasks []task, done func(VisitResult)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var added []*task
	for i := range tasks {
		if t := &tasks[i]; !q.feeds[t.hash] {
			q.feeds[t.hash] = true
			q.waiting[t.host]++
			added = append(added, t)
		}
	}
	q.pending.Add(int64(len(added)))
	// Start after all are counted, so that turn.last is right.
	for _, t := range added {
		q.places.Queue(t.host, func(place *limiter.Place) {
			q.group.Go(func() { q.fetch(*t, place, done) })
		})
	}
}

// fetch visits a feed. If the context has ended, done is not called.
func (q *queue) fetch(t task, place *limiter.Place, done func(VisitResult)) {
	q.mu.Lock()
	q.waiting[t.host]--
	last := q.waiting[t.host] == 0
	q.mu.Unlock()
	staged := sync.OnceFunc(func() {
		place.Release()
		if q.pending.Add(-1) == 0 {
			q.r.Writer.Flush() // no other feed will share the commit
		}
	})
	if q.ctx.Err() == nil {
		o := q.r.visit(q.ctx, t, &slot{last, place, staged}, nil)
		staged()
		done(o)
	}
	staged()
	q.mu.Lock()
	delete(q.feeds, t.hash)
	q.mu.Unlock()
}

// wait waits until the queue is empty.
func (q *queue) wait() { q.group.Wait() }

// busy reports whether a feed is in the queue.
func (q *queue) busy(hash string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.feeds[hash]
}

// slot is the place of a feed in the queue while it is fetched.
type slot struct {
	last  bool           // no other feed of the host waits
	place *limiter.Place // nil for a feed that is not in a queue
	// staged releases the place in the queue. Call it when the entries are being committed, or if there
	// are none. Later calls do nothing.
	staged func()
}

// asked releases the place of the host, as the request is over. Later calls do nothing.
func (t *slot) asked() { t.place.ReleaseName() }
