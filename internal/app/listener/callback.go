package listener

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/serve"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/websub"
)

// maxContent is the largest delivery whose signature is checked. It is not kept,
// so this bounds time, not memory.
const maxContent = 32 << 20

// ServeHTTP is the callback. The last part of the path is the token; what is in
// front of it does not count, as a proxy may have taken it away, nor does its
// case or a slash at the end.
//
//	GET without a query   200 for a callback that there is
//	GET with a challenge  the challenge, while a registration is under way
//	GET with hub.mode     the challenge, if it was our intent
//	POST                  a notification, or WebSub's content: 200 whatever it says
//
// A token that there is not gets 404, and 410 for a POST, by which a WebSub hub
// ends what it still delivers (section 7). Answers are text/plain, and do not
// tell whether a feed is subscribed to.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	l.mu.Lock()
	cb := l.callbacks.byToken[feeddir.TokenOf(r.URL.Path)]
	l.mu.Unlock()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case cb == nil:
			http.Error(w, "not found", http.StatusNotFound)
		case cb.websub:
			l.intent(w, r, cb)
		default:
			l.challenge(w, r, cb)
		}
	case http.MethodPost:
		switch {
		case cb == nil:
			drain(w, r)
			http.Error(w, "gone", http.StatusGone)
		case cb.websub:
			l.content(w, r, cb)
		default:
			l.notification(w, r, cb)
		}
	default:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "only GET and POST", http.StatusMethodNotAllowed)
	}
}

