package query

import (
	"errors"
	"strings"
	"testing"
)

// TestParseFlags: words and sorted letters are flags. Other words are refused, with a hint to the
// right flags.
func TestParseFlags(t *testing.T) {
	for _, c := range []struct{ text, flags, hint string }{
		{"read", "S", ""}, {"flagged", "F", ""}, {"trashed", "T", ""}, {"saved", "d", ""},
		{"", "", ""}, {"S", "S", ""}, {"FS", "FS", ""}, {"Fad", "Fad", ""}, {"abc", "abc", ""},
		{"seen", "", "write read, or S"}, {"Read", "", "write read, or S"}, {"flag", "", "write flagged, or F"},
		{"starred", "", "write flagged, or F"}, {"delete", "", "write trashed, or T"}, {"save", "", "write saved, or d"},
		{"unread", "", "an entry without the flag S is unread: clear read, or S"},
		{"SF", "", "for the letters in it, write FS"}, {"aF", "", "write Fa"}, {"SS", "", "write S"}, {"later", "", "write aelrt"},
		{"1", "", "F flagged, S read"}, {"S,F", "", "F flagged"}, {"ä", "", "F flagged"},
	} {
		flags, err := ParseFlags(c.text)
		var refused *FlagError
		if flags != c.flags || errors.As(err, &refused) != (c.hint != "") || refused != nil && !strings.Contains(refused.Hint, c.hint) {
			t.Errorf("ParseFlags(%q) = %q, %v; want %q and the hint %q", c.text, flags, err, c.flags, c.hint)
		}
	}
}

// TestFlagWordsInQueries: flag: takes the words, and keeps its letters in any order.
func TestFlagWordsInQueries(t *testing.T) {
	for text, want := range map[string]string{"flag:read": "S", "flag:saved": "d", "flag:aF": "aF"} {
		q, err := Parse(text)
		got := ""
		if err == nil {
			q.walk(func(one *term) { got += one.value })
		}
		if got != want {
			t.Errorf("%s asks for the flags %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := Parse("flag:seen"); err == nil || !strings.Contains(err.Error(), "seen") {
		t.Errorf("flag:seen: %v", err)
	}
}
