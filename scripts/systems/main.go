// Systems checks that all packages and their tests have the right types on other
// systems: those that are named, such as freebsd/arm64. It reads the sources of
// everything that they import and compiles nothing, which takes seconds where
// the compiler takes minutes.
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
	"strings"
)

func main() {
	bad := 0
	for _, system := range os.Args[1:] {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			fmt.Fprintln(os.Stderr, "usage: systems GOOS/GOARCH…")
			os.Exit(2)
		}
		for _, err := range check(".", goos, goarch) {
			fmt.Printf("%s: %v\n", system, err)
			bad++
		}
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// pkg is a package as go list tells of it.
type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

// check gives what is wrong with the packages of the module in dir on a system.
func check(dir, goos, goarch string) []error {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return []error{err}
	}
	if err := cmd.Start(); err != nil {
		return []error{err}
	}
	l := &loader{fset: token.NewFileSet(), goarch: goarch, done: map[string]*types.Package{"unsafe": types.Unsafe}}
	// A package comes after those that it imports.
	for list := json.NewDecoder(out); ; {
		var p pkg
		if err := list.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return append(l.bad, errors.Join(err, cmd.Wait(), errors.New(said.String())))
		}
		if p.ImportPath != "unsafe" && !strings.HasSuffix(p.ImportPath, ".test") { // these are made by go test
			l.load(&p)
		}
	}
	if err := cmd.Wait(); err != nil {
		return append(l.bad, fmt.Errorf("go list: %w\n%s", err, said.String()))
	}
	return l.bad
}

// loader has the packages that were read.
type loader struct {
	fset   *token.FileSet
	goarch string
	done   map[string]*types.Package
	bad    []error
}

// load reads a package. Of one of another module the bodies of functions do not
// count.
func (l *loader) load(p *pkg) {
	ours := p.Module != nil && p.Module.Main
	fail := func(err error) {
		if ours {
			l.bad = append(l.bad, err)
		}
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			fail(err)
		}
		files = append(files, f)
	}
	config := types.Config{
		Importer:         importer(func(path string) *types.Package { return l.done[mapped(p.ImportMap, path)] }),
		Sizes:            types.SizesFor("gc", l.goarch),
		IgnoreFuncBodies: !ours,
		FakeImportC:      true,
		Error:            fail,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	l.done[p.ImportPath], _ = config.Check(p.ImportPath, l.fset, files, nil) // its errors were told of
}

// mapped is the package that an import stands for, such as a vendored one.
func mapped(imports map[string]string, path string) string {
	if to, ok := imports[path]; ok {
		return to
	}
	return path
}

// importer gives packages that were read.
type importer func(path string) *types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if p := i(path); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not read", path)
}
