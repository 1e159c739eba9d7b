package feeddir

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// The files of a State. Values are one line, but for headers.
const (
	fileURL      = "url"       // user's, or saved after a permanent redirect
	fileInterval = "interval"  // user's: least time between two fetches, "30m", "1d", or seconds
	fileOnUpdate = "on-update" // user's: unread, deliver or ignore
	fileHeaders  = "headers"   // user's: lines "Name: value"
	fileFilter   = "filter"    // user's: a command for /bin/sh
	filePrivate  = "private"   // user's: yes or no; one without either means yes

	fileOrigin = "origin" // of a url that a document named: that document's

	fileETag     = "etag"     // validators, opaque bytes
	fileModified = "modified" //
	fileFinal    = "final"    // the URL that gave them, after redirects from url; none when there were none
	fileFrom     = "from"     // the url, a digest of the filter, and Limits, that validators and body belong to
	fileBody     = "body"     // SHA-256 of the last body, hexadecimal
	fileStatus   = "status"   // of the last answer
	fileError    = "error"    // of the last fetch
	fileFailures = "failures" // number of failures since the last success
	fileGone     = "gone"     // when the server first said 410
	fileMoved    = "moved"    // how often, tab, where to
	fileMaxAge   = "max-age"  // seconds
	fileTTL      = "ttl"      // hints of the document
	fileUpdates  = "update-interval"
	fileHours    = "skip-hours"
	fileDays     = "skip-days"

	fileChecked = "checked" // empty; the modification time is the value
	fileNext    = "next"    //
)

// stateFiles is the order in which they are saved: what is lost by a kill
// halfway costs a request, not an entry. What is learned from a document comes
// before the digest, and that before the validators, since a document that is
// known is not looked at again, nor one that is not modified sent.
var stateFiles = []string{
	fileURL, fileOrigin, fileFrom, fileFinal, fileMaxAge, fileTTL, fileUpdates, fileHours, fileDays, fileBody, fileETag, fileModified,
	fileStatus, fileError, fileFailures, fileGone, fileMoved,
}

// documentFiles are what is known of the last document, and what that belongs to.
var documentFiles = []string{fileETag, fileModified, fileBody, fileFrom, fileFinal}

// maxFile is the largest state file that is read, in bytes.
const maxFile = atomicfile.MaxLine

// permanentTimes is how often in a row the same permanent redirect must be
// seen before it is believed.
const permanentTimes = 3

// State is what is kept of a feed between fetches: the directory etc/fetch of
// the feed, with one value a file, so that a shell can read and change it all.
// [State.Save] writes those that changed.
//
// A State is not safe for concurrent use, and while one is between load and
// save, its user holds the feed's lock.
type State struct {
	// DefaultInterval is the interval of feeds that have none of their own;
	// [DefaultInterval] when it is 0.
	DefaultInterval time.Duration
	// Limits says under which limits documents are read. Validators and digest
	// of a document that was left short by them ([fetch.Response].Short) are good
	// only as long as they are the same: whoever raises a limit wants the rest.
	Limits string
	// Rand gives the jitter, a number in [0, 1); nil means random.
	Rand func() float64

	area
	movedTo string
}

// loadState lists dir, the directory of a state; see [Load].
func loadState(dir string) (*State, error) {
	a, err := loadArea(dir)
	if err != nil {
		return nil, err
	}
	return &State{area: a}, nil
}

// Due tells whether the feed should be fetched now: when `next` has passed or
// is missing, or when `checked` lies in the future by more than clocks of several
// machines differ ([clockSkew]), since then the clock was set back and `next` means
// nothing.
func (s *State) Due(now time.Time) bool {
	due, _ := isDue(s.time, now)
	return due
}

// clockSkew is by how much the clocks of machines may differ that fetch into one
// lektor-dir. What one has just asked for the other would else take for something of
// the future, and ask again.
const clockSkew = 5 * time.Minute

// Checked is when the feed was last asked for, zero for never.
func (s *State) Checked() time.Time { t, _ := s.time(fileChecked); return t }

// Next is when the feed is due, zero for at once.
func (s *State) Next() time.Time { t, _ := s.time(fileNext); return t }

// URL is where the feed is fetched from, empty when the feed is not subscribed
// to. It may contain a password.
func (s *State) URL() string { return s.get(fileURL) }

// Document is where the last document came from that is known, or else where the feed
// is fetched from; without a password.
func (s *State) Document() string { return fetch.Public(cmp.Or(s.get(fileFinal), s.URL())) }

// ReadBefore tells whether a document of the feed was ever read.
func (s *State) ReadBefore() bool { return s.get(fileFrom) != "" }

// LastRead is when a document was read last that differed from the one before it, zero
// if none was.
func (s *State) LastRead() time.Time { t, _ := s.time(fileBody); return t }

// Filter is the command that each document goes through, or empty.
func (s *State) Filter() string { return s.get(fileFilter) }

