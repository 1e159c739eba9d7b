// Package hub is an rssCloud server and a WebSub hub for tests and measurements. It follows the
// rssCloud walkthrough and the recommendation of WebSub, or departs from them like real hubs.
package hub

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
)

// Hub is the handler of a hub. It serves /rsscloud/pleaseNotify, /rsscloud/ping, /RPC2 and
// /websub. Set its fields before use.
type Hub struct {
	// Departures of rssCloud hubs.
	OneFeed       bool   // refuses requests for more than one feed
	OnlyHTTPPost  bool   // knows no https-post
	WantsURL      bool   // accepts url instead of url1
	FiveParams    bool   // accepts the call of XML-RPC without domain
	RawChallenge  bool   // url is not percent-encoded in the challenge
	AppendsURL    bool   // appends ?url= to every callback
	ShoutsPath    bool   // changes paths of callbacks to upper case, with a slash at the end
	ProbesBare    bool   // first requires 200 for a GET of the callback without parameters
	SingleQuotes  bool   // uses single quotes in answers
	RefusesAccept bool   // answers 406 to an Accept of text/xml
	FirstOnly     bool   // reads only url1, and answers success for all feeds
	NeverCalls    bool   // accepts registrations without verification
	CallsLate     bool   // verifies registrations after the answer, see LateChallenges
	CallsRPC      bool   // tests xml-rpc by a call, also with a domain
	Answer        string // replaces every result
	Forgets       int    // drops a registration after this many errors in a row; 0: never

	// Departures of WebSub hubs.
	Deny     string        // if not "", denies with this reason
	Lease    time.Duration // granted lease; 0 means the requested one
	NoLease  bool          // refuses requests that ask for a lease
	NoVerify bool          // accepts subscriptions, and never verifies them

	mu       sync.Mutex
	regs     []Registration
	errors   map[string]int // by callback and feed
	late     []func() bool
	subs     map[string]*Subscription // by callback
	requests int
	active   int // concurrent requests
	most     int
	wg       sync.WaitGroup
}

// Registration is a registration by rssCloud.
type Registration struct {
	Callback  string
	Protocol  string
	Procedure string
	Feed      string
	Together  int // number of feeds in its request
}

// Subscription is a subscription by WebSub.
type Subscription struct {
	Callback, Topic, Secret string
	Lease                   time.Duration
}

// Registrations returns the registrations by rssCloud, in order.
func (h *Hub) Registrations() []Registration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.regs)
}

// Subscriptions returns copies of the current subscriptions by WebSub.
func (h *Hub) Subscriptions() []Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Subscription
	for _, s := range h.subs {
		out = append(out, *s)
	}
	return out
}

// Requests returns the number of requests for registration, and the maximum number of concurrent
// ones.
func (h *Hub) Requests() (n, atOnce int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests, h.most
}

// Wait waits for running verifications.
func (h *Hub) Wait() { h.wg.Wait() }

// ServeHTTP serves the paths of the hub.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests++
	h.active++
	h.most = max(h.most, h.active)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.active--
		h.mu.Unlock()
	}()
	if h.RefusesAccept && strings.Contains(r.Header.Get("Accept"), "xml") {
		http.Error(w, "not acceptable", http.StatusNotAcceptable)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	q, _ := url.ParseQuery(string(body))
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "POST", http.StatusMethodNotAllowed)
	case r.URL.Path == "/rsscloud/pleaseNotify":
		h.result(w, "notifyResult", h.pleaseNotify(r, q))
	case r.URL.Path == "/rsscloud/ping":
		h.result(w, "result", h.Notify(q.Get("url")))
	case r.URL.Path == "/RPC2":
		w.Header().Set("Content-Type", "text/xml")
		w.Write(h.call(r, body))
	case r.URL.Path == "/websub":
		h.websub(w, q)
	default:
		http.NotFound(w, r)
	}
}

func (h *Hub) result(w http.ResponseWriter, name string, err error) {
	if h.Answer != "" {
		io.WriteString(w, h.Answer)
		return
	}
	msg, ok := "Thanks for the registration. It worked.", "true"
	if err != nil {
		msg, ok = err.Error(), "false"
	}
	text := string(rsscloud.EncodeResult(name, ok == "true", msg))
	if h.SingleQuotes {
		text = strings.ReplaceAll(text, `"`, "'")
	}
	w.Header().Set("Content-Type", "text/xml")
	io.WriteString(w, text)
}

