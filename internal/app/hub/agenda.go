package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/websub"
)

// What a hub does later is on the disk, and is done by the next hub where this one
// ends: rounds of which somebody is to be tried again, see [pending], and pings that
// came too soon after another, or when the feed's server wanted to be left alone, a file
// of values each, pings/abcd….

// laterPing is a ping that waits.
type laterPing struct {
	url string
	at  time.Time
}

func (st states) pingFile(hash string) string { return filepath.Join(st.dir, "pings", hash) }

// due begins what is due, and gives when there will be more; zero for never.
func (h *Hub) due() (next time.Time) {
	soonest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rounds := range h.rounds {
		for _, p := range rounds {
			ripe, at := p.ripe(now)
			if ripe {
				h.working.Go(func() { h.pass(p) })
			} else if !at.IsZero() {
				soonest(at)
			}
		}
	}
	for hash, l := range h.later {
		if l.at.After(now) && l.at.Sub(now) <= max(h.opts.PingGap, mostAfter) {
			soonest(l.at)
			continue
		}
		delete(h.later, hash)
		h.working.Go(func() { h.pingLate(hash, l.url) })
	}
	return next
}

// poke makes Run look at what is due.
func (h *Hub) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// soon has a feed read when the gap since the last ping is over, and reports for how
// long that is; 0 where there is no gap to wait for. It is on the disk then.
func (h *Hub) soon(feedURL string) (time.Duration, error) {
	hash := hashOf(feedURL)
	if h.opts.PingGap <= 0 || !h.subscribedTo(hash) && !h.allowed(feedURL) {
		return 0, nil
	}
	h.mu.Lock()
	wait := h.known[hash].pinged.Add(h.opts.PingGap).Sub(h.now())
	h.mu.Unlock()
	if wait <= 0 || wait > h.opts.PingGap {
		return 0, nil
	}
	return wait, h.postpone(hash, feedURL, wait)
}

// whenFree has a feed that could not be read for an error read when its server wants to be
// asked again, or there is a place, and reports for how long that is; 0 where that is
// not the error, or nobody is to be told of the feed.
func (h *Hub) whenFree(feedURL string, err error) (time.Duration, error) {
	hash := hashOf(feedURL)
	wait := h.leftAlone(hash)
	if errors.Is(err, errMuch) {
		wait = max(wait, readLater)
	}
	if wait <= 0 || !h.subscribedTo(hash) {
		return 0, nil
	}
	return wait, h.postpone(hash, feedURL, wait)
}

// postpone has a feed read later, if it is not to be already.
func (h *Hub) postpone(hash, feedURL string, wait time.Duration) error {
	h.pings.Lock()
	defer h.pings.Unlock()
	h.mu.Lock()
	at := h.now().Add(wait)
	_, waits := h.later[hash]
	h.mu.Unlock()
	if waits {
		return nil
	}
	if err := atomicfile.MkdirAll(filepath.Dir(h.pingFile(hash)), 0o700); err != nil {
		return h.failing(err)
	}
	if err := atomicfile.Write(h.pingFile(hash), lines("url", feedURL, "at", stamp(at))); err != nil {
		return h.failing(err)
	}
	h.mu.Lock()
	h.later[hash] = laterPing{feedURL, at}
	h.mu.Unlock()
	h.poke()
	return nil
}

// pingLate is a ping that waited, and waits again where the feed cannot be read yet.
func (h *Hub) pingLate(hash, feedURL string) {
	_, err := h.pinging(h.ctx, feedURL)
	if err != nil && h.ctx.Err() != nil {
		return // the next hub does it
	}
	if err != nil {
		if _, err := h.whenFree(feedURL, err); err != nil {
			h.report.Warn("%v", err)
		}
	}
	h.pings.Lock()
	defer h.pings.Unlock()
	h.mu.Lock()
	_, again := h.later[hash]
	h.mu.Unlock()
	if !again {
		_ = os.Remove(h.pingFile(hash))
	}
}

