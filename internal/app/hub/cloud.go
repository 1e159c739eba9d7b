package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Errors for callers. Their texts are close to those of the walkthrough's cloud, which
// clients have known for years.
const (
	errFull    = rsscloud.Sentence("This hub is full and takes no more subscriptions.")
	errTooMany = rsscloud.Sentence("There are too many subscriptions from your address.")
	errHandler = rsscloud.Sentence("The subscription was cancelled because the call failed when we tested the handler.")
)

var errReading = errors.New("there was an error reading the resource at URL")

const thanks = "Thanks for the registration. It worked. When the feed updates we'll notify you. Don't forget to register again after 24 hours, your subscription will expire in 25."

// bodyOf reads the body of a request, which is what, of at most most bytes.
func bodyOf(w http.ResponseWriter, r *http.Request, what string, most int) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	if err != nil {
		return nil, rsscloud.Sayf("The %s is longer than %s, or was cut off.", what, humanize.Bytes(int64(most)))
	}
	return b, nil
}

// result answers a REST request, always with status 200: as XML, as JSON if the request
// prefers it, or as a page if the form of the page sent it.
func (h *Hub) result(w http.ResponseWriter, r *http.Request, element, msg string, err error) {
	if err != nil {
		msg = err.Error()
	}
	if r.URL.Query().Has("page") && !h.opts.NoPage {
		writePage(w, r, "answer", answerData{h.frame("Answer of the hub"), err == nil, msg})
		return
	}
	if wantsJSON(r.Header.Values("Accept")) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(struct {
			Success bool   `json:"success"`
			Msg     string `json:"msg"`
		}{err == nil, msg})
		return
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(rsscloud.EncodeResult(element, err == nil, msg))
}

// wantsJSON reports whether a request names JSON before XML, or without XML. It ignores weights.
func wantsJSON(accept []string) bool {
	wanted := strings.ToLower(strings.Join(accept, ","))
	inJSON, inXML := strings.Index(wanted, "/json"), strings.Index(wanted, "/xml")
	return inJSON >= 0 && (inXML < 0 || inJSON < inXML)
}

// pleaseNotify handles a registration by REST.
func (h *Hub) pleaseNotify(w http.ResponseWriter, r *http.Request) {
	msg, err := "", error(nil)
	body, err := bodyOf(w, r, "request", h.opts.MaxForm)
	if err == nil {
		form, _ := url.ParseQuery(string(body)) // without malformed pairs
		var q rsscloud.Request
		if q, err = rsscloud.ReadRequest(form, h.opts.MaxURLs); err == nil {
			msg, err = h.register(r, q)
		}
	}
	h.result(w, r, "notifyResult", msg, err)
}

// register makes the subscriptions of a request. It succeeds if at least one was made; the
// message then names the others.
func (h *Hub) register(r *http.Request, q rsscloud.Request) (string, error) {
	addr, caller := h.caller(r)
	if !addr.IsValid() && q.Domain == "" {
		return "", rsscloud.Sayf("Your address is unknown; give a domain.")
	}
	callback := q.Callback(addr)
	domain := q.Domain != ""
	foreign := domain && !slices.Contains(lookup(r.Context(), &h.opts.Callbacks, q.Domain), addr)
	subs := make([]subscription, len(q.URLs))
	docs := make([]*document, len(q.URLs))
	errs := make([]error, len(q.URLs))
	for _, u := range q.URLs {
		defer h.joining(hashOf(u))()
	}
	each := func(do func(i int)) {
		var all sync.WaitGroup
		for i := range q.URLs {
			if errs[i] == nil {
				all.Go(func() { do(i) })
			}
		}
		all.Wait()
	}
	each(func(i int) {
		subs[i] = subscription{Callback: callback, Protocol: q.Protocol, Procedure: q.Procedure, Feed: q.URLs[i],
			Caller: caller}
		docs[i], errs[i] = h.subscribable(&subs[i])
	})
	// The callback of a stranger is tried for one feed first. If this fails, the callback is
	// not tried for the others, so that a victim gets one request.
	var dead error
	confirmed := -1
	for i := range errs {
		if errs[i] = cmp.Or(errs[i], dead); errs[i] != nil {
			continue
		}
		tried, err := h.subscribe(r.Context(), subs[i], docs[i], domain, foreign)
		if errs[i] = err; err == nil {
			confirmed = i
			break
		}
		if tried {
			dead = err
		}
	}
	each(func(i int) {
		if i > confirmed {
			_, errs[i] = h.subscribe(r.Context(), subs[i], docs[i], domain, foreign)
		}
	})
	return h.registered(q.URLs, callback, q.Protocol, errs)
}

