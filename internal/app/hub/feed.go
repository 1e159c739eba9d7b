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

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
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

// readings are the readings of feeds that are under way, and what was seen not long ago: a
// feed is not read again for everybody who asks for it. They may be used by many
// goroutines.
type readings struct {
	now  func() time.Time
	mu   sync.Mutex
	last map[string]*reading // of each feed, by hash
}

// reading is one reading of a feed. Callers who ask while it is under way wait for it, but
// a ping needs one that begins after the ping: the update may be later than what is read.
type reading struct {
	ping  bool          // a publisher said that the feed was updated
	tries int           // of the job, if the reading is for a ping
	done  chan struct{} // closed at the end

	doc  *document
	err  error
	at   time.Time // of the end; zero while it is under way
	told told      // what became of a ping

	before *reading  // of the feed, while this one is under way
	pinged time.Time // when the feed was last read for a ping
	alone  time.Time // until when its server wants to be left alone
}

// told is what became of a ping.
type told struct {
	changed     bool
	subscribers int
	done        <-chan struct{} // closed when all were notified; nil for nobody
	again       time.Duration   // until the feed is read again, if it could not be; 0 for never
	err         error           // of this machine
}

// newest returns the last reading of a feed; nil if there is none.
func (rs *readings) newest(hash string) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.last[hash]
}

// find returns the last reading of a feed, if it is under way or will do: for a ping if it
// is another one than old, else if it was not long ago. It returns nil if there is none.
// The caller holds mu.
func (rs *readings) find(hash string, ping bool, old *reading) *reading {
	r := rs.last[hash]
	if r == nil || r.at.IsZero() || ping && r != old {
		return r
	}
	most := rememberFor
	if r.err != nil {
		most = rememberErr
	}
	if age := rs.now().Sub(r.at); ping || age < 0 || age >= most {
		return nil
	}
	return r
}

// join is find.
func (rs *readings) join(hash string, ping bool, old *reading) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.find(hash, ping, old)
}

// begin begins a reading, if find returns none; else it returns nil.
func (rs *readings) begin(hash string, ping bool, old *reading, tries int) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.find(hash, ping, old) != nil {
		return nil
	}
	r := &reading{ping: ping, tries: tries, done: make(chan struct{}), before: rs.last[hash]}
	if r.before != nil {
		r.pinged, r.alone = r.before.pinged, r.before.alone
	}
	if len(rs.last) >= remember {
		maps.DeleteFunc(rs.last, func(_ string, r *reading) bool { return !r.at.IsZero() })
	}
	rs.last[hash] = r
	return r
}

// end ends a reading. One that was not made is forgotten.
func (rs *readings) end(hash string, r *reading, made bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r.at = rs.now()
	switch {
	case !made && r.before == nil:
		delete(rs.last, hash)
	case !made:
		rs.last[hash] = r.before
	case r.ping:
		r.pinged = r.at
	}
	r.before = nil
	close(r.done)
}

// recent returns the last reading of a feed, if it has ended not long ago; else nil.
func (rs *readings) recent(hash string) *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.find(hash, false, nil); r != nil && !r.at.IsZero() {
		return r
	}
	return nil
}

// leaveAlone leaves the server of a feed alone for as long as it says, and does not
// heed more than [mostAfter].
func (rs *readings) leaveAlone(hash string, wait time.Duration) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.last[hash]; r != nil && wait > 0 {
		r.alone = rs.now().Add(min(wait, mostAfter))
	}
}

// leftAlone returns for how long the server of a feed is still left alone.
func (rs *readings) leftAlone(hash string) time.Duration {
	return rs.left(hash, mostAfter, func(r *reading) time.Time { return r.alone })
}

// gap returns how long a feed must not be read for a ping, if at least gap lies between two
// such readings.
func (rs *readings) gap(hash string, gap time.Duration) time.Duration {
	return rs.left(hash, gap, func(r *reading) time.Time { return r.pinged.Add(gap) })
}

// left returns the time until a time of the last reading of a feed; 0 if there is none, or
// if it is more than most away, as a clock was wrong.
func (rs *readings) left(hash string, most time.Duration, until func(*reading) time.Time) time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.last[hash]
	if r == nil {
		return 0
	}
	left := until(r).Sub(rs.now())
	if left > most {
		return 0
	}
	return max(left, 0)
}

