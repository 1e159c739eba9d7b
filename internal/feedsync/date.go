package feedsync

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// dateLayout is the form that is written: RFC 822, GMT, a year of four digits.
const dateLayout = "Mon, 02 Jan 2006 15:04:05 GMT"

// FormatDate writes a date as it stands in a document, "" for the zero time.
func FormatDate(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(dateLayout)
}

// zones are those that RFC 822 names, in hours east of Greenwich.
var zones = map[string]int{
	"GMT": 0, "UT": 0, "UTC": 0, "Z": 0,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// ParseDate reads a date: RFC 822 in any of its zones, with a year of two digits or
// four (section 1.2 asks for four and GMT). The day of the week may be wrong, as it
// is in two examples of the specification, or missing. The result is in UTC, and of
// whole seconds.
func ParseDate(s string) (time.Time, bool) {
	if len(s) == len(dateLayout) {
		// As nearly all are; a date that it does not take may still be one.
		if t, ok := usual(s); ok {
			return t, true
		}
	}
	f := strings.Fields(s)
	if len(f) > 0 {
		if day, ok := strings.CutSuffix(f[0], ","); ok {
			if !isWeekday(day) {
				return time.Time{}, false
			}
			f = f[1:]
		} else if day, rest, ok := strings.Cut(f[0], ","); ok && isWeekday(day) { // "Sat,21"
			f[0] = rest
		}
	}
	if len(f) != 5 {
		return time.Time{}, false
	}
	day, ok1 := number(f[0], 1, 2)
	year, ok2 := number(f[2], 2, 4)
	month := 0
	for i, m := range months {
		if strings.EqualFold(m, f[1]) {
			month = i + 1
		}
	}
	clock := strings.Split(f[3], ":")
	if len(clock) == 2 {
		clock = append(clock, "00")
	}
	if !ok1 || !ok2 || month == 0 || len(clock) != 3 || len(f[2]) == 3 {
		return time.Time{}, false
	}
	if len(f[2]) == 2 {
		if year += 1900; year < 1970 {
			year += 100
		}
	}
	hour, ok1 := number(clock[0], 1, 2)
	minute, ok2 := number(clock[1], 2, 2)
	second, ok3 := number(clock[2], 2, 2)
	east, ok4 := zone(f[4])
	if !ok1 || !ok2 || !ok3 || !ok4 || hour > 23 || minute > 59 || second > 60 || year == 0 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, min(second, 59), 0, time.UTC)
	if t.Day() != day || day == 0 {
		return time.Time{}, false
	}
	if t = t.Add(-east); t.Year() < 1 {
		return time.Time{}, false
	}
	return t, true
}

// usual reads a date that has exactly the form that is written.
func usual(s string) (time.Time, bool) {
	for i, c := range []byte("AAA, 00 AAA 0000 00:00:00 GMT") {
		digit := s[i] >= '0' && s[i] <= '9'
		if c == '0' && !digit || c != '0' && c != 'A' && s[i] != c {
			return time.Time{}, false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	month := slices.Index(months, strings.ToLower(s[8:11])) + 1
	day, year := two(5), two(12)*100+two(14)
	if month == 0 || year == 0 || two(17) > 23 || two(20) > 59 || two(23) > 59 || !isWeekday(s[:3]) {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, two(17), two(20), two(23), 0, time.UTC)
	return t, t.Day() == day && day > 0
}

func isWeekday(s string) bool {
	for d := range time.Weekday(7) {
		if strings.EqualFold(s, d.String()[:3]) || strings.EqualFold(s, d.String()) {
			return true
		}
	}
	return false
}

// number reads digits, from least to most of them.
func number(s string, least, most int) (int, bool) {
	if len(s) < least || len(s) > most || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// zone gives how far east of Greenwich a zone is.
func zone(s string) (time.Duration, bool) {
	if hours, ok := zones[strings.ToUpper(s)]; ok {
		return time.Duration(hours) * time.Hour, true
	}
	if len(s) != 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hours, ok1 := number(s[1:3], 2, 2)
	minutes, ok2 := number(s[3:], 2, 2)
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, ok1 && ok2 && hours < 24 && minutes < 60
}

// IsNSS tells whether s is a namespace specific string, the part of a URN behind
// its namespace (RFC 2141, section 2.2): what ids of items and endpoints are.
func IsNSS(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("()+,-.:=@;$_!*'", c) >= 0:
		case c == '%':
			if i+2 >= len(s) || s[i+1:i+3] == "00" || strings.Trim(s[i+1:i+3], "0123456789abcdefABCDEF") != "" {
				return false
			}
			i += 2
		default:
			return false
		}
	}
	return s != ""
}
