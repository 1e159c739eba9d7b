package work

import (
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/settings"
)

// The menu has every setting but the origin, which no user needs.
func TestFeedSettings(t *testing.T) {
	var names []string
	for _, s := range feedSettings {
		names = append(names, s.key)
	}
	for _, name := range settings.Names {
		if !slices.Contains(names, name) && name != "origin" {
			t.Errorf("the menu of a feed lacks %s", name)
		}
	}
}

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
