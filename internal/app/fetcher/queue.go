package fetcher

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/lektordir/lektor/internal/limiter"
)

// queue fetches feeds, each in a goroutine that begins when the turn of the feed has come.
// Hosts take turns, so that no host holds up the others: [fetch.Config].PerHost feeds of a
// host are asked for at once, and [Options].Jobs feeds are fetched at once. A feed is in
// the queue once.
type queue struct {
	r      *Runner
	ctx    context.Context
	places *limiter.Limiter
	coming atomic.Int64 // feeds that may still have something to commit
	group  sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]int   // feeds of each host that wait for their turn
	feeds   map[string]*task // those in the queue; not nil: to be fetched once more
}

func (r *Runner) newQueue(ctx context.Context) *queue {
	return &queue{
		r: r, ctx: ctx,
		places:  limiter.New(limiter.Options{All: r.opts.Jobs, Each: max(r.opts.Fetch.PerHost, 1)}),
		waiting: map[string]int{}, feeds: map[string]*task{},
	}
}

// add queues feeds. done is called when the visit of one is over; the feed leaves the queue
// when done returns. A feed that is in the queue is not added; if somebody left a marker,
// it is fetched again afterwards.
func (q *queue) add(tasks []task, done func(Outcome)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var added []*task
	for i := range tasks {
		t := &tasks[i]
		if _, busy := q.feeds[t.hash]; !busy {
			q.feeds[t.hash] = nil
			q.waiting[t.host]++
			added = append(added, t)
		} else if t.reason == Marked {
			q.feeds[t.hash] = t
		}
	}
	q.coming.Add(int64(len(added)))
	// All of them are counted by now: none takes itself for the last of its host.
	for _, t := range added {
		q.places.Queue(t.host, func(place *limiter.Place) {
			q.group.Go(func() { q.fetch(*t, place, done) })
		})
	}
}

// fetch visits a feed whose turn has come. If the context has ended, done is not called.
func (q *queue) fetch(t task, place *limiter.Place, done func(Outcome)) {
	q.mu.Lock()
	q.waiting[t.host]--
	last := q.waiting[t.host] == 0
	if last {
		delete(q.waiting, t.host)
	}
	q.mu.Unlock()
	turn := &turn{r: q.r, place: place, last: last, coming: &q.coming}
	if q.ctx.Err() == nil {
		o := q.r.visit(q.ctx, t, turn, nil)
		turn.staged()
		done(o)
	}
	turn.staged()
	q.mu.Lock()
	again := q.feeds[t.hash]
	delete(q.feeds, t.hash)
	q.mu.Unlock()
	if again != nil && q.ctx.Err() == nil {
		q.add([]task{*again}, done)
	}
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

// turn is a feed's turn to be fetched.
type turn struct {
	r      *Runner
	last   bool           // no other feed of the host waits
	place  *limiter.Place // nil for a feed that is not in a queue
	coming *atomic.Int64  // feeds, with this one, that may still have something to commit; nil for this one alone
	over   bool           // staged was called
}

// asked says that the request is over: another feed of the host may be asked for. It may
// be called again.
func (t *turn) asked() { t.place.ReleaseName() }

// staged says that what is new is being committed, or that nothing is: another feed may be
// fetched. It may be called again.
func (t *turn) staged() {
	if t.over {
		return
	}
	t.over = true
	t.place.Release()
	if t.coming == nil || t.coming.Add(-1) == 0 {
		t.r.Writer.Flush() // no other feed will share the commit
	}
}
