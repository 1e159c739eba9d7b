package listener

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// The states of a feed's registration, as the file state has them.
const (
	Requested     = "requested"     // the hub has yet to verify it
	Registered    = "registered"    //
	Failed        = "failed"        // and is tried again
	Denied        = "denied"        // by the hub; tried again the next day
	Unsubscribing = "unsubscribing" // the feed is not subscribed to any more
	Unsubscribed  = "unsubscribed"  // and the hub knows, or need not
)

// WebSub is the protocol of a registration that is none of rssCloud's.
const WebSub = "websub"

// State is what is known of a feed's registration. Each field is a file in
// src/$feed/etc/cloudd/, named as the field in lower case, that is there when
// the field is not empty; times are RFC 3339 in UTC.
type State struct {
	// Hub is the URL where it was requested, Protocol http-post, https-post,
	// xml-rpc or websub.
	Hub, Protocol string
	Topic         string // URL by which the hub knows the feed
	// Callback is our URL that the hub was told; its last part is a token that
	// only the hub knows.
	Callback string
	Secret   string // that the hub signs with (WebSub)
	// Signature is the strongest method that the hub has signed with since
	// the secret was agreed on; weaker ones are not believed.
	Signature string
	State     string
	// Asked is when a request was made that the hub has not verified yet
	// (WebSub); zero when there is none.
	Asked    time.Time
	Expires  time.Time
	Next     time.Time // when to renew it or to try again
	Notified time.Time // last notification
	Failures int       // in a row
	Error    string    // the last, in one line
}

// token is the secret part of the callback.
func (s State) token() string { return tokenOf(s.Callback) }

func tokenOf(path string) string {
	path = strings.TrimRight(path, "/")
	return strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
}