// challenge answers a cloud's verification of a registration.
func (l *Listener) challenge(w http.ResponseWriter, r *http.Request, cb *callback) {
	if !strings.Contains(r.URL.RawQuery, "challenge=") {
		return // some look first whether anybody is there
	}
	var wanted []string
	l.mu.Lock()
	if cb.asking != nil {
		wanted = slices.Clone(cb.asking.urls)
	}
	for f := range cb.feeds {
		if f.State == Suspect { // some verify it after they have answered
			wanted = append(wanted, f.Topic, f.alias)
		}
	}
	l.mu.Unlock()
	text, topic, ok := rsscloud.Challenge(r.URL.RawQuery, wanted)
	if !ok || len(wanted) == 0 {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	l.challenged(cb, topic)
	_, _ = io.WriteString(w, text) // and nothing else: some compare it
}

// challenged takes down that a cloud verifies a registration for a feed; with "" it
// did not say for which.
func (l *Listener) challenged(cb *callback, topic string) {
	var suspects []*feed
	k := rsscloud.Key(topic)
	l.mu.Lock()
	if a := cb.asking; a != nil {
		for _, u := range a.urls {
			if u != "" && (topic == "" || rsscloud.Key(u) == k) {
				a.called(rsscloud.Key(u)).challenged = true
			}
		}
	}
	for f := range cb.feeds {
		if f.State == Suspect && (topic == "" && len(cb.feeds) == 1 || slices.Contains(f.keys, k)) {
			suspects = append(suspects, f)
		}
	}
	l.mu.Unlock()
	for _, f := range suspects {
		l.apply(f, called{})
	}
}

// notification takes an rssCloud notification.
func (l *Listener) notification(w http.ResponseWriter, r *http.Request, cb *callback) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rsscloud.MaxMessage))
	if err != nil {
		http.Error(w, "the request is too long, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	n, err := rsscloud.ReadNotification(r.Header.Get("Content-Type"), r.URL.RawQuery, body)
	if n.XMLRPC {
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	}
	if err != nil {
		l.trace(r, "a notification that cannot be read: %s", termsafe.Brief(err.Error()))
		var soap *rsscloud.SOAPError
		switch {
		case errors.As(err, &soap):
			http.Error(w, err.Error(), http.StatusUnsupportedMediaType)
		case n.XMLRPC:
			_, _ = w.Write(rsscloud.EncodeFault(400, "the call cannot be read"))
		default:
			http.Error(w, "no url in the request", http.StatusBadRequest)
		}
		return
	}
	var hit []*feed
	l.mu.Lock()
	for _, u := range n.URLs {
		k := rsscloud.Key(u)
		if a := cb.asking; a != nil && a.asks(k) && a.called(k).post() {
			continue // to see whether somebody is there
		}
		for f := range cb.feeds {
			if slices.Contains(f.keys, k) {
				hit = append(hit, f)
			}
		}
	}
	l.mu.Unlock()
	for _, f := range hit {
		l.notified(f)
	}
	l.trace(r, "notified of %s", termsafe.Brief(strings.Join(n.URLs, " ")))
	if n.XMLRPC {
		_, _ = w.Write(rsscloud.EncodeResponse(true))
	}
}

// subscription returns the feed of a WebSub callback, and its registration; nil when
// it was purged.
func (l *Listener) subscription(cb *callback) (*feed, registration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range cb.feeds {
		return f, f.registration
	}
	return nil, registration{}
}

// intent answers a hub's verification (section 5.3) or denial (5.2).
func (l *Listener) intent(w http.ResponseWriter, r *http.Request, cb *callback) {
	in, err := websub.ParseIntent(r.URL.Query())
	f, _ := l.subscription(cb)
	switch {
	case f != nil && errors.Is(err, websub.ErrNoIntent) && r.URL.RawQuery == "":
		return // some look first whether anybody is there
	case f != nil && err == nil:
		_, is, do := l.apply(f, intent(in))
		switch {
		case do&confirm == 0:
		case in.Mode == websub.Denied:
			return
		default:
			_, _ = io.WriteString(w, in.Challenge)
			if in.Mode == websub.Subscribe {
				l.trace(r, "subscription to %s verified", is.Topic)
			}
			return
		}
	}
	http.Error(w, "not found", http.StatusNotFound)
}

// content takes a delivery of WebSub (sections 7 and 8). What is delivered is
// read only to check its signature: the feed itself is fetched.
func (l *Listener) content(w http.ResponseWriter, r *http.Request, cb *callback) {
	defer drain(w, r)
	f, reg := l.subscription(cb)
	if f == nil || reg.url == "" || reg.over() {
		http.Error(w, "gone", http.StatusGone)
		return
	}
	var e delivered
	if reg.Secret != "" {
		method, err := checkSignature(r.Header.Get("X-Hub-Signature"), &reg.Registration, http.MaxBytesReader(w, r.Body, maxContent))
		if e.method = method; err != nil {
			e.wrong = termsafe.Brief(err.Error())
		}
	}
	_, _, do := l.apply(f, e)
	switch {
	case do&believe != 0:
		l.notified(f)
		l.trace(r, "content of %s delivered", reg.Topic)
	case do&save != 0:
		// It is acknowledged all the same, so that who tries learns nothing.
		l.trace(r, "%s: %s%s", reg.Topic, ignored, e.wrong)
	}
}

// drain reads what is left of a delivery: a hub that is cut off while it sends
// does not see the answer.
func drain(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxContent))
}

// checkSignature reads content, and returns the method by which it is signed.
func checkSignature(header string, st *feeddir.Registration, content io.Reader) (string, error) {
	sig, err := websub.ParseSignature(header)
	if err != nil {
		return "", err
	}
	// A hub may go from one to another, but not to one that others can forge one day.
	if weakest := 1; websub.Strength(sig.Method) == weakest && websub.Strength(st.Signature) > weakest {
		return "", fmt.Errorf("it is signed with %s, and those before with %s", sig.Method, st.Signature)
	}
	h := sig.Hash(st.Secret)
	if _, err := io.Copy(h, content); err != nil {
		return "", fmt.Errorf("it broke off or is too long: %w", err)
	}
	if !sig.Matches(h) {
		return "", errors.New("the signature is wrong")
	}
	return sig.Method, nil
}

// trace reports a request, on request.
func (l *Listener) trace(r *http.Request, format string, args ...any) {
	if l.opts.Verbose {
		l.report.Info("%s: %s", serve.Peer(r, l.opts.TrustedProxies), fmt.Sprintf(format, args...))
	}
}
