package feeddir

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
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// Areas of what is here in a feed's drawer.
const (
	areaPush   = "push"
	areaCloudd = "cloudd"
)

// Push is how a feed offers to tell of its updates. Each field is a file in
// src/$feed/etc/push/ that is there when the field is not empty: cloud has the
// attributes of a cloud element in a line, separated by tabs (domain, port, path,
// registerProcedure, protocol), hub and self have a URL in a line. A fetcher
// writes them, a listener reads them.
type Push struct {
	Clouds []feedconv.Cloud // of rssCloud
	Hubs   []string         // of WebSub
	Self   []string         // URLs that the feed gives itself
}

// maxPush is how many lines of a file in push/ are read.
const maxPush = 8

// PushOf gives what a document offers: its clouds, and the hub and self among
// links, which may come from elsewhere too.
func PushOf(clouds []feedconv.Cloud, links []feedconv.Link) Push {
	p := Push{Clouds: clouds}
	for _, l := range links {
		switch strings.ToLower(l.Rel) {
		case "hub":
			p.Hubs = append(p.Hubs, OneField(l.Href))
		case "self":
			p.Self = append(p.Self, OneField(l.Href))
		}
	}
	return p
}

// OneField makes text fit for a field between tabs, and for a line.
func OneField(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
}

// ReadPush reads what a feed offers, eight lines of each file at most. A cloud
// that cannot be read is left out, and in the error.
func ReadPush(d *lektordir.Dir, hash string) (Push, error) {
	lines := func(name string) (out []string) {
		text, _ := atomicfile.Read(filepath.Join(drawer(d, hash, areaPush), name), atomicfile.MaxLine)
		for s := range strings.Lines(string(text)) {
			if s = strings.TrimSuffix(s, "\n"); s != "" && len(out) < maxPush {
				out = append(out, s)
			}
		}
		return out
	}
	p := Push{Hubs: lines("hub"), Self: lines("self")}
	var bad error
	for _, line := range lines("cloud") {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			bad = errors.Join(bad, fmt.Errorf("a cloud has 5 fields, not %d", len(f)))
			continue
		}
		port, _ := strconv.Atoi(f[1])
		p.Clouds = append(p.Clouds, feedconv.Cloud{Domain: f[0], Port: port, Path: f[2], RegisterProcedure: f[3], Protocol: f[4]})
	}
	return p, bad
}

// Write makes the files hold p, and touches none that does already.
func (p Push) Write(d *lektordir.Dir, hash string) error {
	var clouds []string
	for _, c := range p.Clouds {
		port := ""
		if c.Port != 0 {
			port = strconv.Itoa(c.Port)
		}
		clouds = append(clouds, strings.Join([]string{OneField(c.Domain), port, OneField(c.Path), OneField(c.RegisterProcedure), OneField(c.Protocol)}, "\t"))
	}
	return errors.Join(
		record(d, hash, areaPush, "cloud", asLines(clouds...)),
		record(d, hash, areaPush, "hub", asLines(p.Hubs...)),
		record(d, hash, areaPush, "self", asLines(p.Self...)),
	)
}

// PublicURL gives the URL by which the world knows a feed that is subscribed
// to: without a password, and for one that comes from a file or a command the
// URL that it gives itself. It is "" when the feed is not subscribed to.
func PublicURL(d *lektordir.Dir, hash string) string {
	u, _ := atomicfile.Line(d.Join("src", hash, urlFile))
	if u == "" || fetch.IsHTTP(u) {
		return fetch.Public(u)
	}
	if self, _ := atomicfile.Line(filepath.Join(drawer(d, hash, areaPush), "self")); fetch.IsHTTP(self) {
		return fetch.Public(self)
	}
	return u
}

// PushStamp changes when [ReadPush] or [PublicURL] may give something else than
// before. Stamps are compared with ==.
type PushStamp struct{ url, push time.Time }

// StampPush gives the stamp of a feed.
func StampPush(d *lektordir.Dir, hash string) PushStamp {
	return PushStamp{changed(d.Join("src", hash, urlFile)), changed(drawer(d, hash, areaPush))}
}

// missedFile, in push/, is when a feed that offers to tell of its updates was last
// found changed without having been told so.
const missedFile = "missed"

// LeaveMissed takes note that a feed which offers to tell of its updates was found
// changed at a time, and nobody had told of it. Of other feeds nothing is noted.
func LeaveMissed(d *lektordir.Dir, hash string, at time.Time) error {
	dir := drawer(d, hash, areaPush)
	for _, offer := range []string{"hub", "cloud"} {
		if _, err := os.Lstat(filepath.Join(dir, offer)); err == nil {
			return record(d, hash, areaPush, missedFile, asLines(at.UTC().Format(time.RFC3339)))
		}
	}
	return nil
}

// Missed gives the time of the last [LeaveMissed], zero for never.
func Missed(d *lektordir.Dir, hash string) time.Time {
	line, _ := atomicfile.Line(filepath.Join(drawer(d, hash, areaPush), missedFile))
	t, _ := time.Parse(time.RFC3339, line)
	return t
}