// fields are the files: how each is written and read.
var fields = []struct {
	name  string
	text  func(*State) string
	parse func(*State, string)
}{
	{"hub", func(s *State) string { return s.Hub }, func(s *State, v string) { s.Hub = v }},
	{"protocol", func(s *State) string { return s.Protocol }, func(s *State, v string) { s.Protocol = v }},
	{"topic", func(s *State) string { return s.Topic }, func(s *State, v string) { s.Topic = v }},
	{"callback", func(s *State) string { return s.Callback }, func(s *State, v string) { s.Callback = v }},
	{"secret", func(s *State) string { return s.Secret }, func(s *State, v string) { s.Secret = v }},
	{"signature", func(s *State) string { return s.Signature }, func(s *State, v string) { s.Signature = v }},
	{"asked", func(s *State) string { return timeText(s.Asked) }, func(s *State, v string) { s.Asked = parseTime(v) }},
	{"expires", func(s *State) string { return timeText(s.Expires) }, func(s *State, v string) { s.Expires = parseTime(v) }},
	{"next", func(s *State) string { return timeText(s.Next) }, func(s *State, v string) { s.Next = parseTime(v) }},
	{"notified", func(s *State) string { return timeText(s.Notified) }, func(s *State, v string) { s.Notified = parseTime(v) }},
	{"failures", func(s *State) string {
		if s.Failures == 0 {
			return ""
		}
		return strconv.Itoa(s.Failures)
	}, func(s *State, v string) { s.Failures, _ = strconv.Atoi(v) }},
	{"error", func(s *State) string { return s.Error }, func(s *State, v string) { s.Error = v }},
	// Last, as it is what the others are read by.
	{"state", func(s *State) string { return s.State }, func(s *State, v string) { s.State = v }},
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// private files hold what others could pretend to be the hub with.
func private(name string) bool { return name == "secret" || name == "callback" }

// firstLine reads a file of one value; what cannot be read is empty.
func firstLine(path string) string {
	line, _ := atomicfile.Line(path)
	return line
}

// text reads a file, as far as such a file goes.
func text(path string) string {
	b, _ := atomicfile.Read(path, atomicfile.MaxLine)
	return string(b)
}

// ReadState reads the state of a feed's registration; one that has none has a
// zero state. A file that is damaged counts as missing.
func ReadState(d *lektordir.Dir, hash string) State {
	var s State
	dir := d.SrcEtc(hash, "cloudd")
	ents, err := os.ReadDir(dir)
	if err != nil {
		return s
	}
	for _, f := range fields {
		if slices.ContainsFunc(ents, func(e fs.DirEntry) bool { return e.Name() == f.name }) {
			f.parse(&s, firstLine(filepath.Join(dir, f.name)))
		}
	}
	if len(s.token()) != tokenLen || s.Hub == "" || s.Protocol == "" {
		// Half a state, as of a disk that was full, is none.
		return State{}
	}
	return s
}

// write makes the files hold s where they hold old, which follows what they
// hold: it tells so, too, after a write that failed half-way. A feed whose
// directory is gone is left gone.
func write(d *lektordir.Dir, hash string, old, s *State) error {
	if err := d.InsideSrc(hash, "cloudd"); err != nil {
		return err
	}
	dir := d.SrcEtc(hash, "cloudd")
	if old.Hub != s.Hub || old.Protocol != s.Protocol || old.Topic != s.Topic || old.Callback != s.Callback {
		// Whoever reads half of the new state is not to think that there is
		// time until it must be renewed.
		if err := os.Remove(filepath.Join(dir, "next")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		old.Next = time.Time{}
	}
	for _, f := range fields {
		v := f.text(s)
		if v == f.text(old) {
			continue
		}
		path := filepath.Join(dir, f.name)
		if v == "" {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			f.parse(old, v)
			continue
		}
		err := put(path, f.name, v)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(dir, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				err = put(path, f.name, v)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		f.parse(old, v)
	}
	return nil
}

func put(path, name, value string) error {
	if private(name) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_ = f.Close()
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return atomicfile.WriteUnsynced(path, []byte(value+"\n"))
}

// offer is a way in which a feed offers to tell of its updates.
type offer struct {
	protocol string
	hub      string // URL
	cloud    rsscloud.Cloud
	topic    string
}

// offers reads what lektor-fetch recorded of a feed in etc/push/. WebSub comes
// first: a hub signs what it delivers, and says itself how long it will. What
// cannot be used comes as an error.
func offers(d *lektordir.Dir, hash, feedURL string) (out []offer, err error) {
	dir := d.SrcEtc(hash, "push")
	lines := func(name string) []string {
		var l []string
		for s := range strings.Lines(text(filepath.Join(dir, name))) {
			if s = strings.TrimSuffix(s, "\n"); s != "" && len(l) < maxOffers {
				l = append(l, s)
			}
		}
		return l
	}
	if !fetch.IsHTTP(feedURL) {
		return nil, nil
	}
	topic := feedURL
	if self := lines("self"); len(self) > 0 && fetch.IsHTTP(self[0]) {
		topic = self[0]
	}
	for _, h := range lines("hub") {
		if fetch.IsHTTP(h) {
			out = append(out, offer{protocol: WebSub, hub: h, topic: topic})
		}
	}
	var bad error
	for _, line := range lines("cloud") {
		c, err := rsscloud.ParseCloud(line)
		var u string
		if err == nil {
			u, err = c.URL()
		}
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		o := offer{protocol: rsscloud.HTTPPost, hub: u, cloud: c, topic: feedURL}
		switch {
		case c.IsXMLRPC():
			o.protocol = rsscloud.XMLRPC
		case strings.HasPrefix(u, "https:"):
			o.protocol = rsscloud.HTTPSPost
		}
		if !slices.ContainsFunc(out, func(p offer) bool { return p.hub == o.hub && p.protocol == o.protocol }) {
			out = append(out, o)
		}
	}
	return out, bad
}

const maxOffers = 8

// Status is a line of lektor-cloudd status.
type Status struct {
	Hash string
	URL  string // of the feed
	Name string
	State
}

// ReadStatus lists the feeds that offer to tell of their updates, or are
// registered. The state of one that was not asked for yet is empty, and
// "expired" when it was registered and the time is over.
func ReadStatus(d *lektordir.Dir, now time.Time) ([]Status, error) {
	hashes, err := d.FeedHashes()
	if err != nil {
		return nil, err
	}
	var out []Status
	for _, h := range hashes {
		s := Status{Hash: h, State: ReadState(d, h), URL: subscription(d, h)}
		if s.Hub == "" {
			if s.URL == "" {
				continue
			}
			list, bad := offers(d, h, s.URL)
			switch {
			case len(list) > 0:
				s.Hub, s.Protocol = list[0].hub, list[0].protocol
			case bad != nil:
				s.State.State, s.Error = Failed, termsafe.Brief(bad.Error())
			default:
				continue
			}
		}
		if s.State.State == Registered && !s.Expires.IsZero() && now.After(s.Expires) {
			s.State.State = "expired"
		}
		if f, err := d.ReadFeed(h); err == nil {
			s.Name = f.Title()
			if s.URL == "" {
				s.URL = f.ID
			}
		}
		out = append(out, s)
	}
	return out, nil
}
