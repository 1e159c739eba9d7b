package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSections: the page of a program has -h and --version. It describes every environment
// variable that it names, and LEKTORDIR if the program takes --dir. It has FILES if it names
// files of the lektor-dir or of its own. The page of a command of a program needs no --version.
func TestSections(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(manDir, "*.1"))
	if err != nil || len(pages) < 8 {
		t.Fatal(pages, err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, lack := range lacks(string(text)) {
			t.Errorf("%s lacks %s", filepath.Base(path), lack)
		}
	}
}

var (
	variable = regexp.MustCompile(`(?m)^\.(?:It )?Ev (.*)`)
	// ofCommand matches the title of the page of a command of a program.
	ofCommand = regexp.MustCompile(`(?m)^\.Dt LEKTOR-[A-Z]+-[A-Z]+ 1$`)
	ownFile   = regexp.MustCompile(`(?m)^\.(?:It )?Pa ["']?(?:etc/|src/[$H]|\.lektor|\$XDG_CACHE_HOME|DIR/\.)`)
)

// lacks returns the missing parts of a page.
func lacks(page string) (list []string) {
	want := func(ok bool, what string) {
		if !ok {
			list = append(list, what)
		}
	}
	section := func(name string) (text string, ok bool) {
		_, text, ok = strings.Cut(page, "\n.Sh "+name+"\n")
		text, _, _ = strings.Cut(text, "\n.Sh ")
		return text, ok
	}
	want(strings.Contains(page, "\n.It Fl h , Fl -help\n"), "-h, --help")
	want(strings.Contains(page, "\n.It Fl v , Fl -version\n") || ofCommand.MatchString(page), "-v, --version")
	environment, _ := section("ENVIRONMENT")
	var listed []string
	for _, m := range variable.FindAllStringSubmatch(environment, -1) {
		listed = append(listed, names(m[1])...)
	}
	wanted := []string{}
	if strings.Contains(page, "Fl -dir ") {
		wanted = append(wanted, "LEKTORDIR")
	}
	for _, m := range variable.FindAllStringSubmatch(page, -1) {
		wanted = append(wanted, names(m[1])...)
	}
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		want(slices.Contains(listed, name), name+" in ENVIRONMENT")
	}
	if _, ok := section("FILES"); ownFile.MatchString(page) {
		want(ok, "FILES")
	}
	return list
}

// names returns the names of variables on a line of mdoc.
func names(line string) []string {
	return slices.DeleteFunc(strings.Fields(line), func(w string) bool {
		return strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") != ""
	})
}

// TestLacks: each of these parts is reported if it is missing.
func TestLacks(t *testing.T) {
	whole := ".Nm x\n.Op Fl -dir Ar DIR\n.It Fl h , Fl -help\n.It Fl v , Fl -version\n.Pa etc/x\n.Ev FOO .\n.Sh ENVIRONMENT\n.It Ev LEKTORDIR\n.It Ev FOO , BAR\n.Sh FILES\n.It Pa etc/x\n"
	if got := lacks(whole); got != nil {
		t.Errorf("a whole page lacks %q", got)
	}
	for part, want := range map[string]string{
		".It Fl h , Fl -help\n": "-h, --help", ".It Fl v , Fl -version\n": "-v, --version", ".It Ev LEKTORDIR\n": "LEKTORDIR in ENVIRONMENT",
		".It Ev FOO , BAR\n": "FOO in ENVIRONMENT", ".Sh FILES\n": "FILES",
	} {
		if got := lacks(strings.Replace(whole, part, "", 1)); len(got) != 1 || got[0] != want {
			t.Errorf("without %q: %q", part, got)
		}
	}
}
