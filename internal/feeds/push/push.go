// Package push stores the addresses at which feeds offer notifications, and the registrations of feeds there.
package push

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// Offers holds the addresses at which a feed offers notifications. Each field is a file in
// src/$feed/etc/push/ that exists if the field is not empty. A line of cloud has the attributes of a
// cloud element, separated by tabs: domain, port, path, registerProcedure, protocol. A line of hub or
// self is a URL. The fetcher writes the files, and the listener reads them.
type Offers struct {
	Clouds []feedconv.Cloud // rssCloud servers
	Hubs   []string         // URLs of WebSub hubs
	Self   []string         // the feed's own URLs
}

// maxPush is the maximum number of lines that are read of a file in push/.
const maxPush = 8

// Of returns the Push of a document: its clouds, and the hubs and self URLs among links. links may
// include those of HTTP headers.
func Of(clouds []feedconv.Cloud, links []feedconv.Link) Offers {
	p := Offers{Clouds: clouds}
	for _, l := range links {
		switch strings.ToLower(l.Rel) {
		case "hub":
			p.Hubs = append(p.Hubs, feedfiles.OneField(l.URL))
		case "self":
			p.Self = append(p.Self, feedfiles.OneField(l.URL))
		}
	}
	return p
}

// Read reads the Push of a feed, at most maxPush lines of each file. It skips malformed clouds, and
// returns their errors, joined.
func Read(d *lektordir.Dir, hash string) (Offers, error) {
	lines := func(name string) (out []string) {
		text, _ := atomicfile.Read(feedfiles.In(d, hash, feedfiles.AreaPush).Path(name), atomicfile.MaxLine)
		for s := range strings.Lines(string(text)) {
			if s = strings.TrimSuffix(s, "\n"); s != "" && len(out) < maxPush {
				out = append(out, s)
			}
		}
		return out
	}
	p := Offers{Hubs: lines("hub"), Self: lines("self")}
	var bad error
	for _, line := range lines("cloud") {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			bad = errors.Join(bad, fmt.Errorf("a cloud has 5 fields, not %d", len(f)))
			continue
		}
		port, _ := strconv.Atoi(f[1])
		p.Clouds = append(p.Clouds, feedconv.Cloud{Domain: f[0], Port: port, Path: f[2], RegisterProcedure: f[3],
			Protocol: f[4]})
	}
	return p, bad
}

// Write writes the files that have changed.
func (p Offers) Write(d *lektordir.Dir, hash string) error {
	var clouds []string
	for _, c := range p.Clouds {
		port := ""
		if c.Port != 0 {
			port = strconv.Itoa(c.Port)
		}
		clouds = append(clouds, strings.Join([]string{feedfiles.OneField(c.Domain), port, feedfiles.OneField(c.Path),
			feedfiles.OneField(c.RegisterProcedure), feedfiles.OneField(c.Protocol)}, "\t"))
	}
	dir := feedfiles.In(d, hash, feedfiles.AreaPush)
	return errors.Join(dir.Record("cloud", clouds...), dir.Record("hub", p.Hubs...), dir.Record("self", p.Self...))
}

// Paths returns the files and directories of a feed that change if the results of [Read], [Missed],
// [subscriptions.PublicURL] or [settings.Paused] do.
func Paths(d *lektordir.Dir, hash string) []string {
	src := d.Join("src", hash)
	return []string{filepath.Join(src, feedfiles.PathURL), feedfiles.Area(d, hash, feedfiles.AreaPush),
		filepath.Join(src, feedfiles.PathPaused)}
}

// missedFile, in push/, holds the time of the last [RecordMissed].
const missedFile = "missed"

// RecordMissed records the time at which the fetcher found a feed changed without a notification. It does
// nothing if the feed does not offer notifications.
func RecordMissed(d *lektordir.Dir, hash string, at time.Time) error {
	dir := feedfiles.In(d, hash, feedfiles.AreaPush)
	if !atomicfile.Exists(dir.Path("hub")) && !atomicfile.Exists(dir.Path("cloud")) {
		return nil
	}
	return dir.Record(missedFile, at.UTC().Format(time.RFC3339))
}

// Missed returns the time of the last [RecordMissed], zero if there was none.
func Missed(d *lektordir.Dir, hash string) time.Time {
	t, _ := time.Parse(time.RFC3339, feedfiles.In(d, hash, feedfiles.AreaPush).Line(missedFile))
	return t
}

