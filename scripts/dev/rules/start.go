package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// maxFilled is the number of values of a map that may be filled before main, in a microsecond.
const maxFilled = 50

// beforeMain returns the place of each declaration of a file that does much before main, at every
// start: a function init, and a variable that is compiled, or is a large map. A function literal runs
// later.
func beforeMain(fset *token.FileSet, f *ast.File) (found []string) {
	add := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s before main slows down every start; use sync.OnceValue",
			fset.Position(n.Pos()), what))
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && decl.Name.Name == "init" {
				add(decl, "a function init")
			}
		case *ast.GenDecl:
			if decl.Tok != token.VAR {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false
				case *ast.CallExpr:
					if name, compiles := compiled(n.Fun); compiles {
						add(n, name)
					}
				case *ast.CompositeLit:
					if _, is := n.Type.(*ast.MapType); is && len(n.Elts) > maxFilled {
						add(n, fmt.Sprintf("filling a map of %d values", len(n.Elts)))
					}
				}
				return true
			})
		}
	}
	return found
}

// compiled returns the name of a called function, and reports whether it compiles an expression or a
// template.
func compiled(fun ast.Expr) (string, bool) {
	selector, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return fmt.Sprint(selector.X) + "." + selector.Sel.Name, ok && (pkg.Name == "regexp" || pkg.Name == "template")
}
