package termsafe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBrief(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\nb\tc\r\n": "a b c", "\x1b[31mred\x1b[m": "[31mred[m", "a\u009bb\u202ec\u2066d\u2028e\x7ff\x00": "abcd ef",
		"\xff": "\ufffd", "": "", " \n ": "", "ü — 日本": "ü — 日本",
	} {
		if got := Brief(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	long := Brief(strings.Repeat("日", 10000))
	if n := len(long); n > maxBrief || n < maxBrief-10 || !utf8.ValidString(long) {
		t.Errorf("%d bytes", n)
	}
}
