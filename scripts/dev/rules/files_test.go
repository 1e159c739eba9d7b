package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"internal/a/x.go", "internal/a/b/y.go", "internal/c/x.go", "man/a.1"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for text, gone := range map[string]string{
		"`internal/a/x.go`, `y.go` and `internal/a`": "",
		"`internal/a/z.go`":                          "internal/a/z.go",
		"`internal/d`":                               "internal/d",
		"`z.go`, `etc/view`, `f.g`, a `go`":          "z.go",
		"`internal/{a,c}/x.go`":                      "",
		"`internal/{a,d}/x.go`":                      "internal/d/x.go",
		"`internal/*/x.go`, `man/*.1`":               "",
		"`internal/*/w.go`":                          "internal/*/w.go",
		"`internal/c/x.go`, `y.go`":                  "",
		"| a | `internal/a/x.go`, `y.go` |":          "",
		"| a | `internal/c/x.go`, `y.go` |":          "y.go",
		"| a | `internal/*/x.go`, `y.go` |":          "",
		"| a | `x.go` |":                             "",
	} {
		if err := os.WriteFile(filepath.Join(root, "page.md"), []byte("Text.\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		var want []string
		if gone != "" {
			want = []string{"page.md: there is no " + gone + ", where the text has it"}
		}
		if got, err := missing(root, "page.md"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestWordy(t *testing.T) {
	row := func(n int) string {
		return "## A\n\n## Where to change what\n\n| to | change |\n|---|---|\n| add | " + strings.Repeat("a ", n) + "|\n"
	}
	if found := wordy("p", row(maxWords)); len(found) > 0 {
		t.Error(found)
	}
	if found := wordy("p", row(maxWords+1)); len(found) != 1 {
		t.Errorf("%d words: %q", maxWords+1, found)
	}
}
