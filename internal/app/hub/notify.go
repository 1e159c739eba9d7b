package hub

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/limiter"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/websub"
)

// publish has the subscribers of a feed notified that its document changed.
func (h *Hub) publish(hash string, f feedState, doc *document) (told, error) {
	t := told{changed: true}
	keys, err := h.keys(hash)
	if err != nil {
		return t, err
	}
	list := h.notifiable(hash, keys)
	if len(list) > 0 {
		keys = keys[:0]
		for _, s := range list {
			keys = append(keys, s.key())
		}
		passed, c := make(chan struct{}), h.hold(list, doc)
		if err = h.notifyAll(hash, f.URL, keys, c, passed); err != nil {
			h.release(c)
			return t, err
		}
		t.subscribers, t.done = len(list), passed
	}
	// After the round: a kill between the two notifies twice rather than never.
	if err := h.writeFeed(hash, f); err != nil {
		h.report.Warn("%v", err) // the next ping finds it changed once more
	}
	h.log.add("updated", f.URL, "%s", units.Count(len(list), "subscriber"))
	h.hurry()
	return t, nil
}

// notifiable reads those of some subscriptions to a feed that want to be notified.
func (h *Hub) notifiable(hash string, keys []string) (list []subscription) {
	now := h.now()
	for _, key := range keys {
		s, err := h.read(hash, key)
		if err == nil && s.wants(now) && s.key() == key {
			list = append(list, s)
		}
	}
	return list
}

// hold takes memory for a document that subscribers get by WebSub. It returns nil if there
// are none, or not enough memory: the document is read again when there is.
func (h *Hub) hold(list []subscription, doc *document) *content {
	held := min(int64(len(doc.body)), heldMost)
	if !wantsContent(list) || !h.held.TryAcquire(held) {
		return nil
	}
	return &content{h.contentOf(doc), held}
}

// pass makes the attempts of a pass.
func (h *Hub) pass(p *pass) {
	if p.passed != nil {
		defer close(p.passed)
	}
	list, c := h.willing(p), p.content
	read := c == nil && wantsContent(list)
	if read || p.passed == nil {
		h.log.add("resumed", p.feed, "%s", units.Count(len(list), "subscriber"))
	}
	if read {
		var err error
		c, err = h.contentAgain(p.feed)
		if h.ctx.Err() != nil {
			h.release(c)
			return // the next hub goes on
		}
		if err != nil {
			h.log.add("unread", p.feed, "%s", reason(err, allowFeeds))
			list = slices.DeleteFunc(list, func(s subscription) bool {
				if s.Protocol == WebSub && p.take(s.key(), h.now()) {
					p.failed(s.key(), h.now(), time.Time{}, true)
				}
				return s.Protocol == WebSub
			})
		}
	}
	h.fan(p, list, c)
	h.release(c)
	h.rest(p)
}

// willing returns the subscribers of a pass who are notified now. Subscribers that sent
// Retry-After wait for a later pass.
func (h *Hub) willing(p *pass) []subscription {
	list := h.notifiable(p.hash, p.keys)
	there := make(map[string]bool, len(list))
	for _, s := range list {
		there[s.key()] = true
	}
	for _, key := range p.keys {
		if !there[key] {
			p.done(key)
		}
	}
	now := h.now()
	return slices.DeleteFunc(list, func(s subscription) bool {
		until, busy := s.busy(now)
		if busy {
			p.postpone(s.key(), until)
		}
		return busy
	})
}

// fan notifies subscribers, all hosts side by side. At a host, subscribers that failed or
// were slow the last time come last.
func (h *Hub) fan(p *pass, list []subscription, c *content) {
	queues := map[string][]*subscription{}
	var hosts []string
	for _, last := range []bool{false, true} {
		for i := range list {
			s := &list[i]
			if (s.hasFailed() || s.Slow) != last {
				continue
			}
			host := laneOf(s.Callback)
			if queues[host] == nil {
				hosts = append(hosts, host)
			}
			queues[host] = append(queues[host], s)
		}
	}
	var all sync.WaitGroup
	for _, host := range hosts {
		all.Go(func() {
			for _, s := range queues[host] {
				place, err := h.lanes.Acquire(h.ctx, host)
				if err != nil {
					return // the next hub does it
				}
				all.Go(func() {
					defer place.Release()
					h.notify(p, s, c, place)
				})
			}
		})
	}
	all.Wait()
}

// rest ends a pass, and the round if nobody is left.
func (h *Hub) rest(p *pass) {
	if h.ctx.Err() != nil {
		return // the next hub goes on
	}
	s := p.rest(h.now())
	for _, key := range s.struck {
		if _, is, _, err := h.apply(p.hash, key, struck{}, h.now(), false); err == nil && is.givenUp() {
			h.log.add("given-up", p.feed, "%s, until it registers again", hostOf(is.Callback))
		}
	}
	if s.missed > 0 {
		h.log.add("missed", p.feed, "%s not reached, and not tried again", units.Count(s.missed, "subscriber"))
	}
	if s.left > 0 {
		h.log.add("later", p.feed, "%s not reached, and tried again in %s", units.Count(s.left, "subscriber"), s.wait)
	}
	if s.ended {
		h.forgetRound(p.round)
		return
	}
	h.hurry()
}

// wantsContent reports whether somebody is to have the document itself.
func wantsContent(list []subscription) bool {
	return slices.ContainsFunc(list, func(s subscription) bool { return s.Protocol == WebSub })
}

// notify makes an attempt at one subscriber, and records the result.
func (h *Hub) notify(p *pass, s *subscription, c *content, place *limiter.Place) {
	if !p.take(s.key(), h.now()) {
		return
	}
	var err error
	gone := false
	if s.Protocol == WebSub {
		document := c.Content
		document.Topic = s.Feed
		gone, err = websub.Deliver(h.ctx, h.callbacks, s.Callback, s.Secret, document)
	} else {
		err = rsscloud.Notify(h.ctx, h.callbacks, s.Callback, s.Protocol, s.Procedure, s.Feed, false)
	}
	if h.ctx.Err() != nil {
		return // the next hub does it
	}
	var event any = delivered{slow: place.Slow()}
	switch {
	case gone:
		event = unsubscribed{}
	case err != nil:
		e := failed{text: reason(err, allowCallbacks), slow: place.Slow()}
		if status, ok := errors.AsType[*fetch.StatusError](err); ok {
			e.after = status.RetryAfter
		}
		event = e
		h.log.add("failed", s.Feed, "%s: %s", hostOf(s.Callback), e.text)
	}
	var is subscription
	if _, do := s.on(event, h.now()); do != keep {
		var do change
		if _, is, do, _ = h.apply(p.hash, s.key(), event, h.now(), false); do == remove {
			h.count(s.Caller, -1)
		}
	}
	if err != nil && !gone {
		p.failed(s.key(), h.now(), is.After, false)
		return
	}
	if p.few {
		h.log.add("notified", s.Feed, "%s by %s", hostOf(s.Callback), s.Protocol)
	}
	p.done(s.key())
}

// laneOf names the server of a callback, by host and port.
func laneOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), fetch.Port(u))
}

// hostOf is what the log tells of a callback, whose path is nobody's business.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return "?"
	}
	return u.Host
}
