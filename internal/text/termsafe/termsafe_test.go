package termsafe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, in, clean, line string }{
		{"plain", "a b", "a b", "a b"},
		{"newline and tab", "a\n\tb\n", "a\n\tb\n", "a b"},
		{"carriage return", "a\r\nb\rc", "a\nbc", "a b c"},
		{"escape sequence", "a\x1b[31mb\x1b]0;t\x07", "a[31mb]0;t", "a[31mb]0;t"},
		{"NUL, backspace, DEL", "a\x00b\bc\x7f", "abc", "abc"},
		{"C1", "a\u009b31mb\u0080\u009f\u0085c", "a31mbc", "a31mb c"},
		{"no-break space is no control", "a\u00a0b", "a\u00a0b", "a\u00a0b"},
		{"bidi overrides", "a\u202a\u202b\u202c\u202d\u202eb", "ab", "ab"},
		{"bidi isolates", "a\u2066\u2067\u2068\u2069b", "ab", "ab"},
		{"marks of right-to-left text stay", "a\u200f\u200e\u061cb", "a\u200f\u200e\u061cb", "a\u200f\u200e\u061cb"},
		{"separators", "a\u2028b\u2029c", "abc", "a b c"},
		{"byte order mark", "\ufeffa", "a", "a"},
		{"neighbours stay", "\u2027\u202f\u2065\u206a\ufefe", "\u2027\u202f\u2065\u206a\ufefe", "\u2027\u202f\u2065\u206a\ufefe"},
		{"not UTF-8", "a\x9bb\xff", "a\ufffdb\ufffd", "a\ufffdb\ufffd"},
		{"cut off", "a\xe2\x82", "a\ufffd\ufffd", "a\ufffd\ufffd"},
		{"a real U+FFFD", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"emoji with a joiner", "👩‍💻", "👩‍💻", "👩‍💻"},
		{"only breaks", "\n\t\n", "\n\t\n", ""},
		{"ends", "\n a \n", "\n a \n", " a "},
		{"empty", "", "", ""},
	} {
		if got := Clean(tc.in); got != tc.clean {
			t.Errorf("%s: Clean(%q) = %q, want %q", tc.name, tc.in, got, tc.clean)
		}
		if got := Line(tc.in); got != tc.line {
			t.Errorf("%s: Line(%q) = %q, want %q", tc.name, tc.in, got, tc.line)
		}
		if got := Unsafe(tc.in); got != (tc.in != tc.clean) {
			t.Errorf("%s: Unsafe(%q) = %v", tc.name, tc.in, got)
		}
	}
}

func TestCleanAllocatesNothing(t *testing.T) {
	s := strings.Repeat("nothing to do, même ici\n", 100)
	if n := testing.AllocsPerRun(10, func() { Clean(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWidth(t *testing.T) {
	for _, tc := range []struct {
		s         string
		width     int
		truncated string // to four columns
	}{
		{"abcd", 4, "abcd"},
		{"abcde", 5, "abc…"},
		{"日本", 4, "日本"},
		{"日本語", 6, "日…"},
		{"e\u0301e\u0301e\u0301e\u0301e\u0301", 5, "e\u0301e\u0301e\u0301…"},
		{"", 0, ""},
	} {
		if got := Width(tc.s); got != tc.width {
			t.Errorf("Width(%q) = %d, want %d", tc.s, got, tc.width)
		}
		if got := Truncate(tc.s, 4); got != tc.truncated {
			t.Errorf("Truncate(%q) = %q, want %q", tc.s, got, tc.truncated)
		}
		if got := Width(Pad(tc.s, 4)); got != 4 {
			t.Errorf("Pad(%q) is %d wide", tc.s, got)
		}
	}
	if got := Truncate("abc", 0); got != "" {
		t.Errorf("no room: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain", "a\x1b[0m", "\u009b\u202e\u2066\u2028\ufeff", "\xff\xe2\x82", "a\r\n\tb", "日本語"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		c := Clean(s)
		if !utf8.ValidString(c) || Unsafe(c) || Clean(c) != c {
			t.Errorf("not clean: %q", c)
		}
		l := Line(s)
		if strings.ContainsAny(l, "\n\t") || Unsafe(l) || Line(l) != l {
			t.Errorf("not a clean line: %q", l)
		}
		width %= 100
		if w := Width(Truncate(l, width)); w > max(width, 0) {
			t.Errorf("%q truncated to %d is %d wide", l, width, w)
		}
	})
}
