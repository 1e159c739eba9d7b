package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestImports: each rule, kept and broken.
func TestImports(t *testing.T) {
	for _, test := range []struct {
		from, to string
		test     bool
		good     bool
	}{
		{"feedconv", "github.com/mmcdole/gofeed/extensions", false, true},
		{"internal/protocol/opml", "github.com/mmcdole/gofeed", false, false},
		{"internal/protocol/opml", "github.com/mmcdole/gofeed", true, false},
		{"internal/text/charset", "github.com/wlynxg/chardet", false, true},
		{"feedconv", "github.com/wlynxg/chardet", false, false},
		{"internal/protocol/opml", "github.com/wlynxg/chardet", true, false},
		{"internal/files/atomicfile", "github.com/gofrs/flock", false, true},
		{"lektordir", "github.com/gofrs/flock", false, false},
		{"internal/files/watch", "github.com/fsnotify/fsnotify", false, true},
		{"internal/watcher", "github.com/fsnotify/fsnotify", false, false},
		{"cmd/lektor-view", "github.com/urfave/cli/v2", false, true},
		{"internal/app/viewer", "github.com/urfave/cli/v2", false, false},
		{"internal/http/httpserver", "github.com/coreos/go-systemd/v22/daemon", false, true},
		{"internal/app/fetcher", "github.com/coreos/go-systemd/v22/daemon", false, false},
		{"internal/read/index", "modernc.org/sqlite", false, true},
		{"internal/app/viewer", "modernc.org/sqlite", false, false},
		{"internal/app/viewer", module + "internal/read/index", false, true},
		{"internal/app/fetcher", module + "internal/read/index", false, false},
		{"internal/read/entrystore", module + "internal/read/index", false, false},
		{"cmd/lektor-fetch", module + "internal/read/index", false, false},
		{"internal/cli/cmdline", module + "lektordir", false, true},
		{"internal/dir/commit", module + "internal/http/limiter", false, false},
		{"internal/dir/commit", module + "internal/http/limiter", true, true},
		{"internal/text/termsafe", module + "feedconv", false, false},
		{"internal/cli/cmdline", module + "internal/http/fetch", false, false},
		{"internal/cli/fetchcmd", module + "internal/http/fetch", false, true},
		{"internal/app/viewer", "github.com/rogpeppe/go-internal/testscript", true, false},
		{"lektordir", "net/url", false, true},
		{"lektordir", "net", false, false},
		{"lektordir", "net/http", false, false},
		{"lektordir", "encoding/xml", false, false},
		{"lektordir", "encoding/xml", true, true},
		{"feedconv", "os", false, false},
		{"feedconv/internal/tidy", "os", false, false},
		{"feedconv/internal/tidy", module + "lektordir", false, false},
		{"feedconv", "os", true, true},
		{"feedconv", "net/mail", false, true},
		{"lektordir", module + "feedconv", true, false},
		{"feedconv", module + "lektordir", true, false},
		{"internal/feeds/feedstage", module + "lektordir", false, true},
		{"internal/feeds/feedstage", module + "cmd/lektor-fetch", true, false},
		{"internal/app/viewer", module + "internal/app/ess", false, false},
		{"internal/app/viewer", module + "internal/app/ess", true, true}, // two are tried together
		{"internal/app/ess", module + "internal/app/ess", true, true},
		{"internal/app/viewer", module + "internal/protocol/ess", false, true},
		{"internal/app/viewer", module + "internal/app/viewer/rules", false, true},
		{"internal/app/viewer/rules", module + "internal/app/viewer", false, false},
		{"internal/app/viewer/rules", module + "internal/app/viewer", true, true},
		{"internal/app/viewer/publish", module + "internal/app/viewer/undo", false, false},
		{"internal/app/viewer/fullscreen", module + "internal/app/viewer", false, true},
		{"internal/testkit/viewdir", module + "internal/app/viewer/session", false, true},
		{"internal/feeds/schedule", module + "internal/app/fetcher", false, false},
		{"cmd/lektor-view", module + "internal/app/ess", false, true},
		{"scripts/dev/faults", module + "internal/app/viewer", false, true},
		{"internal/http/fetch", module + "internal/testkit/server", false, false},
		{"internal/http/fetch", module + "internal/testkit/server", true, true},
		{"cmd/lektor-fetch", module + "internal/testkit/testdir", false, false},
		{"scripts/dev/bench", module + "internal/testkit/hub", false, true},
		{"internal/testkit/hub", module + "internal/testkit/server", false, true},
	} {
		why := imports(pkg{ImportPath: module + test.from}, test.to, test.test)
		if (why == "") != test.good {
			t.Errorf("%s imports %s (test %v): %q", test.from, test.to, test.test, why)
		}
	}
}

func TestNames(t *testing.T) {
	const sound = `package x; func f() { Join("src", h, "etc"); g("etc/view"); h("the file etc/fetch/headers of the feed"); d.Src() }`
	for source, good := range map[string]bool{
		sound:                                   true,
		`package x; const f = "etc/fetch/opml"`: true,
		`package x; const f = "etc/fetch/url"`:  false,
		`package x; func f() { d.Join("etc/fetch/due", h) }`: false,
		`package x; const f = "src/" + h + "/etc/push"`:      false,
		`package x; const f = "etc/view/alias"`:              false,
		`package x; const f = "etc/categories"`:              false,
		"package x; const f = `etc/history/archives`":        false,
	} {
		for name, exempt := range map[string]bool{"internal/app/viewer": false, "cmd/lektor-ess": false, "internal/feeds/schedule": true, "lektordir": true} {
			if found := look(t, name, source); (len(found) == 0) != (good || exempt) {
				t.Errorf("%s in %s: %s", source, name, strings.Join(found, "; "))
			}
		}
	}
}

