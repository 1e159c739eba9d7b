package feeddir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/backoff"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
)

const (
	// DefaultInterval is the least time between two fetches of a feed whose
	// user says nothing. Most feeds change less than once a day, and servers
	// begin to refuse readers that come more often than hourly.
	DefaultInterval = time.Hour
	// MaxDelay is the most that a server or a document can put off the next
	// fetch, Retry-After, skipHours and skipDays excepted, and the most that
	// failures do. An interval of the user may be longer.
	MaxDelay = 24 * time.Hour
	// GoneDelay is the time between two requests for a feed that has ended.
	GoneDelay = 30 * 24 * time.Hour
)

// Hints is what a feed document says about when to fetch it again. They are
// kept, for answers without a document to hold to them too.
type Hints struct {
	TTL, UpdateInterval time.Duration
	SkipHours           []int // in GMT, 0 to 23
	SkipDays            []time.Weekday
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
	s.put(fileTTL, duration(hints.TTL))
	s.put(fileUpdates, duration(hints.UpdateInterval))
	var hours, days []string
	for _, h := range hints.SkipHours {
		hours = append(hours, strconv.Itoa(h))
	}
	for _, d := range hints.SkipDays {
		days = append(days, d.String())
	}
	s.put(fileHours, strings.Join(hours, " "))
	s.put(fileDays, strings.Join(days, " "))
	s.document(now, resp)
}

// Unchanged records that a document came which is the same as the last one
// ([State.SameBody]), and was not read. Its hints are those of last time.
func (s *State) Unchanged(now time.Time, resp *fetch.Response) {
	resp.Short = s.short()
	s.document(now, resp)
}

func (s *State) document(now time.Time, resp *fetch.Response) {
	var etag, modified, final, body, from string
	if !resp.Truncated {
		etag, modified, body, from = resp.ETag, resp.LastModified, resp.Digest(), s.from(s.URL(), resp.Short)
		final = finalURL(resp.FinalURL, s.URL())
	}
	s.put(fileETag, etag)
	s.put(fileModified, modified)
	s.put(fileFinal, final)
	s.put(fileBody, body)
	s.put(fileFrom, from)
	s.put(fileStatus, strconv.Itoa(resp.Status))
	s.put(fileMaxAge, maxAge(resp.Header))
	s.success(now, resp)
}

