package feedconv

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStages holds the order of files that parse.go states.
func TestStages(t *testing.T) {
	source, err := os.ReadFile("parse.go")
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]int{}
	for i, line := range regexp.MustCompile(`(?m)^//\t\w+: +(.*)$`).FindAllStringSubmatch(string(source), -1) {
		for name := range strings.FieldsSeq(line[1]) {
			stages[name+".go"] = i
		}
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := gotoken.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if _, ok := stages[name]; !ok {
			t.Errorf("%s is of no stage", name)
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Without its imports most of the package is found, and all of its own names.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: nowhere{}, Error: func(error) {}}
	pkg, _ := conf.Check("feedconv", fset, files, info)
	references := 0
	for id, object := range info.Uses {
		_, method := object.(*types.Func)
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !method {
			continue
		}
		from, to := fset.Position(id.Pos()), fset.Position(object.Pos())
		if references++; stages[to.Filename] > stages[from.Filename] {
			t.Errorf("%s refers to %s, of a later stage: %s", from, id.Name, to)
		}
	}
	if references < 1000 {
		t.Errorf("only %d references were found", references)
	}
}

type nowhere struct{}

func (nowhere) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}
