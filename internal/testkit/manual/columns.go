package manual

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// CheckColumns fails the test for every column that a part of a manual page, in the project's man/,
// does not name with ".Cm" or ".Ql". The part begins after the line from. It ends with the section if
// from begins one, with the item if from begins an item of a list, else with the list.
func CheckColumns[R any](t testing.TB, page, from string, columns []cmdline.Column[R]) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../man", page))
	if err != nil {
		t.Fatal(err)
	}
	named := columnsIn(string(text), from)
	for _, c := range columns {
		if !slices.Contains(named, c.Name) {
			t.Errorf("man/%s does not document the column %s after %q", page, c.Name, from)
		}
	}
}

// columnsIn returns the words that a part of a page may document as columns.
func columnsIn(page, from string) (named []string) {
	ends := []string{".El"}
	switch {
	case strings.HasPrefix(from, ".S"):
		ends = []string{".Sh", ".Ss"}
	case strings.HasPrefix(from, ".It"):
		ends = []string{".It", ".El"}
	}
	_, part, _ := strings.Cut(page, "\n"+from+"\n")
	for line := range strings.Lines(part) {
		if slices.ContainsFunc(ends, func(end string) bool { return strings.HasPrefix(line, end) }) {
			break
		}
		if !strings.HasPrefix(line, ".") {
			continue
		}
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,;\n", r) })
		if at := slices.IndexFunc(words, func(w string) bool {
			return strings.TrimPrefix(w, ".") == "Cm" ||
				w == ".Ql"
		}); at >= 0 {
			named = append(named, words[at+1:]...)
		}
	}
	return named
}
