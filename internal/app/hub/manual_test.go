package hub

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPaths compares the paths that lektor-cloudd(1) lists with those of the hub.
func TestPaths(t *testing.T) {
	page, err := os.ReadFile("../../../man/lektor-cloudd.1")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n.It Pa /pleaseNotify")
	text, _, _ = strings.Cut("\n.It Pa /pleaseNotify"+text, "\n.El")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\.It Pa (/.*)$`).FindAllStringSubmatch(text, -1) {
		for path := range strings.SplitSeq(m[1], ",") {
			path, _, _ = strings.Cut(strings.TrimSpace(path), " Ns ")
			named[strings.ToLower(path)] = true
		}
	}
	served := map[string]bool{"/": true, savedPath: true}
	for path := range (&Hub{}).calls() {
		served[path] = true
	}
	if !maps.Equal(named, served) {
		t.Errorf("the page lists  %q,\nthe hub has     %q", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(served)))
	}
}
