package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCircle: rooms that import each other are found.
func TestCircle(t *testing.T) {
	for name, test := range map[string]struct {
		table map[string][]string
		rooms int
	}{
		"a line":        {map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil}, 0},
		"two ways":      {map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}, 0},
		"a pair":        {map[string][]string{"a": {"b"}, "b": {"a"}}, 2},
		"a tail of one": {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, 3},
	} {
		if found := circle(test.table); len(found) != test.rooms {
			t.Errorf("%s: %q; want %d rooms", name, found, test.rooms)
		}
	}
}

// TestPlan: a room has a comment with its imports, and is in the table.
func TestPlan(t *testing.T) {
	for name, test := range map[string]struct{ folder, comment, want string }{
		"good":        {"files", "// Package files has\n// files. It may\n// import text.\n", ""},
		"no sentence": {"files", "// Package files has files.\n", "It may import text."},
		"unknown":     {"other", "// Package other is new.\n", "not in the table"},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "internal", test.folder), 0o777); err != nil {
			t.Fatal(err)
		}
		page := filepath.Join(root, "internal", test.folder, "doc.go")
		if err := os.WriteFile(page, []byte(test.comment+"package "+test.folder), 0o666); err != nil {
			t.Fatal(err)
		}
		found, err := plan(root)
		if all := strings.Join(found, " "); err != nil || (all == "") != (test.want == "") ||
			!strings.Contains(all, test.want) {
			t.Errorf("%s: %q, %v; want %q", name, found, err, test.want)
		}
	}
}
