package schedule

import (
	"net/textproto"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"golang.org/x/net/http/httpguts"
)

// kept returns the validator that package fetch keeps, given the one that a server sent.
func kept(v string) string {
	if !httpguts.ValidHeaderFieldValue(v) || v != textproto.TrimString(v) {
		return ""
	}
	return v
}

// FuzzValidators stores arbitrary values of ETag and Last-Modified. The next request sends them byte for
// byte.
func FuzzValidators(f *testing.F) {
	f.Add(`"plain"`, "Sun, 01 Mar 2026 12:00:00 GMT")
	f.Add("W/\"a\\\"b,c\xe9\"", " spaces ")
	f.Add("\x00\x1f\x7f", "a\r\nb: c")
	f.Add("", "\t")
	f.Add("a\n", "\n")
	f.Fuzz(func(t *testing.T, etag, modified string) {
		dir := filepath.Join(t.TempDir(), "fetch")
		write(t, dir, feedfiles.FileURL, "http://a.example/\n")
		s := load(t, dir)
		resp := &httpmsg.Response{Status: 200, Header: textproto.MIMEHeader{}, ETag: kept(etag), LastModified: kept(modified), Body: []byte("x"), Received: noon}
		s.Succeeded(noon, resp, Hints{})
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
		r, err := load(t, dir).Request()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range [][3]string{{etag, resp.ETag, r.ETag}, {modified, resp.LastModified, r.LastModified}} {
			if v[1] != "" && v[1] != v[0] || v[2] != v[1] {
				t.Errorf("%q is kept as %q and sent as %q", v[0], v[1], v[2])
			}
		}
	})
}

// FuzzSchedule sets the schedule by arbitrary headers. The next fetch is after the default interval, and
// not later than the limits.
func FuzzSchedule(f *testing.F) {
	f.Add("120", "max-age=3600", "Mon, 02 Mar 2026 13:00:00 GMT", "Mon, 02 Mar 2026 12:00:00 GMT", "5")
	f.Add("Mon, 02 Mar 2099 13:00:00 GMT", "max-age=99999999999999999999", "0", "", "-1")
	f.Add("-1", "no-store, max-age=\"60\"", "Mon, 02 Mar 1926 13:00:00 GMT", "x", "99999999999")
	f.Fuzz(func(t *testing.T, retry, cache, expires, date, age string) {
		h := textproto.MIMEHeader{"Retry-After": {retry}, "Cache-Control": {cache}, "Expires": {expires}, "Date": {date}, "Age": {age}}
		s, err := LoadFrom(filepath.Join(t.TempDir(), "missing"))
		if err != nil {
			t.Fatal(err)
		}
		s.NotModified(noon, &httpmsg.Response{Status: 304, Header: h, Received: noon})
		if d := s.Schedule.Next().Sub(noon); d < DefaultInterval || d > MaxDelay {
			t.Errorf("next is in %v", d)
		}
		s.Schedule.Failed(noon, &httpmsg.StatusError{Status: 503, RetryAfter: httpmsg.RetryAfter(h, noon)})
		if d := s.Schedule.Next().Sub(noon); d < DefaultInterval || d > httpmsg.MaxRetryAfter {
			t.Errorf("next is in %v", d)
		}
	})
}