// registered logs the results of a registration, and returns the message or error for the
// caller.
func (h *Hub) registered(urls []string, callback, protocol string, errs []error) (string, error) {
	var failed []string
	var first error
	for i, u := range urls {
		if errs[i] == nil {
			h.log.add("subscribed", u, "%s by %s", hostOf(callback), protocol)
			continue
		}
		h.log.add("refused", u, "%s: %s", hostOf(callback), errs[i])
		failed = append(failed, u)
		first = cmp.Or(first, errs[i])
	}
	switch len(failed) {
	case len(urls):
		return "", first
	case 0:
		return thanks, nil
	}
	return thanks + " But not for " + strings.Join(failed, ", ") + ": " + first.Error(), nil
}

// subscribable reads the feed of a subscription. It fails if the caller cannot have another
// subscription.
func (h *Hub) subscribable(s *subscription) (*document, error) {
	if err := checkFeed(s.Feed); err != nil {
		return nil, err
	}
	if err := h.checkLimit(s); err != nil {
		return nil, err
	}
	doc, err := h.reader.readForSubscriber(s.Caller, s.Feed)
	if err != nil && !errors.Is(err, errTooBusy) {
		h.log.add("unread", s.Feed, "%s", reason(err, allowFeeds))
		return nil, unread("subscription", s.Feed)
	}
	return doc, err
}

// subscribe makes one subscription, if the callback confirms it. tried reports whether an
// error concerns the callback, so that it must not be tried for other feeds.
func (h *Hub) subscribe(ctx context.Context, s subscription, doc *document, domain, foreign bool) (tried bool,
	err error) {
	place, err := h.limits[verifying].Acquire(ctx, s.Caller)
	if err != nil {
		return false, err
	}
	defer place.Release()
	err = h.reach(ctx, s.Callback, func() error { return h.try(ctx, s, domain, foreign) })
	if errors.Is(err, errTooBusy) {
		return true, err
	}
	if err != nil {
		h.log.add("untried", s.Feed, "%s: %s", hostOf(s.Callback), reason(err, allowCallbacks))
		if private := (*httpmsg.PrivateError)(nil); errors.As(err, &private) {
			return true, rsscloud.Sayf("%v It is at a private address.", errHandler)
		}
		return true, errHandler
	}
	return false, h.keepSubscription(hashOf(s.Feed), s, doc, CloudExpire)
}

// keepSubscription stores a verified subscription durably. If others were notified of an
// update after doc was read, the subscriber is notified, too.
func (h *Hub) keepSubscription(hash string, s subscription, doc *document, lease time.Duration) error {
	if err := h.states.noteFeed(hash, feedState{s.Feed, doc.digest, doc.length, h.now()}); err != nil {
		return h.failing(err)
	}
	was, _, err := h.states.apply(hash, s.key(), verified(s, lease), h.now())
	if err != nil {
		return h.failing(err)
	}
	if was.Callback != "" {
		h.counts.add(was.Caller, -1)
	}
	h.counts.add(s.Caller, 1)
	if was.wants(h.now()) {
		return nil // the update has a job for it
	}
	f, err := h.states.readFeed(hash)
	if err == nil && f.Digest != doc.known && f.Digest != doc.digest {
		err = h.jobs.notify(hash, s.key())
	}
	if err != nil {
		h.report.Warn("%v", err)
	}
	return nil
}

// failing reports an error of this machine, and returns a general error for the caller.
func (h *shared) failing(err error) error {
	h.report.Warn("%v", err)
	return rsscloud.Sayf("This hub cannot store it now; try again later.")
}

// try tests the handler of a subscriber: with a challenge if the request names a domain,
// otherwise with a notification. By XML-RPC it sends a notification if the domain is that
// of the caller. At another domain, it sends one if the challenge fails.
func (h *Hub) try(ctx context.Context, s subscription, domain, foreign bool) error {
	rpc := s.Protocol == rsscloud.XMLRPC
	if domain && (foreign || !rpc) {
		err := rsscloud.Verify(ctx, h.notifier.callbacks, s.Callback, s.Feed, challenge())
		if err == nil || !rpc {
			return err
		}
	}
	return rsscloud.Notify(ctx, h.notifier.callbacks, s.Callback, s.Protocol, s.Procedure, s.Feed, domain && foreign)
}

// checkFeed returns an error if a text is not the URL of a feed.
func checkFeed(feedURL string) error {
	if !websub.IsURL(feedURL) {
		return rsscloud.Sayf("%q is not the URL of a feed.", oneField(feedURL))
	}
	return nil
}

// pingREST handles a ping by REST.
func (h *Hub) pingREST(w http.ResponseWriter, r *http.Request) {
	body, err := bodyOf(w, r, "request", h.opts.MaxForm)
	msg := ""
	if err == nil {
		err = rsscloud.Missing("url")
		form, _ := url.ParseQuery(string(body)) // without malformed pairs
		for name := range form {
			if u := strings.TrimSpace(form.Get(name)); strings.EqualFold(name, "url") && u != "" {
				msg, err = h.pinged(r, u)
				break
			}
		}
	}
	h.result(w, r, "result", msg, err)
}

