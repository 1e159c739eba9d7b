package httpmsg

import (
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) // a Monday

func header(pairs ...string) textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func at(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		h    textproto.MIMEHeader
		want time.Duration
	}{
		{header(), 0},
		{header("Retry-After", "120"), 2 * time.Minute},
		{header("Retry-After", " 120 "), 2 * time.Minute},
		{header("Retry-After", "0"), 0},
		{header("Retry-After", "-1"), 0},
		{header("Retry-After", "+1"), 0},
		{header("Retry-After", "1.5"), 0},
		{header("Retry-After", "1e9"), 0},
		{header("Retry-After", "soon"), 0},
		{header("Retry-After", strings.Repeat("9", 100)), MaxRetryAfter},
		{header("Retry-After", at(time.Hour)), time.Hour},
		{header("Retry-After", noon.Add(time.Hour).Format(time.RFC850)), time.Hour},
		{header("Retry-After", noon.Add(time.Hour).Format(time.ANSIC)), time.Hour},
		{header("Retry-After", at(-time.Hour)), 0},
		{header("Retry-After", at(1000*24*time.Hour)), MaxRetryAfter},
		// The clock of the server is a day ahead.
		{header("Retry-After", at(25*time.Hour), "Date", at(24*time.Hour)), time.Hour},
		{header("Retry-After", at(time.Hour), "Date", "garbage"), time.Hour},
	} {
		if got := RetryAfter(c.h, noon); got != c.want {
			t.Errorf("%q: %v, want %v", c.h, got, c.want)
		}
	}
}

func TestResetAfter(t *testing.T) {
	unix := func(d time.Duration) string { return strconv.FormatInt(noon.Add(d).Unix(), 10) }
	for _, c := range []struct {
		reset, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"323", "", 323 * time.Second},
		{" 323.4 ", "", 323 * time.Second},
		{unix(time.Hour), "", time.Hour},
		{unix(time.Hour) + "000", "", time.Hour}, // milliseconds
		{unix(25 * time.Hour), at(24 * time.Hour), time.Hour},
		{unix(-time.Hour), "", 0},
		{"999999999", "", MaxRetryAfter},
		{unix(1000 * 24 * time.Hour), "", MaxRetryAfter},
		{"-5", "", 0}, {"soon", "", 0}, {"1e9", "", 0}, {strings.Repeat("9", 100), "", 0},
	} {
		if got := ResetAfter(header("X-RateLimit-Reset", c.reset, "Date", c.date), noon); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestMaxAge(t *testing.T) {
	for _, c := range []struct {
		h    textproto.MIMEHeader
		want time.Duration
		ok   bool
	}{
		{header(), 0, false},
		{header("Cache-Control", "max-age=3600"), time.Hour, true},
		{header("Cache-Control", `public, MAX-AGE = "3600" , must-revalidate`), time.Hour, true},
		{header("Cache-Control", "max-age=0"), 0, true},
		{header("Cache-Control", "s-maxage=3600"), 0, false},
		{header("Cache-Control", "max-age=3600, no-cache"), 0, true},
		{header("Cache-Control", "no-store, max-age=3600"), 0, true},
		{header("Cache-Control", `no-cache="set-cookie", max-age=60`), time.Minute, true},
		{header("Cache-Control", "max-age=60, max-age=3600"), time.Minute, true},
		{header("Cache-Control", "public", "Cache-Control", "max-age=60"), time.Minute, true},
		{header("Cache-Control", "max-age=-1"), 0, false},
		{header("Cache-Control", "max-age=abc"), 0, false},
		{header("Cache-Control", "max-age"), 0, false},
		{header("Cache-Control", ",,=,"), 0, false},
		{header("Cache-Control", "max-age="+strings.Repeat("9", 50)), 1<<63 - 1, true},
	} {
		if got, ok := MaxAge(c.h); got != c.want || ok != c.ok {
			t.Errorf("%q: %v, %v; want %v, %v", c.h, got, ok, c.want, c.ok)
		}
	}
}

func TestExpires(t *testing.T) {
	for _, c := range []struct {
		h    textproto.MIMEHeader
		want time.Duration
	}{
		{header(), 0},
		{header("Expires", "0"), 0},
		{header("Expires", "-1"), 0},
		{header("Expires", "never"), 0},
		{header("Expires", at(time.Hour)), time.Hour},
		{header("Expires", at(-time.Hour)), 0},
		{header("Expires", at(25*time.Hour), "Date", at(24*time.Hour)), time.Hour},
	} {
		if got := ExpiresIn(c.h, noon); got != c.want {
			t.Errorf("%q: %v, want %v", c.h, got, c.want)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	h, err := ParseHeaders("# mine\n\nAuthorization: Bearer a:b=\r\nx-token:one\nX-Token: \t two \nAccept: text/xml\n")
	want := textproto.MIMEHeader{"Authorization": {"Bearer a:b="}, "X-Token": {"one", "two"}, "Accept": {"text/xml"}}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("%q, %v", h, err)
	}
	h, err = ParseHeaders("nonsense secret\nHost: secret\n: secret\nA b: secret\nX: a\x01secret\nAccept-Encoding: secret\nOK: 1\nCookie : secret")
	if len(h) != 1 || h.Get("Ok") != "1" {
		t.Errorf("%q", h)
	}
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Fatalf("the error shows a value: %v", err)
	}
	for _, line := range []string{"line 1:", "line 2:", "line 3:", "line 4:", "line 5:", "line 6:", "line 8:"} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("no %q in %v", line, err)
		}
	}
}