func (h *Hub) pleaseNotify(r *http.Request, q url.Values) error {
	var feeds []string
	for i := 1; q.Get(fmt.Sprintf("url%d", i)) != ""; i++ {
		feeds = append(feeds, q.Get(fmt.Sprintf("url%d", i)))
	}
	if h.WantsURL {
		feeds = q["url"]
	}
	if _, ok := q["notifyProcedure"]; !ok {
		return fmt.Errorf("notifyProcedure is missing")
	}
	return h.register(r, q.Get("notifyProcedure"), q.Get("port"), q.Get("path"), q.Get("protocol"), feeds,
		q.Get("domain"))
}

func (h *Hub) register(r *http.Request, procedure, port, path, protocol string, feeds []string, domain string) error {
	scheme := "http"
	switch {
	case protocol == rsscloud.HTTPSPost && h.OnlyHTTPPost:
		return fmt.Errorf("only http-post notifications are supported")
	case protocol == rsscloud.HTTPSPost, port == "443":
		scheme = "https"
	case protocol != rsscloud.HTTPPost && protocol != rsscloud.XMLRPC:
		return fmt.Errorf("the protocol %q is unknown", protocol)
	}
	switch {
	case len(feeds) == 0:
		return fmt.Errorf("no feed for url1")
	case len(feeds) > 1 && h.OneFeed:
		return fmt.Errorf("you can only request updates for one feed")
	case h.FirstOnly:
		feeds = feeds[:1]
	case h.ShoutsPath:
		path = strings.ToUpper(path) + "/"
	}
	host, verify := domain, true
	if domain == "" {
		host, _, _ = net.SplitHostPort(r.RemoteAddr)
		verify = false
	}
	callback := fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), path)
	verify = verify && !(h.CallsRPC && protocol == rsscloud.XMLRPC)
	for _, feed := range feeds {
		if h.NeverCalls {
			continue
		}
		if h.CallsLate {
			h.mu.Lock()
			h.late = append(h.late, func() bool {
				status, body, err := h.get(callback + "?url=" + url.QueryEscape(feed) + "&challenge=late")
				return err == nil && status == 200 && body == "late"
			})
			h.mu.Unlock()
			continue
		}
		if h.ProbesBare {
			if status, _, err := h.get(callback); err != nil || status != 200 {
				return fmt.Errorf("the callback answers %d, %v", status, err)
			}
		}
		if !verify {
			if err := h.notify(Registration{callback, protocol, procedure, feed, 0}); err != nil {
				return fmt.Errorf("the test call of the handler failed: %v", err)
			}
			continue
		}
		challenge := rand.Text()
		u := callback + "?url=" + url.QueryEscape(feed) + "&challenge=" + challenge
		if h.RawChallenge {
			u = callback + "?url=" + feed + "&challenge=" + challenge
		}
		status, body, err := h.get(u)
		if err != nil || status/100 != 2 || body != challenge {
			return fmt.Errorf("the challenge failed: %d %q %v", status, body, err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, feed := range feeds {
		h.regs = append(h.regs, Registration{callback, protocol, procedure, feed, len(feeds)})
	}
	return nil
}

// LateChallenges makes the calls that CallsLate postponed, and reports whether all were answered
// correctly.
func (h *Hub) LateChallenges() bool {
	h.mu.Lock()
	late := h.late
	h.late = nil
	h.mu.Unlock()
	for _, call := range late {
		if !call() {
			return false
		}
	}
	return len(late) > 0
}

func (h *Hub) get(u string) (int, string, error) {
	resp, err := http.Get(u)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(b), err
}

// Notify notifies all subscribers of a feed, each once.
func (h *Hub) Notify(feed string) error {
	sent := map[string]bool{}
	for _, r := range h.Registrations() {
		if r.Feed == feed && !sent[r.Callback] {
			sent[r.Callback] = true
			if err := h.notify(r); !h.forget(r, err) && err != nil {
				return err
			}
		}
	}
	return nil
}

// forget counts errors if Forgets is set, and reports whether it is set.
func (h *Hub) forget(r Registration, err error) bool {
	if h.Forgets == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := r.Callback + " " + r.Feed
	if h.errors == nil {
		h.errors = map[string]int{}
	}
	if h.errors[key]++; err == nil {
		h.errors[key] = 0
	} else if h.errors[key] >= h.Forgets {
		h.regs = slices.DeleteFunc(h.regs, func(o Registration) bool {
			return o.Callback == r.Callback &&
				o.Feed == r.Feed
		})
		h.errors[key] = 0
	}
	return true
}

func (h *Hub) notify(r Registration) error {
	target, contentType, body := r.Callback, "application/x-www-form-urlencoded", "url="+url.QueryEscape(r.Feed)
	if h.AppendsURL {
		target += "?url=" + url.QueryEscape(r.Feed)
		body = ""
	}
	if r.Protocol == rsscloud.XMLRPC {
		contentType, body = "text/xml", string(rsscloud.EncodeCall(r.Procedure, r.Feed))
	}
	resp, err := http.Post(target, contentType, strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	if r.Protocol == rsscloud.XMLRPC {
		m, err := rsscloud.Decode(b)
		if err != nil || m.Fault != nil || len(m.Params) != 1 || !m.Params[0].True() {
			return fmt.Errorf("the answer is not true: %s", b)
		}
	}
	return nil
}

func (h *Hub) call(r *http.Request, body []byte) []byte {
	m, err := rsscloud.Decode(body)
	if err != nil {
		return rsscloud.EncodeFault(1, err.Error())
	}
	text := func(i int) string {
		if i < len(m.Params) {
			return m.Params[i].Text
		}
		return ""
	}
	switch m.Method {
	case "rssCloud.pleaseNotify":
		if len(m.Params) < 5 || h.FiveParams && len(m.Params) > 5 {
			return rsscloud.EncodeFault(4, fmt.Sprintf("Can't call \"pleaseNotify\" with %d parameters.",
				len(m.Params)))
		}
		err = h.register(r, text(0), text(1), text(2), text(3), m.Params[4].Strings(), text(5))
	case "rssCloud.ping":
		err = h.Notify(text(0))
	case "rssCloud.saveRss":
		if text(1) != "secret" {
			return rsscloud.EncodeFault(4, "The password is wrong.")
		}
		return rsscloud.EncodeResponse("http://static.example.com/" + text(0) + "/rss.xml")
	default:
		err = fmt.Errorf("there is no procedure %s", m.Method)
	}
	if err != nil {
		return rsscloud.EncodeFault(4, err.Error())
	}
	return rsscloud.EncodeResponse(true)
}

func (h *Hub) websub(w http.ResponseWriter, q url.Values) {
	mode := q.Get("hub.mode")
	if mode == "publish" {
		if err := h.Deliver(q.Get("hub.url"), "sha256", []byte("content")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		return
	}
	s := &Subscription{Callback: q.Get("hub.callback"), Topic: q.Get("hub.topic"), Secret: q.Get("hub.secret"),
		Lease: h.Lease}
	if s.Lease == 0 {
		s.Lease, _ = time.ParseDuration(q.Get("hub.lease_seconds") + "s")
	}
	if s.Callback == "" || s.Topic == "" || mode != websub.Subscribe && mode != websub.Unsubscribe {
		http.Error(w, "hub.callback, hub.topic or hub.mode is missing", http.StatusBadRequest)
		return
	}
	if h.NoLease && q.Has("hub.lease_seconds") {
		http.Error(w, "hub.lease_seconds is not supported", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	if h.NoVerify {
		return
	}
	h.wg.Go(func() { h.Verify(s, mode) })
}

// Verify verifies the intent of a callback, and then changes the subscription.
func (h *Hub) Verify(s *Subscription, mode string) bool {
	if h.Deny != "" {
		h.get(s.Callback + "?" + url.Values{"hub.mode": {websub.Denied}, "hub.topic": {s.Topic},
			"hub.reason": {h.Deny}}.Encode())
		return false
	}
	challenge := rand.Text()
	v := url.Values{"hub.mode": {mode}, "hub.topic": {s.Topic}, "hub.challenge": {challenge}}
	if mode == websub.Subscribe {
		v.Set("hub.lease_seconds", fmt.Sprint(int(s.Lease/time.Second)))
	}
	status, body, err := h.get(s.Callback + "?" + v.Encode())
	if err != nil || status/100 != 2 || body != challenge {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[string]*Subscription{}
	}
	if mode == websub.Unsubscribe {
		delete(h.subs, s.Callback)
	} else {
		h.subs[s.Callback] = s
	}
	return true
}

// Deliver delivers content of a topic, with a signature by method if the subscription has a
// secret.
func (h *Hub) Deliver(topic, method string, content []byte) error {
	for _, s := range h.Subscriptions() {
		if s.Topic != topic {
			continue
		}
		signature := ""
		if s.Secret != "" {
			signature = websub.Sign(method, s.Secret, content)
		}
		status, err := h.Post(s.Callback, signature, content)
		if err != nil {
			return err
		}
		if status == http.StatusGone {
			h.mu.Lock()
			delete(h.subs, s.Callback)
			h.mu.Unlock()
		}
	}
	return nil
}

// Post posts content to a callback with a signature, if it is not empty, and returns the status
// of the answer.
func (h *Hub) Post(callback, signature string, content []byte) (int, error) {
	req, err := http.NewRequest(http.MethodPost, callback, bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/rss+xml")
	if signature != "" {
		req.Header.Set("X-Hub-Signature", signature)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}
