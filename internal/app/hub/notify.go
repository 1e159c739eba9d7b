package hub

import (
	"cmp"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// fewKeys is the number of subscribers of a round up to which each one is logged.
const fewKeys = 10

// heldContent is a document for WebSub subscribers. held is the part of [notifier].held that it
// has acquired, in bytes.
type heldContent struct {
	websub.Content
	held int64
}

// notifier notifies subscribers.
type notifier struct {
	*shared
	callbacks *fetch.Client
	held      *semaphore.Weighted // memory for content, in bytes
}

// publish adds jobs to notify the subscribers of a feed of a changed document.
func (h *notifier) publish(hash string, f feedState, doc *document) (pingResult, error) {
	t := pingResult{changed: true}
	var keys []string
	// A subscription that is stored meanwhile would neither be listed nor find the update
	// recorded, see keepSubscription.
	err := h.states.locked(hash, func() error {
		all, err := h.states.keys(hash)
		if err != nil {
			return err
		}
		list, unread, _ := h.notifiable(hash, all)
		keys = unread
		for _, s := range list {
			keys = append(keys, s.key())
		}
		c := h.hold(list, doc)
		older, err := h.jobs.update(hash, f, keys, c, h.now())
		if err != nil {
			h.release(c)
			return err
		}
		h.release(older)
		h.record(hash, f)
		return nil
	})
	if err != nil {
		return t, err
	}
	h.log.add("updated", f.URL, "%s", humanize.Count(len(keys), "subscriber"))
	h.hurry()
	t.subscribers = len(keys)
	if p := h.jobs.of(hash).running; p != nil {
		t.done = p.done
	}
	return t, nil
}

// wantsContent reports whether any subscriber gets the document itself.
func wantsContent(list []subscription) bool {
	return slices.ContainsFunc(list, func(s subscription) bool { return s.Protocol == WebSub })
}

// contentOf returns a document for distribution that holds n bytes of memory.
func (h *notifier) contentOf(doc *document, n int64) *heldContent {
	return &heldContent{websub.Content{Hub: h.public("/websub"), Type: cmp.Or(doc.kind, "application/octet-stream"),
		Body: doc.body}, n}
}

// hold acquires memory for a document for WebSub subscribers. It returns nil if there are
// none, or too little memory: then the document is read again later.
func (h *notifier) hold(list []subscription, doc *document) *heldContent {
	n := min(int64(len(doc.body)), heldMost)
	if !wantsContent(list) || !h.held.TryAcquire(n) {
		return nil
	}
	return h.contentOf(doc, n)
}

// contentAgain reads the document of a feed again. Until it is read, it holds memory for
// the largest possible feed.
func (h *notifier) contentAgain(feedURL string) (*heldContent, error) {
	most := min(h.opts.Feeds.MaxBytes, heldMost)
	if most <= 0 {
		most = heldMost
	}
	if err := h.held.Acquire(h.background.ctx, most); err != nil {
		return nil, err
	}
	doc, err := h.get(feedURL)
	if err != nil {
		h.held.Release(most)
		return nil, err
	}
	n := min(int64(len(doc.body)), most)
	h.held.Release(most - n)
	return h.contentOf(doc, n), nil
}

// release releases the memory of c; nil is allowed.
func (h *notifier) release(c *heldContent) {
	if c != nil {
		h.held.Release(c.held)
	}
}

// notifyRound makes the attempts of a round. If the hub is stopped, the next hub continues.
func (h *notifier) notifyRound(p *round) {
	defer close(p.done)
	list, c := h.ready(p), p.content
	if f, _ := h.states.readFeed(p.hash); f.URL != "" {
		p.feed = f.URL
	} else if len(list) > 0 {
		p.feed = list[0].Feed // the file of the feed was removed, or cannot be read
	}
	read := c == nil && wantsContent(list)
	if read || !p.fresh {
		h.log.add("resumed", p.feed, "%s", humanize.Count(len(list), "subscriber"))
	}
	if read {
		var err error
		if c, err = h.contentAgain(p.feed); err != nil && h.background.ctx.Err() == nil {
			h.log.add("unread", p.feed, "%s", reason(err, allowFeeds))
			list = slices.DeleteFunc(list, func(s subscription) bool {
				if s.Protocol == WebSub {
					h.countUnread(p, s.key())
				}
				return s.Protocol == WebSub
			})
		}
	}
	if h.background.ctx.Err() == nil {
		h.notifyAll(p, list, c)
	}
	h.release(c)
	if h.background.ctx.Err() == nil {
		h.conclude(p)
	}
}

// notifiable calls [states.notifiable], and warns of subscriptions that cannot be read.
func (h *notifier) notifiable(hash string, keys []string) (list []subscription, unread, ended []string) {
	list, unread, ended, err := h.states.notifiable(hash, keys, h.now())
	if len(unread) > 0 {
		h.report.Warn("%s cannot be read, and will be notified later: %v", humanize.Count(len(unread), "subscription"),
			err)
	}
	return list, unread, ended
}

// countUnread counts a failed attempt, because the feed or the subscription cannot be read.
func (h *notifier) countUnread(p *round, key string) {
	if h.jobs.take(p, key, h.now()) {
		h.jobs.failed(p, key, h.now(), 0, true)
	}
}

// ready returns the subscribers of a round that can be notified now. Subscriptions that cannot be read
// wait for a later round.
func (h *notifier) ready(p *round) []subscription {
	list, unread, ended := h.notifiable(p.hash, p.keys)
	for _, key := range unread {
		h.countUnread(p, key)
	}
	for _, key := range ended {
		h.jobs.hasNotified(p, key)
	}
	return list
}

// notifyAll notifies subscribers, on all hosts concurrently. Subscribers that failed or were slow
// last time come last on their host.
func (h *notifier) notifyAll(p *round, list []subscription, c *heldContent) {
	slices.SortStableFunc(list, func(a, b subscription) int { return cmp.Compare(a.rank(), b.rank()) })
	queues := map[string][]*subscription{}
	for i := range list {
		host := fetch.HostKey(list[i].Callback)
		queues[host] = append(queues[host], &list[i])
	}
	var all sync.WaitGroup
	for host, queue := range queues {
		all.Go(func() {
			for _, s := range queue {
				place, err := h.limits[calling].Acquire(h.background.ctx, host)
				if err != nil {
					return // the next hub continues
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

// conclude ends a round, and logs the result.
func (h *notifier) conclude(p *round) {
	retryCount, next := h.jobs.end(p, h.now())
	for _, key := range p.struck {
		_, is, err := h.states.apply(p.hash, key, struck, h.now())
		switch {
		case errors.Is(err, fs.ErrNotExist): // the subscription has ended meanwhile
		case err != nil:
			h.report.Warn("a failure of a subscriber is not counted: %v", err)
		case is.givenUp():
			h.log.add("given-up", p.feed, "%s, until it registers again", hostOf(is.Callback))
		}
	}
	if p.missed > 0 {
		h.log.add("missed", p.feed, "%s not reached, and not tried again", humanize.Count(p.missed, "subscriber"))
	}
	if retryCount > 0 {
		h.log.add("later", p.feed, "%s not reached, and tried again in %s", humanize.Count(retryCount, "subscriber"),
			next.Sub(h.now()))
	}
	h.hurry()
}

// notify makes an attempt at one subscriber, and records the result.
func (h *notifier) notify(p *round, s *subscription, c *heldContent, place *limiter.Place) {
	if !h.jobs.take(p, s.key(), h.now()) {
		return
	}
	// The subscription may have ended since the round began, or have a new secret.
	list, unread, _ := h.notifiable(p.hash, []string{s.key()})
	switch {
	case len(unread) > 0:
		h.jobs.failed(p, s.key(), h.now(), 0, true)
		return
	case len(list) == 0:
		h.jobs.hasNotified(p, s.key())
		return
	}
	s = &list[0]
	var err error
	gone := false
	if s.Protocol == WebSub {
		document := c.Content
		document.Topic = s.Feed
		gone, err = websub.Deliver(h.background.ctx, h.callbacks, s.Callback, s.Secret, document)
	} else {
		err = rsscloud.Notify(h.background.ctx, h.callbacks, s.Callback, s.Protocol, s.Procedure, s.Feed, false)
	}
	if h.background.ctx.Err() != nil {
		return // the next hub continues
	}
	result := delivered(place.Slow())
	switch {
	case gone:
		result = unsubscribed
	case err != nil:
		text := reason(err, allowCallbacks)
		result = failed(text, place.Slow())
		h.log.add("failed", s.Feed, "%s: %s", hostOf(s.Callback), text)
	}
	is := *s
	if result(&is, h.now()); is != *s {
		h.recordResult(p.hash, s, result)
	}
	if err != nil && !gone {
		h.jobs.failed(p, s.key(), h.now(), min(httpmsg.Pause(err), mostAfter), false)
		return
	}
	if len(p.keys) <= fewKeys {
		h.log.add("notified", s.Feed, "%s by %s", hostOf(s.Callback), s.Protocol)
	}
	h.jobs.hasNotified(p, s.key())
}

// recordResult applies the result of a notification to the subscription's file. If the file cannot be
// written, the notification still counts, because sending it again would not help.
func (h *notifier) recordResult(hash string, s *subscription, result transition) {
	_, is, err := h.states.apply(hash, s.key(), result, h.now())
	switch {
	case errors.Is(err, fs.ErrNotExist): // the subscription has ended meanwhile
	case err != nil:
		h.report.Warn("%s: the result of a notification is not recorded: %v", s.Feed, err)
	case is.Callback == "":
		h.counts.add(s.Caller, -1)
	}
}

// hostOf returns the host of a callback for the log. The path is a secret of the
// subscriber.
func hostOf(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		return "?"
	}
	return u.Host
}
