package page

import (
	"slices"
	"testing"
)

func TestMatchesIn(t *testing.T) {
	for _, tc := range []struct {
		line, text string
		want       []string
	}{
		{"Ab ab aB", "ab", []string{"Ab", "ab", "aB"}}, {"aaa", "aa", []string{"aa"}}, {"Groß GROSS", "ss", []string{"ß", "SS"}},
		{"a  b", "a b", []string{"a  b"}}, {"日本語", "本", []string{"本"}}, {"x", "y", nil},
	} {
		var got []string
		for _, m := range matchesIn(0, tc.line, tc.text) {
			got = append(got, tc.line[m.From:m.To])
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q in %q: %q, not %q", tc.text, tc.line, got, tc.want)
		}
	}
}
