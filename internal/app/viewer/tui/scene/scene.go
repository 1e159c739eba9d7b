// Package scene is what the reader shows: a value that is painted on the screen, or whose differences are spoken.
package scene

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/lektordir"
)

// Scene is what is shown. It is painted on the screen, or its differences are spoken.
type Scene struct {
	*texts.Printer
	Layout
	Look  *cells.Look
	Dir   string // path of the lektor-dir
	Feeds *tree.Tree
	List  list.Scene
	Page  *page.Page
	// PageTitle has the flags of the open entry and its title.
	PageTitle string
	Prompt    *prompt.Line // nil if the user types none
	Menu      *part.Lines  // nil if none is open
	Pictures  *page.Pictures
	Last      Last
}

// Last is what the last line may show.
type Last struct {
	Question string
	Status   part.Say
	Typed    string // keys of a sequence, and its count
	Progress string // of work in the background
	Place    string // where the user is
	Help     string // the key of help
}

// FlagLetters returns N for an unread entry, and its flags but S.
func FlagLetters(r lektordir.Ref) string {
	s := " "
	if r.Unread() {
		s = "N"
	}
	return s + strings.ReplaceAll(r.Flags(), "S", "")
}

// cursorAt is the line of the cursor: its number, its text, and its counts. A change of the text
// is said at once, and a change of the others with the next one, since arrivals change them.
type cursorAt struct{ number, line, counts string }

func (c cursorAt) String() string { return Listed(c.number, c.line, c.counts) }

// Listed returns texts with commas between them; some may be empty.
func Listed(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}

// title returns the name of the pane that has the focus.
func (s *Scene) title() string {
	switch {
	case s.Focus == keys.FeedsPane:
		return s.Tr("feeds")
	case s.Focus == keys.PagePane:
		return s.Tr("entry")
	case s.List.Spec.Query != "":
		return s.Trf("entries of %s, search %s", s.List.Name, s.List.Spec.Query)
	}
	return s.Trf("entries of %s", s.List.Name)
}

// NodeLine returns the line of the cursor in the feeds.
func (s *Scene) NodeLine() (at cursorAt, known bool) {
	f := s.Feeds
	if f.At >= len(f.Nodes) {
		return at, false
	}
	n := f.Nodes[f.At]
	at = cursorAt{number: s.Trf("%d of %d", f.At+1, len(f.Nodes))}
	at.line = cmp.Or(map[string]string{"+": s.Trf("closed folder %s", n.Title),
		"-": s.Trf("folder %s", n.Title), "?": s.Trf("saved search %s", n.Title),
		"=": s.Trf("paused feed %s", n.Title)}[n.Sign()], n.Title)
	at.line = Listed(at.line, n.Site, n.Err)
	switch {
	case n.Flagged > 0:
		at.counts = s.Trf("%d flagged", n.Flagged)
	case n.Unread > 0:
		at.counts = s.Trf("%d unread", n.Unread)
	}
	return at, true
}

// EntryLine returns the line of the cursor in the list. The list that was said before may be
// shown while it is read again; of another one, nothing is known before it is complete.
func (s *Scene) EntryLine(same bool) (at cursorAt, known bool) {
	l := &s.List
	if l.Err != nil {
		return cursorAt{line: l.Err.Error()}, true
	} else if len(l.Items) == 0 {
		return cursorAt{line: l.Empty}, l.Complete
	}
	e := l.Entries[l.At-l.Y]
	if e.Title == "" || !l.Complete && !same && (s.Feeds.Snapshot == nil || !s.Feeds.Snapshot.Partial) {
		return at, false
	}
	if at.number = fmt.Sprint(l.At + 1); l.Count > 0 {
		at.number = s.Trf("%d of %d", l.At+1, l.Count)
	}
	read, flagged := s.Tr("read"), ""
	if e.Ref.Unread() {
		read = s.Tr("unread")
	}
	if e.Ref.HasFlag('F') {
		flagged = s.Tr("flagged")
	}
	others := strings.NewReplacer("S", "", "F", "").Replace(e.Ref.Flags())
	at.line = Listed(read, flagged, others, strings.TrimSpace(e.Date), strings.TrimSpace(e.Title), e.Feed)
	return at, true
}