// Registration is a feed's registration with a cloud or hub. Each field is a file in
// src/$feed/etc/cloudd/, named as the field in lower case, that exists if the field is not empty;
// times are RFC 3339 in UTC. The listener defines the values of State.
type Registration struct {
	// Hub is the URL of the registration request, Protocol is http-post, https-post, xml-rpc or
	// websub.
	Hub, Protocol string
	Topic         string // URL that identifies the feed to the hub
	// Callback is the listener's URL that the hub calls. Its last part is a token that only the hub
	// knows.
	Callback string
	Secret   string // key of the hub's signatures (WebSub)
	// Signature is the strongest method of signing that the hub has used with the secret. Weaker
	// methods are rejected.
	Signature string
	State     string
	Since     time.Time // time at which the hub last confirmed the registration
	// Asked is the time of a request that the hub has not verified yet (WebSub); zero if there is
	// none.
	Asked    time.Time
	Expires  time.Time
	Next     time.Time // time to renew the registration or to try again
	Notified time.Time // time of the last notification
	Failures int       // number of failures in a row
	Error    string    // the last error, in one line
}

// TokenLen is the length of a callback's token: 128 bits in hexadecimal digits.
const TokenLen = 32

// Token returns the secret part of the callback.
func (r Registration) Token() string { return TokenOf(r.Callback) }

// TokenOf returns the token, the last part of a callback's path. It removes a trailing slash and converts
// the token to lower case, because some hubs change both.
func TokenOf(path string) string {
	path = strings.TrimRight(path, "/")
	return strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
}

// files returns the fields in the order in which they are written. State is the last, because readers
// check it first.
func (r *Registration) files() []values.Field {
	return []values.Field{
		{Name: "hub", Var: &r.Hub}, {Name: "protocol", Var: &r.Protocol}, {Name: "topic", Var: &r.Topic},
		{Name: "callback", Var: &r.Callback}, {Name: "secret", Var: &r.Secret},
		{Name: "signature", Var: &r.Signature}, {Name: "since", Var: &r.Since}, {Name: "asked", Var: &r.Asked},
		{Name: "expires", Var: &r.Expires}, {Name: "next", Var: &r.Next}, {Name: "notified", Var: &r.Notified},
		{Name: "failures", Var: &r.Failures}, {Name: "error", Var: &r.Error}, {Name: "state", Var: &r.State},
	}
}

// private reports whether a file holds a secret with which others could impersonate the hub.
func private(name string) bool { return name == "callback" || name == "secret" }

// ReadRegistration reads a feed's registration; the zero value means none. It ignores damaged files. If
// hub, protocol or token is missing, or the file of the secret is empty, for example after the disk was full,
// it returns the zero value.
func ReadRegistration(d *lektordir.Dir, hash string) Registration {
	var r Registration
	dir := feedfiles.Area(d, hash, feedfiles.AreaCloudd)
	ents, err := os.ReadDir(dir)
	if err != nil {
		return r
	}
	for _, f := range r.files() {
		if slices.ContainsFunc(ents, func(e fs.DirEntry) bool { return e.Name() == f.Name }) {
			line, _ := atomicfile.Line(filepath.Join(dir, f.Name))
			if private(f.Name) && line == "" {
				return Registration{} // a power cut emptied it; without the secret, anybody's content would be accepted
			}
			f.Parse(line)
		}
	}
	if len(r.Token()) != TokenLen || r.Hub == "" || r.Protocol == "" {
		return Registration{}
	}
	return r
}

// Write writes the fields that differ from those on disk. Only the owner can read callback and secret (mode 0600). If
// the directory of the feed no longer exists, Write returns nil.
func (r Registration) Write(d *lektordir.Dir, hash string) error {
	dir := feedfiles.Area(d, hash, feedfiles.AreaCloudd)
	v, err := feedfiles.LoadValues(dir)
	if err != nil {
		return err
	}
	v.Secret = func(name, _ string) bool { return private(name) }
	another := false
	for _, f := range r.files() {
		v.Put(f.Name, f.Text())
		_, changed := v.Changed(f.Name)
		another = another || changed && slices.Contains([]string{"hub", "protocol", "topic", "callback"}, f.Name)
	}
	if another {
		// If Write is interrupted, a reader must not rely on the old time of renewal.
		next := v.Get("next")
		if err := v.Drop("next"); err != nil {
			return err
		}
		v.Put("next", next)
	}
	_ = os.Mkdir(dir, 0o777) // if it fails, so does the first file
	for _, f := range r.files() {
		if err := v.Save(f.Name); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
