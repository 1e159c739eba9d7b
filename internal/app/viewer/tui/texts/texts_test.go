package texts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The language is the first of LC_ALL, LC_MESSAGES and LANG that is set.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ all, messages, lang, want string }{
		{"", "", "", "en"},
		{"", "", "de_DE.UTF-8", "de-DE"},
		{"", "fr_FR.UTF-8", "de_DE.UTF-8", "fr-FR"},
		{"de_AT@euro", "fr_FR", "en_US.UTF-8", "de-AT"},
		{"C", "fr_FR", "de_DE", "en"},
		{"C.UTF-8", "", "", "en"},
		{"POSIX", "", "", "en"},
		{"../../etc/passwd", "", "", "en"},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		if got := userLanguage(func(name string) string { return env[name] }).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c, got, c.want)
		}
	}
}

// Texts with a number have a form for one; unknown languages read English.
func TestPlural(t *testing.T) {
	for _, lang := range []string{"", "ja_JP.UTF-8"} {
		texts := New(func(string) string { return lang })
		if got := texts.Sprintf("open %d entries in the browser?", 1); got != "open 1 entry in the browser?" {
			t.Errorf("%s: %s", lang, got)
		}
		got := fmt.Sprint(texts.Sprintf("%d pictures", 1), "; ", texts.Sprintf("%d pictures", 2000), "; ", texts.Sprintf("100%% of %s", "all"))
		if want := "1 picture; 2,000 pictures; 100% of all"; got != want {
			t.Errorf("%s: %s", lang, got)
		}
	}
}

// German and French have plurals and their own way to write numbers.
func TestTranslations(t *testing.T) {
	for lang, want := range map[string]string{
		"de_DE.UTF-8": "1 Bild; 2.000 Bilder; 0 Bilder; Hilfe",
		"fr_CA.UTF-8": "1 image; 2\u00a0000 images; 0 image; aide",
	} {
		texts := New(func(string) string { return lang })
		got := fmt.Sprint(texts.Sprintf("%d pictures", 1), "; ", texts.Sprintf("%d pictures", 2000), "; ", texts.Sprintf("%d pictures", 0), "; ", texts.Sprintf("help"))
		if got != want {
			t.Errorf("%s: %q", lang, got)
		}
	}
}

// TestTexts compares the catalogues with the texts in the code: each has every text, with the
// same verbs, and no others.
func TestTexts(t *testing.T) {
	texts := textsOfCode(t)
	for _, lang := range []string{"de", "fr", "en"} {
		file, err := translations.ReadFile(lang)
		if err != nil {
			t.Fatal(err)
		}
		New(func(string) string { return lang }) // panics if a translation is malformed
		all := readTexts(string(file))
		if n := strings.Count(string(file), " = "); n != len(all) {
			t.Errorf("%s: %d lines, but %d different texts", lang, n, len(all))
		}
		for english, translation := range all {
			if !texts[english] {
				t.Errorf("%s: %q is not a text of the reader", lang, english)
			}
			forms := []string{translation}
			if strings.Contains(english, "%d") {
				forms = strings.Split(translation, " | ")
			}
			for _, form := range forms {
				if got, want := verbsOf(form), verbsOf(english); !slices.Equal(got, want) {
					t.Errorf("%s: %q: the verbs are %v, not %v", lang, form, got, want)
				}
			}
		}
		for english := range texts {
			if all[english] == "" && lang != "en" {
				t.Errorf("%s: %q is missing", lang, english)
			}
		}
	}
}

// verbsOf returns the verbs of a format, in order. Translations keep the order.
func verbsOf(format string) []string {
	return regexp.MustCompile(`%(\[[0-9]+\])?[a-z]`).FindAllString(format, -1)
}

// computed are texts that are not literals where they are translated.
var computed = []string{"All", "Flagged", "indexing", "reading dates", "enclosure", "picture", "fetching", "there is nothing to take back"}

// textsOfCode returns the texts in the code: the literals that are passed to say, tr, trf, ask,
// confirm and errors.New, and those in the fields of menus, effects and actions. Errors in files
// of keys and looks are in English.
func textsOfCode(t *testing.T) map[string]bool {
	t.Helper()
	texts := map[string]bool{}
	add := func(e ast.Expr) {
		if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil && strings.ContainsFunc(strings.ReplaceAll(text, "%s", ""), unicode.IsLetter) {
				texts[strings.TrimSpace(text)] = true
			}
		}
	}
	for _, text := range computed {
		texts[text] = true
	}
	var files []string
	for _, pattern := range []string{"../*.go", "../*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || slices.Contains([]string{"keys.go", "look.go"}, filepath.Base(name)) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if slices.Contains([]string{"Say", "Tr", "tr", "Trf", "New", "Choice", "chooseNode"}, calledName(n)) && len(n.Args) > 0 {
					add(n.Args[0])
					if calledName(n) == "Choice" {
						add(n.Args[1])
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"title", "hint", "label"}, strings.ToLower(key.Name)) {
					add(n.Value)
				}
			case *ast.CompositeLit:
				if list, ok := n.Type.(*ast.ArrayType); ok && fmt.Sprint(list.Elt) == "action" {
					for _, a := range n.Elts {
						add(a.(*ast.CompositeLit).Elts[2])
					}
				}
				if s, ok := n.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Confirm" {
					add(n.Elts[0].(*ast.KeyValueExpr).Value)
				}
			}
			return true
		})
	}
	return texts
}

// calledName returns the name of the function or method of a call.
func calledName(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
