// Package humanize parses and formats numbers with units: intervals, times, bytes, and counts. It
// also shortens texts.
package humanize

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Group formats a number with commas between thousands, "12,345".
func Group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a number of things, named in the singular, such as "1 entry" or "2,000 feeds".
func Count(n int, what string) string {
	if n != 1 {
		if y, ok := strings.CutSuffix(what, "y"); ok {
			what = y + "ie"
		}
		what += "s"
	}
	return Group(int64(n)) + " " + what
}

// Bytes formats a number of bytes, in decimal units.
func Bytes(n int64) string {
	switch {
	case n < 10_000:
		return Count(int(n), "byte")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%s MB", Group(n/1e6))
	}
	return fmt.Sprintf("%s GB", Group(n/1e9))
}

// Cut shortens a text to its first bytes, at most most, and an ellipsis.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// interval matches an interval, and part a number in it with its unit.
var interval, part = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:[0-9]{1,9}|(?:[0-9]{1,9}[wdhms])+)\s*$`)
}), sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([0-9]+)([wdhms]?)`) })

// seconds are those of a unit.
var seconds = map[string]int64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}

// ParseInterval parses a time between fetches: a number of seconds, or numbers with units (w, d,
// h, m, s), as in "1d12h" or "90m". The minimum is a second, the maximum ten years.
func ParseInterval(v string) (time.Duration, error) {
	const most = 10 * 365 * 24 * 3600
	total := int64(0)
	if interval().MatchString(v) {
		for _, m := range part().FindAllStringSubmatch(v, -1) {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			total += min(n*seconds[m[2]], most+1)
		}
	}
	if total < 1 || total > most {
		return 0, fmt.Errorf("%q is not an interval such as 30m, 2h or 1d", termsafe.Brief(v))
	}
	return time.Duration(total) * time.Second, nil
}

// ShortDuration formats d without the zero parts of String ("1h0m0s").
func ShortDuration(d time.Duration) string {
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ParseTime parses a time: RFC 3339 with or without seconds, the date of a mail, or seconds since
// 1970 with or without @ in front. loc is the time zone of a time without one.
func ParseTime(v string, loc *time.Location) (time.Time, error) {
	secs, marked := strings.CutPrefix(v, "@")
	if n, err := strconv.ParseInt(secs, 10, 64); err == nil && (marked || len(v) > 4) { // four digits may be a year
		return time.Unix(n, 0), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", time.RFC1123Z, time.RFC1123,
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.ParseInLocation(layout, v, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write it as 2026-01-31T12:00:00Z, or as @ and seconds since 1970",
		v)
}

// ParseSize parses a number of bytes, at least 1. The suffixes K, M and G multiply it by 2¹⁰, 2²⁰
// and 2³⁰.
func ParseSize(v string) (int64, error) {
	digits, shift := strings.TrimSpace(v), 0
	if last := len(digits) - 1; last >= 0 {
		if i := strings.IndexByte("kmgKMG", digits[last]); i >= 0 {
			digits, shift = strings.TrimSpace(digits[:last]), 10*(1+i%3)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a number of bytes such as 4096, 64K, 256M or 1G", v)
	}
	return int64(n) << shift, nil
}
