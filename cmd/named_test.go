package cmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/importer"
)

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestReaders: the places that name the readers from which lektor imports name all of them.
func TestReaders(t *testing.T) {
	_, usage, _ := strings.Cut(text(t, "lektor-fetch/main.go"), `cli.StringFlag{Name: "from"`)
	usage, _, _ = strings.Cut(usage, "PATH is its file")
	page := text(t, "../man/lektor-fetch.1")
	for _, name := range importer.Readers {
		word := regexp.MustCompile(`\b` + name + `\b`)
		if !word.MatchString(usage) {
			t.Errorf("lektor-fetch import --from does not name %s", name)
		}
		if !word.MatchString(page) {
			t.Errorf("lektor-fetch(1) does not name %s", name)
		}
	}
}

// TestPages: the commands that lektor-view runs by lektor-pages exist there, and both manuals name them.
func TestPages(t *testing.T) {
	pages := text(t, "lektor-pages/main.go")
	for _, m := range regexp.MustCompile(`External\("([a-z]+)", "lektor-pages"`).FindAllStringSubmatch(text(t, "lektor-view/main.go"), -1) {
		if !regexp.MustCompile(`(?m)^\t\tName: +"` + m[1] + `",$`).MatchString(pages) {
			t.Errorf("lektor-pages has no command %s", m[1])
		}
		for _, page := range []string{"lektor-view.1", "lektor-pages.1"} {
			if !regexp.MustCompile(`(?m)^\..*\b` + m[1] + `\b`).MatchString(text(t, "../man/"+page)) {
				t.Errorf("%s does not name %s", page, m[1])
			}
		}
	}
}
