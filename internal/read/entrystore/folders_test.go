package entrystore

import (
	"maps"
	"testing"
)

// FoldersAbove returns each folder and its parents once, whatever their spelling.
func TestFoldersAbove(t *testing.T) {
	for _, c := range []struct {
		folders []string
		want    map[string]string
	}{
		{nil, map[string]string{}},
		{[]string{"a/b/c", "a/b"}, map[string]string{"a": "a", "a/b": "a/b", "a/b/c": "a/b/c"}},
		{[]string{"Tech/Go", "tech/go", "TECH"}, map[string]string{"tech": "TECH", "tech/go": "Tech/Go"}},
		{[]string{"a / b", "a/b", " / "}, map[string]string{"a": "a", "a/b": "a/b"}},
		{[]string{"/a//b/", "/", "Ä"}, map[string]string{"a": "a", "a/b": "a/b", "ä": "Ä"}},
	} {
		if got := FoldersAbove(c.folders); !maps.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.folders, got, c.want)
		}
	}
}
