// Command types checks the types of all packages and their tests for systems other than this
// one. It is several times faster than go vet, which compiles every dependency for each system.
//
//	types SYSTEM/ARCHITECTURE…
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, system := range os.Args[1:] {
		errs, err := check(system)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			os.Exit(2)
		}
		for _, e := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, e)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the errors of the types of the packages below the working directory.
func check(system string) (errs []packages.Error, err error) {
	own, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	goos, goarch, _ := strings.Cut(system, "/")
	config := &packages.Config{
		Mode:  packages.LoadAllSyntax,
		Tests: true,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, own+string(filepath.Separator)) {
				// Bodies of functions of dependencies declare nothing that others see.
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
	}
	roots, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range roots {
		if strings.HasSuffix(p.ID, ".test") {
			continue // the main function that go test writes
		}
		errs = append(errs, p.Errors...)
	}
	return errs, nil
}
