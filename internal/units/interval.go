package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/termsafe"
)

// ParseInterval reads a time between fetches: a number of seconds, or numbers
// with units (w, d, h, m, s), as in "1d12h" or "90m". It is at least a second
// and at most ten years.
func ParseInterval(v string) (time.Duration, error) {
	bad := fmt.Errorf("%q is no interval such as 30m, 2h or 1d", termsafe.Brief(v))
	rest := strings.TrimSpace(v)
	const most = 10 * 365 * 24 * time.Hour
	total := time.Duration(0)
	for first := true; rest != "" || first; first = false {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if n == 0 || n > 9 {
			return 0, bad
		}
		count, _ := strconv.Atoi(rest[:n])
		rest = rest[n:]
		unit := time.Second
		switch {
		case rest == "" && first:
		case rest == "":
			return 0, bad
		default:
			switch rest[0] {
			case 'w':
				unit = 7 * 24 * time.Hour
			case 'd':
				unit = 24 * time.Hour
			case 'h':
				unit = time.Hour
			case 'm':
				unit = time.Minute
			case 's':
			default:
				return 0, bad
			}
			rest = rest[1:]
		}
		if time.Duration(count) > most/unit {
			return 0, bad
		}
		if total += time.Duration(count) * unit; total > most {
			return 0, bad
		}
	}
	if total < time.Second {
		return 0, bad
	}
	return total, nil
}

// ShortDuration gives d without the zero parts that String appends ("1h0m0s").
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
