package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

// document is a feed as it was read. It need not be valid: length and digest are enough to
// detect a change.
type document struct {
	digest string
	length int
	kind   string // Content-Type of the server
	body   []byte // nil if it is not needed
	known  string // digest that subscribers knew before it was read for another one
}

// readings are the running and recent readings of feeds, so that a feed is not read again
// for each caller. They are safe for concurrent use.
type readings struct {
	now  func() time.Time
	mu   sync.Mutex
	last map[string]*reading // last reading of each feed, by hash
}

// reading is one reading of a feed. Callers wait for a running one. But a ping needs a
// reading that begins after the ping, as an earlier one may have missed the update.
type reading struct {
	ping  bool          // for a ping
	tries int           // failed readings of the job, for a ping
	done  chan struct{} // closed at the end

	doc    *document
	err    error
	at     time.Time  // when it ended; zero while it runs
	result pingResult // result of a ping

	pinged time.Time // when the feed was last read for a ping
}

// pingResult is the result of a ping.
type pingResult struct {
	changed     bool
	nobody      bool // nobody subscribes to the feed
	subscribers int
	done        <-chan struct{} // closed when all were notified; nil for no subscribers
	again       time.Duration   // time until the next attempt to read the feed; 0 for never
	err         error           // local error, such as a full disk
}

// newest returns the last reading of a feed; nil for none.
func (rs *readings) newest(hash string) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.last[hash]
}

// find returns the last reading of a feed if it runs or can be used, else nil. A ping can
// use any other reading than old, a subscriber a recent one. The caller holds mu.
func (rs *readings) find(hash string, ping bool, old *reading) *reading {
	r := rs.last[hash]
	if r == nil || r.at.IsZero() || ping && r != old {
		return r
	}
	most := rememberFor
	switch {
	case errors.Is(r.err, errTooBusy):
		return nil
	case r.err != nil:
		most = rememberErr
	}
	if age := rs.now().Sub(r.at); ping || age < 0 || age >= most {
		return nil
	}
	return r
}

// use returns a reading that can be used, see find. If there is none, it begins the reading fresh and returns that,
// which may be nil.
func (rs *readings) use(hash string, ping bool, old, fresh *reading) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.find(hash, ping, old); r != nil || fresh == nil {
		return r
	}
	if before := rs.last[hash]; before != nil {
		fresh.pinged = before.pinged
	}
	if len(rs.last) >= remember {
		maps.DeleteFunc(rs.last, func(_ string, r *reading) bool { return !r.at.IsZero() })
	}
	rs.last[hash] = fresh
	return fresh
}

// end ends a reading.
func (rs *readings) end(r *reading) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.at = rs.now(); r.ping {
		r.pinged = r.at
	}
	close(r.done)
}

// gap returns how long a ping must wait, so that two readings of a feed for pings are gap
// apart. A wait that is longer was set by a wrong clock, and is ignored.
func (rs *readings) gap(hash string, gap time.Duration) time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.last[hash]
	if r == nil {
		return 0
	}
	remaining := r.pinged.Add(gap).Sub(rs.now())
	if remaining > gap {
		return 0
	}
	return max(remaining, 0)
}

// holdOff returns how long a ping must wait: until the gap of pings is over, or the pause that the server of the
// feed asked for.
func (h *shared) holdOff(hash string) time.Duration {
	wait, now := h.readings.gap(hash, h.opts.PingGap), h.now()
	if a := h.jobs.of(hash).ping; a != nil && a.paused(now) {
		wait = max(wait, min(a.at.Sub(now), mostAfter))
	}
	return wait
}

// readsForPing reports whether a ping of a feed makes the hub read it.
func (h *shared) readsForPing(hash, feedURL string) bool {
	return h.states.subscribedTo(hash) || h.allowed(feedURL)
}

// feedReader reads feeds, for callers and for pings.
type feedReader struct {
	*shared
	wait time.Duration // timeout of a caller for a turn to read a feed
}