// Changed gives the time when another document of a feed was last read than the
// one before, zero for never.
func Changed(d *lektordir.Dir, hash string) time.Time {
	return changed(filepath.Join(drawer(d, hash, "fetch"), fileBody))
}

// changed is when the file behind a path was written, zero if there is none.
func changed(path string) time.Time {
	fi, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// PushDirs lists the directories where a change of what a feed offers can be
// seen: push/ itself, and those in which it, in turn, will appear.
func PushDirs(d *lektordir.Dir, hash string) []string {
	return []string{drawer(d, hash, areaPush), d.Join("src", hash, "etc"), d.Join("src", hash)}
}

// Registration is a feed's registration with a cloud or hub. Each field is a file
// in src/$feed/etc/cloudd/, named as the field in lower case, that is there when
// the field is not empty; times are RFC 3339 in UTC. What the values of State are
// is the listener's matter.
type Registration struct {
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
	Since     time.Time // when the hub last took it
	// Asked is when a request was made that the hub has not verified yet
	// (WebSub); zero when there is none.
	Asked    time.Time
	Expires  time.Time
	Next     time.Time // when to renew it or to try again
	Notified time.Time // last notification
	Failures int       // in a row
	Error    string    // the last, in one line
}

// TokenLen is the length of a callback's token: hexadecimal digits of 128 bits.
const TokenLen = 32

// Token is the secret part of the callback.
func (r Registration) Token() string { return TokenOf(r.Callback) }

// TokenOf gives the last part of the path of a callback, which is the token of
// one of ours. Its case and a slash behind it do not count, as peers change them.
func TokenOf(path string) string {
	path = strings.TrimRight(path, "/")
	return strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
}

// registrationFile is a field of a registration.
type registrationFile struct {
	name string
	// private files hold what others could pretend to be the hub with.
	private bool
	value   any // *string, *time.Time or *int
}

// files lists the files in the order in which they are written. State comes last,
// as it is what the others are read by.
func (r *Registration) files() []registrationFile {
	return []registrationFile{
		{"hub", false, &r.Hub}, {"protocol", false, &r.Protocol}, {"topic", false, &r.Topic},
		{"callback", true, &r.Callback}, {"secret", true, &r.Secret}, {"signature", false, &r.Signature},
		{"since", false, &r.Since}, {"asked", false, &r.Asked}, {"expires", false, &r.Expires}, {"next", false, &r.Next}, {"notified", false, &r.Notified},
		{"failures", false, &r.Failures}, {"error", false, &r.Error}, {"state", false, &r.State},
	}
}

func (f registrationFile) text() string {
	switch v := f.value.(type) {
	case *time.Time:
		if !v.IsZero() {
			return v.UTC().Format(time.RFC3339)
		}
	case *int:
		if *v != 0 {
			return strconv.Itoa(*v)
		}
	case *string:
		return *v
	}
	return ""
}

func (f registrationFile) parse(s string) {
	switch v := f.value.(type) {
	case *time.Time:
		*v, _ = time.Parse(time.RFC3339, s)
	case *int:
		*v, _ = strconv.Atoi(s)
	case *string:
		*v = s
	}
}

// ReadRegistration reads a feed's registration; it is zero for a feed that has
// none. A file that is damaged counts as missing, and half a registration, as of
// a disk that was full, is none.
func ReadRegistration(d *lektordir.Dir, hash string) Registration {
	var r Registration
	dir := drawer(d, hash, areaCloudd)
	ents, err := os.ReadDir(dir)
	if err != nil {
		return r
	}
	for _, f := range r.files() {
		if slices.ContainsFunc(ents, func(e fs.DirEntry) bool { return e.Name() == f.name }) {
			line, _ := atomicfile.Line(filepath.Join(dir, f.name))
			f.parse(line)
		}
	}
	if len(r.Token()) != TokenLen || r.Hub == "" || r.Protocol == "" {
		return Registration{}
	}
	return r
}

// Write makes the files hold r where they hold old, which follows what they
// hold: it tells so, too, after a write that failed half-way. Callback and secret
// are for their owner alone to read (mode 0600). A feed whose directory is gone
// is left gone, which is no error.
func (r Registration) Write(d *lektordir.Dir, hash string, old *Registration) error {
	if err := Guard(d, hash, areaCloudd); err != nil {
		return err
	}
	dir := drawer(d, hash, areaCloudd)
	if old.Hub != r.Hub || old.Protocol != r.Protocol || old.Topic != r.Topic || old.Callback != r.Callback {
		// Whoever reads half of the new state is not to think that there is
		// time until it must be renewed.
		if err := remove(filepath.Join(dir, "next")); err != nil {
			return err
		}
		old.Next = time.Time{}
	}
	was := old.files()
	for i, f := range r.files() {
		v := f.text()
		if v == was[i].text() {
			continue
		}
		path := filepath.Join(dir, f.name)
		var err error
		if v == "" {
			err = remove(path)
		} else if err = f.put(path); errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(dir, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				err = f.put(path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		was[i].parse(v)
	}
	return nil
}

func (f registrationFile) put(path string) error {
	if f.private {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_ = file.Close()
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return atomicfile.WriteUnsynced(path, []byte(f.text()+"\n"))
}
