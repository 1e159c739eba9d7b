package textfile

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIsText(t *testing.T) {
	for mimeType, want := range map[string]bool{
		"": true, "text/plain": true, "TEXT/HTML; charset=x": true, "application/xhtml+xml": true, "image/svg+xml": true,
		"application/json": true, "application/feed+json": true, "application/xml": true, "message/rfc822": true, "html": true,
		"image/png": false, "audio/mpeg": false, "application/octet-stream": false, "application/pdf; x=text/": false,
	} {
		if IsText(mimeType) != want {
			t.Errorf("IsText(%q) is %v", mimeType, !want)
		}
	}
}

// TestContent: text content becomes UTF-8 without NUL, and other content is unchanged.
func TestContent(t *testing.T) {
	for _, c := range []struct{ in, mimeType, want string }{
		{"a\x00b\xff", "", "ab\uFFFD"},
		{"a\x00b\xff", "text/html", "ab\uFFFD"},
		{"a\x00b\xff", "image/png", "a\x00b\xff"},
		{"two\nlines\r\n", "text/plain", "two\nlines\r\n"},
	} {
		if got := Content([]byte(c.in), c.mimeType); string(got) != c.want {
			t.Errorf("Content(%q, %q) = %q, want %q", c.in, c.mimeType, got, c.want)
		}
	}
}

// FuzzOneLine: text of OneLine is read from a file unchanged.
func FuzzOneLine(f *testing.F) {
	for _, s := range []string{"", "a", "a\r\nb\n", "\x00", "\xff\ta", "a\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		one := OneLine(s)
		if !utf8.ValidString(one) || strings.ContainsAny(one, "\r\n\x00") || OneLine(one) != one {
			t.Errorf("OneLine(%q) = %q", s, one)
		}
		if field := OneField(s); strings.ContainsAny(field, "\t\r\n\x00") || OneField(field) != field {
			t.Errorf("OneField(%q) = %q", s, field)
		}
		if got := Line([]byte(one + "\n")); got != one {
			t.Errorf("%q is read as %q", one, got)
		}
		if b := Content([]byte(s), "text/plain"); !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
			t.Errorf("Content(%q) = %q", s, b)
		}
	})
}