// heeded reports whether a ping of a feed has a use.
func (h *engine) heeded(hash, feedURL string) bool { return h.subscribedTo(hash) || h.allowed(feedURL) }

// reader reads feeds, for callers and for pings.
type reader struct {
	*engine
	wait time.Duration // of a caller for a place to read a feed
}

// look reads a feed for a caller who wants to subscribe to it. A reading that was not long
// ago will do: thousands renew their subscription to one feed.
func (h *reader) look(ctx context.Context, caller, feedURL string) (*document, error) {
	hash := hashOf(feedURL)
	r := h.readings.recent(hash)
	if r == nil {
		var err error
		if r, err = h.readFor(ctx, hash, job{url: feedURL, caller: caller}, false); err != nil {
			return nil, err
		}
		return r.doc, r.err
	}
	return r.doc, r.remembered(h.now())
}

// ping reads a feed that was updated, and has its subscribers notified when it was. If it
// cannot be read, that is in the log, and it is read again, whether the caller waits for
// the answer or not.
func (h *reader) ping(ctx context.Context, j job) (told, error) {
	hash := hashOf(j.url)
	if !h.heeded(hash, j.url) {
		if r := h.readings.recent(hash); r != nil {
			err := r.remembered(h.now())
			if err != nil {
				h.log.add("unread", j.url, "%s", reason(err, allowFeeds))
			}
			return told{}, err
		}
	}
	r, err := h.readFor(ctx, hash, j, true)
	if err != nil {
		return told{}, err
	}
	return r.told, cmp.Or(r.told.err, r.err)
}

