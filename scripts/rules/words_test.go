package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWording: the linter refuses these sentences, and accepts similar ones.
func TestWording(t *testing.T) {
	for _, test := range []struct {
		file, text string
		refused    string // part of the finding, or "" if the text is accepted
	}{
		{"a.go", "package a\n\n// What is listed is unread.\nvar x int\n", `begins with "What"`},
		{"a.go", "package a\n\n// x is a number. Whoever reads it waits.\nvar x int\n", `begins with "Whoever"`},
		{"a.go", "package a\n\n// x gives a number.\nvar x int\n", "a doc comment says"},
		{"a.go", "package a\n\nvar x int // what is listed\n", `begins with "what"`},
		{"a.go", "package a\n\nvar x = \"What was sent is lost\"\n", `begins with "What"`},
		{"a.go", "package a\n\n// x is a number. It is not that of a feed.\nvar x = \"Whatever is sent\"\n", ""},
		{"a.go", "package a\n\nvar x int // of the page\n", ""},
		{"man/a.1", ".Sh DESCRIPTION\nThose are entries.\n", `begins with "Those"`},
		{"man/a.1", "It lists the entries\nthat are unread.\nAs for feeds, it lists them.\n", `begins with "As"`},
		{"man/a.1", "It lists those of\nWhat, a feed.\n.Bd -literal\nWhat is code\n.Ed\n", ""},
		{"a.md", "# A\n\nIt is one. Of these it lists a few.\n", `begins with "Of"`},
		{"a.md", "# A\n\n    Where indented, it is code.\n\n```\nThat is code\n```\n", ""},
		{"testdata/a.md", "# A\n\nThat is a fixture.\n", ""},
	} {
		root := t.TempDir()
		path := filepath.Join(root, test.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		found, err := wording(root)
		if err != nil {
			t.Fatal(err)
		}
		if test.refused == "" && len(found) > 0 || test.refused != "" && !strings.Contains(strings.Join(found, "\n"), test.refused) {
			t.Errorf("%s:\n%s\ngot %q; want %q", test.file, test.text, found, test.refused)
		}
	}
}
