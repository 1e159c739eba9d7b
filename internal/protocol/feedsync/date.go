package feedsync

import (
	"strings"
	"time"
)

// dateLayout is the form in which dates are written: RFC 822, GMT, a year of four digits.
const dateLayout = "Mon, 02 Jan 2006 15:04:05 GMT"

// FormatDate returns a date in the form of documents, "" for the zero time.
func FormatDate(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(dateLayout)
}

// zones are the zones of RFC 822, in hours east of Greenwich.
var zones = map[string]int{
	"GMT": 0, "UT": 0, "UTC": 0, "Z": 0,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}

// ParseDate parses a date of RFC 822 in any of its zones, with a year of two or four digits
// (section 1.2 requires four, and GMT). The day of the week may be missing, or wrong as in
// two examples of the specification. The result is in UTC and has whole seconds.
func ParseDate(s string) (time.Time, bool) {
	if len(s) == len(dateLayout) {
		// Nearly all dates have this layout. On an error, try the others.
		if t, err := time.Parse(dateLayout, s); err == nil {
			return t, t.Year() > 0
		}
	}
	f := strings.Fields(strings.Replace(s, ",", ", ", 1))
	if len(f) == 6 {
		day, ok := strings.CutSuffix(f[0], ",")
		if _, err := time.Parse("Mon", day[:min(len(day), 3)]); err != nil || !ok {
			return time.Time{}, false
		}
		f = f[1:]
	}
	if len(f) != 5 || strings.ContainsAny(f[3], ".,") {
		return time.Time{}, false
	}
	layout := "2 Jan 2006 15:04:05"
	if len(f[2]) == 2 {
		layout = "2 Jan 06 15:04:05"
	}
	if strings.Count(f[3], ":") == 1 {
		f[3] += ":00"
	}
	t, err := time.Parse(layout, strings.Join(f[:4], " "))
	east, ok := zone(f[4])
	if t = t.Add(-east); err != nil || !ok || t.Year() < 1 {
		return time.Time{}, false
	}
	return t, true
}

// inForm reports whether a date that [ParseDate] accepts is in GMT and has a year of four digits.
func inForm(s string) bool {
	f := strings.Fields(s)
	return f[len(f)-1] == "GMT" && len(f[len(f)-3]) == 4
}

// zone returns the offset of a zone, positive to the east.
func zone(s string) (time.Duration, bool) {
	if hours, ok := zones[strings.ToUpper(s)]; ok {
		return time.Duration(hours) * time.Hour, true
	}
	t, err := time.Parse("-0700", s)
	_, east := t.Zone()
	return time.Duration(east) * time.Second, err == nil && s[1:3] < "24" && s[3:] < "60"
}

// IsNSS reports whether s is a namespace specific string, the part of a URN after its
// namespace (RFC 2141, section 2.2). Ids of items and names of endpoints have this form.
func IsNSS(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			strings.IndexByte("()+,-.:=@;$_!*'", c) >= 0:
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
