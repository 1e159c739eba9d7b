package session

import "testing"

func TestParseRange(t *testing.T) {
	for s, want := range map[string][2]int{
		"3": {3, 3}, "2-5": {2, 5}, "3-": {3, 9}, "-4": {1, 4}, "$": {9, 9}, "2-$": {2, 9}, "007": {7, 7},
	} {
		if from, to, ok := parseRange(s, 9); !ok || [2]int{from, to} != want {
			t.Errorf("%s: %d to %d, %v", s, from, to, ok)
		}
	}
	for _, s := range []string{"", "-", "a", "1.2", "1700000000.1.h", "1-2-3", "--", "1-a", ".", "+1"} {
		if from, to, ok := parseRange(s, 9); ok {
			t.Errorf("%q: %d to %d", s, from, to)
		}
	}
}
