package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"

	"github.com/fzipp/gocyclo"
)

// These are the limits of functions and types. The maximum complexity is an argument of gocyclo,
// in scripts/dev/check.
const (
	maxLines   = 60 // lines of a function
	maxFields  = 15 // fields of a type with methods on its pointer
	maxMethods = 40 // methods of a type
	counted    = 20 // the complexity over which functions are counted
	maxCounted = 45 // functions that are counted
)

// allow is the directive of a function or type over a limit. The reason follows it.
const allow = "//rules:allow "

// shape collects the counts of all packages.
type shape struct {
	methods map[string]int            // methods of each type, by package and name
	changes map[string]bool           // the types that have methods on their pointers
	fields  map[string]int            // fields of each struct that has no directive
	places  map[string]token.Position // where the structs are
	counted map[string]bool           // the functions over counted
	found   []string                  // a line for each function over a limit
}

func newShape() *shape {
	return &shape{
		methods: map[string]int{}, changes: map[string]bool{}, fields: map[string]int{},
		places: map[string]token.Position{}, counted: map[string]bool{},
	}
}

// add counts the declarations of a file.
func (s *shape) add(name string, fset *token.FileSet, f *ast.File) {
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			s.function(name, fset, decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					s.record(name, fset, t, decl.Doc)
				}
			}
		}
	}
}

// function counts a function, and a method for its type.
func (s *shape) function(name string, fset *token.FileSet, f *ast.FuncDecl) {
	full := name + "." + f.Name.Name
	if f.Recv != nil {
		of, pointer := receiver(f.Recv.List[0].Type)
		s.methods[name+"."+of]++
		s.changes[name+"."+of] = s.changes[name+"."+of] || pointer
		full = name + "." + of + "." + f.Name.Name
	}
	at := fset.Position(f.Pos())
	if gocyclo.Complexity(f) > counted {
		s.counted[full] = true
	}
	if n := fset.Position(f.End()).Line - at.Line + 1; n > maxLines && !allowed(f.Doc) {
		s.found = append(s.found, fmt.Sprintf("%s: %s has %d lines; the limit is %d, unless a line %shas the reason", at, full, n, maxLines, allow))
	}
	if hasDirective(f.Doc, "//gocyclo:ignore") && !allowed(f.Doc) {
		s.found = append(s.found, fmt.Sprintf("%s: %s has no line %swith the reason for which gocyclo ignores it", at, full, allow))
	}
}

// receiver returns the name of the type of a method, and whether it has a pointer.
func receiver(t ast.Expr) (name string, pointer bool) {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t, pointer = x.X, true
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name, pointer
		default:
			return "", pointer
		}
	}
}

// record counts the fields of a struct.
func (s *shape) record(name string, fset *token.FileSet, t *ast.TypeSpec, doc *ast.CommentGroup) {
	structure, ok := t.Type.(*ast.StructType)
	if !ok || allowed(doc) || allowed(t.Doc) {
		return
	}
	full := name + "." + t.Name.Name
	s.places[full] = fset.Position(t.Pos())
	for _, f := range structure.Fields.List {
		s.fields[full] += max(1, len(f.Names))
	}
}

// breaches returns a line for each type over a limit, and one if too many functions are complex.
func (s *shape) breaches() []string {
	found := s.found
	for name, n := range s.methods {
		if n > maxMethods {
			found = append(found, fmt.Sprintf("%s has %d methods; the limit is %d", name, n, maxMethods))
		}
	}
	for name, n := range s.fields {
		if s.changes[name] && n > maxFields {
			found = append(found, fmt.Sprintf("%s: %s has methods on its pointer and %d fields; the limit is %d, unless a line %shas the reason", s.places[name], name, n, maxFields, allow))
		}
	}
	if len(s.counted) > maxCounted {
		found = append(found, fmt.Sprintf("%d functions have a complexity over %d; at most %d may: %s",
			len(s.counted), counted, maxCounted, strings.Join(slices.Sorted(maps.Keys(s.counted)), ", ")))
	}
	return found
}

// allowed reports whether a comment has the directive with a reason.
func allowed(doc *ast.CommentGroup) bool { return hasDirective(doc, allow) }

func hasDirective(doc *ast.CommentGroup, directive string) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, directive) })
}
