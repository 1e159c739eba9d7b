package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/lektordir"
)

// scene is what is shown. It is painted on the screen, or its differences are spoken.
type scene struct {
	*texts.Printer
	width, height, lines int // of the screen, and its lines between the first and the last
	focus                keys.Pane
	panes                []paneAt
	feeds                feedsScene
	list                 listScene
	page                 pageScene
	prompt               *prompt.Line // nil if the user types none
	menu                 *part.Lines  // nil if none is open
	last                 lastScene
	pictures             *page.Pictures
	snapshot             *snapshot // of which arrivals are told; nil before
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

// feedsScene is the first pane.
type feedsScene struct {
	known          bool
	at, top, total int // the cursor, the first line on the screen, and the number of lines
	nodes          []nodeScene
	cursor         nodeScene // that of the cursor, if total is not 0
	unread         int       // in all feeds
}

// nodeScene is a line of the first pane.
type nodeScene struct {
	node
	label  string
	closed bool
}

// listScene is the second pane.
type listScene struct {
	spec                         listSpec
	name                         string
	err                          string
	empty                        string // the message if there are no entries
	complete, partial, uncounted bool
	at, top, total, unread       int // unread entries are counted before all are listed
	entries                      []entryScene
	cursor                       entryScene // that of the cursor, if total is not 0
}

// entryScene is a line of the second pane.
type entryScene struct {
	ref         lektordir.Ref
	date, feed  string
	title       string
	known       bool // the title is
	otherFeedIn bool // the list may have entries of other feeds
}

// pageScene is the third pane.
type pageScene struct {
	*page.Page
	flags, title string
}

// scene returns what is shown.
func (m *model) scene() *scene {
	b := &m.browser
	s := &scene{Printer: m.Printer, width: b.width, height: b.height, lines: b.lines(), focus: b.focus,
		panes: b.panes(), prompt: m.prompt.Line, menu: m.prompt.Menu, pictures: &m.pictures,
		snapshot: b.tree.snapshot, last: lastScene{status: m.status, typed: m.typed.Count + m.typed.Keys,
			help:     m.o.Keys.Of("help") + " " + m.Tr("help"),
			progress: cmp.Or(m.work.Tasks.Progress(), b.list.dates.progress)}}
	if m.prompt.Question != nil {
		s.last.question = m.prompt.QuestionLine()
	}
	if n := s.menu; n != nil {
		if n.Refresh(); n.Choose != nil {
			n.Y = cells.Window(n.Y, n.At, len(n.Text), s.lines)
		}
	}
	s.feeds = b.tree.scene(b.linesOf(keys.FeedsPane))
	s.list = b.list.scene(b.linesOf(keys.ListPane), m.o.Date)
	if s.list.total == 0 && s.snapshot != nil && len(s.snapshot.feeds) == 0 && b.list.spec.query == "" &&
		m.o.NoFetcher == nil {
		s.list.empty = m.Trf("no feeds: %s subscribes to one", m.o.Keys.Of("subscribe"))
	}
	s.page = pageScene{&b.page, flagLetters(b.marks.Now(b.page.Ref)), cmp.Or(b.list.title(b.page.Key), "…")}
	s.last.place = m.place(s)
	return s
}

// scene returns the pane with the lines that a height has room for.
func (t *tree) scene(height int) feedsScene {
	s := feedsScene{known: t.snapshot != nil, at: t.at, total: len(t.nodes), unread: t.allUnread()}
	t.y = cells.Window(t.y, t.at, len(t.nodes), height)
	s.top = t.y
	line := func(n node) nodeScene { return nodeScene{n, n.label(t.Printer), t.closed[n.id]} }
	for _, n := range t.nodes[t.y:min(len(t.nodes), t.y+height)] {
		s.nodes = append(s.nodes, line(n))
	}
	if t.at < len(t.nodes) {
		s.cursor = line(t.nodes[max(0, t.at)])
	}
	return s
}

// scene returns the pane with the lines that a height has room for.
func (l *list) scene(height int, date func(time.Time) string) listScene {
	s := listScene{spec: l.spec, name: l.tree.name(l.spec.of), complete: l.complete, at: l.at, total: len(l.items)}
	snapshot := cmp.Or(l.tree.snapshot, &snapshot{})
	s.partial, s.uncounted, s.unread = snapshot.partial, snapshot.uncounted, snapshot.all.Unread
	if l.err != nil {
		s.err = l.err.Error()
	}
	switch {
	case l.spec.query != "":
		s.empty = l.Tr("nothing matches")
	case l.spec.includesRead():
		s.empty = l.Tr("no entries")
	default:
		s.empty = l.Trf("nothing unread: %s shows read entries", l.KeyOf("all"))
	}
	l.y = cells.Window(l.y, l.at, len(l.items), height)
	s.top = l.y
	line := func(it *item) entryScene {
		ref, row := l.marks.Now(it.Ref()), l.rows[it.ID()]
		e := entryScene{ref: ref, date: date(it.date), title: "…", known: row != nil,
			otherFeedIn: l.spec.of.kind != feedNode}
		if row != nil {
			e.title = row.Title
		}
		if f := snapshot.feeds[ref.Feed]; f != nil {
			e.feed = f.Title
		}
		return e
	}
	for _, it := range l.items[l.y:min(len(l.items), l.y+height)] {
		s.entries = append(s.entries, line(it))
	}
	if l.at >= 0 && l.at < len(l.items) {
		s.cursor = line(l.items[l.at])
	}
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
		if m.work.Tasks.Len() > 0 {
			place = m.work.Tasks.Progress() + ", " + place
		}
		return place
	case s.last.progress != "":
		return s.last.progress
	case s.list.spec.all:
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
		case key == h.action, h.action == "all" && m.browser.list.spec.includesRead(): // no key, or none needed
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

func (c cursorAt) String() string {
	parts := []string{c.number, c.line, c.counts}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// title returns the name of the pane that has the focus.
func (s *scene) title() string {
	switch {
	case s.focus == keys.FeedsPane:
		return s.Tr("feeds")
	case s.focus == keys.PagePane:
		return s.Tr("entry")
	case s.list.spec.query != "":
		return s.Trf("entries of %s, search %s", s.list.name, s.list.spec.query)
	}
	return s.Trf("entries of %s", s.list.name)
}

// nodeLine returns the line of the cursor in the feeds.
func (s *scene) nodeLine() (at cursorAt, known bool) {
	f := &s.feeds
	if f.at >= f.total {
		return at, false
	}
	n := f.cursor
	at = cursorAt{number: s.Trf("%d of %d", f.at+1, f.total), line: n.label}
	switch {
	case n.kind == folderNode && n.closed:
		at.line = s.Trf("closed folder %s", at.line)
	case n.kind == folderNode:
		at.line = s.Trf("folder %s", at.line)
	case n.kind == savedNode:
		at.line = s.Trf("saved search %s", at.line)
	case n.paused:
		at.line = s.Trf("paused feed %s", at.line)
	}
	for _, more := range []string{n.site, n.err} {
		if more != "" {
			at.line += ", " + more
		}
	}
	switch {
	case n.flagged > 0:
		at.counts = s.Trf("%d flagged", n.flagged)
	case n.unread > 0:
		at.counts = s.Trf("%d unread", n.unread)
	}
	return at, true
}

// entryLine returns the line of the cursor in the list. The list that was said before may be
// shown while it is read again; of another one, nothing is known before it is complete.
func (s *scene) entryLine(same bool) (at cursorAt, known bool) {
	l := &s.list
	e := l.cursor
	switch {
	case l.err != "":
		return cursorAt{line: l.err}, true
	case e.ref.Unique == "":
		return cursorAt{line: l.empty}, l.complete
	case !e.known || !l.complete && !same && !l.partial:
		return at, false
	}
	at.number = s.Trf("%d of %d", l.at+1, l.total)
	switch {
	case l.uncounted:
		at.number = fmt.Sprint(l.at + 1)
	case l.partial:
		at.number = s.Trf("%d of %d", l.at+1, l.unread)
	}
	parts := append(s.flags(e.ref), strings.TrimSpace(e.date), e.title)
	if e.feed != "" && e.otherFeedIn {
		parts = append(parts, e.feed)
	}
	at.line = strings.Join(parts, ", ")
	return at, true
}

// flags returns the flags of an entry as words.
func (s *scene) flags(ref lektordir.Ref) []string {
	words := []string{s.Tr("read")}
	if ref.Unread() {
		words[0] = s.Tr("unread")
	}
	if ref.HasFlag('F') {
		words = append(words, s.Tr("flagged"))
	}
	if others := strings.NewReplacer("S", "", "F", "").Replace(ref.Flags()); others != "" {
		words = append(words, others)
	}
	return words
}
