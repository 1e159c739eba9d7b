// Package schedule holds the state of a feed between two fetches: the user's settings for requests, the
// validators of the last document, and the time at which the feed is due. A marker makes a feed due at once.
//
// Start reading with [State].
package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// Files of a State besides those that package feedfiles names. Each value is one line.
const (
	fileDiscover = "discover" // there until a document is read, if the feed is to be looked for at url
	fileETag     = "etag"     // validators, opaque bytes
	fileModified = "modified" //
	fileBody     = "body"     // SHA-256 of the last body, hexadecimal
	fileStatus   = "status"   // HTTP status of the last response
	fileError    = "error"    // error of the last fetch
	fileFailures = "failures" // number of failures since the last success
	fileGone     = "gone"     // time of the first 410 response
	fileMaxAge   = "max-age"  // seconds
	fileTTL      = "ttl"      // hints of the document
	fileUpdates  = "update-interval"
	fileHours    = "skip-hours"
	fileDays     = "skip-days"
	fileLive     = "live"    // times at which a live broadcast begins or ends
	fileChecked  = "checked" // empty file; the modification time is the value
	fileNext     = "next"    //
)

// documentFiles lists the files about the last document.
var documentFiles = []string{fileETag, fileModified, fileBody, feedfiles.FileFrom, feedfiles.FileFinal}

// permanentTimes is the number of times in a row that the same permanent redirect must be received before
// the URL is changed.
const permanentTimes = 3

// State is the state of a feed between fetches: the directory etc/fetch of the feed. It has one value per
// file, so that shell scripts can read and change every value. Its three parts, the settings, the last
// document and the schedule, save their own files. An event such as [State.Succeeded] may change all three.
//
// In a visit of the feed, the caller makes the request, and calls [State.Known] with the response. If the document
// is not known, it parses the document, stores its entries, and calls [State.Succeeded]. In the end, it calls
// [State.Save]. If the server sends no readable document, it calls [State.Fail], and the feed is requested less
// often. If the document cannot be stored, or the context is done, it does not save: no validators are saved, so the
// server sends the document again, and the feed stays due.
//
// A State is not safe for concurrent use. From load to save, the caller must hold the feed's lock.
type State struct {
	values   *feedfiles.Values // shared by all three
	Settings *Settings
	Document *Document
	Schedule *Schedule
	movedTo  string
}

// LoadFrom loads the state in dir; see [Load].
func LoadFrom(dir string) (*State, error) {
	a, err := feedfiles.LoadValues(dir)
	if err != nil {
		return nil, err
	}
	set := readSettings(a)
	return &State{values: a, Settings: set, Document: &Document{values: a, set: set},
		Schedule: &Schedule{values: a, set: set}}, nil
}

// MovedTo returns the new URL if the last event changed the URL, or "". An event changes it if the same
// permanent redirect was received for the third time. The URL may contain a password. [State.Save] stores
// it.
func (s *State) MovedTo() string { return s.movedTo }

// Discover reports whether the feed must be looked for at its URL, which may be that of a page; see
// [subscriptions.Subscription].
func (s *State) Discover() bool {
	return s.values.Has(fileDiscover) && s.Settings.Filter() == ""
}

// Warnings returns messages, one line each, about invalid values. It checks interval, on-update, and every
// value that was used before.
func (s *State) Warnings() []string {
	s.Settings.Interval()
	s.Settings.OnUpdate()
	return s.values.Warnings()
}