// readFor reads a feed, or waits for a reading that will do. The reading goes on if ctx
// ends.
func (h *reader) readFor(ctx context.Context, hash string, j job, ping bool) (*reading, error) {
	old := h.readings.newest(hash)
	answer := make(chan *reading, 1)
	h.working.Go(func() { answer <- h.readInTurn(hash, j, ping, old) })
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errMuch is the error for a feed that had no turn to be read.
const errMuch = rsscloud.Sentence("This hub has too much to read just now; try again later.")

// readInTurn reads a feed when its caller has a place for it, or returns another reading
// than old that will do. Callers who wait for one feed wait each for a place of their own,
// so one who has many feeds read delays no other.
func (h *reader) readInTurn(hash string, j job, ping bool, old *reading) *reading {
	ctx, cancel := context.WithTimeout(h.ctx, h.wait)
	defer cancel()
	for {
		if r := h.readings.join(hash, ping, old); r != nil {
			<-r.done
			if !ping || r.ping && r != old && r.tries <= j.tries {
				return r
			}
			old = r
		}
		place, err := h.limits[reads].Acquire(ctx, j.caller)
		if err != nil {
			r := &reading{err: errMuch}
			h.unreadFor(hash, j, ping, r)
			return r
		}
		if r := h.readings.begin(hash, ping, old, j.tries); r != nil {
			h.readNow(hash, j, r)
			place.Release()
			return r
		}
		place.Release()
	}
}

// readNow makes a reading.
func (h *reader) readNow(hash string, j job, r *reading) {
	r.err = errMuch
	made := h.afford(hash, j.url)
	if made {
		if r.doc, r.err = h.get(j.url); r.err == nil {
			if r.told, r.told.err = h.compare(hash, j.url, r); r.told.err != nil {
				r.told.err = h.failing(r.told.err)
			}
		}
	}
	h.unreadFor(hash, j, r.ping, r)
	h.readings.end(hash, r, made)
}

// compare looks whether the document of a reading is another one than subscribers know of,
// and has them notified if so. A feed that is not known yet becomes so with its first
// subscriber: until then, nothing is kept of it.
func (h *reader) compare(hash, feedURL string, r *reading) (told, error) {
	doc := *r.doc
	r.doc.body = nil
	// A change that a subscriber's request finds is left to the ping, which would find
	// nothing changed otherwise.
	if !r.ping || !h.subscribedTo(hash) {
		return told{}, nil
	}
	was, err := h.known(hash)
	if err != nil {
		return told{}, err
	}
	if was.Digest == doc.digest && was.Length == doc.length {
		return told{}, nil
	}
	return h.notifier.publish(hash, feedState{URL: cmp.Or(was.URL, feedURL), Digest: doc.digest, Length: doc.length, Changed: h.now()}, &doc)
}

// unreadFor logs that a feed could not be read for a ping, or that nobody could be notified
// as the disk is full, and has it read again.
func (h *reader) unreadFor(hash string, j job, ping bool, r *reading) {
	failed := cmp.Or(r.told.err, r.err)
	if !ping || failed == nil || h.ctx.Err() != nil {
		return
	}
	again, err := h.again(hash, j, failed)
	r.told.again, r.told.err = again, cmp.Or(r.told.err, err)
	text := reason(failed, allowFeeds)
	switch {
	case r.told.again > 0:
		text += "; it is read again in " + roundUp(r.told.again).String()
	case h.subscribedTo(hash):
		text += "; it is not read again before the next ping"
	}
	h.log.add("unread", j.url, "%s", text)
}

// again adds a job to read a feed again that could not be read for a ping. It returns when
// that will be; 0 for never: if nobody subscribes to the feed, its address is private, or
// the ladder has ended.
func (h *reader) again(hash string, j job, err error) (time.Duration, error) {
	wait := readLater
	private := (*fetch.PrivateError)(nil)
	switch {
	case !h.subscribedTo(hash), errors.As(err, &private):
		return 0, nil
	case errors.As(err, new(rsscloud.Sentence)): // of ours: it was not read, or not kept
	default:
		if j.tries++; ladder.Over(j.tries) {
			return 0, nil
		}
		wait = ladder.Wait(j.tries, 0, 0)
	}
	return h.postpone(hash, j, max(wait, h.readings.leftAlone(hash)))
}

// postpone adds a job to read a feed, or moves it forward. It returns when that will be.
func (h *engine) postpone(hash string, j job, wait time.Duration) (time.Duration, error) {
	j.at = h.now().Add(wait)
	at, err := h.jobs.read(hash, job{url: j.url, caller: j.caller, tries: j.tries, at: j.at})
	h.poke()
	if err != nil {
		return 0, h.failing(err)
	}
	return max(at.Sub(h.now()), time.Second), nil
}

// unchanged is what the log says of a ping that notifies nobody.
const unchanged = "it has not changed, or nobody subscribes to it"

// pingLate reads a feed for a ping that waited.
func (h *reader) pingLate(hash string, j *job) {
	t, err := h.ping(h.ctx, *j)
	if err != nil && h.ctx.Err() != nil {
		return // the next hub does it
	}
	if err == nil && !t.changed {
		h.log.add("pinged", j.url, "%s", unchanged)
	}
	h.jobs.hasRead(hash, j)
}

// get reads the document of a feed. One that is stored here is read from the disk.
func (h *engine) get(feedURL string) (*document, error) {
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
		if left := h.readings.leftAlone(hash); left > 0 {
			return nil, &busyError{feedURL, left}
		}
		resp, err := h.feeds.Get(h.ctx, &fetch.Request{URL: feedURL, Stranger: true})
		if err != nil {
			h.readings.leaveAlone(hash, fetch.Pause(err))
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

func digestOf(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(b))
}

// allowed reports whether the user named the feed, or it is stored here.
func (h *engine) allowed(feedURL string) bool {
	_, stored := h.savedFile(feedURL)
	return stored || slices.ContainsFunc(h.opts.Allowed, func(prefix string) bool { return strings.HasPrefix(feedURL, prefix) })
}

// rememberedError is the error of an earlier reading of a feed, which is not read again
// before some time is over.
type rememberedError struct {
	error
	left time.Duration
}

func (e *rememberedError) Unwrap() error { return e.error }

// remembered returns the error of a recent reading, if it failed.
func (r *reading) remembered(now time.Time) error {
	if r.err == nil {
		return nil
	}
	return &rememberedError{r.err, r.at.Add(rememberErr).Sub(now)}
}

// unread is what a caller is told when a feed cannot be read, and when it will be again
// where that is not at once.
func (h *reader) unread(what, feedURL string, err error) error {
	text := fmt.Sprintf("The %s was cancelled because %v %s.", what, errReading, feedURL)
	old := (*rememberedError)(nil)
	if left := h.readings.leftAlone(hashOf(feedURL)); left > 0 {
		text += fmt.Sprintf(" Its server wants to be left alone; it is read again in %s.", roundUp(left))
	} else if errors.As(err, &old) {
		text += fmt.Sprintf(" That was a moment ago; it is read again in %s.", roundUp(old.left))
	}
	return rsscloud.Sentence(text)
}

// roundUp returns a time in whole seconds, for people.
func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