// readForSubscriber reads a feed for a caller who subscribes to it. A recent reading is used again,
// because thousands may renew their subscription to one feed.
func (h *feedReader) readForSubscriber(caller, feedURL string) (*document, error) {
	hash := hashOf(feedURL)
	was, _ := h.states.readFeed(hash)
	r := h.readInTurn(hash, job{url: feedURL, caller: caller}, false)
	if r.err != nil {
		return nil, r.err
	}
	doc := *r.doc
	doc.known = was.Digest
	return &doc, nil
}

// ping reads a feed that was updated, and notifies its subscribers if it has changed. An
// error is logged, and the feed is read again later.
func (h *feedReader) ping(j job) (pingResult, error) {
	hash := hashOf(j.url)
	wanted := h.readsForPing(hash, j.url)
	r := h.readInTurn(hash, j, wanted)
	if !wanted && r.err != nil {
		h.log.add("unread", j.url, "%s", reason(r.err, allowFeeds))
	}
	return r.result, cmp.Or(r.result.err, r.err)
}

// errTooBusy is the error if a limit did not allow a request to a feed or callback in time.
const errTooBusy = rsscloud.Sentence("This hub is too busy just now; try again later.")

// readInTurn reads a feed when the limits of its caller allow it, or returns another
// reading that can be used. Each caller has a limit of its own, so a caller with
// many feeds does not delay others. The reading continues if the caller does not wait for the answer.
func (h *feedReader) readInTurn(hash string, j job, ping bool) *reading {
	h.background.working.Add(1)
	defer h.background.working.Done()
	old := h.readings.newest(hash)
	ctx, cancel := context.WithTimeout(h.background.ctx, h.wait)
	defer cancel()
	for {
		if r := h.readings.use(hash, ping, old, nil); r != nil {
			<-r.done
			if !ping || r.ping && r != old && r.tries <= j.tries {
				return r
			}
			old = r
		}
		place, err := h.limits[reads].Acquire(ctx, j.caller)
		if err != nil {
			r := &reading{err: errTooBusy}
			h.unreadFor(hash, j, ping, r)
			return r
		}
		r := &reading{ping: ping, tries: j.tries, done: make(chan struct{})}
		begun := h.readings.use(hash, ping, old, r) == r
		if begun {
			h.readNow(hash, j, r)
		}
		if place.Release(); begun {
			return r
		}
	}
}

// readNow reads a feed, and ends the reading.
func (h *feedReader) readNow(hash string, j job, r *reading) {
	r.err = errTooBusy
	if h.withinBudget(hash, j.url) {
		if r.doc, r.err = h.get(j.url); r.err == nil {
			if r.result, r.result.err = h.compare(hash, j.url, r); r.result.err != nil {
				r.result.err = h.failing(r.result.err)
			}
		}
	}
	h.unreadFor(hash, j, r.ping, r)
	h.readings.end(r)
}

// compare notifies the subscribers if the document has changed. The state of a feed is
// first recorded with its first subscriber.
func (h *feedReader) compare(hash, feedURL string, r *reading) (pingResult, error) {
	doc := *r.doc
	r.doc.body = nil
	// Only a ping may record a change. If a subscriber's request recorded it, the next ping
	// would find nothing changed.
	if !r.ping || !h.states.subscribedTo(hash) {
		return pingResult{nobody: true}, nil
	}
	was, err := h.states.readFeed(hash)
	if err != nil {
		return pingResult{}, err
	}
	if was.Digest == doc.digest && was.Length == doc.length {
		return pingResult{}, nil
	}
	return h.notifier.publish(hash, feedState{URL: cmp.Or(was.URL, feedURL), Digest: doc.digest,
		Length:  doc.length,
		Changed: h.now()}, &doc)
}

