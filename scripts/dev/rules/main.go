// Rules checks that the packages of this module follow docs/design.md: the imports of a package,
// the files that it names, the dependencies of programs, the size of functions and types, and the
// values that are made before main. Files that pages of docs/ name must exist. It prints a line for
// each breach, and then exits with status 1.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/lektordir/lektor/"

// pkg is a package as "go list -json" prints it.
type pkg struct {
	ImportPath                         string
	Dir                                string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// doors are the only packages, with those below them, that may import a dependency. So all code
// that a replacement would change is in one place.
var doors = map[string][]string{
	"github.com/mmcdole/gofeed":      {"feedconv"},
	"github.com/coreos/go-systemd":   {"internal/http/httpserver"},
	"charm.land":                     {"internal/app/viewer/tui"},
	"codeberg.org/readeck":           {"internal/app/article"},
	"github.com/charmbracelet":       {"internal/app/viewer/tui"},
	"github.com/wlynxg/chardet":      {"internal/text/charset"},
	"golang.org/x/crypto":            {"internal/http/passwords"},
	"modernc.org/sqlite":             {"internal/read/index", "internal/app/importer"},
	"github.com/rivo/uniseg":         {"internal/content/htmltext"},
	"github.com/microcosm-cc":        {"internal/content/htmlsafe"},
	"github.com/emersion/go-message": {"internal/content/mailmsg"},
	"github.com/mattn/go-runewidth":  {"internal/text/termsafe"},
	"github.com/google/renameio":     {"internal/files/atomicfile"},
	"github.com/gofrs/flock":         {"internal/files/atomicfile"},
	"github.com/fsnotify/fsnotify":   {"internal/files/watch"},
	"github.com/urfave/cli": {"cmd", "internal/cli/cmdline", "internal/cli/fetchcmd",
		"internal/testkit/manual"},
	"github.com/cheggaaa/pb":          {"internal/cli/cmdline"},
	"github.com/creack/pty":           {"internal/testkit/terminal"},
	"github.com/santhosh-tekuri":      {"internal/testkit/schema"},
	"github.com/rogpeppe/go-internal": {"cmd", "scripts", "internal/e2e", "internal/testkit", "internal/cli/cmdline"},
	"github.com/fzipp/gocyclo":        {"scripts/dev/rules"},
}

// linked are the programs that may link a dependency. All others must not link it.
var linked = map[string][]string{
	"charm.land":           {"lektor-view"},
	"codeberg.org/readeck": {"lektor-article"},
	"github.com/andybalholm/brotli": {"lektor-cloudd", "lektor-ess", "lektor-fetch", "lektor-serve", "lektor-share",
		"lektor-view"},
	"github.com/coreos/go-systemd":   {"lektor-cloudd", "lektor-serve"},
	"github.com/emersion/go-message": {"lektor-pages"},
	"github.com/microcosm-cc":        {"lektor-pages", "lektor-serve"},
	"github.com/mmcdole/gofeed": {"lektor-cloudd", "lektor-ess", "lektor-fetch", "lektor-import", "lektor-pages",
		"lektor-serve", "lektor-share", "lektor-view"},
	"github.com/wlynxg/chardet": {"lektor-cloudd", "lektor-ess", "lektor-fetch", "lektor-import", "lektor-pages",
		"lektor-serve", "lektor-share", "lektor-view"},
	"net/http": {"lektor-cloudd", "lektor-ess", "lektor-fetch", "lektor-serve", "lektor-share",
		"lektor-view"},
	"html/template":      {"lektor-cloudd", "lektor-ess", "lektor-serve"},
	"modernc.org/sqlite": {"lektor-import", "lektor-pages", "lektor-serve", "lektor-view"},
}

// links returns a line for each dependency that a program must not link. imports are the imports
// of all packages of the module.
func links(imports map[string][]string) (found []string) {
	for program := range imports {
		name, ok := strings.CutPrefix(program, "cmd/")
		if !ok {
			continue
		}
		seen := map[string]bool{}
		var visit func(pkg string)
		visit = func(pkg string) {
			for _, path := range imports[pkg] {
				for dependency, programs := range linked {
					if below(path, dependency) && !slices.Contains(programs, name) {
						found = append(found, fmt.Sprintf("%s must not link %s, which %s imports", program, dependency,
							pkg))
					}
				}
				if to, ours := strings.CutPrefix(path, module); ours && !seen[to] {
					seen[to] = true
					visit(to)
				}
			}
		}
		visit(program)
	}
	return found
}

// strangers match the packages that a public package must not import, except in tests: lektordir
// knows no formats and no network, feedconv no disk and no network.
var strangers = map[string]*regexp.Regexp{
	"lektordir": regexp.MustCompile(`^(net|net/(http|rpc|smtp|textproto|netip).*|encoding/(xml|json)|` + module +
		`feedconv)$`),
	"feedconv": regexp.MustCompile(`^(net|net/(http|rpc|smtp|textproto|netip).*|os|os/.*|` + module + `lektordir)$`),
}

// siblings lists, for each package of an app with several packages, the packages of the app that
// it may import. Imports go in one direction.
var siblings = map[string][]string{
	"internal/app/viewer/session":      nil,
	"internal/app/viewer/external":     nil,
	"internal/app/viewer/tui/cells":    nil,
	"internal/app/viewer/tui/keys":     nil,
	"internal/app/viewer/tui/texts":    nil,
	"internal/app/viewer/tui/terminal": {"tui/cells"},
	"internal/app/viewer/tui/part":     {"tui/keys", "tui/texts"},
	"internal/app/viewer/tui/tree":     {"tui/cells", "tui/part", "tui/texts", "tui/work"},
	"internal/app/viewer/tui/list":     {"tui/cells", "tui/part", "tui/tree", "tui/work"},
	"internal/app/viewer/tui/prompt":   {"tui/cells", "tui/keys", "tui/part"},
	"internal/app/viewer/tui/page":     {"tui/cells", "tui/keys", "tui/part", "tui/terminal"},
	"internal/app/viewer/tui/work":     {"tui/cells", "tui/keys", "tui/part"},
	"internal/app/viewer/tui/scene": {"tui/cells", "tui/keys", "tui/list", "tui/page", "tui/part", "tui/prompt",
		"tui/texts", "tui/tree"},
	"internal/app/viewer/tui": {"tui/cells", "tui/keys", "tui/list", "tui/page", "tui/part", "tui/prompt",
		"tui/scene", "tui/terminal", "tui/texts", "tui/tree", "tui/work"},
	"internal/app/viewer/undo":    {"session"},
	"internal/app/viewer/publish": {"session"},
	"internal/app/viewer/save":    {"session"},
	"internal/app/viewer/rules":   {"session", "external"},
	"internal/app/viewer":         {"session", "external", "rules"},
	"internal/app/viewer/fullscreen": {"session", "external", "save", "undo", "tui", "tui/cells", "tui/keys",
		"tui/list", "tui/page", "tui/tree", "tui/work", ""},
}

// beneath are the packages on which lektordir is built. viewers are the packages that use a
// directory only through lektordir.
var (
	beneath = []string{"internal/dir/dirfs", "internal/dir/journal", "internal/dir/commit", "internal/dir/stage"}
	viewers = []string{"internal/app/viewer", "internal/app/pages", "internal/read/undo", "internal/protocol/query",
		"internal/content/mailmsg", "internal/read/index"}
)

// below reports whether a package is one of places, or below one.
func below(name string, places ...string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

// arrow is an import of one package of the module by another. Names have no module path.
type arrow struct {
	from, to string
	test     bool // only the tests of from import it
}

// arrows are the forbidden imports between packages of the module, with the reasons.
var arrows = []struct {
	wrong func(a arrow) bool
	why   string
}{
	{func(a arrow) bool {
		return a.from == "lektordir" && a.to == "feedconv" || below(a.from, "feedconv") && a.to == "lektordir"
	}, "the public packages do not know each other"},
	{func(a arrow) bool {
		return !a.test && a.from == "internal/cli/cmdline" && a.to == "internal/http/fetch"
	},
		"not every command makes requests; those of internal/cli/fetchcmd do"},
	{func(a arrow) bool {
		from, to := roomOf(a.from), roomOf(a.to)
		return !a.test && from != "" && to != "" && from != to && !slices.Contains(rooms[from], to)
	}, "the table of rooms does not have it"},
	{func(a arrow) bool { return !a.test && below(a.to, beneath...) && below(a.from, viewers...) },
		"viewers see a lektor-dir by package lektordir alone"},
	{func(a arrow) bool { return below(a.to, "cmd") }, "commands are the outermost layer"},
	{func(a arrow) bool {
		return !a.test && below(a.to, "internal/app") && below(a.from, "internal/app") && appOf(a.to) != appOf(a.from)
	}, "no app imports another; what both need is a package of its own"},
	{func(a arrow) bool {
		return !a.test && below(a.from, "internal/app/viewer") && below(a.to, "internal/app/viewer") &&
			!slices.Contains(siblings[a.from], strings.TrimPrefix(strings.TrimPrefix(a.to, "internal/app/viewer"), "/"))
	}, "the table of siblings does not have it"},
	{func(a arrow) bool {
		return below(a.to, "internal/app") && !below(a.from, "internal/app", "cmd", "scripts", "internal/e2e",
			"internal/testkit")
	}, "apps are for commands, scripts and tests"},
	{func(a arrow) bool {
		return a.to == "internal/read/index" && !below(a.from, "internal/app/viewer", "internal/app/pages",
			"internal/app/server", "internal/read/index", "scripts")
	}, "it is for viewers: what fetches does without"},
	{func(a arrow) bool {
		return below(a.to, "internal/testkit") && !a.test && !below(a.from, "internal/testkit", "scripts")
	}, "it is for tests and scripts"},
}

// imports returns why a package must not import path, or "". test means that its tests import it.
func imports(p pkg, path string, test bool) string {
	name := p.name()
	for dependency, places := range doors {
		if below(path, dependency) && !below(name, places...) {
			return "only " + strings.Join(places, ", ") + " may"
		}
	}
	if !test && isStranger(name, path) {
		return "a public package keeps to its matter"
	}
	if to, ours := strings.CutPrefix(path, module); ours {
		for _, r := range arrows {
			if r.wrong(arrow{name, to, test}) {
				return r.why
			}
		}
	}
	return ""
}

// isStranger reports whether a public package, or one below it, must not import a path.
func isStranger(name, path string) bool {
	for public, paths := range strangers {
		if below(name, public) && name != "lektordir/fromfeed" && paths.MatchString(path) {
			return true
		}
	}
	return false
}

// appOf returns the app that a package below internal/app belongs to.
func appOf(name string) string {
	app, _, _ := strings.Cut(strings.TrimPrefix(name, "internal/app/"), "/")
	return app
}

// feedFile matches the files below src/*/etc, and the markers. own matches private files of a
// program below etc.
var (
	feedFile = regexp.MustCompile(`^(src/[^ ]*/)?/?etc/((fetch|push|cloudd|ess|history|share/never)(/|$)|categories$|view/(alias|keep|left)$|link$|fulltext$)[^ ]*$`)
	own      = regexp.MustCompile(`^etc/(fetch|fetch/(opml|date)|cloudd|cloudd/(lock|heard))$`)
)

// names returns the place of each string in a file that only packages below internal/feeds may contain.
func names(fset *token.FileSet, f *ast.File) []string {
	var found []string
	add := func(pos token.Pos, what string) {
		found = append(found, fmt.Sprintf("%s: %s: only packages of internal/feeds know the files of a feed",
			fset.Position(pos), what))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n, ok := n.(*ast.BasicLit); ok && n.Kind == token.STRING {
			if text, err := strconv.Unquote(n.Value); err == nil && feedFile.MatchString(text) &&
				!own.MatchString(text) {
				add(n.Pos(), n.Value)
			}
		}
		return true
	})
	return found
}

// shadows returns the place of each declaration in a file that hides a predeclared name. Fields
// and methods hide nothing.
func shadows(fset *token.FileSet, f *ast.File) (found []string) {
	info := types.Info{Defs: map[*ast.Ident]types.Object{}}
	// A single file does not type-check, but its declarations are complete.
	config := types.Config{Error: func(error) {}}
	_, _ = config.Check(f.Name.Name, fset, []*ast.File{f}, &info)
	for id, declared := range info.Defs {
		switch declared := declared.(type) {
		case *types.Var:
			if declared.IsField() {
				continue
			}
		case *types.Func:
			if declared.Signature().Recv() != nil {
				continue
			}
		}
		if types.Universe.Lookup(id.Name) != nil {
			found = append(found, fmt.Sprintf("%s: %s is a name of the language; take another", fset.Position(id.Pos()),
				id.Name))
		}
	}
	return found
}

// texts checks the files of a package, and counts their declarations.
func texts(p pkg, s *shape, parse func(file string) (*token.FileSet, *ast.File, error)) ([]string, error) {
	var found []string
	for i, list := range [][]string{p.GoFiles, p.TestGoFiles, p.XTestGoFiles} {
		for _, file := range list {
			fset, f, err := parse(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			found = append(found, shadows(fset, f)...)
			if i == 0 && !below(p.name(), "internal/testkit") {
				s.add(p.name(), fset, f)
			}
			if i == 0 && !below(p.name(), "internal/testkit", "scripts") {
				found = append(found, beforeMain(fset, f)...)
			}
			if i == 0 && !below(p.name(), "internal/feeds", "lektordir", "internal/dir/commit",
				"internal/testkit", "scripts") {
				found = append(found, names(fset, f)...)
			}
		}
	}
	return found, nil
}

// breaches returns a line for each rule that a package breaks, and counts its declarations.
func breaches(p pkg, s *shape) ([]string, error) {
	found, err := texts(p, s, func(file string) (*token.FileSet, *ast.File, error) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution|parser.ParseComments)
		return fset, f, err
	})
	for _, file := range p.GoFiles {
		text, readErr := os.ReadFile(filepath.Join(p.Dir, file))
		err = errors.Join(err, readErr)
		found = append(found, columns(filepath.Join(p.name(), file), string(text))...)
	}
	for i, list := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
		for _, path := range list {
			if why := imports(p, path, i > 0); why != "" {
				found = append(found, fmt.Sprintf("%s must not import %s: %s", p.name(),
					strings.TrimPrefix(path, module), why))
			}
		}
	}
	return found, err
}

func run() ([]string, error) {
	var all []string
	for _, system := range []string{"linux", "freebsd", "darwin"} {
		cmd := exec.Command("go", "list",
			"-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", module+"...")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		s, graph := newShape(), map[string][]string{}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p pkg
			if err := dec.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			graph[p.name()] = p.Imports
			found, err := breaches(p, s)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		all = append(all, s.breaches()...)
		all = append(all, links(graph)...)
	}
	pages, err := filepath.Glob("docs/*.md")
	for _, page := range append(pages, "CONTRIBUTING.md") {
		found, failed := missing(".", page)
		text, unread := os.ReadFile(page)
		all = append(append(all, found...), wordy(page, string(text))...)
		err = errors.Join(err, failed, unread)
	}
	found, failed := plan(".")
	all, err = append(all, found...), errors.Join(err, failed)
	slices.Sort(all)
	return slices.Compact(all), err
}

func main() {
	found, err := run()
	for _, line := range found {
		fmt.Println(line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
	}
	if err != nil || len(found) > 0 {
		os.Exit(1)
	}
}
