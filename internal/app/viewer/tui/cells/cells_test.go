package cells

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// agree checks that termsafe and the library count the same columns for plain text. The library
// counts with and without clusters of characters, as some terminals do the one, some the other.
func agree(t *testing.T, s string) {
	t.Helper()
	p := Plain(s)
	ours, single, clusters := termsafe.Width(p), ansi.StringWidthWc(p), ansi.StringWidth(p)
	if ours != single || ours != clusters {
		t.Errorf("%q, drawn as %q: %d columns, %d and %d", s[:min(len(s), 60)], p[:min(len(p), 60)], ours, single, clusters)
	}
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || unicode.Is(unicode.Cf, r) }) || !utf8.ValidString(p) || termsafe.Unsafe(p) {
		t.Errorf("%q is drawn as %q", s, p)
	}
	if again := Plain(p); again != p {
		t.Errorf("%q, once more: %q", p, again)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a\tb\nc": "a b c", "\x1b[2Jx": "[2Jx", "🇩🇪": "DE", "👩‍👩‍👧": "👩👩👧", "👍🏽": "👍", "❤️": "❤", "e\u0301": "é",
		"x\u0301\u0302\u0303\u0304": "x\u0301\u0302\u0303", "\u0301x": "x", "a\u00adb": "ab", "a\u00a0b": "a b", "\u1112\u1161\u11ab": "한",
		"שלום": "שלום", "\ue000": "\ufffd", "日本": "日本", "a\u200bb": "ab", "\xff": "\ufffd",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

// It checks all characters if $LEKTOR_TEST_CHARACTERS is set, else those up to U+3100 and one in
// 31 of the others.
func TestPlainOfAll(t *testing.T) {
	bad, all := 0, os.Getenv("LEKTOR_TEST_CHARACTERS") != ""
	for r := rune(0); r <= unicode.MaxRune && bad < 20; r++ {
		if r >= 0xd800 && r < 0xe000 || !all && r > 0x3100 && r%31 != 0 {
			continue
		}
		before := t.Failed()
		agree(t, string(r))
		if t.Failed() != before {
			bad++
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a\u0301\u0301b", "👩‍👩‍👧‍👦🇩🇪", "नमस्ते", "\x1b[31m\u009b", "1️⃣", "\u202eabc"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = max(1, min(width, 300))
		p := Plain(s)
		if got := termsafe.Width(Fit(p, width)); got != width {
			t.Fatalf("%q fit to %d has %d", s, width, got)
		}
		for _, line := range BreakLines(s, max(2, width)) {
			if termsafe.Width(line) > max(2, width) {
				t.Fatalf("%q broken to %d: %q", s, width, line)
			}
		}
		if again := Plain(p); again != p {
			t.Fatalf("%q, once more: %q", p, again)
		}
	})
}

// The beginning and the end of a long error stay visible.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"日本語の本を読む人", 9, "日本…む人"},
	} {
		got := Ends(c.text, c.width)
		if got != c.want || termsafe.Width(got) > c.width {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	long := "rename " + strings.Repeat("/very", 2000) + ": read-only file system"
	for width := 3; width < 200; width++ {
		if got := Ends(long, width); termsafe.Width(got) != width || width > 50 && !strings.HasSuffix(got, ": read-only file system") || width > 30 && !strings.HasPrefix(got, "rename ") {
			t.Fatalf("%d: %q", width, got)
		}
	}
}