// look returns the breaches of a package with one file.
func look(t *testing.T, name, source string) []string {
	t.Helper()
	found, err := texts(pkg{ImportPath: module + name, GoFiles: []string{"x.go"}}, newShape(), func(string) (*token.FileSet, *ast.File, error) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", source, 0)
		return fset, f, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestShadows(t *testing.T) {
	for body, good := range map[string]bool{
		"func (q *queue) close() {}":               true,
		"func f() { q.close(); x.make = any(1) }":  true,
		"func close() {}":                          false,
		"func f(max int) {}":                       false,
		"func f() (len int) { return 0 }":          false,
		"func f() { any, x := 1, 2 }":              false,
		"func f() { for copy := range x {} }":      false,
		"func f() { g(func(new int) {}) }":         false,
		"var print = 1":                            false,
		"type error struct{}":                      false,
		"type f struct{ len int }":                 true,
		"type f interface{ close() }":              true,
		"func f() { switch cap := x.(type) {} }":   false,
		"import \"y\"; func f(q y.Q) { new := q }": false,
	} {
		if found := look(t, "scripts/x", "package x\n"+body); (len(found) == 0) != good {
			t.Errorf("got %s: %q; want (len(found) == 0) == good", body, found)
		}
	}
}

func TestBeforeMain(t *testing.T) {
	var large strings.Builder
	for i := range maxFilled + 1 {
		fmt.Fprintf(&large, "%d: %[1]d,", i)
	}
	for body, good := range map[string]bool{
		"var a = errors.New(`a`)":                                                          true,
		"var a = regexp.MustCompile(`a`)":                                                  false,
		"var a = []*regexp.Regexp{regexp.MustCompile(`a`)}":                                false,
		"var a = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`a`) })": true,
		"var a = template.Must(template.New(`a`).Parse(`b`))":                              false,
		"func f() { a := regexp.MustCompile(`a`) }":                                        true,
		"func init() {}":                              false,
		"func (t T) init() {}":                        true,
		"var a = map[int]int{1: 1}":                   true,
		"var a = map[int]int{" + large.String() + "}": false,
		"var a = sync.OnceValue(func() map[int]int { return map[int]int{" + large.String() + "} })": true,
	} {
		if found := look(t, "internal/x", "package x\n"+body); (len(found) == 0) != good {
			t.Errorf("%s: %q", body, found)
		}
	}
}

func TestLinks(t *testing.T) {
	graph := map[string][]string{
		"cmd/lektor-view":    {module + "internal/a"},
		"cmd/lektor-article": {module + "internal/a", module + "internal/b"},
		"internal/a":         {"fmt", module + "internal/b"},
		"internal/b":         {module + "internal/a", "modernc.org/sqlite/lib"},
	}
	if found := links(graph); len(found) != 1 || !strings.HasPrefix(found[0], "cmd/lektor-article must not link modernc.org/sqlite, which internal/b") {
		t.Errorf("got %q", found)
	}
}

// TestShape: each limit of functions and types, kept and broken.
func TestShape(t *testing.T) {
	lines := "func f() {" + strings.Repeat("\n", maxLines) + "}"
	var fields, methods strings.Builder
	for i := range maxFields + 1 {
		fmt.Fprintf(&fields, "f%d int\n", i)
	}
	for i := range maxMethods + 1 {
		fmt.Fprintf(&methods, "func (t *T[K]) m%d() {}\n", i)
	}
	branchy := "func f() {" + strings.Repeat(" if x {};", counted) + " }"
	for name, test := range map[string]struct {
		source string
		good   bool
	}{
		"a function with a line too many":          {lines, false},
		"a function with a line less":              {strings.Replace(lines, "\n", "", 1), true},
		"a long function that says why":            {"//rules:allow a table\n" + lines, true},
		"a long function with a directive alone":   {"//rules:allow\n" + lines, false},
		"a type with a field too many":             {"type T struct {" + fields.String() + "}\nfunc (t *T) f() {}", false},
		"one that says why":                        {"// T is a record.\n//\n//rules:allow a record\ntype T struct {" + fields.String() + "}\nfunc (t *T) f() {}", true},
		"one that does not change itself":          {"type T struct {" + fields.String() + "}\nfunc (t T) f() {}", true},
		"a type with a method too many":            {methods.String(), false},
		"a complex function":                       {branchy, true},
		"a function that gocyclo ignores":          {"//gocyclo:ignore\n" + branchy, false},
		"a function that gocyclo ignores, and why": {"//gocyclo:ignore\n//rules:allow a scanner\n" + branchy, true},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\n"+test.source, parser.ParseComments)
		if err != nil {
			t.Fatal(name, err)
		}
		s := newShape()
		s.add("x", fset, f)
		if found := s.breaches(); (len(found) == 0) != test.good {
			t.Errorf("%s: got %q; want none: %v", name, found, test.good)
		}
	}
	s := newShape()
	for i := range maxCounted + 1 {
		s.counted[fmt.Sprint(i)] = true
	}
	if found := s.breaches(); len(found) != 1 {
		t.Errorf("got %q for %d functions that are counted; want one line", found, maxCounted+1)
	}
}
