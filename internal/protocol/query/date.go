package query

import (
	"strconv"
	"strings"
	"time"
)

// date is a date in a query. It is resolved to times by span, for the current time and time zone.
type date struct {
	kind  dateKind
	parts [5]int    // ago: hours, days, weeks, months, years; calendar: year, month, day
	t     time.Time // for wallclock and moment
}

type dateKind uint8

const (
	ago       dateKind = iota // a duration before now
	today                     // parts[1] days before today
	calendar                  // a year, month or day of the calendar
	wallclock                 // a date and time without a zone
	moment                    // a point in time
)

// units are the units of a duration, in the order of date.parts.
const units = "hdwmy"

// layouts are the forms of a date with a time.
var layouts = map[string]dateKind{
	time.RFC3339: moment, "2006-01-02T15:04Z07:00": moment, "2006-01-02 15:04:05Z07:00": moment,
	"2006-01-02T15:04:05": wallclock, "2006-01-02T15:04": wallclock,
	"2006-01-02 15:04:05": wallclock, "2006-01-02 15:04": wallclock,
}

// parseDate parses a duration (2d, 1w3d), a day (today, yesterday, 2026-01-31), a month or year, or a
// point in time (RFC 3339, with or without seconds and zone).
func parseDate(s string) (date, bool) {
	switch strings.ToLower(s) {
	case "now":
		return date{kind: ago}, true
	case "today":
		return date{kind: today}, true
	case "yesterday":
		return date{kind: today, parts: [5]int{1: 1}}, true
	}
	for i, layout := range []string{"2006", "2006-01", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			d := date{kind: calendar, parts: [5]int{t.Year(), int(t.Month()), t.Day()}}
			clear(d.parts[i+1:])
			return d, true
		}
	}
	for layout, kind := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return date{kind: kind, t: t}, true
		}
	}
	return parseAgo(s)
}

// IsTime reports whether s is a valid date of a query, for example 90d or 2026-01-31.
func IsTime(s string) bool {
	_, ok := parseDate(s)
	return ok
}

// Time returns the beginning of a date of a query, in the time zone of now; ok is false if s is not a
// valid date.
func Time(s string, now time.Time) (t time.Time, ok bool) {
	d, ok := parseDate(s)
	return d.span(now).from, ok
}

func parseAgo(s string) (date, bool) {
	d := date{kind: ago}
	for rest := s; rest != ""; {
		end := 0
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		// Five digits are enough, and cannot overflow.
		if end == 0 || end > 5 || end == len(rest) {
			return date{}, false
		}
		n, _ := strconv.Atoi(rest[:end])
		unit := strings.IndexByte(units, rest[end]|0x20)
		if unit < 0 {
			return date{}, false
		}
		d.parts[unit] += n
		if d.parts[unit] > 99999 {
			return date{}, false
		}
		rest = rest[end+1:]
	}
	return d, s != ""
}

// days reports whether the date consists of whole days, so that on: can take it.
func (d date) days() bool {
	switch d.kind {
	case today, calendar:
		return true
	case ago:
		return d.parts[0] == 0 && d != date{}
	}
	return false
}

// span is a time from its first moment to the first one after it.
type span struct{ from, to time.Time }

// span returns the span of a date in the time zone of now. If the date is a point in time, both ends
// are equal.
func (d date) span(now time.Time) span {
	at := func(y, m, day int) time.Time { return time.Date(y, time.Month(m), day, 0, 0, 0, 0, now.Location()) }
	switch p := d.parts; d.kind {
	case today:
		y, m, day := now.Date()
		return span{at(y, int(m), day-p[1]), at(y, int(m), day-p[1]+1)}
	case calendar:
		switch y, m, day := p[0], p[1], p[2]; {
		case m == 0:
			return span{at(y, 1, 1), at(y+1, 1, 1)}
		case day == 0:
			return span{at(y, m, 1), at(y, m+1, 1)}
		default:
			return span{at(y, m, day), at(y, m, day+1)}
		}
	case wallclock:
		y, m, day := d.t.Date()
		t := time.Date(y, m, day, d.t.Hour(), d.t.Minute(), d.t.Second(), 0, now.Location())
		return span{t, t}
	case moment:
		return span{d.t, d.t}
	}
	t := now.AddDate(-d.parts[4], -d.parts[3], -d.parts[1]-7*d.parts[2]).Add(-time.Duration(d.parts[0]) * time.Hour)
	return span{t, t}
}

// on returns the whole days of a date. For a duration, it is the day that long ago.
func (d date) on(now time.Time) span {
	s := d.span(now)
	if d.kind == ago {
		y, m, day := s.from.Date()
		return date{kind: calendar, parts: [5]int{y, int(m), day}}.span(now)
	}
	return s
}
