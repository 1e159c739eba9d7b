package feedstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/httpmsg"
)

// The files of a State. Each value is one line, except headers.
const (
	fileURL      = "url"       // set by the user, or saved after a permanent redirect
	fileInterval = "interval"  // set by the user: minimum time between two fetches: "30m", "1d", or seconds
	fileOnUpdate = "on-update" // set by the user: unread, deliver or ignore
	fileHeaders  = "headers"   // set by the user: lines "Name: value"
	fileFilter   = "filter"    // set by the user: a command for /bin/sh
	filePrivate  = "private"   // set by the user: yes or no; any other content means yes

	fileOrigin = "origin" // URL of the document that named url

	fileETag     = "etag"     // validators, opaque bytes
	fileModified = "modified" //
	fileFinal    = "final"    // the URL that the validators are from, after redirects from url; absent without redirects
	fileFrom     = "from"     // the url, a digest of the filter, and Limits, that validators and body belong to
	fileBody     = "body"     // SHA-256 of the last body, hexadecimal
	fileStatus   = "status"   // HTTP status of the last response
	fileError    = "error"    // error of the last fetch
	fileFailures = "failures" // number of failures since the last success
	fileGone     = "gone"     // time of the first 410 response
	fileMoved    = "moved"    // count of the redirect, tab, its target
	fileMaxAge   = "max-age"  // seconds
	fileTTL      = "ttl"      // hints of the document
	fileUpdates  = "update-interval"
	fileHours    = "skip-hours"
	fileDays     = "skip-days"

	fileChecked = "checked" // empty file; the modification time is the value
	fileNext    = "next"    //
)

// documentFiles describe the last document, and what it belongs to.
var documentFiles = []string{fileETag, fileModified, fileBody, fileFrom, fileFinal}

// maxFile is the maximum size of a state file, in bytes.
const maxFile = atomicfile.MaxLine

// permanentTimes is how often in a row the same permanent redirect must be seen before the URL is
// changed.
const permanentTimes = 3

// State is the state of a feed between fetches: the directory etc/fetch of the feed, with one value
// per file, so that a shell can read and change everything. Settings, knowledge of the last
// document, and schedule are a type each, which saves its own files; an event such as
// [State.Succeeded] may change all three.
//
// A State is not safe for concurrent use. From load to save, the caller must hold the feed's lock.
type State struct {
	*area // shared by all three
	*settings
	*lastDocument
	*schedule
	movedTo string
}

// loadState loads the state in dir; see [Load].
func loadState(dir string) (*State, error) {
	a, err := loadArea(dir)
	if err != nil {
		return nil, err
	}
	set := loadSettings(a)
	return &State{area: a, settings: set, lastDocument: &lastDocument{area: a, set: set}, schedule: &schedule{area: a, set: set}}, nil
}

// MovedTo returns the new URL if the last event changed it, because the same permanent redirect was
// seen for the third time; otherwise "". It may contain a password. [State.Save] stores it.
func (s *State) MovedTo() string { return s.movedTo }

// Warnings returns messages, one line each, about invalid values: of interval, on-update, and every
// value that was read so far.
func (s *State) Warnings() []string {
	s.Interval()
	s.OnUpdate()
	return s.warnings
}

