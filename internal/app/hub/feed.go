package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/limiter"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/units"
)

// document is what a feed was when it was read. It need not be one that anybody can
// parse: length and digest tell whether it is another one.
type document struct {
	digest string
	length int
	kind   string // Content-Type, as the server gave it
	body   []byte // nil where nobody is to have it
}

// flight is one reading of a feed. Whoever asks before it begins is on it; who asks while
// it is in the air waits for it, or for the next one when what he tells of may be later
// than what is read. Hub.mu guards it until it begins.
type flight struct {
	ping    bool            // somebody said that the feed was updated
	job     pingJob         // the reading that follows if one for a ping fails
	callers map[string]bool // who asked before it began; "" for the hub itself
	waiting context.Context // for a place; nil until it is the feed's next
	begun   chan struct{}   // closed when it has one
	place   *limiter.Place  // nil when it has none, or did not get any
	over    bool            // it has begun, or been given up
	done    chan struct{}
	doc     *document
	err     error
	// told is what became of a ping.
	told told
	next *flight
}

// told is what became of a ping.
type told struct {
	changed     bool
	subscribers int
	done        <-chan struct{} // closed when all were notified; nil for nobody
	again       time.Duration   // until the feed is read again, if it could not be; 0 for never
}

// look reads a feed for somebody who wants to subscribe to it, or joins who does. What
// was seen not long ago will do: thousands renew their subscription to one feed.
func (h *Hub) look(ctx context.Context, caller, feedURL string) (*document, error) {
	hash := hashOf(feedURL)
	if g, ok := h.glanced(hash); ok {
		return g.doc, h.remembered(g)
	}
	f := h.fly(hash, pingJob{url: feedURL, caller: caller}, false)
	select {
	case <-f.done:
		return f.doc, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// heeded reports whether a ping of a feed has a use.
func (h *Hub) heeded(hash, feedURL string) bool { return h.subscribedTo(hash) || h.allowed(feedURL) }

// ping reads a feed that was updated, and has its subscribers notified when it was. If it
// cannot be read, that is in the log, and it is read again, whether the caller waits for
// the answer or not.
func (h *Hub) ping(ctx context.Context, j pingJob) (told, error) {
	hash := hashOf(j.url)
	if !h.heeded(hash, j.url) {
		if g, ok := h.glanced(hash); ok {
			err := h.remembered(g)
			if err != nil {
				h.log.add("unread", j.url, "%s", reason(err, allowFeeds))
			}
			return told{}, err
		}
	}
	f := h.fly(hash, j, true)
	select {
	case <-f.done:
		return f.told, f.err
	case <-ctx.Done():
		return told{}, context.Cause(ctx)
	}
}

// fly gives a reading of a feed, which is begun where none is under way; for a ping,
// one that begins after this call.
func (h *Hub) fly(hash string, j pingJob, ping bool) *flight {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.flights[hash]
	if f == nil {
		f = newFlight()
		h.flights[hash] = f
		h.working.Go(func() { h.land(f, hash, j.url) })
	}
	if f.over && ping {
		if f.next == nil {
			f.next = newFlight()
		}
		f = f.next
	}
	if f.over {
		return f
	}
	if ping && (!f.ping || j.tries < f.job.tries) {
		f.ping, f.job = true, j
	}
	if !f.callers[j.caller] {
		f.callers[j.caller] = true
		if f.waiting != nil {
			h.working.Go(func() { h.seat(f, f.waiting, j.caller) })
		}
	}
	return f
}

func newFlight() *flight {
	return &flight{callers: map[string]bool{}, begun: make(chan struct{}), done: make(chan struct{})}
}

// errMuch is the error for a feed that had no turn to be read.
const errMuch = rsscloud.Sentence("This hub has too much to read just now; try again later.")

// seat gets a place for a flight, as one that a caller has. What strangers have read at
// once is bounded, in all and for each of them; whoever of those who wait for one feed has
// a place first begins for all, so that who has many read delays no other's.
func (h *Hub) seat(f *flight, ctx context.Context, caller string) {
	place, err := h.reading.Acquire(ctx, caller)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.over {
		place.Release()
		return
	}
	f.over, f.place = true, place
	close(f.begun)
}

// board waits until a flight has a place, and reports whether it got one.
func (h *Hub) board(f *flight) bool {
	ctx, cancel := context.WithTimeout(h.ctx, h.readWait)
	defer cancel()
	h.mu.Lock()
	f.waiting = ctx
	for caller := range f.callers {
		h.working.Go(func() { h.seat(f, ctx, caller) })
	}
	h.mu.Unlock()
	select {
	case <-f.begun:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.over = true
	return f.place != nil
}

// land makes a reading, and those that were asked for meanwhile.
func (h *Hub) land(f *flight, hash, feedURL string) {
	for f != nil {
		var seen glance
		begun := h.board(f)
		if f.err = errMuch; begun {
			if begun = h.afford(hash, feedURL); begun {
				seen = h.readFor(f, hash, feedURL)
			}
			f.place.Release()
		}
		if f.ping && f.err != nil && h.ctx.Err() == nil {
			var err error
			if f.told.again, err = h.unreadFor(hash, f.job, f.err); err != nil {
				f.told.again, f.err = 0, err
			}
		}
		h.mu.Lock()
		if f.next == nil {
			delete(h.flights, hash)
		} else {
			h.flights[hash] = f.next
		}
		if begun {
			h.glance(hash, seen, f.ping)
		}
		close(f.done)
		f = f.next
		h.mu.Unlock()
	}
}

// readFor makes the reading of one flight, and gives what is remembered of it.
func (h *Hub) readFor(f *flight, hash, feedURL string) glance {
	f.doc, f.err = h.get(feedURL)
	seen := glance{doc: f.doc, err: f.err} // what a disk that is full makes of it is not the feed's
	if f.err == nil {
		if f.told, f.err = h.compare(f, hash, feedURL); f.err != nil {
			f.err = h.failing(f.err)
		}
	}
	return seen
}

// compare looks whether the document of a flight is another one than subscribers know
// of, and has them notified if so. A feed that is not known yet becomes so with its
// first subscriber: until then, nothing is kept of it.
func (h *Hub) compare(f *flight, hash, feedURL string) (told, error) {
	defer func() { f.doc.body = nil }()
	if !h.subscribedTo(hash) {
		return told{}, nil
	}
	was := h.readFeed(hash)
	if !f.ping || was.Digest == f.doc.digest && was.Length == f.doc.length {
		// What a subscriber's request finds changed is for the ping to tell: it
		// would find nothing changed otherwise.
		return told{}, nil
	}
	return h.publish(hash, feedState{URL: cmp.Or(was.URL, feedURL), Digest: f.doc.digest, Length: f.doc.length, Changed: h.now(), others: was.others}, f.doc)
}

// begin takes note of a feed with its first subscriber, who knows of the document that
// was read just now. What is known of the feed already stays.
func (h *Hub) begin(hash, feedURL string, doc *document) error {
	return h.locked(hash, true, func() error {
		was := h.readFeed(hash)
		if was.Digest != "" {
			return nil
		}
		return h.writeFeed(hash, feedState{URL: feedURL, Digest: doc.digest, Length: doc.length, Changed: h.now(), others: was.others})
	})
}

// get reads the document of a feed. One that is stored here is read from the disk.
func (h *Hub) get(feedURL string) (*document, error) {
	doc := &document{}
	if path, ok := h.savedFile(feedURL); ok {
		b, err := atomicfile.Read(path, int64(h.opts.MaxSave)+1) // and the end of its last line
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such feed is stored here", feedURL)
		}
		if err != nil {
			return nil, err
		}
		doc.body, doc.kind = b, kindOf(b)
	} else {
		hash := hashOf(feedURL)
		if left := h.leftAlone(hash); left > 0 {
			return nil, &busyError{feedURL, left}
		}
		resp, err := h.feeds.Get(h.ctx, &fetch.Request{URL: feedURL, Stranger: true})
		if status, ok := errors.AsType[*fetch.StatusError](err); ok && status.RetryAfter > 0 {
			h.leaveAlone(hash, status.RetryAfter)
		}
		if err != nil {
			return nil, err
		}
		if resp.Truncated {
			return nil, fmt.Errorf("%s: it broke off after %d bytes", feedURL, len(resp.Body))
		}
		doc.body, doc.kind = resp.Body, resp.Header.Get("Content-Type")
	}
	doc.digest, doc.length = digestOf(doc.body), len(doc.body)
	return doc, nil
}

// busyError is the error for a feed that is not read, as its server wants to be left
// alone (Retry-After).
type busyError struct {
	feed string
	left time.Duration
}

func (e *busyError) Error() string {
	return fmt.Sprintf("%s: not asked: its server wants to be left alone for another %s", fetch.Public(e.feed), units.ShortDuration(e.left))
}

// leaveAlone leaves the server of a feed alone for as long as it says, and does not
// heed more than [mostAfter].
func (h *Hub) leaveAlone(hash string, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.busy) >= remember {
		clear(h.busy)
	}
	h.busy[hash] = h.now().Add(min(wait, mostAfter))
}

// leftAlone gives for how long the server of a feed is left alone yet.
func (h *Hub) leftAlone(hash string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, ok := h.busy[hash]
	left := until.Sub(h.now())
	if ok && (left <= 0 || left > mostAfter) {
		delete(h.busy, hash)
		left = 0
	}
	return max(left, 0)
}

func digestOf(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// subscribedTo reports whether there is a subscription to a feed.
func (h *Hub) subscribedTo(hash string) bool {
	f, err := os.Open(h.subs(hash))
	if err != nil {
		return false
	}
	defer f.Close()
	for {
		list, err := f.Readdirnames(16)
		if slices.ContainsFunc(list, isKey) {
			return true // and no temporary file that a kill has left
		}
		if err != nil {
			return false
		}
	}
}

// allowed reports whether the user named the feed, or it is stored here.
func (h *Hub) allowed(feedURL string) bool {
	if _, ok := h.savedFile(feedURL); ok {
		return true
	}
	for _, prefix := range h.opts.Allowed {
		if strings.HasPrefix(feedURL, prefix) {
			return true
		}
	}
	return false
}

// glanced gives what was seen of a feed not long ago.
func (h *Hub) glanced(hash string) (glance, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := h.known[hash]
	most := rememberFor
	if g.err != nil {
		most = rememberErr
	}
	age := h.now().Sub(g.at)
	return g, ok && age >= 0 && age < most
}

// rememberedError is the error of an earlier reading of a feed, which is not read again
// before some time is over.
type rememberedError struct {
	error
	left time.Duration
}

func (e *rememberedError) Unwrap() error { return e.error }

// remembered is the error of what was seen not long ago, if it is one.
func (h *Hub) remembered(g glance) error {
	if g.err == nil {
		return nil
	}
	return &rememberedError{g.err, g.at.Add(rememberErr).Sub(h.now())}
}

// unread is what a caller is told when a feed cannot be read, and when it will be again
// where that is not at once.
func (h *Hub) unread(what, feedURL string, err error) error {
	text := fmt.Sprintf("The %s was cancelled because %v %s.", what, errReading, feedURL)
	old := (*rememberedError)(nil)
	if left := h.leftAlone(hashOf(feedURL)); left > 0 {
		text += fmt.Sprintf(" Its server wants to be left alone; it is read again in %s.", roundUp(left))
	} else if errors.As(err, &old) {
		text += fmt.Sprintf(" That was a moment ago; it is read again in %s.", roundUp(old.left))
	}
	return rsscloud.Sentence(text)
}

// roundUp gives a time in whole seconds, for people.
func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// glance takes down what a flight saw, for a ping or not. The caller holds mu.
func (h *Hub) glance(hash string, seen glance, ping bool) {
	if len(h.known) >= remember {
		clear(h.known)
	}
	seen.at, seen.pinged = h.now(), h.known[hash].pinged
	if ping {
		seen.pinged = seen.at
	}
	h.known[hash] = seen
}
