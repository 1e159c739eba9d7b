package hub

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
)

// websub handles a WebSub request. It reports a bad request at once, in plain text. All
// other work is done after the answer.
func (h *Hub) websub(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	body, err := bodyOf(w, r, "request", h.opts.MaxForm)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	if form.Get("hub.mode") == "publish" {
		h.published(w, r, form)
		return
	}
	do, err := h.requested(r, form)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitMost)
	defer cancel()
	_, caller := h.caller(r)
	place, err := h.limits[verifying].Acquire(ctx, caller)
	if err != nil {
		unavailable(w, "this hub is too busy; try again later")
		return
	}
	w.WriteHeader(http.StatusAccepted)
	h.background.working.Go(func() {
		defer place.Release()
		do()
	})
}

func unavailable(w http.ResponseWriter, text string) {
	w.Header().Set("Retry-After", "10")
	http.Error(w, text, http.StatusServiceUnavailable)
}

// published adds a job for each feed that a publisher names. The jobs are durable before
// the answer. Feeds are not read if they are neither subscribed to, nor allowed, nor about to be
// subscribed to.
func (h *Hub) published(w http.ResponseWriter, r *http.Request, form url.Values) {
	topics, err := websub.ParsePublish(form)
	if err == nil && len(topics) > h.opts.MaxURLs {
		err = rsscloud.Sayf("One request can name %d feeds at most; divide it.", h.opts.MaxURLs)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, caller := h.caller(r)
	for _, t := range topics {
		hash := hashOf(t)
		// In this order, because a subscription is stored before it is no longer joining.
		if h.jobs.of(hash).joins == 0 && !h.readsForPing(hash, t) {
			h.logUnchanged(t, pingResult{nobody: true})
		} else if _, err := h.postpone(hash, job{url: t, caller: caller}, h.holdOff(hash)); err != nil {
			unavailable(w, err.Error())
			return
		}
	}
	h.hurry()
	// PubSubHubbub required this status ("MUST return a 204"), and many publishers treat
	// any other as a failure.
	w.WriteHeader(http.StatusNoContent)
}

// requested returns a function that does what a subscriber requests: it verifies the
// request and then executes it (sections 5.2 and 5.3).
func (h *Hub) requested(r *http.Request, form url.Values) (func(), error) {
	q, err := websub.ParseRequest(form)
	if err != nil {
		return nil, err
	}
	_, caller := h.caller(r)
	s := subscription{Callback: q.Callback, Protocol: WebSub, Secret: q.Secret, Feed: q.Topic, Caller: caller}
	q.Lease = lease(q.Lease)
	if q.Mode == websub.Unsubscribe {
		return func() { h.leave(s, q) }, nil
	}
	return func() {
		if err := h.join(s, q); err != nil {
			h.log.add("refused", s.Feed, "%s: %s", hostOf(s.Callback), reason(err, allowFeeds+" or "+allowCallbacks))
		} else {
			h.log.add("subscribed", s.Feed, "%s by %s for %s", hostOf(s.Callback), WebSub, q.Lease)
		}
	}, nil
}

// join makes a subscription, if the callback confirms it. It sends a denial if the topic
// cannot be read or a limit is reached.
func (h *Hub) join(s subscription, q websub.Request) error {
	ctx, cancel := context.WithTimeout(h.background.ctx, time.Minute)
	defer cancel()
	hash := hashOf(s.Feed)
	defer h.joining(hash)()
	if err := h.checkLimit(&s); err != nil {
		h.deny(ctx, q, err.Error())
		return err
	}
	doc, err := h.reader.readForSubscriber(s.Caller, s.Feed)
	if errors.Is(err, errTooBusy) {
		return err // a denial would last long; the subscriber should try again
	}
	if err != nil {
		h.deny(ctx, q, "the topic cannot be read")
		return err
	}
	begin := h.now()
	if err := h.verify(ctx, q); err != nil {
		return err
	}
	// The lease is "measured from the time the verification request was made".
	if err := h.keepSubscription(hash, s, doc, q.Lease-h.now().Sub(begin)); err != nil {
		h.deny(ctx, q, err.Error())
		return err
	}
	return nil
}

// verify asks the callback to confirm a request.
func (h *Hub) verify(ctx context.Context, q websub.Request) error {
	return h.reach(ctx, q.Callback, func() error {
		return websub.Verify(ctx, h.notifier.callbacks, q, challenge())
	})
}

// errDenied makes reach keep the request counted in the budget: it is unknown whether the
// callback really sent the request that is denied.
var errDenied = errors.New("denied")

// deny sends a denial to the callback.
func (h *Hub) deny(ctx context.Context, q websub.Request, text string) {
	_ = h.reach(ctx, q.Callback, func() error {
		websub.Deny(ctx, h.notifier.callbacks, q, text)
		return errDenied
	})
}

// leave ends a subscription, if the callback confirms it. The callback is asked even if
// there is no subscription, because the subscriber waits for the verification.
func (h *Hub) leave(s subscription, q websub.Request) {
	if err := h.verify(h.background.ctx, q); err != nil {
		h.log.add("refused", s.Feed, "%s, end of the subscription: %s", hostOf(s.Callback), reason(err, allowCallbacks))
		return
	}
	was, _, err := h.states.apply(hashOf(s.Feed), s.key(), unsubscribed, h.now())
	switch {
	case errors.Is(err, fs.ErrNotExist): // there was no subscription
	case err != nil:
		h.report.Warn("%v", err)
	default:
		h.counts.add(was.Caller, -1)
		h.log.add("unsubscribed", s.Feed, "%s", hostOf(s.Callback))
	}
}
