package humanize

import (
	"testing"
	"time"
)

func TestParseInterval(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"60": time.Minute, "30m": 30 * time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "1w": 7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "1h30m10s": time.Hour + 30*time.Minute + 10*time.Second, " 5s ": 5 * time.Second, "3650d": 3650 * 24 * time.Hour,
	} {
		if got, err := ParseInterval(v); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", v, got, err, want)
		}
	}
	for _, v := range []string{"", " ", "0", "0s", "-5m", "5x", "1h5", "h", "1.5h", "999999999w", "9999999999999999999", "1 h", "m5", "3651d"} {
		if got, err := ParseInterval(v); err == nil {
			t.Errorf("%q: got %v; want err != nil", v, got)
		}
	}
	for _, d := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 90 * time.Minute, time.Hour + time.Second} {
		if got, err := ParseInterval(ShortDuration(d)); got != d || err != nil {
			t.Errorf("%v is written %q and read as %v, %v", d, ShortDuration(d), got, err)
		}
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 feeds": Count(0, "feed"), "1 entry": Count(1, "entry"), "2 entries": Count(2, "entry"), "12,345 feeds": Count(12345, "feed"),
		"1 byte": Bytes(1), "9,999 bytes": Bytes(9999), "10 kB": Bytes(10_999), "1,234 MB": Bytes(1_234_567_890), "-1,000": Group(-1000), "-100": Group(-100), "100": Group(100),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for v, want := range map[string]int64{
		"1": 1, "4096": 4096, "64K": 64 << 10, " 256M ": 256 << 20, "1g": 1 << 30, "8589934591G": 8589934591 << 30,
		"": 0, "0": 0, "-1": 0, "M": 0, "1.5G": 0, "1T": 0, "8589934592G": 0, "9223372036854775808": 0, "+5": 0,
	} {
		if got, err := ParseSize(v); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", v, got, err, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 4, ""}, {"four", 4, "four"}, {"fives", 4, "five…"}, {"aéo", 2, "a…"}, {"aéo", 3, "aé…"},
	} {
		if got := Cut(tt.text, tt.most); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
