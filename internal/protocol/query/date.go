package query

import (
	"strconv"
	"strings"
	"time"
)

// date is a date in a query. Its time is a function of the current time, with the time zone.
type date struct {
	at func(now time.Time) time.Time // its first moment
	on func(now time.Time) span      // whole days, for on:; nil if the date has a time
}

// span is a time from its first moment to the first one after it.
type span struct{ from, to time.Time }

// days returns the date of whole days.
func days(of func(now time.Time) span) date {
	return date{func(now time.Time) time.Time { return of(now).from }, of}
}

// dayOf returns the day of a time.
func dayOf(t time.Time) span {
	y, m, d := t.Date()
	return span{time.Date(y, m, d, 0, 0, 0, 0, t.Location()), time.Date(y, m, d+1, 0, 0, 0, 0, t.Location())}
}

// local returns the time with the date and the clock of t in the time zone of now.
func local(t, now time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
}

// parseDate parses a duration (2d, 1w3d), a day (today, yesterday, 2026-01-31), a month or year, or a
// point in time (RFC 3339, with or without seconds and zone).
func parseDate(s string) (date, bool) {
	switch word := strings.ToLower(s); word {
	case "now":
		return date{at: func(now time.Time) time.Time { return now }}, true
	case "today", "yesterday":
		return days(func(now time.Time) span {
			if word == "yesterday" {
				now = now.AddDate(0, 0, -1)
			}
			return dayOf(now)
		}), true
	}
	for layout, length := range map[string][3]int{"2006": {1}, "2006-01": {0, 1}, "2006-01-02": {0, 0, 1}} {
		if t, err := time.Parse(layout, s); err == nil {
			end := t.AddDate(length[0], length[1], length[2])
			return days(func(now time.Time) span { return span{local(t, now), local(end, now)} }), true
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.Parse(layout+"Z07:00", s); err == nil {
			return date{at: func(time.Time) time.Time { return t }}, true
		}
		if t, err := time.Parse(layout, s); err == nil {
			return date{at: func(now time.Time) time.Time { return local(t, now) }}, true
		}
	}
	return parseAgo(s)
}

// Time returns the beginning of a date of a query, for example 90d or 2026-01-31, in the time zone of now; ok is
// false if s is not a valid date.
func Time(s string, now time.Time) (t time.Time, ok bool) {
	d, ok := parseDate(s)
	if ok {
		t = d.at(now)
	}
	return t, ok
}

// units are the units of a duration.
const units = "hdwmy"

func parseAgo(s string) (date, bool) {
	var parts [len(units)]int
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
		if parts[unit] += n; parts[unit] > 99999 {
			return date{}, false
		}
		rest = rest[end+1:]
	}
	at := func(now time.Time) time.Time {
		return now.AddDate(-parts[4], -parts[3], -parts[1]-7*parts[2]).Add(-time.Duration(parts[0]) * time.Hour)
	}
	d := date{at: at}
	if parts[0] == 0 && parts != [len(units)]int{} {
		d.on = func(now time.Time) span { return dayOf(at(now)) }
	}
	return d, s != ""
}
