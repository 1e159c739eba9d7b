package schedule

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

const (
	// DefaultInterval is the minimum time between two fetches of a feed that has no interval. Most
	// feeds change less than once a day, and some servers refuse readers that request them more than
	// once an hour.
	DefaultInterval = time.Hour
	// MaxDelay is the maximum time by which a server, a document or failures can delay the next fetch.
	// Retry-After, skipHours and skipDays, and the user's interval may be longer.
	MaxDelay = 24 * time.Hour
	// minLive is the minimum time between a fetch and the beginning or end of a live broadcast, for which
	// the feed is due early, and maxLive the maximum number of these times.
	minLive = time.Minute
	maxLive = 20
	// GoneDelay is the time between two requests for a feed whose server responded with 410.
	GoneDelay = 30 * 24 * time.Hour
)

// Hints are a document's hints about the time of the next fetch. They are stored, and also apply after
// responses without a document.
type Hints struct {
	TTL, UpdateInterval time.Duration
	SkipHours           []int // in GMT, 0 to 23
	SkipDays            []time.Weekday
	// Live are times at which a live broadcast begins or ends, in any order.
	Live []time.Time
}

// Schedule holds the time at which a feed is due, and the responses and hints that determine it.
type Schedule struct {
	values *feedfiles.Values
	set    *Settings
	// Rand returns the jitter, a number in [0, 1); nil means random.
	Rand func() float64
}

// Due reports whether the feed must be fetched now: if `next` has passed or is missing, or if `checked` is
// in the future by more than [feedfiles.ClockSkew]. In that case the clock was set back, and `next` is not valid.
func (s *Schedule) Due(now time.Time) bool {
	due, _ := isDue(s.values.Time, now)
	return due
}

// Checked returns the time of the last request, zero if there was none.
func (s *Schedule) Checked() time.Time { t, _ := s.values.Time(fileChecked); return t }

// Status returns the last HTTP status, or 0 if there was no response. A 304 after a success does not count.
func (s *Schedule) Status() int { return s.values.Number(fileStatus) }

// Failures returns the number of failures since the last success.
func (s *Schedule) Failures() int { return s.values.Number(fileFailures) }

// Gone reports whether the server has responded with 410 Gone.
func (s *Schedule) Gone() bool { return s.values.Get(fileGone) != "" }

// setHints sets the hints of a document.
func (s *Schedule) setHints(hints Hints) {
	s.values.Put(fileTTL, duration(hints.TTL))
	s.values.Put(fileUpdates, duration(hints.UpdateInterval))
	var hours, days []string
	for _, h := range hints.SkipHours {
		hours = append(hours, strconv.Itoa(h))
	}
	for _, d := range hints.SkipDays {
		days = append(days, d.String())
	}
	s.values.Put(fileHours, strings.Join(hours, " "))
	s.values.Put(fileDays, strings.Join(days, " "))
	var live []string
	for _, t := range hints.Live[:min(len(hints.Live), maxLive)] {
		live = append(live, t.UTC().Format(time.RFC3339))
	}
	s.values.Put(fileLive, strings.Join(live, " "))
}

// succeeded sets when the feed is due after a response with a known document.
func (s *Schedule) succeeded(now time.Time, resp *httpmsg.Response) {
	s.values.Put(fileError, "")
	s.values.Put(fileFailures, "")
	s.values.Put(fileGone, "")
	fresh, ok := httpmsg.Seconds(s.values.Get(fileMaxAge))
	if _, has := httpmsg.MaxAge(resp.Header); !ok && !has {
		fresh = httpmsg.ExpiresIn(resp.Header, resp.Received)
	}
	s.values.SetTime(fileChecked, now)
	s.values.SetTime(fileNext, s.after(now, max(fresh-httpmsg.Age(resp.Header), 0)))
}

// after returns when the feed is due after a response at t that is fresh for the duration fresh.
func (s *Schedule) after(t time.Time, fresh time.Duration) time.Time {
	server := max(fresh, s.values.Duration(fileTTL), s.values.Duration(fileUpdates))
	next := s.skip(t.Add(max(s.set.Interval(), min(server, MaxDelay))))
	for f := range strings.FieldsSeq(s.values.Get(fileLive)) {
		if live, err := time.Parse(time.RFC3339, f); err == nil && live.After(t) {
			live = t.Add(max(live.Sub(t), minLive))
			if live.Before(next) {
				next = live
			}
		}
	}
	return next
}

