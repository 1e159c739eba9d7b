package hub

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/websub"
)

// jobs is the table of what a hub does later: for each feed one ping and one round at
// most, by the hash of the feed. Each is in a file, too, and is done by the next hub if
// this one ends. Handlers add jobs, and [Hub.due] does what is due.
type jobs struct {
	pings   map[string]pingJob
	reading map[string]int // pings that are being done
	rounds  map[string]*round
}

// pingJob is a feed that is read later for a ping: after --ping-gap, when its server
// wants, or because it could not be read.
type pingJob struct {
	url    string
	caller string // who sent the ping
	at     time.Time
	tries  int // readings that failed
}

func (st states) pingFile(hash string) string { return filepath.Join(st.dir, "pings", hash) }

// due begins the jobs that are due, and returns when there will be more; zero for never.
func (h *Hub) due() (next time.Time) {
	soonest := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.jobs.rounds {
		p, at := r.begin(now)
		if p != nil {
			h.working.Go(func() { h.pass(p) })
		}
		soonest(at)
	}
	for hash, j := range h.jobs.pings {
		if j.at.After(now) && j.at.Sub(now) <= max(h.opts.PingGap, mostAfter) {
			soonest(j.at)
			continue
		}
		delete(h.jobs.pings, hash)
		h.jobs.reading[hash]++
		h.working.Go(func() { h.pingLate(hash, j) })
	}
	return next
}

// hurry does what is due at once, after a job was added.
func (h *Hub) hurry() {
	h.due()
	h.poke()
}

// poke makes Run look at what is due.
func (h *Hub) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// gap returns how long a feed must not be read for a ping.
func (h *Hub) gap(hash string) time.Duration {
	if h.opts.PingGap <= 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := h.known[hash].pinged.Add(h.opts.PingGap).Sub(h.now())
	if wait > h.opts.PingGap {
		return 0 // from a clock that was wrong
	}
	return max(wait, 0)
}

// again adds a job to read a feed again that could not be read for a ping. It returns when
// that will be; 0 for never: if nobody subscribes to the feed, its address is private, or
// the ladder has ended.
func (h *Hub) again(hash string, j pingJob, err error) (time.Duration, error) {
	var wait time.Duration
	private := (*fetch.PrivateError)(nil)
	switch {
	case !h.subscribedTo(hash), errors.As(err, &private):
		return 0, nil
	case errors.Is(err, errMuch): // it was not read
		wait = readLater
	case j.tries >= len(ladder):
		return 0, nil
	default:
		wait = ladder[j.tries]
		j.tries++
	}
	wait = max(wait, h.leftAlone(hash))
	if at, waits := h.waits(hash); waits {
		wait = min(wait, at.Sub(h.now()))
	}
	return wait, h.postpone(hash, j, wait)
}

// waits returns when a feed is read for a ping that waits.
func (h *Hub) waits(hash string) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	j, waits := h.jobs.pings[hash]
	return j.at, waits && j.at.After(h.now())
}

// postpone adds a job to read a feed, or moves it forward. It is durable when postpone
// returns; if it cannot be written, this hub does it nevertheless.
func (h *Hub) postpone(hash string, j pingJob, wait time.Duration) error {
	h.pings.Lock()
	defer h.pings.Unlock()
	h.mu.Lock()
	j.at = h.now().Add(wait)
	old, waits := h.jobs.pings[hash]
	if waits && !old.at.After(j.at) {
		j.at = old.at
	}
	h.jobs.pings[hash] = j
	h.mu.Unlock()
	h.poke()
	if waits && j == old {
		return nil
	}
	if err := atomicfile.MkdirAll(filepath.Dir(h.pingFile(hash)), 0o700); err != nil {
		return h.failing(err)
	}
	if err := atomicfile.Write(h.pingFile(hash), lines("url", j.url, "at", stamp(j.at), "tries", strconv.Itoa(j.tries), "caller", j.caller)); err != nil {
		return h.failing(err)
	}
	return nil
}

// pingLate reads a feed for a ping that waited.
func (h *Hub) pingLate(hash string, j pingJob) {
	t, err := h.ping(h.ctx, j)
	if err != nil && h.ctx.Err() != nil {
		return // the next hub does it
	}
	if err == nil && !t.changed {
		h.log.add("pinged", j.url, "%s", unchanged)
	}
	h.pings.Lock()
	defer h.pings.Unlock()
	h.mu.Lock()
	if h.jobs.reading[hash]--; h.jobs.reading[hash] == 0 {
		delete(h.jobs.reading, hash)
	}
	_, again := h.jobs.pings[hash]
	again = again || h.jobs.reading[hash] > 0
	h.mu.Unlock()
	if !again {
		_ = os.Remove(h.pingFile(hash))
	}
}

// unchanged is what the log says of a ping without a round.
const unchanged = "it has not changed, or nobody subscribes to it"

