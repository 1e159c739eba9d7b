package undo

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/lektordir"
)

// FuzzUndo checks that each move of any journal renames an entry into cur/ without changing its
// feed and unique name, or removes it.
func FuzzUndo(f *testing.F) {
	f.Add("mark\t2026-03-15T00:00:00Z\nnew/a/1.a.h\tcur/a/1.a.h;2,S\ncur/a/1.a.h\ttmp/a/1.a.h;gone\n")
	f.Add("rm\t2026-03-15T00:00:00Z\ncur/a/1.a.h;2,S\tcur/a/1.b.h;2,ST\n\n\t\nx")
	f.Add("x\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := parseJournal(text)
		if d == nil {
			return
		}
		if len(d.Moves)+d.Invalid > strings.Count(text, "\n") {
			t.Errorf("%d moves and %d invalid lines", len(d.Moves), d.Invalid)
		}
		for _, m := range d.Moves {
			if !filepath.IsLocal(m.From.Path()) || strings.Count(m.From.Path(), "/") != 2 {
				t.Errorf("from %s", m.From.Path())
			}
			if m.To != (lektordir.Ref{}) && (m.To.Feed != m.From.Feed || m.To.Unique != m.From.Unique || !strings.HasPrefix(m.To.Path(), "cur/") || strings.Count(m.To.Path(), "/") != 2) {
				t.Errorf("from %s to %s", m.From.Path(), m.To.Path())
			}
		}
	})
}