// OnUpdate is what is done with changed entries; [lektordir.Unread] is the default.
func (s *State) OnUpdate() lektordir.Policy {
	v := cmp.Or(s.get(fileOnUpdate), string(lektordir.Unread))
	if err := checkOnUpdate(v); err != nil {
		s.malformed(fileOnUpdate, err.Error())
		return lektordir.Unread
	}
	return lektordir.Policy(v)
}

// Interval is the least time between two fetches, the user's or the default.
func (s *State) Interval() time.Duration {
	if v := s.get(fileInterval); v != "" {
		d, err := readInterval(v)
		if err == nil {
			return d
		}
		s.malformed(fileInterval, err.Error())
	}
	if s.DefaultInterval > 0 {
		return s.DefaultInterval
	}
	return DefaultInterval
}

// Status is the HTTP status of the last answer that was more than a 304 after
// a success, and 0 when there was none.
func (s *State) Status() int { return s.number(fileStatus) }

// Failures counts the failed fetches since the last that did not fail.
func (s *State) Failures() int { return s.number(fileFailures) }

// LastError is the message of the last fetch, one line, empty when it
// succeeded.
func (s *State) LastError() string { return termsafe.Brief(s.get(fileError)) }

// Gone tells whether the server said that the feed has ended (410).
func (s *State) Gone() bool { return s.get(fileGone) != "" }

// MovedTo is the new URL when the last event has changed that, since the same
// permanent redirect was seen for the third time; else it is empty. It may
// contain a password. [State.Save] stores it.
func (s *State) MovedTo() string { return s.movedTo }

// Warnings are messages, one line each, about values that make no sense: of
// what the user set, and of what else was asked for so far.
func (s *State) Warnings() []string {
	s.Interval()
	s.OnUpdate()
	return s.warnings
}

