package undo

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// If the journal cannot be written, or becomes full, all entries are moved with one warning, and the
// journal has the first ones.
func TestJournalFails(t *testing.T) {
	const feed = "http://a.example/"
	for _, limit := range []int64{0, 300} {
		d := testdir.New(t)
		if _, err := d.Feed(feed, "Alpha"); err != nil {
			t.Fatal(err)
		}
		var messages bytes.Buffer
		s, err := entrystore.Open(d.Path, nil, cmdline.NewStreams("lektor-view", nil, nil, &messages))
		if err != nil {
			t.Fatal(err)
		}
		m := Moving(s, "mark")
		m.journal.max = limit
		for n := range 5 {
			ref := lektordir.Ref{Feed: testdir.Hash(feed), Unique: fmt.Sprintf("170000000%d.1.h", n)}
			if _, err := d.Entry(feed, "new", ref.Unique); err != nil {
				t.Fatal(err)
			}
			if _, err := m.SetFlags(ref, "S", ""); err != nil {
				t.Error(err)
			}
		}
		m.Close()
		want, moves := "undo cannot take this back", 0
		if limit > 0 {
			want, moves = "undo can take back only the first 2 of these", 2
		}
		if s.S.Report.Warnings() != 1 || !strings.Contains(messages.String(), want) {
			t.Errorf("limit %d: %s", limit, &messages)
		}
		got := 0
		if records, err := Records(s.Dir); err != nil || len(records) > 1 {
			t.Errorf("limit %d: %v, %v", limit, records, err)
		} else if len(records) == 1 {
			contents, err := records[0].Read()
			if err != nil {
				t.Fatal(err)
			}
			got = len(contents.Moves)
		}
		if got != moves {
			t.Errorf("limit %d: the journal has %d moves, want %d", limit, got, moves)
		}
	}
}

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
