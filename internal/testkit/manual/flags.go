// Package manual checks man pages: they are valid mdoc, their examples run and print the right
// output, and they document exactly the flags of a command.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// CheckManual fails the test for every flag of the app that its manual page (in mdoc) does not
// document, and for every documented flag that the app does not take.
//
// The page has the app's name, in the project's man/. It documents a flag by an item of a list,
// ".It Fl a , Fl -all" or ".It Fl -gap Ns = Ns Ar duration", with all names of the flag. Flags in a
// subsection named after a subcommand (".Ss add", ".Ss lektor-fetch add") or in a list below
// ".It Cm add" belong to that subcommand, and other flags to all commands that take them. The page
// must have an item or a subsection for every subcommand. --help and --version need no
// documentation.
//
// A page with the app's name, a minus and a subcommand's name documents the flags of that
// subcommand, and must name the app's page.
func CheckManual(t testing.TB, app *cli.App) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	man := filepath.Join(filepath.Dir(here), "../../../man")
	page, err := os.ReadFile(filepath.Join(man, app.Name+".1"))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(man, app.Name+"-*.1"))
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), app.Name+"-"), ".1")
		own[name] = string(text)
	}
	for _, problem := range compare(app, string(page), own) {
		t.Errorf("%s: %s", app.Name, problem)
	}
}

// manual is the flags that a page documents, by subcommand; "" for flags outside of the sections
// of subcommands.
type manual map[string]map[string]bool

// compare returns the problems of the page of an app, and of the pages of its subcommands in own,
// by name.
func compare(app *cli.App, page string, own map[string]string) []string {
	cmdline.Prepare(app)
	var commands []string
	for _, c := range app.Commands {
		commands = append(commands, c.Name)
	}
	m := read(page, app.Name, commands)
	var problems []string
	for name, text := range own {
		if !slices.Contains(commands, name) {
			problems = append(problems, fmt.Sprintf("the page of %s is about no command", name))
			continue
		}
		if !strings.Contains(text, ".Xr "+app.Name+" 1") {
			problems = append(problems, fmt.Sprintf("the page of %s does not name %s(1)", name, app.Name))
		}
		if !strings.Contains(page, ".Xr "+app.Name+"-"+name+" 1") {
			problems = append(problems, fmt.Sprintf("%s(1) does not name the page of %s", app.Name, name))
		}
		for flag := range read(text, app.Name, nil)[""] {
			if m[name] == nil {
				m[name] = map[string]bool{}
			}
			m[name][flag] = true
		}
	}
	documented := func(where, name string) bool { return m[where][name] || m[""][name] }
	appFlags := manual{"": {}}
	want := func(where string, flags []cli.Flag) {
		appFlags[where] = map[string]bool{}
		for _, f := range flags {
			if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
				continue
			}
			for _, n := range f.Names() {
				name := dashed(n)
				appFlags[where][name], appFlags[""][name] = true, true
				if !documented(where, name) && !obvious(name) {
					problems = append(problems, fmt.Sprintf("%s is not documented", strings.TrimSpace(where+" "+name)))
				}
			}
		}
	}
	for _, c := range app.Commands {
		if c.Hidden {
			continue
		}
		if _, ok := m[c.Name]; !ok {
			problems = append(problems, fmt.Sprintf("the command %s is not documented", c.Name))
		}
		want(c.Name, c.Flags)
	}
	// The app's own flags may be documented with the default subcommand.
	for _, f := range app.Flags {
		for _, n := range f.Names() {
			appFlags[""][dashed(n)] = true
			found := obvious(dashed(n))
			for where := range m {
				found = found || m[where][dashed(n)]
			}
			if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() && !found {
				problems = append(problems, fmt.Sprintf("%s is not documented", dashed(n)))
			}
		}
	}
	for where, flags := range m {
		for name := range flags {
			if !appFlags[where][name] && !obvious(name) {
				problems = append(problems, fmt.Sprintf("%s is documented but not taken",
					strings.TrimSpace(where+" "+name)))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

func obvious(name string) bool {
	switch name {
	case "--help", "-h", "--version", "-v":
		return true
	}
	return false
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// read returns the flags of a page.
func read(page, app string, commands []string) manual {
	m := manual{"": {}}
	current := ""             // the subcommand that flags belong to
	depth, itemDepth := 0, -1 // depth of lists, and of the list whose item is a subcommand
	extended := false         // between Xo and Xc, an item of several lines
	enter := func(words []string) bool {
		for _, w := range words {
			if w == app || macro(w) {
				continue
			}
			if slices.Contains(commands, w) {
				current = w
				if m[w] == nil {
					m[w] = map[string]bool{}
				}
				return true
			}
			break
		}
		return false
	}
	for line := range strings.Lines(page) {
		words := tokens(line)
		if len(words) == 0 {
			continue
		}
		request, args := words[0], words[1:]
		switch request {
		case ".Sh", ".Ss":
			current, itemDepth = "", -1
			enter(args)
		case ".Bl":
			depth++
		case ".El":
			depth--
			if depth < itemDepth {
				current, itemDepth = "", -1
			}
		case ".It":
			extended = slices.Contains(args, "Xo")
			switch {
			case len(args) > 0 && args[0] == "Fl" || extended:
				addFlags(m, current, args)
			case itemDepth < 0 || depth <= itemDepth:
				// An item without a flag may begin a subcommand, and ends the one before it.
				before := current
				if enter(args) {
					itemDepth = depth
				} else if itemDepth >= 0 {
					current = ""
				} else {
					current = before
				}
			}
		case ".Fl":
			if extended {
				addFlags(m, current, words)
			}
		case ".Xc":
			extended = false
		}
	}
	return m
}

// addFlags adds the flags in the words of an item.
func addFlags(m manual, where string, words []string) {
	for i := 0; i < len(words); i++ {
		if strings.TrimPrefix(words[i], ".") != "Fl" {
			continue
		}
		dashes := "-"
		for i+1 < len(words) && words[i+1] == "Fl" { // "Fl Fl all" is --all
			dashes += "-"
			i++
		}
		if i+1 == len(words) || macro(words[i+1]) {
			continue
		}
		name, _, _ := strings.Cut(dashes+words[i+1], "=")
		if name = strings.TrimRight(name, ",|"); strings.Trim(name, "-") != "" {
			m[where][name] = true
		}
	}
}

// macro reports whether a word has the form of an mdoc macro: two or three characters, of which
// the first is a capital.
func macro(w string) bool {
	return (len(w) == 2 || len(w) == 3) && w[0] >= 'A' && w[0] <= 'Z' && w[1] >= 'a' && w[1] <= 'z'
}

// tokens splits a line of mdoc into words, without escapes and quotes.
func tokens(line string) []string {
	line = strings.NewReplacer(`\-`, "-", `\&`, "", `\(hy`, "-", `"`, "").Replace(line)
	words := strings.Fields(line)
	if len(words) > 1 && words[0] == "." {
		words = append([]string{"." + words[1]}, words[2:]...)
	}
	return words
}