// Request returns the request for the feed: its url, headers, and the validators if they belong to
// this url and filter. It returns an error if the feed is not subscribed to, or if a setting cannot
// be read that affects how its entries are delivered. The caller must set AllowExec.
func (s *State) Request() (*httpmsg.Request, error) {
	for _, name := range []string{fileURL, fileOrigin, fileOnUpdate, fileHeaders, fileFilter} {
		s.get(name)
		if err := s.readErrors[name]; err != nil {
			return nil, err
		}
	}
	r := &httpmsg.Request{URL: s.URL(), Origin: s.get(fileOrigin)}
	if r.URL == "" {
		if s.names[fileURL] {
			return nil, fmt.Errorf("%s is empty: write the feed's URL into it", filepath.Join(s.dir, fileURL))
		}
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, fileURL), fs.ErrNotExist)
	}
	if r.Origin == "" && s.names[fileOrigin] {
		r.Origin = filepath.Join(s.dir, fileOrigin) // some document named it, though not the user
	}
	if s.current() {
		r.ETag, r.LastModified, r.Validated = s.get(fileETag), s.get(fileModified), s.get(fileFinal)
	}
	if v := s.get(fileHeaders); v != "" {
		h, err := httpmsg.ParseHeaders(v)
		if err != nil {
			s.malformed(fileHeaders, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		r.Header = h
	}
	return r, nil
}

// stateSetting returns a setting whose file belongs to a State.
func stateSetting(name string) (*setting, error) {
	s, err := findSetting(name)
	if err == nil && !s.inState() {
		err = &UnknownSettingError{Key: name}
	}
	return s, err
}

// SetUser stores a setting of etc/fetch durably; other changes to s wait for [State.Save]. It
// returns an error for an invalid value; an interval may be as short as a second. It creates the
// directory if necessary.
//
// Setting the url removes its origin. A new url, filter or headers remove what is known of the last
// document, and make the feed due; a new interval changes `next`.
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

// Unset removes a value that [State.SetUser] stores. It returns nil if there is none. Without url,
// the feed is not subscribed to.
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

// forget removes the files that a new value invalidates. Call it before the value is written: after
// an interruption, setting the same value again would not remove them.
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

// Succeeded records that a document was received and parsed, and sets when the feed is due again:
// now plus the longest of
//
//   - the interval;
//   - max-age, or else the time from Date to Expires, minus Age;
//   - the hints TTL and UpdateInterval;
//
// where all but the first are limited to [MaxDelay]. If this is in an hour or on a day to be
// skipped, the feed is due in the next hour that is not.
//
// Validators and digest of the body are kept for the next request, unless the document was
// truncated: then the next request must return it whole. The body must be that of the response,
// before any filter. A document that could not be parsed is a failure, and then what is known of
// the last good one stays.
func (s *State) Succeeded(now time.Time, resp *httpmsg.Response, hints Hints) {
	s.setHints(hints)
	s.document(now, resp)
}

// Unchanged records that the document is the same as the last one ([State.SameBody]), and was not
// parsed. The hints of last time stay.
func (s *State) Unchanged(now time.Time, resp *httpmsg.Response) {
	resp.Short = s.short()
	s.document(now, resp)
}

func (s *State) document(now time.Time, resp *httpmsg.Response) {
	s.record(resp)
	s.put(fileStatus, strconv.Itoa(resp.Status))
	s.put(fileMaxAge, maxAge(resp.Header))
	s.success(now, resp)
}

// NotModified records a 304 response. It replaces validators that the response has, and sets the
// schedule as [State.Succeeded] does, with max-age and hints of last time if the response has none.
// If nothing is new, saving changes `checked` and `next` only.
func (s *State) NotModified(now time.Time, resp *httpmsg.Response) {
	if resp.ETag != "" {
		s.put(fileETag, resp.ETag)
	}
	if resp.LastModified != "" {
		s.put(fileModified, resp.LastModified)
	}
	if n := s.Status(); n != httpmsg.StatusOK && n != httpmsg.StatusNonAuthoritativeInfo {
		s.put(fileStatus, strconv.Itoa(resp.Status))
	}
	if resp.Header.Get("Cache-Control") != "" || resp.Header.Get("Expires") != "" {
		s.put(fileMaxAge, maxAge(resp.Header))
	}
	s.success(now, resp)
}

// success records what all responses with a known document share.
func (s *State) success(now time.Time, resp *httpmsg.Response) {
	s.succeeded(now, resp)
	s.moved(resp.Permanent)
}

// moved counts permanent redirects to the same target, and changes the url at the third one.
// Failures in between do not reset the count, as they do not concern the address.
func (s *State) moved(target string) {
	s.movedTo = ""
	if target == "" {
		s.put(fileMoved, "")
		return
	}
	asked, err := feedurl.Parse(s.URL())
	if err != nil {
		return
	}
	to, err := feedurl.Parse(target)
	same := feedurl.SameOrigin(asked.String(), target)
	// Headers are for the server that the user named. Do not save a url on another server, which
	// would get the headers.
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
	// Only a password that the target received already is kept.
	to.User = nil
	if same {
		to.User = asked.User
	}
	s.move(asked, to)
	s.put(fileURL, to.String())
	s.put(fileMoved, "")
	s.movedTo = to.String()
}

// Save writes the changes since the state was loaded: the schedule before the knowledge of the
// document, as a known document is not read again, and the time when the feed is due last. A kill
// in between costs a request, not an entry. Only a new url is synced: a request restores the rest.
func (s *State) Save() error {
	var err error
	if len(s.changed)+len(s.times) > 0 && len(s.names) == 0 {
		err = os.MkdirAll(s.dir, 0o777)
	}
	removeErr := s.removeDocument()
	err = errors.Join(err, removeErr, s.settings.save(), s.schedule.save())
	if removeErr == nil {
		err = errors.Join(err, s.lastDocument.save(err == nil))
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
