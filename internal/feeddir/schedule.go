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

// schedule is when a feed is due, and what that rests on: the answers of its server and the
// hints of its document.
type schedule struct {
	*area
	set *settings
	// Rand gives the jitter, a number in [0, 1); nil means random.
	Rand func() float64
}

// Due tells whether the feed should be fetched now: when `next` has passed or
// is missing, or when `checked` lies in the future by more than clocks of several
// machines differ ([clockSkew]), since then the clock was set back and `next` means
// nothing.
func (s *schedule) Due(now time.Time) bool {
	due, _ := isDue(s.time, now)
	return due
}

// clockSkew is by how much the clocks of machines may differ that fetch into one
// lektor-dir. What one has just asked for the other would else take for something of
// the future, and ask again.
const clockSkew = 5 * time.Minute

// Checked is when the feed was last asked for, zero for never.
func (s *schedule) Checked() time.Time { t, _ := s.time(fileChecked); return t }

// Next is when the feed is due, zero for at once.
func (s *schedule) Next() time.Time { t, _ := s.time(fileNext); return t }

// Status is the HTTP status of the last answer that was more than a 304 after
// a success, and 0 when there was none.
func (s *schedule) Status() int { return s.number(fileStatus) }

// Failures counts the failed fetches since the last that did not fail.
func (s *schedule) Failures() int { return s.number(fileFailures) }

// LastError is the message of the last fetch, one line, empty when it
// succeeded.
func (s *schedule) LastError() string { return termsafe.Brief(s.get(fileError)) }

// Gone tells whether the server said that the feed has ended (410).
func (s *schedule) Gone() bool { return s.get(fileGone) != "" }

// heed takes the hints of a document.
func (s *schedule) heed(hints Hints) {
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
}

// succeeded sets when the feed is due after an answer with a known document.
func (s *schedule) succeeded(now time.Time, resp *fetch.Response) {
	s.put(fileError, "")
	s.put(fileFailures, "")
	s.put(fileGone, "")
	fresh, ok := fetch.Seconds(s.get(fileMaxAge))
	if _, has := fetch.MaxAge(resp.Header); !ok && !has {
		fresh = fetch.ExpiresIn(resp.Header, resp.Received)
	}
	s.times[fileChecked] = now
	s.times[fileNext] = s.after(now, max(fresh-fetch.Age(resp.Header), 0))
}

// after gives when the feed is due after an answer at t that is fresh for a
// time.
func (s *schedule) after(t time.Time, fresh time.Duration) time.Time {
	server := max(fresh, s.duration(fileTTL), s.duration(fileUpdates))
	return s.skip(t.Add(max(s.set.Interval(), min(server, MaxDelay))))
}

// Reschedule sets when the feed is due by its present interval, which may have
// been changed by an editor, and saves that.
func (s *schedule) Reschedule() error {
	if checked, ok := s.time(fileChecked); ok && s.names[fileNext] && s.Failures() == 0 {
		age, _ := fetch.Seconds(s.get(fileMaxAge))
		return s.saveTime(fileNext, s.after(checked, age))
	}
	return nil
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
func (s *schedule) Failed(now time.Time, err error) {
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
		s.times[fileNext] = s.skip(now.Add(s.set.Interval()))
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
func (s *schedule) backoff(n int, retryAfter time.Duration) time.Duration {
	const most = MaxDelay * 4 / 5 // with the jitter
	random := rand.Float64
	if s.Rand != nil {
		random = s.Rand
	}
	b := backoff.Backoff{Base: min(s.set.Interval(), most), Cap: most, Jitter: 0.25}
	return max(s.set.Interval(), b.Wait(n, random(), min(retryAfter, fetch.MaxRetryAfter)))
}

// skip moves t to the first hour that the document does not ask to skip. A
// document that asks to skip all of them is not heeded.
func (s *schedule) skip(t time.Time) time.Time {
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

// save writes what answers and documents have said, but not yet when the feed is due.
func (s *schedule) save() error {
	return s.area.save(fileMaxAge, fileTTL, fileUpdates, fileHours, fileDays, fileStatus, fileError, fileFailures, fileGone, fileMoved)
}

// saveTimes writes when the feed was asked for and is due.
func (s *schedule) saveTimes() error {
	var errs []error
	for _, name := range []string{fileChecked, fileNext} {
		if t, ok := s.times[name]; ok {
			errs = append(errs, s.saveTime(name, t))
		}
	}
	return errors.Join(errs...)
}

// maxAge returns the max-age of h in seconds, "" for none.
func maxAge(h http.Header) string {
	d, _ := fetch.MaxAge(h)
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
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
