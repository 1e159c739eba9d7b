package fetch

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// FuzzLocation: location returns an http or https URL without userinfo and fragment that can be
// requested, or an error whose message is safe for a terminal and a one-line file.
func FuzzLocation(f *testing.F) {
	f.Add("http://a.example/dir/feed?x", "../other#part")
	f.Add("https://u:p@a.example/", "//evil:pass@b.example:8080/\u202e")
	f.Add("http://a.example/", "javascript:alert(1)")
	f.Add("http://[::1]/", "http://a b/%zz\x00")
	f.Add("http://a.example/", "?"+strings.Repeat("ü ", 300))
	f.Add("http://a.example/", "http:opaque")
	f.Fuzz(func(t *testing.T, from, to string) {
		u, err := feedurl.Parse(from)
		if err != nil {
			checkMessage(t, err)
			return
		}
		if again, err := feedurl.Parse(u.String()); err != nil || again.String() != u.String() {
			t.Errorf("%q is %q, and that %v, %v", from, u, again, err)
		}
		next, err := location(u, to)
		if err != nil {
			checkMessage(t, err)
			return
		}
		if next == nil {
			if to != "" {
				t.Errorf("%q leads nowhere", to)
			}
			return
		}
		if next.Scheme != "http" && next.Scheme != "https" || next.Hostname() == "" || next.User != nil || next.Fragment != "" {
			t.Errorf("%q from %q leads to %q", to, from, next)
		}
		again, err := url.Parse(next.String())
		if err != nil || again.Host != next.Host || again.RequestURI() != next.RequestURI() {
			t.Errorf("%q is read as %q, %v", next, again, err)
		}
		if strings.IndexFunc(next.RequestURI(), func(r rune) bool { return r <= ' ' || r == 0x7f }) >= 0 {
			t.Errorf("%q cannot be asked for", next.RequestURI())
		}
	})
}

// checkMessage checks that a message is short, and one line after [termsafe.Brief].
func checkMessage(t *testing.T, err error) {
	t.Helper()
	if len(err.Error()) > 8<<10 {
		t.Errorf("%d bytes: %.200q", len(err.Error()), err)
	}
	line := termsafe.Brief(err.Error())
	if !utf8.ValidString(line) || len(line) > 1000 || strings.IndexFunc(line, unicode.IsControl) >= 0 || termsafe.Brief(line) != line {
		t.Errorf("%q", line)
	}
}