// unreadFor logs that a feed could not be read for a ping, and has it read again. It
// returns after how long; 0 for never.
func (h *Hub) unreadFor(hash string, j pingJob, err error) (time.Duration, error) {
	wait, jerr := h.again(hash, j, err)
	text := reason(err, allowFeeds)
	switch {
	case wait > 0:
		text += "; it is read again in " + roundUp(wait).String()
	case h.subscribedTo(hash):
		text += "; it is not read again before the next ping"
	}
	h.log.add("unread", j.url, "%s", text)
	return wait, jerr
}

// notifyAll adds subscribers to the round of a feed, and begins one if there is none.
func (h *Hub) notifyAll(hash, feedURL string, keys []string, c *content, passed chan struct{}) error {
	for {
		h.mu.Lock()
		r := h.jobs.rounds[hash]
		h.mu.Unlock()
		begins := r == nil
		if begins {
			r = &round{hash: hash, feed: feedURL}
		}
		older, open, err := r.update(h.newPath(hash), keys, c, passed, h.now())
		if err != nil {
			return err
		}
		h.release(older)
		if !open {
			h.forgetRound(r)
			continue
		}
		if begins {
			h.mu.Lock()
			h.jobs.rounds[hash] = r
			h.mu.Unlock()
		}
		return nil
	}
}

// forgetRound removes a round that has ended from the table.
func (h *Hub) forgetRound(r *round) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.jobs.rounds[r.hash] == r {
		delete(h.jobs.rounds, r.hash)
	}
}

// contentAgain reads the document of a feed once more. While it reads, it holds as much
// memory as a feed can have.
func (h *Hub) contentAgain(feedURL string) (*content, error) {
	most := min(h.opts.Feeds.MaxBytes, heldMost)
	if most <= 0 {
		most = heldMost
	}
	if err := h.held.Acquire(h.ctx, most); err != nil {
		return nil, err
	}
	doc, err := h.get(feedURL)
	if err != nil {
		h.held.Release(most)
		return nil, err
	}
	n := min(int64(len(doc.body)), most)
	h.held.Release(most - n)
	return &content{h.contentOf(doc), n}, nil
}

// release gives back the memory of content; nil is allowed.
func (h *Hub) release(c *content) {
	if c != nil {
		h.held.Release(c.held)
	}
}

// resume reads the jobs that an earlier hub left, and begins those that are due.
func (h *Hub) resume() {
	h.resumeRounds()
	h.resumePings()
	h.hurry()
}

func (h *Hub) resumeRounds() {
	left, err := names(filepath.Join(h.dir, "pending"))
	if err != nil {
		h.report.Warn("%v", err)
	}
	// In the order in which they were written: nanoseconds have one length until 2286.
	slices.SortFunc(left, func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, '.')+1:], b[strings.IndexByte(b, '.')+1:])
	})
	files := map[string][]*round{}
	for _, name := range left {
		r, err := readRound(filepath.Join(h.dir, "pending", name), h.now())
		if err != nil {
			h.report.Warn("%v", err)
			continue
		}
		files[r.hash] = append(files[r.hash], r)
	}
	for hash, list := range files {
		r, err := h.unite(list)
		if err != nil {
			h.report.Warn("%v", err)
		}
		if len(r.left) == 0 {
			_ = os.Remove(r.path)
			continue
		}
		h.mu.Lock()
		h.jobs.rounds[hash] = r
		h.mu.Unlock()
	}
}

// unite makes one round of the files of a feed, oldest first: a kill came before the older
// one was removed, or an earlier version had one for each update.
func (h *Hub) unite(list []*round) (*round, error) {
	r := list[len(list)-1]
	if len(list) == 1 {
		return r, nil
	}
	all := map[string]*attempt{}
	for _, older := range list {
		for key, a := range older.left {
			all[key] = a
		}
	}
	if err := r.replace(h.newPath(r.hash), all); err != nil {
		r.left = all
		return r, err
	}
	for _, older := range list[:len(list)-1] {
		_ = os.Remove(older.path)
	}
	return r, nil
}

func (h *Hub) resumePings() {
	left, err := names(filepath.Join(h.dir, "pings"))
	if err != nil {
		h.report.Warn("%v", err)
	}
	for _, hash := range left {
		m, _, err := values(h.pingFile(hash), pingValues...)
		if err == nil && (!isKey(hash) || hashOf(m["url"]) != hash || checkFeed(m["url"]) != nil) {
			h.report.Warn("%s: it is no ping", h.pingFile(hash))
			continue
		}
		if err != nil {
			h.report.Warn("%v", err)
			continue
		}
		tries, _ := strconv.Atoi(m["tries"])
		h.mu.Lock()
		h.jobs.pings[hash] = pingJob{url: m["url"], caller: m["caller"], at: when(m["at"]), tries: max(tries, 0)}
		h.mu.Unlock()
	}
}

// contentOf returns a document as it is distributed.
func (h *Hub) contentOf(doc *document) websub.Content {
	return websub.Content{Hub: h.public("/websub"), Type: cmp.Or(doc.kind, "application/octet-stream"), Body: doc.body}
}
