package hub

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/websub"
)

// lanes are the places of notifications that are under way. One that takes long goes
// over to the slow lane, where there are many more, so that it keeps no place from
// those that take a moment.
type lanes struct{ quick, slow chan struct{} }

// place is one that a notification has.
type place struct {
	lanes lanes
	timer *time.Timer
	mu    sync.Mutex
	slow  bool
	over  bool
}

// enter waits for a place; nil when ctx ends.
func (l lanes) enter(ctx context.Context) *place {
	select {
	case l.quick <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	p := &place{lanes: l}
	p.timer = time.AfterFunc(handOver, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over {
			return
		}
		select {
		case l.slow <- struct{}{}:
			p.slow = true
			<-l.quick
		default:
		}
	})
	return p
}

func (p *place) leave() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.slow {
		<-p.lanes.slow
	} else {
		<-p.lanes.quick
	}
}

// publish has the subscribers of a feed notified that its document is another one now.
func (h *Hub) publish(hash string, f feedState, doc *document) (told, error) {
	t := told{changed: true}
	keys, err := h.keys(hash)
	if err != nil {
		return t, err
	}
	list := h.notifiable(hash, keys)
	var p *pending
	if len(list) > 0 {
		keys = keys[:0]
		for _, s := range list {
			keys = append(keys, s.key())
		}
		if p, err = h.begun(hash, f.URL, keys); err != nil {
			return t, err
		}
	}
	// After the journal: who is killed between the two notifies twice rather than
	// never.
	if err := h.writeFeed(hash, f); err != nil {
		h.report.Warn("%v", err) // the next ping finds it changed once more
	}
	h.log.add("updated", f.URL, "%s", units.Count(len(list), "subscriber"))
	if t.subscribers = len(list); t.subscribers == 0 {
		return t, nil
	}
	done := make(chan struct{})
	t.done = done
	h.enter(p)
	list = h.willing(p, list)
	content := h.contentOf(doc)
	held, room := h.holds(list, &content)
	h.working.Go(func() {
		defer close(done)
		if !room {
			h.pass(p) // reads it again when there is
			return
		}
		h.fan(p, list, content, held)
	})
	return t, nil
}

// contentOf is what is distributed of a document.
func (h *Hub) contentOf(doc *document) websub.Content {
	return websub.Content{Hub: h.public("/websub"), Type: cmp.Or(doc.kind, "application/octet-stream"), Body: doc.body}
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

// willing gives those who are to be notified now. Who wants to be left alone for some
// time is, and is in a later pass.
func (h *Hub) willing(p *pending, list []subscription) []subscription {
	now := h.now()
	return slices.DeleteFunc(list, func(s subscription) bool {
		until, busy := s.busy(now)
		if busy {
			p.later(s.key(), until)
		}
		return busy
	})
}

// fan is a pass of a round, the first or another: it notifies everybody in it, all hosts
// side by side, several at a host, and those first that did not fail the last time. held
// is what is to be released of the memory for content.
func (h *Hub) fan(p *pending, list []subscription, content websub.Content, held int64) {
	defer h.rest(p)
	defer h.held.Release(held)
	hosts := map[string][]*subscription{}
	var order [2][]string // of hosts; the second are those that have failed
	for i := range list {
		s := &list[i]
		host, failing := hostOf(s.Callback), min(s.Errors, 1)
		name := host + string(rune('0'+failing))
		if hosts[name] == nil {
			order[failing] = append(order[failing], name)
		}
		hosts[name] = append(hosts[name], s)
	}
	var all sync.WaitGroup
	for _, names := range order {
		for _, name := range names {
			queue := hosts[name]
			var next atomic.Int64
			for range min(len(queue), max(h.opts.Callbacks.PerHost, 1)) {
				all.Go(func() {
					for i := next.Add(1) - 1; i < int64(len(queue)) && h.ctx.Err() == nil; i = next.Add(1) - 1 {
						if place := h.lanes.enter(h.ctx); place != nil {
							h.notify(p, queue[i], content)
							place.leave()
						}
					}
				})
			}
		}
	}
	all.Wait()
}

// rest is the end of a pass: of the round, too, or until those that were not reached are
// tried again.
func (h *Hub) rest(p *pending) {
	if h.ctx.Err() != nil {
		p.stop() // the next hub goes on
		return
	}
	r := p.rest(h.now())
	if r.missed > 0 {
		h.log.add("missed", p.feed, "%s not reached, and not tried again", units.Count(r.missed, "subscriber"))
	}
	if r.left == 0 {
		h.over(p)
		return
	}
	h.log.add("later", p.feed, "%s not reached, and tried again in %s", units.Count(r.left, "subscriber"), r.wait)
	h.poke()
}

// holds takes memory for content that somebody is to have, and drops what nobody is, or
// for which there is no room. It gives what is to be released, and false for no room.
func (h *Hub) holds(list []subscription, content *websub.Content) (held int64, room bool) {
	if !wantsContent(list) {
		content.Body = nil
		return 0, true
	}
	if held = min(int64(len(content.Body)), heldMost); !h.held.TryAcquire(held) {
		content.Body = nil
		return 0, false
	}
	return held, true
}

// wantsContent reports whether somebody is to have the document itself.
func wantsContent(list []subscription) bool {
	return slices.ContainsFunc(list, func(s subscription) bool { return s.Protocol == WebSub })
}

// notify notifies one subscriber, and takes down what came of it. It counts as an error
// once in a round, however often he is tried.
func (h *Hub) notify(p *pending, s *subscription, content websub.Content) {
	if !p.wants(s.key()) {
		return // a later round has him
	}
	var err error
	gone := false
	if s.Protocol == WebSub {
		content.Topic = s.Feed
		gone, err = websub.Deliver(h.ctx, h.callbacks, s.Callback, s.Secret, content)
	} else {
		err = rsscloud.Notify(h.ctx, h.callbacks, s.Callback, s.Protocol, s.Procedure, s.Feed, false)
	}
	if h.ctx.Err() != nil {
		return // the next hub does it
	}
	var event any = delivered{}
	switch {
	case gone:
		event = unsubscribed{}
	case err != nil:
		e := failed{text: err.Error(), again: p.tried(s.key())}
		if status, ok := errors.AsType[*fetch.StatusError](err); ok {
			e.after = status.RetryAfter
		}
		event = e
		h.log.add("failed", s.Feed, "%s: %s", hostOf(s.Callback), reason(err, allowCallbacks))
	}
	var is subscription
	if s.hasFailed() || event != any(delivered{}) {
		var do change
		if _, is, do, _ = h.apply(p.hash, s.key(), event, h.now(), false); do == remove {
			h.count(s.Caller, -1)
		}
	}
	if err != nil && !gone {
		p.failed(s.key())
		p.later(s.key(), is.After)
		return
	}
	if p.few {
		h.log.add("notified", s.Feed, "%s by %s", hostOf(s.Callback), s.Protocol)
	}
	p.done(s.key())
}

// hostOf is what the log tells of a callback, whose path is nobody's business.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return "?"
	}
	return u.Host
}
