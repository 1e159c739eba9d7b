package main

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fzipp/gocyclo"
)

// These are the limits of functions and types. The maximum complexity is an argument of gocyclo,
// in scripts/dev/check.
const (
	maxLines   = 60 // lines of a function
	maxFields  = 20 // fields of a type with methods on its pointer, and of the structs that it embeds
	maxMethods = 40 // methods of a type, and functions of its package that take a pointer to it
	maxColumns = 120
	tab        = 4  // columns
	longWord   = 50 // columns of a string, which may pass maxColumns
	counted    = 20 // the complexity over which functions are counted
	maxCounted = 45 // functions that are counted
)

// allow is the directive of a function or type over a limit. The reason follows it.
const allow = "//rules:allow "

// shape collects the counts of all packages.
type shape struct {
	methods map[string]int            // methods of each type, and functions that take its pointer, by package and name
	changes map[string]bool           // the types that have methods on their pointers
	fields  map[string]int            // fields of each struct that has no directive
	embeds  map[string][]string       // structs that each embeds
	places  map[string]token.Position // where the structs are
	counted map[string]bool           // the functions over counted
	found   []string                  // a line for each function over a limit
}

func newShape() *shape {
	return &shape{
		methods: map[string]int{}, changes: map[string]bool{}, fields: map[string]int{}, embeds: map[string][]string{},
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
	takes := map[string]bool{}
	for _, p := range f.Type.Params.List {
		if of, pointer := receiver(p.Type); pointer && of != "" && f.Recv == nil && !takes[of] {
			takes[of] = true
			s.methods[name+"."+of]++
		}
	}
	at := fset.Position(f.Pos())
	if gocyclo.Complexity(f) > counted {
		s.counted[full] = true
	}
	if n := fset.Position(f.End()).Line - at.Line + 1; n > maxLines && !allowed(f.Doc) {
		s.found = append(s.found, fmt.Sprintf("%s: %s has %d lines; the limit is %d, unless a line %shas the reason",
			at, full, n, maxLines, allow))
	}
	if hasDirective(f.Doc, "//gocyclo:ignore") && !allowed(f.Doc) {
		s.found = append(s.found, fmt.Sprintf("%s: %s has no line %swith the reason for which gocyclo ignores it", at,
			full, allow))
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
		if s.fields[full] += max(1, len(f.Names)); len(f.Names) == 0 {
			of, _ := receiver(f.Type)
			s.embeds[full] = append(s.embeds[full], name+"."+of)
		}
	}
}

// allFields returns the number of fields of a struct, with those of structs of the package that it embeds.
func (s *shape) allFields(name string) int {
	n := s.fields[name]
	for _, embedded := range s.embeds[name] {
		if s.fields[embedded] > 0 {
			n += s.allFields(embedded) - 1
		}
	}
	return n
}

// columns returns a line for each line of a file that is too long.
func columns(file, text string) (found []string) {
	excused := map[int]bool{} // lines with a long string
	fset := token.NewFileSet()
	var scan scanner.Scanner
	f := fset.AddFile(file, -1, len(text))
	scan.Init(f, []byte(text), nil, scanner.ScanComments)
	for {
		pos, kind, literal := scan.Scan()
		if kind == token.EOF {
			break
		}
		if first := f.Line(pos); kind == token.STRING && len(literal) >= longWord {
			for i := range strings.Count(literal, "\n") + 1 {
				excused[first+i] = true
			}
		}
	}
	for i, line := range strings.Split(text, "\n") {
		columns := utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
		if columns > maxColumns && !excused[i+1] {
			found = append(found, fmt.Sprintf("%s:%d: %d columns; the limit is %d", file, i+1, columns, maxColumns))
		}
	}
	return found
}

// breaches returns a line for each type over a limit, and one if too many functions are complex.
func (s *shape) breaches() []string {
	found := s.found
	for name, n := range s.methods {
		if n > maxMethods {
			found = append(found, fmt.Sprintf("%s has %d methods and functions that take its pointer; the limit is %d",
				name, n, maxMethods))
		}
	}
	for name := range s.fields {
		n := s.allFields(name)
		if s.changes[name] && n > maxFields {
			found = append(found,
				fmt.Sprintf("%s: %s has methods on its pointer and %d fields; the limit is %d, unless a line %shas the reason", s.places[name], name, n, maxFields, allow))
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
	return doc != nil && slices.ContainsFunc(doc.List,
		func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, directive) })
}