func TestFuzzSeeds(t *testing.T) {
	for _, name := range []string{"FuzzHeaders", "FuzzHeaderLines"} {
		seeds, _ := filepath.Glob(filepath.Join("testdata", "fuzz", name, "*"))
		if len(seeds) < 3 {
			t.Errorf("%s has %d seeds in testdata/fuzz", name, len(seeds))
		}
		for _, s := range seeds {
			if b, err := os.ReadFile(s); err != nil || !strings.HasPrefix(string(b), "go test fuzz v1\n") {
				t.Errorf("%s is no seed: %v", s, err)
			}
		}
	}
}

// FuzzHeaders: for any header of a server, waiting times are within their limits, and the
// schedule is in the future, but not too far.
func FuzzHeaders(f *testing.F) {
	f.Fuzz(func(t *testing.T, retry, cache, expires, date, age string) {
		h := textproto.MIMEHeader{"Retry-After": {retry}, "Cache-Control": {cache}, "Expires": {expires}, "Date": {date}, "Age": {age}}
		if d := RetryAfter(h, noon); d < 0 || d > MaxRetryAfter {
			t.Errorf("Retry-After %q: %v", retry, d)
		}
		if d := ResetAfter(textproto.MIMEHeader{"X-Ratelimit-Reset": {retry}, "Date": {date}}, noon); d < 0 || d > MaxRetryAfter {
			t.Errorf("X-RateLimit-Reset %q: %v", retry, d)
		}
		if d, _ := MaxAge(h); d < 0 {
			t.Errorf("Cache-Control %q: %v", cache, d)
		}
		if d := ExpiresIn(h, noon); d < 0 {
			t.Errorf("Expires %q: %v", expires, d)
		}
	})
}

// FuzzHeaderLines: the fields from any headers file can be sent.
func FuzzHeaderLines(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHeaders(text)
		lines := 0
		for name, values := range h {
			if CheckName(name) != nil || textproto.CanonicalMIMEHeaderKey(name) != name {
				t.Errorf("the name %q", name)
			}
			for _, v := range values {
				lines++
				if !Sendable(v) || strings.TrimSpace(v) != v && strings.Trim(v, " \t") != v {
					t.Errorf("the value %q", v)
				}
			}
		}
		if err == nil {
			return
		}
		if n := strings.Count(err.Error(), "\n") + 1; lines+n > strings.Count(text, "\n")+1 {
			t.Errorf("%d lines and %d errors of %q", lines, n, text)
		}
	})
}

// FuzzValidators: ETag and Last-Modified of a server are kept byte for byte or not at all, and
// can be sent.
func FuzzValidators(f *testing.F) {
	f.Add(`"plain"`, "Sun, 01 Mar 2026 12:00:00 GMT")
	f.Add("W/\"a\\\"b,c\xe9\"", " spaces ")
	f.Add("\x00\x1f\x7f", "a\r\nb: c")
	f.Add("", "\t")
	f.Add("a\n", "\n")
	f.Fuzz(func(t *testing.T, etag, modified string) {
		for _, v := range []string{etag, modified} {
			if got := Validator(v); got != "" && got != v || !Sendable(got) || len(got) > maxValue {
				t.Errorf("%q is kept as %q", v, got)
			}
		}
	})
}
