package tui

import "testing"

// TestParseFlags: flags are set and cleared by letters and by words.
func TestParseFlags(t *testing.T) {
	for _, c := range []struct {
		text, set, unset string
		ok               bool
	}{
		{"+Fa-S", "Fa", "S", true}, {"F", "F", "", true}, {"-S +F", "F", "S", true},
		{"+flagged-read", "F", "S", true}, {"saved", "d", "", true},
		{"", "", "", false}, {"+-", "", "", false}, {"+seen", "", "", false}, {"+aF", "", "", false}, {"-1", "", "", false},
	} {
		set, unset, err := parseFlags(c.text)
		if set != c.set || unset != c.unset || (err == nil) != c.ok {
			t.Errorf("parseFlags(%q) = %q, %q, %v; want %q, %q", c.text, set, unset, err, c.set, c.unset)
		}
	}
}