// pinged handles a ping. It waits up to h.pingWait until all subscribers are notified.
func (h *Hub) pinged(r *http.Request, feedURL string) (string, error) {
	if err := checkFeed(feedURL); err != nil {
		return "", err
	}
	_, caller := h.caller(r)
	hash, job := hashOf(feedURL), job{url: feedURL, caller: caller}
	wait := h.holdOff(hash)
	if joining := h.jobs.of(hash).joins > 0 && !h.states.subscribedTo(hash); joining || wait > 0 &&
		h.readsForPing(hash, feedURL) {
		if _, err := h.postpone(hash, job, wait); err != nil {
			return "", err
		}
		if joining {
			return "Thanks for the ping. The feed is read when a subscription to it is confirmed.", nil
		}
		return fmt.Sprintf("Thanks for the ping. The feed was read recently; it is read again in %s.",
			wait.Round(time.Second)), nil
	}
	t, err := h.reader.ping(job)
	var ours rsscloud.Sentence
	switch {
	case err == nil:
	case errors.As(err, &ours) && !errors.Is(err, errTooBusy):
		return "", err // the hub could not write, or refused
	case t.again > 0:
		return fmt.Sprintf("Thanks for the ping. The feed cannot be read now; it is read again in %s.",
			roundUp(t.again)), nil
	case errors.Is(err, errTooBusy):
		return "", err
	default:
		return "", unread("ping", feedURL)
	}
	if !t.changed {
		h.logUnchanged(feedURL, t)
		if t.nobody {
			return "Thanks for the ping. Nobody subscribes to the feed here.", nil
		}
		return "Thanks for the ping. The feed has not changed since the last ping.", nil
	}
	if t.done != nil {
		select {
		case <-t.done:
		case <-time.After(h.pingWait):
		}
	}
	return fmt.Sprintf("Thanks for the ping. The feed has changed; %s will be notified.",
		humanize.Count(t.subscribers, "subscriber")), nil
}

// faultCode is the code of all rssCloud faults.
const faultCode = 4

// rpc2 handles an XML-RPC request.
func (h *Hub) rpc2(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	value, err := h.call(w, r)
	if err != nil {
		_, _ = w.Write(rsscloud.EncodeFault(faultCode, err.Error()))
		return
	}
	_, _ = w.Write(rsscloud.EncodeResponse(value))
}

// call makes an XML-RPC call, and returns its result.
func (h *Hub) call(w http.ResponseWriter, r *http.Request) (any, error) {
	most := rsscloud.MaxMessage
	if h.users != nil && (r.ContentLength > int64(most) || r.ContentLength < 0) {
		// The call may hold a feed. Only a few such calls are in memory at once.
		most = h.opts.MaxSave*2 + rsscloud.MaxMessage // doubled, because characters may be written as references
		if r.ContentLength > int64(most) {
			return nil, rsscloud.Sayf("The call is longer than %s.", humanize.Bytes(int64(most)))
		}
		_, caller := h.caller(r)
		place, err := h.limits[saving].Acquire(r.Context(), caller)
		if err != nil {
			return nil, err
		}
		defer place.Release()
	}
	m, err := message(w, r, most)
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(m.Method) {
	case "rsscloud.hello":
		return true, nil
	case "rsscloud.pleasenotify":
		q, err := rsscloud.RequestOf(m.Params, h.opts.MaxURLs)
		if err != nil {
			return nil, err
		}
		_, err = h.register(r, q)
		return true, err
	case "rsscloud.ping":
		switch {
		case len(m.Params) < 1 || m.Params[0].Text == "":
			return nil, rsscloud.Sayf(`Can't call "ping" because there aren't enough parameters.`)
		case len(m.Params) > 1:
			return nil, rsscloud.Sayf(`Can't call "ping" because there are too many parameters.`)
		}
		// Clouds have always answered true, whatever the result.
		_, _ = h.pinged(r, m.Params[0].Text)
		return true, nil
	case "rsscloud.saverss":
		return h.save(r, m.Params)
	}
	return nil, rsscloud.Sayf("Can't make the call because %q is not defined.", oneField(m.Method))
}

// message reads a call of at most most bytes.
func message(w http.ResponseWriter, r *http.Request, most int) (*rsscloud.Message, error) {
	b, err := bodyOf(w, r, "call", most)
	if err != nil {
		return nil, err
	}
	m, err := rsscloud.DecodeLong(b, most)
	if err != nil {
		return nil, rsscloud.Sayf("Can't read the call: %v.", err)
	}
	return m, nil
}
