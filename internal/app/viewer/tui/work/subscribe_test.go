package work

import (
	"slices"
	"testing"
)

// Words with bars stay whole in a line.
func TestWordsWithBars(t *testing.T) {
	for _, words := range [][]string{{"a"}, {"Authorization: Bearer 1|abc", "X: y"}, {`a\|b`, `c\`, "|"}} {
		if got := splitWords(JoinWords(words)); !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
	if got := splitWords(" Tech|My/News | "); !slices.Equal(got, []string{"Tech", "My/News"}) {
		t.Errorf("%q", got)
	}
}
