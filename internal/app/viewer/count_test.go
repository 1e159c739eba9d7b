package viewer

import (
	"maps"
	"testing"
)

// A person sees how many there are in all, too, of each once.
func TestCountTotal(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed(feedID, "Alpha", "etc/categories=Tech/Go\nNews"); err != nil {
		t.Fatal(err)
	}
	f.entry("new", "1700000001.1.h")
	f.entry("cur", "1700000002.1.h;2,S")
	for by, want := range map[string]string{
		"folder": "     1      2  News\n     1      2  Tech\n     1      2  Tech/Go\n     1      2  in all\n",
		"feed":   "     1      2  Alpha\n",
		"":       "1 unread of 2\n",
	} {
		s := f.streams("")
		f.want(Count(t.Context(), CountOptions{Common: f.common(), By: by, Total: true}, s), want)
	}
}

// Folders hold those below them, once, however they are spelt.
func TestFoldersAbove(t *testing.T) {
	for _, c := range []struct {
		folders []string
		want    map[string]string
	}{
		{nil, map[string]string{}},
		{[]string{"a/b/c", "a/b"}, map[string]string{"a": "a", "a/b": "a/b", "a/b/c": "a/b/c"}},
		{[]string{"Tech/Go", "tech/go", "TECH"}, map[string]string{"tech": "TECH", "tech/go": "Tech/Go"}},
		{[]string{"/a//b/", "/", "Ä"}, map[string]string{"a": "a", "a/b": "a/b", "ä": "Ä"}},
	} {
		if got := foldersAbove(c.folders); !maps.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.folders, got, c.want)
		}
	}
}
