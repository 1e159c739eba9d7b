package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// opening matches sentences whose word order stops a reader: "What is listed is…".
	opening = regexp.MustCompile(`^(What|Whoever|Who|Whose|Where|Of|That|Those|Such|As for)\b`)
	// fragment matches such a beginning of a comment or message that is not a sentence.
	fragment = regexp.MustCompile(`^(what|whoever|whose|who|as for)\b`)
	says     = regexp.MustCompile(`\b(gives?|tells?)\b`)
	ends     = regexp.MustCompile(`[.!?]["')]* +`)
)

// maxSays is the maximum number of comments in all Go files that contain a form of says. Doc
// comments may contain none.
const maxSays = 60

// allowedOpenings are exceptions: questions and places.
var allowedOpenings = []string{
	`That throws err, if it is not nil, with a text before it that says what was attempted.`,
	`Of parses and compiles a schema.`,
	`What is a short noun phrase: "an HTML page titled \"Example\"", "an empty document", "JSON, but no feed".`,
	`What lektor-share keeps equal on several machines`, // existing documents have it
	`That's what they call Real-time."`,
	`Where to change what`,
}

// words collects the sentences that break the rules of wording.
type words struct {
	says  int // comments that say "gives" or "tells"
	found []string
}

// wording checks the Go files, the manual pages and the Markdown below root.
func wording(root string) ([]string, error) {
	w := &words{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir():
			if strings.HasPrefix(name, ".") && path != root || name == "testdata" || name == "dist" || name == "bin" {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(name, ".go"):
			return w.goFile(path)
		case strings.HasSuffix(name, ".md") || filepath.Base(filepath.Dir(path)) == "man":
			return w.prose(path)
		}
		return nil
	})
	if w.says > maxSays {
		w.found = append(w.found, fmt.Sprintf("%d comments say \"gives\" or \"tells\"; at most %d may", w.says, maxSays))
	}
	return w.found, err
}

// sentence checks one sentence. Fragments are checked in Go files only.
func (w *words) sentence(path string, line int, text string, fragments bool) {
	text = strings.TrimSpace(text)
	if slices.Contains(allowedOpenings, text) {
		return
	}
	if opening.MatchString(text) || fragments && fragment.MatchString(text) {
		word, _, _ := strings.Cut(text, " ")
		w.found = append(w.found, fmt.Sprintf("%s:%d: a sentence begins with %q: %.60s", path, line, word, text))
	}
}

// goFile checks the comments and the messages of a Go file.
func (w *words) goFile(path string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	docs := map[*ast.CommentGroup]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			docs[n.Doc] = true
		case *ast.GenDecl:
			docs[n.Doc] = true
		case *ast.TypeSpec:
			docs[n.Doc] = true
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && strings.Count(text, " ") > 1 {
				w.sentence(path, line(n.Pos()), text, true)
			}
		}
		return true
	})
	for _, group := range f.Comments {
		text := strings.Join(strings.Fields(group.Text()), " ")
		if says.MatchString(text) {
			w.says++
			if docs[group] {
				w.found = append(w.found, fmt.Sprintf("%s:%d: a doc comment says %q", path, line(group.Pos()), says.FindString(text)))
			}
		}
		for _, s := range ends.Split(text, -1) {
			w.sentence(path, line(group.Pos()), s, true)
		}
	}
	return nil
}

// prose checks a manual page or a Markdown file. A line begins a sentence if the line before it
// ended one, or is empty, a macro or code.
func (w *words) prose(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	code, begins := false, true
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, ".Bd -literal"), strings.HasPrefix(line, "```") && !code:
			code = true
		case strings.HasPrefix(line, ".Ed"), strings.HasPrefix(line, "```"):
			code = false
		}
		if code || strings.HasPrefix(line, ".") || strings.HasPrefix(line, "    ") || line == "" {
			begins = true
			continue
		}
		line = strings.TrimLeft(line, "-#*>|0123456789. ")
		for _, s := range ends.Split(line, -1) {
			if begins {
				w.sentence(path, i+1, s, false)
			}
			begins = true
		}
		begins = ends.MatchString(line + " ")
	}
	return nil
}