// Request makes the request for the feed: its url, headers, and the validators
// if they belong to this url and filter. It is an error when the feed is not
// subscribed to, or when a setting cannot be read that decides what becomes of
// its entries. AllowExec is for the caller to set.
func (s *State) Request() (*fetch.Request, error) {
	for _, name := range []string{fileURL, fileOrigin, fileOnUpdate, fileHeaders, fileFilter} {
		s.get(name)
		if err := s.unread[name]; err != nil {
			return nil, err
		}
	}
	r := &fetch.Request{URL: s.URL(), Origin: s.get(fileOrigin)}
	if r.URL == "" {
		if s.names[fileURL] {
			return nil, fmt.Errorf("%s is empty: write the feed's URL into it", filepath.Join(s.dir, fileURL))
		}
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, fileURL), fs.ErrNotExist)
	}
	if r.Origin == "" && s.names[fileOrigin] {
		r.Origin = filepath.Join(s.dir, fileOrigin) // it was not the user, whoever it was
	}
	if s.current() {
		r.ETag, r.LastModified, r.Validated = s.get(fileETag), s.get(fileModified), s.get(fileFinal)
	}
	if v := s.get(fileHeaders); v != "" {
		h, err := fetch.ParseHeaders(v)
		if err != nil {
			s.malformed(fileHeaders, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		r.Header = h
	}
	return r, nil
}

// SameBody tells whether the body of resp is the one last read, with the same
// filter: then it need not be parsed, and [State.Unchanged] is the event.
func (s *State) SameBody(resp *fetch.Response) bool {
	return !resp.Truncated && s.get(fileBody) == resp.Digest() && s.current()
}

// current tells whether validators and digest are those of the present url and
// filter, which may have been changed by an editor, and of a document that was
// read whole or under the present limits.
func (s *State) current() bool { return s.get(fileFrom) == s.from(s.URL(), false) || s.short() }

// from is what they belong to when they come from url, of a document that was read
// whole, or is left short by the present limits.
func (s *State) from(url string, short bool) string {
	if f := s.get(fileFilter); f != "" {
		url = fmt.Sprintf("%s\t%x", url, sha256.Sum256([]byte(f)))
	}
	if short {
		url += "\t" + s.Limits
	}
	return url
}

// short tells whether they are those of a document that was left short by the
// present limits.
func (s *State) short() bool { return s.get(fileFrom) == s.from(s.URL(), true) }

// stateSetting is a setting whose file belongs to a State.
func stateSetting(name string) (*setting, error) {
	s, err := known(name)
	if err == nil && !s.inState() {
		err = &UnknownSettingError{Key: name}
	}
	return s, err
}

// SetUser stores one of the settings that lie in etc/fetch. It is on the disk when
// SetUser returns; other changes to s wait for [State.Save]. A value that makes no
// sense is an error; an interval may be as short as a second. The directory is
// created if need be.
//
// A url is the user's own from then on, whoever named the one before. A new url, filter or headers make what is known of the last document void,
// and the feed due; a new interval moves `next`.
func (s *State) SetUser(name, value string) error {
	set, err := stateSetting(name)
	if err != nil {
		return err
	}
	value = strings.TrimSuffix(value, "\n")
	if !set.lines && strings.ContainsAny(value, "\n\x00") || value == "" {
		return fmt.Errorf("%s must be one line, and not empty", name)
	}
	if err := set.check(value); err != nil && !errors.As(err, new(*ShortIntervalError)) {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	return s.change(name, value)
}

// Unset removes a value that [State.SetUser] stores. That it is not there is
// no error. Without url, the feed is not subscribed to.
func (s *State) Unset(name string) error {
	if _, err := stateSetting(name); err != nil {
		return err
	}
	return s.change(name, "")
}

// change replaces a setting durably; "" removes it.
func (s *State) change(name, value string) error {
	old := s.get(name)
	if err := s.forget(name, old, value); err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	var err error
	if secret(name, value) {
		err = guard(path)
	}
	switch {
	case err != nil:
	case value == "":
		err = atomicfile.Remove(path)
	default:
		err = atomicfile.Write(path, []byte(value+"\n"))
	}
	if err != nil {
		return err
	}
	s.names[name] = value != ""
	s.read[name] = value
	delete(s.changed, name)
	if name == fileInterval && old != value {
		return s.Reschedule()
	}
	return nil
}

// forget removes what a new value makes void. It comes before the value is
// written: interrupted after that, it would not be done when the same value is
// set again.
func (s *State) forget(name, old, value string) error {
	var errs []error
	var drop []string
	if name == fileURL {
		drop = append(drop, fileOrigin)
	}
	if old != value && (name == fileURL || name == fileHeaders || name == fileFilter) {
		drop = append(append(drop, fileNext), documentFiles...)
	}
	if old != value && name == fileURL {
		drop = append(drop, fileMoved, fileGone, fileError, fileFailures, fileStatus, fileMaxAge)
	}
	for _, f := range drop {
		delete(s.changed, f)
		delete(s.times, f)
		s.read[f] = ""
		if s.names[f] {
			errs = append(errs, remove(filepath.Join(s.dir, f)))
			s.names[f] = false
		}
	}
	return errors.Join(errs...)
}

// Reschedule sets when the feed is due by its present interval, which may have
// been changed by an editor, and saves that.
func (s *State) Reschedule() error {
	if checked, ok := s.time(fileChecked); ok && s.names[fileNext] && s.Failures() == 0 {
		age, _ := fetch.Seconds(s.get(fileMaxAge))
		return s.saveTime(fileNext, s.after(checked, age))
	}
	return nil
}

// Save writes what has changed since the state was loaded. Nothing is synced
// but a new url: the rest can be learned again by a request.
func (s *State) Save() error {
	var errs []error
	if len(s.changed) > 0 || len(s.times) > 0 {
		if len(s.names) == 0 {
			errs = append(errs, os.MkdirAll(s.dir, 0o777))
		}
	}
	owned := true
	if err := s.disown(); err != nil {
		errs, owned = append(errs, err), false
	}
	for _, name := range stateFiles {
		value, ok := s.changed[name]
		if !ok || !owned && slices.Contains(documentFiles, name) {
			continue
		}
		if (name == fileETag || name == fileModified) && value != "" && len(errs) > 0 {
			continue // not without what is known of the document
		}
		path := filepath.Join(s.dir, name)
		var err error
		if value != "" && (secret(name, value) || slices.Contains(secretFiles, "etc/fetch/"+name) && s.withheld()) {
			err = guard(path)
			s.names[name] = true
		}
		switch {
		case err != nil:
		case name == fileURL:
			err = s.saveURL(path, value)
		case value == "":
			err = remove(path)
		case !s.names[name]:
			err = atomicfile.CreateUnsynced(path, []byte(value+"\n"))
		default:
			err = atomicfile.WriteUnsynced(path, []byte(value+"\n"))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		delete(s.changed, name)
		s.names[name] = value != ""
		s.read[name] = value
	}
	for _, name := range []string{fileChecked, fileNext} {
		if t, ok := s.times[name]; ok {
			if err := s.saveTime(name, t); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// disown removes what is known of the last document when what it belongs to is
// about to change: after a kill in the middle, the validators of one URL must not
// be found as those of another.
func (a *area) disown() error {
	_, from := a.changed[fileFrom]
	_, final := a.changed[fileFinal]
	if !from && !final {
		return nil
	}
	for _, name := range documentFiles[:3] {
		if !a.names[name] {
			continue
		}
		a.changed[name] = a.get(name)
		if err := remove(filepath.Join(a.dir, name)); err != nil {
			return err
		}
		a.read[name], a.names[name] = "", false
	}
	return nil
}

// withheld is [Withheld] for what the state knows.
func (s *State) withheld() bool {
	return s.names[filePrivate] && !strings.EqualFold(strings.TrimSpace(s.get(filePrivate)), "no") || s.get(fileHeaders) != "" || s.get(fileFilter) != "" || ownURL(s.URL())
}

// saveURL follows a permanent redirect, unless the user gave another url while
// we fetched.
func (s *State) saveURL(path, value string) error {
	b, err := atomicfile.Read(path, maxFile)
	if err != nil {
		return err
	}
	if now := strings.TrimSuffix(string(b), "\n"); now != s.disk(fileURL) {
		s.read[fileURL] = now
		delete(s.changed, fileURL)
		return nil
	}
	return atomicfile.Write(path, []byte(value+"\n"))
}

func mtime(path string) (time.Time, bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