// finalURL is what is kept of the URL that gave an answer: nothing when it is the
// one that was asked.
func finalURL(final, asked string) string {
	if u, err := fetch.ParseURL(asked); err == nil && fetch.IsHTTP(final) {
		if u.User = nil; u.String() != final {
			return final
		}
	}
	return ""
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

// maxAge returns the max-age of h in seconds, "" for none.
func maxAge(h http.Header) string {
	d, _ := fetch.MaxAge(h)
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// success is what all answers with a known document have in common.
func (s *State) success(now time.Time, resp *fetch.Response) {
	s.put(fileError, "")
	s.put(fileFailures, "")
	s.put(fileGone, "")
	fresh, ok := fetch.Seconds(s.get(fileMaxAge))
	if _, has := fetch.MaxAge(resp.Header); !ok && !has {
		fresh = fetch.ExpiresIn(resp.Header, resp.Received)
	}

	s.times[fileChecked] = now
	s.times[fileNext] = s.after(now, max(fresh-fetch.Age(resp.Header), 0))
	s.moved(resp.Permanent)
}

// after gives when the feed is due after an answer at t that is fresh for a
// time.
func (s *State) after(t time.Time, fresh time.Duration) time.Time {
	server := max(fresh, s.duration(fileTTL), s.duration(fileUpdates))
	return s.skip(t.Add(max(s.Interval(), min(server, MaxDelay))))
}

// Failed records that a fetch brought no document that could be read, and sets
// when to try again. The n-th failure in a row puts it off for the interval
// times 2ⁿ⁻¹ and some jitter, up to [MaxDelay]; after 429 and 503 at least for
// what Retry-After says. Failures never end that. Hours and days to be skipped
// hold here, too.
//
// Three errors are not the feed's fault. When this machine is offline, the
// feed is tried again after the interval and the failure not counted. When
// another feed's answer keeps us from the host ([fetch.HostDelayError]), only `next`
// moves. When ctx was cancelled, nothing changes.
//
// An answer 410 marks the feed as gone, and it is then tried every
// [GoneDelay] until an answer brings a document.
func (s *State) Failed(now time.Time, err error) {
	var delay *fetch.HostDelayError
	switch {
	// Timeouts of the network pass for DeadlineExceeded, too.
	case !fetch.Remote(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return
	case errors.As(err, &delay):
		if next, ok := s.time(fileNext); !ok || next.Before(delay.Until) {
			s.times[fileNext] = delay.Until
		}
		return
	}

	s.times[fileChecked] = now
	s.put(fileError, termsafe.Brief(err.Error()))

	if network, ok := errors.AsType[*fetch.NetError](err); ok && network.Offline {
		s.times[fileNext] = s.skip(now.Add(s.Interval()))
		return
	}
	n := s.Failures() + 1
	s.put(fileFailures, strconv.Itoa(n))
	var retryAfter time.Duration
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		s.put(fileStatus, strconv.Itoa(status.Status))
		retryAfter = status.RetryAfter
		if status.Status == http.StatusGone && !s.Gone() {
			s.put(fileGone, now.UTC().Format(time.RFC3339))
		}
	}
	wait := s.backoff(n, retryAfter)
	if s.Gone() {
		wait = GoneDelay
	}
	s.times[fileNext] = s.skip(now.Add(wait))
}

// backoff returns the time to wait after n failures. Jitter makes it up to a
// quarter longer, so that what failed together does not come back together;
// never shorter than the interval, nor longer than MaxDelay.
func (s *State) backoff(n int, retryAfter time.Duration) time.Duration {
	const most = MaxDelay * 4 / 5 // with the jitter
	random := rand.Float64
	if s.Rand != nil {
		random = s.Rand
	}
	b := backoff.Backoff{Base: min(s.Interval(), most), Cap: most, Jitter: 0.25}
	return max(s.Interval(), b.Wait(n, random(), min(retryAfter, fetch.MaxRetryAfter)))
}

// skip moves t to the first hour that the document does not ask to skip. A
// document that asks to skip all of them is not heeded.
func (s *State) skip(t time.Time) time.Time {
	var hours [24]bool
	var days [7]bool
	for f := range strings.FieldsSeq(s.get(fileHours)) {
		// Old documents count from 1 to 24.
		if h, err := strconv.Atoi(f); err == nil && h >= 0 && h <= 24 {
			hours[h%24] = true
		}
	}
	for f := range strings.FieldsSeq(s.get(fileDays)) {
		for d := time.Sunday; d <= time.Saturday; d++ {
			if strings.EqualFold(f, d.String()) {
				days[d] = true
			}
		}
	}
	if !slices.Contains(hours[:], false) || !slices.Contains(days[:], false) {
		return t
	}
	for u := t.UTC(); ; u = u.Truncate(time.Hour).Add(time.Hour) {
		if !hours[u.Hour()] && !days[u.Weekday()] {
			return u
		}
	}
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
	// The document stays known, and the validators those of the URL that gave
	// them, which is mostly this one.
	if s.current() {
		final := s.get(fileFinal)
		if final == "" {
			asked.User = nil
			final = asked.String()
		}
		s.put(fileFinal, finalURL(final, to.String()))
		s.put(fileFrom, s.from(to.String(), s.short()))
	}
	s.put(fileURL, to.String())
	s.put(fileMoved, "")
	s.movedTo = to.String()
}

func (a *area) duration(name string) time.Duration {
	v := a.get(name)
	if v == "" {
		return 0
	}
	d, err := units.ParseInterval(v)
	if err != nil {
		a.malformed(name, err.Error())
	}
	return d
}

// duration formats d for a file, so that units.ParseInterval reads it.
func duration(d time.Duration) string {
	const most = 365 * 24 * time.Hour // beyond MaxDelay anyway
	if d < time.Second {
		return ""
	}
	return units.ShortDuration(min(d, most))
}

// MinInterval is the least interval that can be set unless it is forced.
const MinInterval = time.Minute

// ShortIntervalError is an interval below [MinInterval].
type ShortIntervalError struct{ Value string }

func (e *ShortIntervalError) Error() string {
	return fmt.Sprintf("an interval of %s is too short: servers refuse whoever comes more often than once in %s", e.Value, units.ShortDuration(MinInterval))
}

// bare tells whether an interval has no unit.
func bare(v string) bool { return strings.Trim(v, "0123456789") == "" }

// checkInterval is the error for an interval that a user gives: it needs a unit,
// as one who writes 3 rarely means seconds.
func checkInterval(v string) error {
	v = strings.TrimSpace(v)
	d, err := units.ParseInterval(v)
	switch {
	case v != "" && bare(v):
		return fmt.Errorf("the interval %s has no unit; is it %[1]sm, %[1]sh or %[1]sd?", v)
	case err != nil:
		return err
	case d < MinInterval:
		return &ShortIntervalError{Value: v}
	}
	return nil
}

// readInterval reads an interval from its file, where somebody may have written
// it with an editor: a number without a unit is one of seconds, but stands for
// MinInterval at least. One with a unit is taken at its word.
func readInterval(v string) (time.Duration, error) {
	d, err := units.ParseInterval(v)
	if err == nil && bare(strings.TrimSpace(v)) {
		d = max(d, MinInterval)
	}
	return d, err
}
