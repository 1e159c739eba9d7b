package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/protocol/greader"
)

// TestCalls compares the calls that lektor-serve(1) lists with those of the server.
func TestCalls(t *testing.T) {
	page, err := os.ReadFile("../../../man/lektor-serve.1")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n.Ss Paths\n")
	text, _, _ = strings.Cut(text, "\n.Ss ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\.It Pa (\S+) Ta `).FindAllStringSubmatch(text, -1) {
		named[strings.Trim(strings.TrimPrefix(m[1], `\&`), "/")] = true
	}
	served := map[string]bool{}
	for path := range routes() {
		served[strings.TrimPrefix(path, greader.APIPath)] = true
	}
	if !maps.Equal(named, served) {
		t.Errorf("the page lists  %q,\nthe server has  %q", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(served)))
	}
}
