package textfile

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain – text": "plain – text", "a\tb\nc\rd\\e": `a\tb\nc\rd\\e`, `\t`: `\\t`, "\n\n": `\n\n`, "\x00": "\x00",
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) is %q, want %q", text, got, want)
		}
		if got := UnescapeName([]byte(want + "\xff")); got != text+"\xff" {
			t.Errorf("UnescapeName(%q) is %q, want the byte 0xff at the end", want, got)
		}
		if got := Unescape([]byte(want)); got != text {
			t.Errorf("Unescape(%q) is %q, want %q", want, got, text)
		}
	}
}

// TestUnescapeByHand: fields written by hand may have backslashes that escape nothing.
func TestUnescapeByHand(t *testing.T) {
	for field, want := range map[string]string{
		`C:\dir`: `C:\dir`, `\`: `\`, `a\`: `a\`, `\x41`: `\x41`, "a\xffb": "a\uFFFDb", "a\tb": "a\tb", "\xe2\\n\x80\x93": "\uFFFD\n\uFFFD",
	} {
		if got := Unescape([]byte(field)); got != want {
			t.Errorf("Unescape(%q) is %q, want %q", field, got, want)
		}
	}
}

// TestPrintf: printf(1) prints a field as its text, since it knows the same escapes.
func TestPrintf(t *testing.T) {
	const text = "one\ttwo\nthree\\n \\\\ four\rfive"
	out, err := exec.Command("printf", "%b", Escape(text)).Output()
	if err != nil {
		t.Skip("no printf:", err)
	}
	if string(out) != text {
		t.Errorf("%q, want %q", out, text)
	}
}

// FuzzField: any text is restored, an escaped text is one field, and a field that is read and
// escaped again has the same text.
func FuzzField(f *testing.F) {
	for _, s := range []string{"", "a\tb", "\\", `\\n`, "\r\n", "a\\\nb", "\xff\\t", "日本\t語"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		field := Escape(s)
		if strings.ContainsAny(field, "\t\n\r") {
			t.Errorf("Escape(%q) is %q", s, field)
		}
		if got := string(AppendField([]byte("x"), s)); got != "x"+field {
			t.Errorf("AppendField returns %q, Escape %q", got, field)
		}
		if utf8.ValidString(s) {
			if got := Unescape([]byte(field)); got != s {
				t.Errorf("%q comes back as %q", s, got)
			}
		}
		text := Unescape([]byte(s))
		if !utf8.ValidString(text) {
			t.Errorf("%q is read as %q", s, text)
		}
		if again := Unescape([]byte(Escape(text))); again != text {
			t.Errorf("%q is read as %q, and then %q", s, text, again)
		}
	})
}
