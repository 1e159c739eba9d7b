package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a moment: RFC 3339 with or without seconds, the date of a
// mail, or seconds since 1970 with or without @ in front. loc is the time zone
// where none is given.
func ParseTime(v string, loc *time.Location) (time.Time, error) {
	secs, marked := strings.CutPrefix(v, "@")
	if n, err := strconv.ParseInt(secs, 10, 64); err == nil && (marked || len(v) > 4) { // four digits may be a year
		return time.Unix(n, 0), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04Z07:00", time.RFC1123Z, time.RFC1123,
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.ParseInLocation(layout, v, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write it as 2026-01-31T12:00:00Z, or as @ and seconds since 1970", v)
}
