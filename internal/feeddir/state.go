package feeddir

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
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

// documentFiles are what is known of the last document, and what that belongs to.
var documentFiles = []string{fileETag, fileModified, fileBody, fileFrom, fileFinal}

// maxFile is the largest state file that is read, in bytes.
const maxFile = atomicfile.MaxLine

// permanentTimes is how often in a row the same permanent redirect must be
// seen before it is believed.
const permanentTimes = 3

// State is what is kept of a feed between fetches: the directory etc/fetch of
// the feed, with one value a file, so that a shell can read and change it all. What is set,
// what is learned and the schedule are a type each, which saves its own files; an event
// such as [State.Succeeded] may change all three.
//
// A State is not safe for concurrent use, and while one is between load and
// save, its user holds the feed's lock.
type State struct {
	*area // that all three are in
	*settings
	*learned
	*schedule
	movedTo string
}

// loadState lists dir, the directory of a state; see [Load].
func loadState(dir string) (*State, error) {
	a, err := loadArea(dir)
	if err != nil {
		return nil, err
	}
	set := loadSettings(a)
	return &State{area: a, settings: set, learned: &learned{area: a, set: set}, schedule: &schedule{area: a, set: set}}, nil
}

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
	s.stored(name, value)
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

// Succeeded records that a document came and was read, and sets when the feed
// is due again: now plus the longest of
//
//   - the interval;
//   - max-age, or else the time from Date to Expires, less Age;
//   - the hints TTL and UpdateInterval;
//
// where all but the first count for [MaxDelay] at most. If that is in an hour
// or on a day to be skipped, the next hour that is not.
//
// The validators and the digest of the body are kept for the next request,
// unless the document was cut off: then the next one must bring it whole. The
// body must be that of the answer, before any filter. A document that could
// not be read is a failure, not a success; what was known of the last good one
// stays then.
func (s *State) Succeeded(now time.Time, resp *fetch.Response, hints Hints) {
	s.heed(hints)
	s.document(now, resp)
}

// Unchanged records that a document came which is the same as the last one
// ([State.SameBody]), and was not read. Its hints are those of last time.
func (s *State) Unchanged(now time.Time, resp *fetch.Response) {
	resp.Short = s.short()
	s.document(now, resp)
}

func (s *State) document(now time.Time, resp *fetch.Response) {
	s.learn(resp)
	s.put(fileStatus, strconv.Itoa(resp.Status))
	s.put(fileMaxAge, maxAge(resp.Header))
	s.success(now, resp)
}

// NotModified records an answer 304: the document is the one we have. A
// validator is taken over if the answer has one, and the schedule is that of
// [State.Succeeded], with max-age and hints of last time where the answer has
// none. Where nothing is new, saving touches `checked` and `next` only.
func (s *State) NotModified(now time.Time, resp *fetch.Response) {
	if resp.ETag != "" {
		s.put(fileETag, resp.ETag)
	}
	if resp.LastModified != "" {
		s.put(fileModified, resp.LastModified)
	}
	if n := s.Status(); n != http.StatusOK && n != http.StatusNonAuthoritativeInfo {
		s.put(fileStatus, strconv.Itoa(resp.Status))
	}
	if resp.Header.Get("Cache-Control") != "" || resp.Header.Get("Expires") != "" {
		s.put(fileMaxAge, maxAge(resp.Header))
	}
	s.success(now, resp)
}

// success is what all answers with a known document have in common.
func (s *State) success(now time.Time, resp *fetch.Response) {
	s.succeeded(now, resp)
	s.moved(resp.Permanent)
}

// moved counts a permanent redirect, and follows it for good at the third
// time. Failures in between neither count nor end the row: they say nothing
// about the address.
func (s *State) moved(target string) {
	s.movedTo = ""
	if target == "" {
		s.put(fileMoved, "")
		return
	}
	asked, err := fetch.ParseURL(s.URL())
	if err != nil {
		return
	}
	to, err := fetch.ParseURL(target)
	same := fetch.SameOrigin(asked.String(), target)
	// Headers are for the server that the user named: another, which the redirect
	// names, would be sent them as soon as it is the feed's own.
	if err != nil || asked.Scheme == "https" && to.Scheme != "https" ||
		s.get(fileHeaders) != "" && !same {
		s.put(fileMoved, "")
		return
	}
	count, old, _ := strings.Cut(s.get(fileMoved), "\t")
	n, _ := strconv.Atoi(count)
	if old != target || n < 0 {
		n = 0
	}
	if n++; n < permanentTimes {
		s.put(fileMoved, strconv.Itoa(n)+"\t"+target)
		return
	}
	// A password that was sent there already is taken along; no other was.
	to.User = nil
	if same {
		to.User = asked.User
	}
	s.move(asked, to)
	s.put(fileURL, to.String())
	s.put(fileMoved, "")
	s.movedTo = to.String()
}

// Save writes what has changed since the state was loaded: the schedule before what is
// learned, as a document that is known is not looked at again, and when the feed is due
// last. A kill halfway costs a request, not an entry. Nothing is synced but a new url: the
// rest can be learned again by a request.
func (s *State) Save() error {
	var err error
	if len(s.changed)+len(s.times) > 0 && len(s.names) == 0 {
		err = os.MkdirAll(s.dir, 0o777)
	}
	known := s.disown()
	err = errors.Join(err, known, s.settings.save(), s.schedule.save())
	if known == nil {
		err = errors.Join(err, s.learned.save(err == nil))
	}
	return errors.Join(err, s.saveTimes())
}

func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
