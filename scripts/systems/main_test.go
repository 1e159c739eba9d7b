package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong on one system alone is found there, in tests too.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module example.org/m\n\ngo 1.26\n",
		"m.go":                "package m\n\nimport \"errors\"\n\nvar err = errors.New(text)\n",
		"m_linux.go":          "package m\n\nconst text = \"linux\"\n",
		"m_darwin.go":         "package m\n\nconst text = \"darwin\"\n",
		"m_freebsd.go":        "package m\n\nconst text = 1\n",
		"m_freebsd_arm64.go":  "package m\n\nfunc f() { undefined() }\n",
		"m_darwin_test.go":    "package m\n\nvar _ int = text\n",
		"sub/x_test.go":       "package sub_test\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { there(t) }\n",
		"sub/there_test.go":   "package sub_test\n\nimport \"testing\"\n\nfunc there(t *testing.T) { t.Log() }\n",
		"sub/x_plan9.go":      "package sub\n",
		"sub/x.go":            "package sub\n",
		"sub/x_windows.go":    "package sub\n\nfunc (",
		"cmd/main.go":         "package main\n\nimport _ \"example.org/m\"\n\nfunc main() {}\n",
		"cmd/main_freebsd.go": "package main\n\nvar n int\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for system, want := range map[string]string{
		"linux/arm64": "", "freebsd/amd64": "m.go:5", "freebsd/arm64": "undefined: undefined", "darwin/arm64": "m_darwin_test.go:3", "windows/amd64": "x_windows.go:3",
	} {
		goos, goarch, _ := strings.Cut(system, "/")
		got := fmt.Sprint(check(dir, goos, goarch))
		if (want == "") != (got == "[]") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", system, got, want)
		}
	}
}
