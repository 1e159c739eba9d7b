package hub

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/websub"
)

// websub is the hub of WebSub. What it cannot do at all it says at once, in plain text;
// the rest goes on when it has answered.
func (h *Hub) websub(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	body, err := h.bodyOf(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	form, err := url.ParseQuery(body)
	if err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	var do func()
	accepted := http.StatusAccepted
	if form.Get("hub.mode") == "publish" {
		// What PubSubHubbub had for publishers ("MUST return a 204"), and many of them
		// take all else for a failure.
		accepted = http.StatusNoContent
		do, err = h.published(r, form)
	} else {
		do, err = h.requested(r, form)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitMost)
	defer cancel()
	_, caller := h.caller(r)
	leave, err := h.verifying.enter(ctx, caller)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too much at once; try again later", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(accepted)
	h.working.Go(func() {
		defer leave()
		do()
	})
}

// published gives what a publisher asks for.
func (h *Hub) published(r *http.Request, form url.Values) (func(), error) {
	topics, err := websub.ParsePublish(form)
	if err != nil {
		return nil, err
	}
	if len(topics) > h.opts.MaxURLs {
		return nil, rsscloud.Sayf("One request can name %d feeds at most; divide it.", h.opts.MaxURLs)
	}
	detached := r.WithContext(h.ctx)
	return func() {
		for _, t := range topics {
			_, _ = h.pinged(detached, t) // the log has it
		}
	}, nil
}

// requested gives what a subscriber asks for: to verify that it is he, and then to do
// it (sections 5.2 and 5.3).
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

// join makes a subscription, when the callback confirms it. It is denied where the
// topic cannot be read, or there is no room.
func (h *Hub) join(s subscription, q websub.Request) error {
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	hash := hashOf(s.Feed)
	if _, err := h.read(hash, s.key()); err != nil {
		if err := h.room(s.Caller); err != nil {
			websub.Deny(ctx, h.callbacks, q, err.Error())
			return err
		}
	}
	doc, err := h.look(ctx, s.Caller, s.Feed)
	if errors.Is(err, errMuch) {
		return err // he is not denied, which would count for long, and asks again
	}
	if err != nil {
		websub.Deny(ctx, h.callbacks, q, "the topic cannot be read")
		return err
	}
	begin := h.now()
	if err := websub.Verify(ctx, h.callbacks, q, challenge()); err != nil {
		return err
	}
	// The lease is "measured from the time the verification request was made".
	if err := h.keepSubscription(hash, s, doc, q.Lease-h.now().Sub(begin)); err != nil {
		websub.Deny(ctx, h.callbacks, q, err.Error())
		return err
	}
	return nil
}

// leave ends a subscription, when the callback confirms it. It is asked where there is
// none, too: the subscriber waits for that.
func (h *Hub) leave(s subscription, q websub.Request) {
	hash := hashOf(s.Feed)
	was, rerr := h.read(hash, s.key())
	if err := websub.Verify(h.ctx, h.callbacks, q, challenge()); err != nil {
		h.log.add("refused", s.Feed, "%s, the end: %s", hostOf(s.Callback), reason(err, allowCallbacks))
		return
	}
	if rerr != nil {
		return // there was none
	}
	if _, _, do, err := h.apply(hash, s.key(), unsubscribed{}, h.now(), true); err != nil {
		h.report.Warn("%v", err)
	} else if do == remove {
		h.count(was.Caller, -1)
		h.log.add("unsubscribed", s.Feed, "%s", hostOf(s.Callback))
	}
}