// unreadFor handles a ping whose feed could not be read, or whose jobs could not be
// written: it logs that, and schedules another reading.
func (h *feedReader) unreadFor(hash string, j job, ping bool, r *reading) {
	failed := cmp.Or(r.result.err, r.err)
	if !ping || failed == nil || h.background.ctx.Err() != nil {
		return
	}
	again, err := h.again(hash, j, failed)
	r.result.again, r.result.err = again, cmp.Or(r.result.err, err)
	text := reason(failed, allowFeeds)
	switch {
	case r.result.again > 0:
		text += "; it is read again in " + roundUp(r.result.again).String()
	case h.states.subscribedTo(hash):
		text += "; it is not read again before the next ping"
	}
	h.log.add("unread", j.url, "%s", text)
}

// again adds a job to read a feed again after an error. It returns the time until then; 0
// for never: if nobody subscribes to the feed, its address is private, or the series of attempts has
// ended.
func (h *feedReader) again(hash string, j job, err error) (time.Duration, error) {
	wait := readLater
	private := (*httpmsg.PrivateError)(nil)
	switch {
	case !h.states.subscribedTo(hash), errors.As(err, &private):
		return 0, nil
	case errors.As(err, new(rsscloud.Sentence)): // the hub was too busy or could not write, so this is not counted
	default:
		if j.tries++; retrySteps.Over(j.tries) {
			return 0, nil
		}
		wait = retrySteps.Wait(j.tries, 0, min(httpmsg.Pause(err), mostAfter))
	}
	return h.postpone(hash, j, wait)
}

// postpone adds a job to read a feed, or makes it due earlier. It returns the time until it
// is due.
func (h *shared) postpone(hash string, j job, wait time.Duration) (time.Duration, error) {
	at, err := h.jobs.read(hash, job{url: j.url, caller: j.caller, tries: j.tries, at: h.now().Add(wait)})
	h.poke()
	if err != nil {
		return 0, h.failing(err)
	}
	return max(at.Sub(h.now()), time.Second), nil
}

// logUnchanged logs a ping without effect.
func (h *shared) logUnchanged(feedURL string, t pingResult) {
	text := "it has not changed"
	if t.nobody {
		text = "nobody subscribes to it"
	}
	h.log.add("pinged", feedURL, "%s", text)
}

// pingLate does the job of a ping that waited.
func (h *feedReader) pingLate(hash string, j *job) {
	t, err := h.ping(*j)
	if err != nil && h.background.ctx.Err() != nil {
		return // the next hub continues
	}
	if err == nil && !t.changed {
		h.logUnchanged(j.url, t)
	}
	h.jobs.hasRead(hash, j)
}

// get reads the document of a feed. A feed that is stored here is read from the disk.
func (h *shared) get(feedURL string) (*document, error) {
	doc := &document{}
	if path, ok := h.savedFile(feedURL); ok {
		b, err := atomicfile.Read(path, int64(h.opts.MaxSave)+1) // 1 more, for the final newline
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: this feed is not stored here", feedURL)
		}
		if err != nil {
			return nil, err
		}
		doc.body, doc.kind = b, kindOf(b)
	} else {
		resp, err := h.feeds.Get(h.background.ctx, &httpmsg.Request{URL: feedURL, Stranger: true})
		if err != nil {
			return nil, err
		}
		if resp.Truncated {
			return nil, fmt.Errorf("%s: the response was cut off after %d bytes", feedURL, len(resp.Body))
		}
		doc.body, doc.kind = resp.Body, resp.Header.Get("Content-Type")
	}
	doc.digest, doc.length = digestOf(doc.body), len(doc.body)
	return doc, nil
}

func digestOf(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// allowed reports whether the user allowed the feed, or it is stored here.
func (h *shared) allowed(feedURL string) bool {
	_, stored := h.savedFile(feedURL)
	return stored || slices.ContainsFunc(h.opts.Allowed,
		func(prefix string) bool { return strings.HasPrefix(feedURL, prefix) })
}

// unread returns the error for a caller if a feed cannot be read.
func unread(what, feedURL string) error {
	return rsscloud.Sayf("The %s was cancelled because %v %s.", what, errReading, feedURL)
}

// roundUp rounds a duration up to seconds.
func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
