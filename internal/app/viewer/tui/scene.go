package tui

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

// scene is what is shown. It is painted on the screen, or its differences are spoken.
type scene struct {
	*texts.Printer
	layout
	feeds    tree.Scene
	list     list.Scene
	page     pageScene
	prompt   *prompt.Line // nil if the user types none
	menu     *part.Lines  // nil if none is open
	pictures *page.Pictures
	snapshot *tree.Snapshot // of which arrivals are told; nil before
	last     lastScene
}

// lastScene is what the last line may show.
type lastScene struct {
	question string
	status   part.Say
	typed    string // keys of a sequence, and its count
	progress string // of work in the background
	place    string // where the user is
	help     string // the key of help
}

// pageScene is the third pane.
type pageScene struct {
	*page.Page
	flags, title string
}

// scene returns what is shown.
func (m *model) scene() *scene {
	b := &m.browser
	s := &scene{Printer: m.Printer, layout: b.layout, prompt: m.prompt.Line, menu: m.prompt.Menu,
		pictures: &m.pictures, snapshot: b.tree.Snapshot, last: lastScene{status: m.status,
			typed: m.typed.Count + m.typed.Keys, help: m.o.Keys.Of("help") + " " + m.Tr("help"),
			progress: m.work.Tasks.Progress()}}
	if m.prompt.Question != nil {
		s.last.question = m.prompt.QuestionLine()
	}
	if n := s.menu; n != nil {
		if n.Live != nil {
			n.Text = n.Live()
			n.At = max(0, min(n.At, len(n.Text)-1))
		}
		if n.Choose != nil {
			n.Y = cells.Window(n.Y, n.At, len(n.Text), s.lines())
		}
	}
	s.feeds = b.tree.Scene(b.linesOf(keys.FeedsPane))
	s.list = b.list.Scene(b.linesOf(keys.ListPane), m.o.Date)
	if s.list.Total == 0 && s.snapshot != nil && len(s.snapshot.Feeds) == 0 && b.list.Spec.Query == "" &&
		m.o.NoFetcher == nil {
		s.list.Empty = m.Trf("no feeds: %s subscribes to one", m.o.Keys.Of("subscribe"))
	}
	s.page = pageScene{&b.page, flagLetters(b.marks.Now(b.page.Ref)), cmp.Or(b.list.Title(b.page.Key), "…")}
	s.last.place = m.place(s)
	return s
}

// place returns the position in the entry, the progress of a job, or the mode of the list; if there is room, keys.
func (m *model) place(s *scene) string {
	b := &m.browser
	switch {
	case s.menu != nil:
		return m.Tr(s.menu.Hint)
	case s.snapshot == nil:
		return m.Trf("reading %s", m.o.Name)
	case s.focus == keys.PagePane && b.page.Entry != nil:
		place := b.page.Place(m.pictures.Can())
		return listed(s.last.progress, place)
	case s.last.progress != "":
		return s.last.progress
	case s.list.Spec.All:
		return m.Tr("read and unread entries")
	case s.width >= 60:
		return m.hints()
	}
	return ""
}

// hints returns the most useful keys for the current pane.
func (m *model) hints() string {
	var hints []string
	tr := m.Tr
	for _, h := range []struct{ action, what string }{
		{"open", tr("open")}, {"forward", tr("read on")}, {"next-unread", tr("next unread")}, {"search", tr("search")},
		{"quit", tr("back")}, {"all", tr("all")},
	} {
		key := m.o.Keys.Of(h.action)
		switch {
		case key == h.action, h.action == "all" && m.browser.list.Spec.IncludesRead(): // no key, or none needed
			continue
		case h.action == "quit" && m.browser.focus == keys.FeedsPane:
			h.what = tr("end")
		}
		hints = append(hints, key+" "+h.what)
	}
	return strings.Join(hints, "  ")
}

// flagLetters returns N for an unread entry, and its flags but S.
func flagLetters(r lektordir.Ref) string {
	s := " "
	if r.Unread() {
		s = "N"
	}
	return s + strings.ReplaceAll(r.Flags(), "S", "")
}

// cursorAt is the line of the cursor: its number, its text, and its counts. A change of the text
// is said at once, and a change of the others with the next one, since arrivals change them.
type cursorAt struct{ number, line, counts string }

func (c cursorAt) String() string { return listed(c.number, c.line, c.counts) }

// listed returns texts with commas between them; some may be empty.
func listed(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ", ")
}

// title returns the name of the pane that has the focus.
func (s *scene) title() string {
	switch {
	case s.focus == keys.FeedsPane:
		return s.Tr("feeds")
	case s.focus == keys.PagePane:
		return s.Tr("entry")
	case s.list.Spec.Query != "":
		return s.Trf("entries of %s, search %s", s.list.Name, s.list.Spec.Query)
	}
	return s.Trf("entries of %s", s.list.Name)
}

// nodeLine returns the line of the cursor in the feeds.
func (s *scene) nodeLine() (at cursorAt, known bool) {
	f := &s.feeds
	if f.At >= f.Total {
		return at, false
	}
	n := f.Cursor
	at = cursorAt{number: s.Trf("%d of %d", f.At+1, f.Total)}
	at.line = cmp.Or(map[string]string{"+": s.Trf("closed folder %s", n.Label),
		"-": s.Trf("folder %s", n.Label), "?": s.Trf("saved search %s", n.Label),
		"=": s.Trf("paused feed %s", n.Label)}[n.Sign()], n.Label)
	at.line = listed(at.line, n.Site, n.Err)
	switch {
	case n.Flagged > 0:
		at.counts = s.Trf("%d flagged", n.Flagged)
	case n.Unread > 0:
		at.counts = s.Trf("%d unread", n.Unread)
	}
	return at, true
}

// entryLine returns the line of the cursor in the list. The list that was said before may be
// shown while it is read again; of another one, nothing is known before it is complete.
func (s *scene) entryLine(same bool) (at cursorAt, known bool) {
	l := &s.list
	if l.Err != "" {
		return cursorAt{line: l.Err}, true
	} else if l.Total == 0 {
		return cursorAt{line: l.Empty}, l.Complete
	}
	e := l.Entries[l.At-l.Top]
	if !e.Known || !l.Complete && !same && !l.Partial {
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
	at.line = listed(read, flagged, others, strings.TrimSpace(e.Date), e.Title, e.Feed)
	return at, true
}