// enter makes a round known. What the earlier rounds of the feed still had to do for
// those in it is its own from now on: they are to have the newer document, and once.
func (h *Hub) enter(p *pending) {
	keys := p.all()
	h.mu.Lock()
	earlier := slices.Clone(h.rounds[p.hash])
	h.rounds[p.hash] = append(h.rounds[p.hash], p)
	h.mu.Unlock()
	for _, e := range earlier {
		if e.yield(keys) {
			h.over(e)
		}
	}
}

// over ends a round.
func (h *Hub) over(p *pending) {
	h.mu.Lock()
	rounds := slices.DeleteFunc(h.rounds[p.hash], func(r *pending) bool { return r == p })
	if h.rounds[p.hash] = rounds; len(rounds) == 0 {
		delete(h.rounds, p.hash)
	}
	h.mu.Unlock()
	p.remove()
}

// pass goes on with a round: one that an earlier hub did not finish, or of which some
// were not reached. Content is what the feed is now.
func (h *Hub) pass(p *pending) {
	keys := p.todo(h.now())
	list := h.notifiable(p.hash, keys)
	wanted := make(map[string]bool, len(list))
	for _, s := range list {
		wanted[s.key()] = true
	}
	for _, key := range keys {
		if !wanted[key] {
			p.done(key) // gone, or does not want to be notified
		}
	}
	list = h.willing(p, list)
	h.log.add("resumed", p.feed, "%s", units.Count(len(list), "subscriber"))
	var content websub.Content
	held := int64(0)
	if wantsContent(list) {
		var err error
		content, held, err = h.contentAgain(p.feed)
		if h.ctx.Err() != nil {
			h.held.Release(held)
			p.stop()
			return
		}
		if err != nil {
			// That is not theirs to answer for.
			h.log.add("unread", p.feed, "%s", reason(err, allowFeeds))
			list = slices.DeleteFunc(list, func(s subscription) bool {
				if s.Protocol == WebSub {
					p.failed(s.key())
				}
				return s.Protocol == WebSub
			})
		}
	}
	h.fan(p, list, content, held)
}

// contentAgain reads what is to be distributed once more, and gives how much of the
// memory for that it holds. While it reads it holds as much as a feed can have.
func (h *Hub) contentAgain(feedURL string) (websub.Content, int64, error) {
	most := min(h.opts.Feeds.MaxBytes, heldMost)
	if most <= 0 {
		most = heldMost
	}
	if err := h.held.Acquire(h.ctx, most); err != nil {
		return websub.Content{}, 0, err
	}
	doc, err := h.get(feedURL)
	if err != nil {
		h.held.Release(most)
		return websub.Content{}, 0, err
	}
	n := min(int64(len(doc.body)), most)
	h.held.Release(most - n)
	return h.contentOf(doc), n, nil
}

// resume goes on with what an earlier hub left.
func (h *Hub) resume() {
	left, err := names(filepath.Join(h.dir, "pending"))
	if err != nil {
		h.report.Warn("%v", err)
	}
	// Those of a feed in the order in which they began, the earlier first: of the
	// same length, as nanoseconds are, until 2286.
	slices.SortFunc(left, func(a, b string) int {
		return strings.Compare(a[strings.IndexByte(a, '.')+1:], b[strings.IndexByte(b, '.')+1:])
	})
	var unfinished []*pending
	for _, name := range left {
		p, err := readPending(filepath.Join(h.dir, "pending", name))
		if err != nil {
			h.report.Warn("%v", err)
			continue
		}
		if p.again.IsZero() {
			unfinished = append(unfinished, p)
		}
		h.enter(p)
	}
	for _, p := range unfinished { // when those that are later have what is theirs
		h.working.Go(func() { h.pass(p) })
	}
	if left, err = names(filepath.Join(h.dir, "pings")); err != nil {
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
		h.mu.Lock()
		h.later[hash] = laterPing{m["url"], when(m["at"])}
		h.mu.Unlock()
	}
	h.poke()
}

// pinging is a ping whose answer nobody waits for, but the log.
func (h *Hub) pinging(ctx context.Context, feedURL string) (told, error) {
	t, err := h.ping(ctx, "", feedURL)
	switch {
	case err != nil:
		h.log.add("unread", feedURL, "%s", reason(err, allowFeeds))
	case !t.changed:
		h.log.add("pinged", feedURL, "it has not changed, or nobody subscribes to it")
	}
	return t, err
}
