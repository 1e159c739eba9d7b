package feedsync

import (
	"cmp"
	"net/mail"
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

// zones are the zones of RFC 822 that have names.
var zones = map[string]string{
	"GMT": "+0000", "UT": "+0000", "UTC": "+0000", "Z": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800",
	"PDT": "-0700",
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
	last := len(f) - 1
	if last < 4 {
		return time.Time{}, false
	}
	f[last] = cmp.Or(zones[strings.ToUpper(f[last])], f[last])
	if zone := f[last]; len(zone) != 5 || zone[1:3] > "23" || zone[3:] > "59" {
		return time.Time{}, false
	}
	if day := f[0]; len(f) == 6 && len(day) > 4 {
		f[0] = day[:3] + "," // "Saturday,"
	}
	t, err := mail.ParseDate(strings.Join(f, " "))
	return t.UTC(), err == nil && t.UTC().Year() > 0 && t.Nanosecond() == 0
}

// inForm reports whether a date that [ParseDate] accepts is in GMT and has a year of four digits.
func inForm(s string) bool {
	f := strings.Fields(s)
	return f[len(f)-1] == "GMT" && len(f[len(f)-3]) == 4
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
