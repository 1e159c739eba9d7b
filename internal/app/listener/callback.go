package listener

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// maxContent is the largest delivery whose signature is checked, in bytes. It limits time,
// not memory, because deliveries are not kept.
const maxContent = 32 << 20

// ServeHTTP serves the callbacks. The last part of the path is the token, in any case and
// with or without a final slash. The parts before it are ignored, because a proxy may
// remove them.
//
//	GET without a query   200, if the callback exists
//	GET with a challenge  the challenge, during a registration
//	GET with hub.mode     the challenge, if the listener sent that request
//	POST                  a notification or WebSub content: 200 for any content
//
// An unknown token gets 404, or 410 for a POST, so that a WebSub hub stops its deliveries
// (section 7). Answers are text/plain and do not reveal whether a feed is subscribed to.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "no-store")
	l.mu.Lock()
	cb := l.callbacks.byToken[push.TokenOf(r.URL.Path)]
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

// challenge answers the verification of a registration by a cloud.
func (l *Listener) challenge(w http.ResponseWriter, r *http.Request, cb *callback) {
	if !strings.Contains(r.URL.RawQuery, "challenge=") {
		return // some clouds first check whether the callback exists
	}
	var wanted []string
	l.mu.Lock()
	if cb.asking != nil {
		wanted = slices.Clone(cb.asking.urls)
	}
	for f := range cb.feeds {
		if f.State == Suspect { // some clouds verify after they have answered
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
	_, _ = io.WriteString(w, text) // nothing else, because some clouds compare the whole body
}

// challenged records that a cloud verifies a registration for a feed. topic is "" if the
// cloud did not name the feed.
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

// notification handles an rssCloud notification.
func (l *Listener) notification(w http.ResponseWriter, r *http.Request, cb *callback) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rsscloud.MaxMessage))
	if err != nil {
		http.Error(w, "the request is too long or was cut off", http.StatusRequestEntityTooLarge)
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
			continue // a test call
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

// subscription returns the feed of a WebSub callback and its registration, nil if the feed
// was removed.
func (l *Listener) subscription(cb *callback) (*feed, registration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range cb.feeds {
		return f, f.registration
	}
	return nil, registration{}
}

// intent answers the verification (section 5.3) or denial (5.2) by a hub.
func (l *Listener) intent(w http.ResponseWriter, r *http.Request, cb *callback) {
	in, err := websub.ParseIntent(r.URL.Query())
	f, _ := l.subscription(cb)
	switch {
	case f != nil && errors.Is(err, websub.ErrNoIntent) && r.URL.RawQuery == "":
		return // some hubs first check whether the callback exists
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

// content handles a WebSub delivery (sections 7 and 8). Its content is used only to check
// the signature; lektor-fetch fetches the feed itself.
func (l *Listener) content(w http.ResponseWriter, r *http.Request, cb *callback) {
	defer drain(w, r)
	f, reg := l.subscription(cb)
	if f == nil || reg.url == "" || reg.over() {
		http.Error(w, "gone", http.StatusGone)
		return
	}
	var e delivered
	if reg.Secret != "" {
		method, err := checkSignature(r.Header.Get("X-Hub-Signature"), &reg.Registration,
			http.MaxBytesReader(w, r.Body, maxContent))
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
		// The delivery is acknowledged anyway, so that an attacker learns nothing.
		l.trace(r, "%s: %s%s", reg.Topic, ignored, e.wrong)
	}
}

// drain reads the rest of a delivery. A hub whose connection is closed while it sends does
// not see the answer.
func drain(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxContent))
}

// checkSignature checks the signature of content, and returns its method.
func checkSignature(header string, st *push.Registration, content io.Reader) (string, error) {
	sig, err := websub.ParseSignature(header)
	if err != nil {
		return "", err
	}
	// A hub may change its method, but not to the weakest one, which may be forged one day.
	if weakest := 1; websub.Strength(sig.Method) == weakest && websub.Strength(st.Signature) > weakest {
		return "", fmt.Errorf("it is signed with %s, but earlier ones with %s", sig.Method, st.Signature)
	}
	h := sig.Hash(st.Secret)
	if _, err := io.Copy(h, content); err != nil {
		return "", fmt.Errorf("it was cut off or is too long: %w", err)
	}
	if !sig.Matches(h) {
		return "", errors.New("the signature is wrong")
	}
	return sig.Method, nil
}

// trace reports a request if Verbose is set.
func (l *Listener) trace(r *http.Request, format string, args ...any) {
	if l.opts.Verbose {
		l.report.Info("%s: %s", httpserver.Peer(r, l.opts.TrustedProxies), fmt.Sprintf(format, args...))
	}
}
