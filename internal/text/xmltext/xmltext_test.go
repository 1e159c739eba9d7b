package xmltext

import (
	"encoding/xml"
	"strings"
	"testing"
	"unicode/utf8"
)

// Escaped text is read as the same text, without the characters that XML cannot contain.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "a & b < c > d \" e '", "\r\n\t x ", "\x00\x08\x7f\ufffe\uffff\U0010ffff", "]]>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		var got struct {
			A    string `xml:"a,attr"`
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal([]byte(`<x a="`+Attr(s)+`">`+Text(s)+`</x>`), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.Map(Writable, s); got.A != want || got.Text != want {
			t.Errorf("%q and %q, not %q", got.A, got.Text, want)
		}
	})
}