// Reschedule computes and saves the time at which the feed is due. Call it if the user may have changed
// the interval.
func (s *Schedule) Reschedule() error {
	if checked, ok := s.values.Time(fileChecked); ok && s.values.Has(fileNext) && s.Failures() == 0 {
		age, _ := httpmsg.Seconds(s.values.Get(fileMaxAge))
		s.values.SetTime(fileNext, s.after(checked, age))
		return s.values.SaveTimes(fileNext)
	}
	return nil
}

// Failed records that a fetch returned no readable document, and sets the time of the next try. The n-th
// failure in a row delays that by the interval times 2ⁿ⁻¹ and some jitter, up to [MaxDelay]. After a 429 or
// 503 response, the delay is at least Retry-After. The document's skipHours and skipDays apply, too.
//
// The feed is not responsible for three kinds of errors. If this machine is offline, the feed is tried
// again after the interval, and the failure is not counted. If the response of another feed blocks the
// host ([httpmsg.HostDelayError]), only `next` changes. If the context was cancelled, nothing changes.
//
// A 410 response marks the feed as gone. It is then fetched every [GoneDelay] until a response has a
// document.
func (s *Schedule) Failed(now time.Time, err error) {
	var delay *httpmsg.HostDelayError
	switch {
	// Network timeouts match DeadlineExceeded, too.
	case !httpmsg.Remote(err) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return
	case errors.As(err, &delay):
		if next, ok := s.values.Time(fileNext); !ok || next.Before(delay.Until) {
			s.values.SetTime(fileNext, delay.Until)
		}
		return
	}

	s.values.SetTime(fileChecked, now)
	s.values.Put(fileError, termsafe.Brief(err.Error()))

	if network, ok := errors.AsType[*httpmsg.NetError](err); ok && network.Offline {
		s.values.SetTime(fileNext, s.skip(now.Add(s.set.Interval())))
		return
	}
	n := s.Failures() + 1
	s.values.Put(fileFailures, strconv.Itoa(n))
	var retryAfter time.Duration
	if status, ok := errors.AsType[*httpmsg.StatusError](err); ok {
		s.values.Put(fileStatus, strconv.Itoa(status.Status))
		retryAfter = status.RetryAfter
		if status.Status == httpmsg.StatusGone && !s.Gone() {
			s.values.Put(fileGone, now.UTC().Format(time.RFC3339))
		}
	}
	wait := s.backoff(n, retryAfter)
	if s.Gone() {
		wait = GoneDelay
	}
	s.values.SetTime(fileNext, s.skip(now.Add(wait)))
}

// backoff returns the time to wait after n failures. Jitter makes it up to a quarter longer, so that feeds
// that failed together are not retried together. It is at least the interval and Retry-After; unless these
// are longer, it is at most MaxDelay.
func (s *Schedule) backoff(n int, retryAfter time.Duration) time.Duration {
	const most = MaxDelay * 4 / 5 // with the jitter
	random := rand.Float64
	if s.Rand != nil {
		random = s.Rand
	}
	b := limiter.Backoff{Base: min(s.set.Interval(), most), Cap: most, Jitter: 0.25}
	return max(s.set.Interval(), b.Wait(n, random(), min(retryAfter, httpmsg.MaxRetryAfter)))
}

// skip returns the first time from t on that is not in skipHours or skipDays. If these cover all times, it
// returns t.
func (s *Schedule) skip(t time.Time) time.Time {
	var hours [24]bool
	var days [7]bool
	for f := range strings.FieldsSeq(s.values.Get(fileHours)) {
		// Old documents count from 1 to 24.
		if h, err := strconv.Atoi(f); err == nil && h >= 0 && h <= 24 {
			hours[h%24] = true
		}
	}
	for f := range strings.FieldsSeq(s.values.Get(fileDays)) {
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

// save writes everything except the times of the last request and of the next.
func (s *Schedule) save() error {
	return s.values.Save(fileMaxAge, fileTTL, fileUpdates, fileHours, fileDays, fileLive, fileStatus, fileError,
		fileFailures, fileGone, feedfiles.FileMoved)
}

// maxAge returns the max-age of h in seconds, "" if it has none.
func maxAge(h textproto.MIMEHeader) string {
	d, _ := httpmsg.MaxAge(h)
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10)
}

// duration formats d so that humanize.ParseInterval can parse it.
func duration(d time.Duration) string {
	const most = 365 * 24 * time.Hour // longer than MaxDelay, so the limit has no effect
	if d < time.Second {
		return ""
	}
	return humanize.ShortDuration(min(d, most))
}
