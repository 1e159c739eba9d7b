package session

import "testing"

func TestParseRange(t *testing.T) {
	for s, want := range map[string]entryRange{
		"3": {3, 3}, "2-5": {2, 5}, "3-": {3, last}, "-4": {1, 4}, "$": {last, last}, "2-$": {2, last}, "007": {7, 7},
	} {
		if got, ok := parseRange(s); !ok || got != want {
			t.Errorf("%s: %v %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "-", "a", "1.2", "1700000000.1.h", "1-2-3", "--", "1-a", ".", "+1"} {
		if got, ok := parseRange(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}