// Request returns the request for the feed: its url and headers, and the validators if they belong to this
// url and filter. It fails if the feed is not subscribed to, or if a setting that affects the delivery of
// entries cannot be read. The caller must set AllowExec.
func (s *State) Request() (*httpmsg.Request, error) {
	for _, name := range []string{feedfiles.FileURL, feedfiles.FileOrigin, feedfiles.FileOnUpdate,
		feedfiles.FileHeaders, feedfiles.FileFilter} {
		s.values.Get(name)
		if err := s.values.ReadError(name); err != nil {
			return nil, err
		}
	}
	r := &httpmsg.Request{URL: s.Settings.URL(), Origin: s.values.Get(feedfiles.FileOrigin)}
	if r.URL == "" {
		if s.values.Has(feedfiles.FileURL) {
			return nil, fmt.Errorf("%s is empty: write the feed's URL into it", s.values.Path(feedfiles.FileURL))
		}
		return nil, fmt.Errorf("%s: %w", s.values.Path(feedfiles.FileURL), fs.ErrNotExist)
	}
	if r.Origin == "" && s.values.Has(feedfiles.FileOrigin) {
		r.Origin = s.values.Path(feedfiles.FileOrigin) // an unknown document named the URL, not the user
	}
	if s.Document.current() {
		r.ETag, r.LastModified, r.Validated = s.values.Get(fileETag), s.values.Get(fileModified),
			s.values.Get(feedfiles.FileFinal)
	}
	if v := s.values.Get(feedfiles.FileHeaders); v != "" {
		h, err := httpmsg.ParseHeaders(v)
		if err != nil {
			s.values.Ignore(feedfiles.FileHeaders, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		r.Header = h
	}
	return r, nil
}

// Change stores a setting of etc/fetch durably, and creates the directory if necessary; "" removes it. The
// caller must have checked the value. Other changes of s are not saved.
//
// Changing the url removes the origin of the old one; an origin without a url is that of the new url. If url,
// filter or headers change, Change removes the data about the last document and makes the feed due. If the
// interval changes, it changes `next`.
func (s *State) Change(name, value string) error {
	if err := s.ChangeOnly(name, value); err != nil || name != feedfiles.FileURL {
		return err
	}
	// Only now: without its origin, the old url would count as the user's own, and might name a
	// private address. Setting the same url again removes an origin that a killed program has left.
	return errors.Join(s.values.Drop(feedfiles.FileOrigin), atomicfile.SyncDir(s.values.Dir))
}

// ChangeOnly is [State.Change] for a url whose origin is that of the state.
func (s *State) ChangeOnly(name, value string) error {
	if value != "" {
		if err := os.MkdirAll(s.values.Dir, 0o777); err != nil {
			return err
		}
	}
	old := s.values.Get(name)
	if err := s.forget(name, old, value); err != nil {
		return err
	}
	if err := s.values.Write(name, value); err != nil {
		return err
	}
	if name == feedfiles.FileInterval && old != value {
		return s.Schedule.Reschedule()
	}
	return nil
}

// forget removes the files that a new value invalidates. Call it before the value is written: if the value
// were written first and then the program killed, setting the same value again would not remove them.
func (s *State) forget(name, old, value string) error {
	var drop []string
	if old != value && (name == feedfiles.FileURL || name == feedfiles.FileHeaders || name == feedfiles.FileFilter) {
		drop = append(append(drop, fileNext), documentFiles...)
	}
	if old != value && name == feedfiles.FileURL {
		drop = append(drop, feedfiles.FileMoved, fileGone, fileError, fileFailures, fileStatus, fileMaxAge)
	}
	return s.values.Drop(drop...)
}

// Known reports whether the document of a response has not changed, and records the response if so.
func (s *State) Known(now time.Time, resp *httpmsg.Response) bool {
	switch {
	case resp.NotModified:
		s.NotModified(now, resp)
	case s.Document.SameBody(resp):
		s.Unchanged(now, resp)
	default:
		return false
	}
	return true
}

// Fail records the error of a request without a readable document, see [Schedule.Failed], and saves the state.
func (s *State) Fail(now time.Time, err error) error {
	s.Schedule.Failed(now, err)
	return s.Save()
}

// Succeeded records that a document was received and parsed, and sets the time at which the feed is due
// again: now plus the longest of
//
//   - the interval;
//   - max-age, or else the time from Date to Expires, minus Age;
//   - the hints TTL and UpdateInterval.
//
// All but the interval are limited to [MaxDelay]. If the time is in skipHours or skipDays, the feed is due
// in the first hour after them.
//
// Validators and digest of the body are kept for the next request, unless the document was truncated: in
// that case the next request must return it whole. resp must have the body as received, before any filter.
// If a document could not be parsed, call [State.Failed], which keeps the data about the last good one.
func (s *State) Succeeded(now time.Time, resp *httpmsg.Response, hints Hints) {
	s.Schedule.setHints(hints)
	s.document(now, resp)
	s.values.Put(fileDiscover, "")
}

// Unchanged records that the document is the same as the last one (see [State.SameBody]) and was not
// parsed. The last hints stay.
func (s *State) Unchanged(now time.Time, resp *httpmsg.Response) {
	resp.Short = s.Document.short()
	s.document(now, resp)
}

func (s *State) document(now time.Time, resp *httpmsg.Response) {
	s.Document.record(resp)
	s.values.Put(fileStatus, strconv.Itoa(resp.Status))
	s.values.Put(fileMaxAge, maxAge(resp.Header))
	s.success(now, resp)
}

// NotModified records a 304 response. It replaces validators that the response has, and sets the schedule
// as [State.Succeeded] does, with the last hints, and the last max-age if the response has none. If the
// response has no new values, saving changes only `checked` and `next`.
func (s *State) NotModified(now time.Time, resp *httpmsg.Response) {
	if resp.ETag != "" {
		s.values.Put(fileETag, resp.ETag)
	}
	if resp.LastModified != "" {
		s.values.Put(fileModified, resp.LastModified)
	}
	if n := s.Schedule.Status(); n != httpmsg.StatusOK && n != httpmsg.StatusNonAuthoritativeInfo {
		s.values.Put(fileStatus, strconv.Itoa(resp.Status))
	}
	if resp.Header.Get("Cache-Control") != "" || resp.Header.Get("Expires") != "" {
		s.values.Put(fileMaxAge, maxAge(resp.Header))
	}
	s.success(now, resp)
}

// success sets the schedule and counts redirects, after every response with a known document.
func (s *State) success(now time.Time, resp *httpmsg.Response) {
	s.Schedule.succeeded(now, resp)
	s.moved(resp.Moved)
}

// moved counts permanent redirects to the same target, and changes the url at the third one. Failures in
// between do not reset the count.
func (s *State) moved(m httpmsg.Move) {
	target := m.To
	s.movedTo = ""
	if target == "" {
		s.values.Put(feedfiles.FileMoved, "")
		return
	}
	asked, err := feedurl.Parse(s.Settings.URL())
	if err != nil {
		return
	}
	to, err := feedurl.Parse(target)
	same := feedurl.SameOrigin(asked.String(), target)
	// The user meant the headers for the present server. If the url of another server were saved, that
	// server would get them.
	if err != nil || asked.Scheme == "https" && to.Scheme != "https" ||
		s.values.Get(feedfiles.FileHeaders) != "" && !same {
		s.values.Put(feedfiles.FileMoved, "")
		return
	}
	count, old, _ := strings.Cut(s.values.Get(feedfiles.FileMoved), "\t")
	n, _ := strconv.Atoi(count)
	if old != target || n < 0 {
		n = 0
	}
	if n++; n < permanentTimes {
		s.values.Put(feedfiles.FileMoved, strconv.Itoa(n)+"\t"+target)
		return
	}
	// The password is kept only if the target has the same origin.
	to.User = nil
	if same {
		to.User = asked.User
	}
	if m.Public && s.values.Get(feedfiles.FileOrigin) == "" && !strings.EqualFold(asked.Hostname(), to.Hostname()) {
		// The path of a URL may be a secret, and only the host counts.
		s.values.Put(feedfiles.FileOrigin, asked.Scheme+"://"+asked.Host+"/")
	}
	s.values.Put(feedfiles.FileURL, to.String())
	s.values.Put(feedfiles.FileMoved, "")
	s.movedTo = to.String()
}

// Save writes the changes since the state was loaded: settings, schedule, the data about the last document,
// and finally the time at which the feed is due. In this order, a kill may cost a request, but no entry.
// Only a new url is synced, because the next request restores the other values.
func (s *State) Save() error {
	err := s.values.MakeDir()
	removeErr := s.Document.removeDocument()
	err = errors.Join(err, removeErr, s.Settings.save(), s.Schedule.save(), s.values.Save(fileDiscover))
	if removeErr == nil {
		err = errors.Join(err, s.Document.save(err == nil))
	}
	return errors.Join(err, s.values.SaveTimes(fileChecked, fileNext))
}

// HasMarks reports whether marks wait for entries of the feed, see [marks.Mark].
func (s *State) HasMarks() bool { return s.values.Has(feedfiles.FileMarks) }
