package tui

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// voice is the reader without a screen, for screen readers and simple terminals: after each
// message it writes lines of text that say what has changed for the user. It compares the model
// with what it said last, so that actions need not know of it. Its methods run on the UI
// goroutine.
type voice struct {
	out  io.Writer
	text strings.Builder // to be written at the end of the call
	// hold is how long the user must press no key before arrivals and progress are said.
	hold    time.Duration
	waits   bool // a voiceMsg is on its way
	pressed bool // a key was pressed since the last voiceMsg
	size    tea.WindowSizeMsg
	said    said
	typed   echo
	news    news
}

// voiceMsg comes when progress and arrivals may be said.
type voiceMsg struct{}

// said is what the user has heard.
type said struct {
	began    bool
	place    spot
	line     string // the line of the cursor, without its number
	page     key    // entry whose text was said
	feedText bool
	text     *Page // the text that from and to are lines of
	match    match // match of a search in the entry
	from, to int   // lines of the page or the menu
	menu     string
	status   string
	keys     string
	progress string
}

// spot is where the user is: a pane and what it lists.
type spot struct {
	pane keys.Pane
	list listSpec
	any  bool // false if nothing was said about a place
}

// forget lets the next call of speak say again where the user is: the menu if one is open, else
// the pane.
func (v *voice) forget() {
	if v.said.menu != "" {
		v.said.menu = ""
		return
	}
	v.said = said{began: true, progress: v.said.progress}
}

// speak says what has changed after a message. It returns the command that says the rest later,
// nil if there is no rest.
func (v *voice) speak(m *model, msg tea.Msg) tea.Cmd {
	if v == nil {
		return nil
	}
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		if size == v.size {
			v.said.place = spot{} // a command had the terminal
		}
		v.size = size
	}
	_, key := msg.(tea.KeyPressMsg)
	if key {
		v.pressed = true
		v.said.status, v.said.keys = "", ""
	}
	v.news.count(m.browser.snapshot)
	if !v.said.began {
		v.said.began = true
		v.line(m.o.Keys.Of("help") + " " + m.Tr("help"))
	}
	_, late := msg.(voiceMsg)
	rest := v.all(m, key)
	if late {
		v.waits = false
		if !v.pressed && !m.input.open() {
			rest = v.late(m, rest)
		}
	}
	v.flush()
	if v.waits || !rest && !v.news.any() && progress(m) == v.said.progress {
		return nil
	}
	v.waits, v.pressed = true, false
	return m.after(v.hold, voiceMsg{})
}

// end ends the line of a prompt that is open when the reader ends.
func (v *voice) end() {
	if v != nil && v.typed.of != nil {
		v.typed.echo(nil, &v.text)
		v.flush()
	}
}

// hold is how long arrivals and progress wait until the user presses no key.
const hold = 3 * time.Second

// flush writes the lines. If the terminal is gone, reading from it fails too, which ends the
// reader.
func (v *voice) flush() {
	_, _ = io.WriteString(v.out, v.text.String())
	v.text.Reset()
}

// line says a line of text.
func (v *voice) line(text string) {
	if text = strings.TrimRight(cells.Plain(text), " "); text != "" {
		v.text.WriteString(text + "\r\n")
	}
}

// all says everything that changed but arrivals and progress. It reports whether the place of
// the user is still being read.
func (v *voice) all(m *model, key bool) (reading bool) {
	in := &m.input
	if v.typed.echo(in.prompt, &v.text); in.prompt != nil {
		return false
	}
	if q := in.question; q != nil {
		if text := q.line(&m.world); text != v.said.keys {
			v.line(text)
			v.said.keys = text
		}
		return false
	}
	if m.status.text != v.said.status {
		v.line(m.status.text)
		v.said.status = m.status.text
	}
	if keys := in.count + in.keys; keys != v.said.keys {
		v.line(keys)
		v.said.keys = keys
	}
	if in.menu != nil {
		v.menu(m, in.menu, key)
		return false
	}
	if v.said.menu != "" {
		v.said.menu, v.said.place, v.said.text = "", spot{}, nil
	}
	return !v.where(m)
}

// menu says the title of a menu and the line of its cursor, or the lines of a text.
func (v *voice) menu(m *model, n *menu, key bool) {
	s, height := &v.said, m.browser.lines()
	n.refresh()
	if n.choose != nil {
		n.y = cells.Window(n.y, n.at, len(n.lines), height)
	}
	if title := m.Tr(n.title); title != s.menu {
		v.line(title)
		v.line(m.Tr(n.hint))
		s.menu, s.line, s.from, s.to, key = title, "", 0, 0, true
	}
	if n.choose == nil {
		v.lines(n.lines, n.y, height)
	} else if n.at < len(n.lines) {
		at := m.Trf("%d of %d", n.at+1, len(n.lines))
		if s.from != n.at || key && s.line != n.lines[n.at] {
			v.line(at + ", " + n.lines[n.at])
		}
		s.from, s.line = n.at, n.lines[n.at]
	}
}

// lines says the lines of a text that became visible by scrolling to line y.
func (v *voice) lines(text []string, y, height int) {
	s := &v.said
	from, to := y, min(y+height, len(text))
	switch {
	case s.to == 0:
	case y >= s.from:
		from = max(from, s.to)
	default:
		to = min(to, s.from)
	}
	for _, l := range text[min(from, to):to] {
		v.line(l)
	}
	s.from, s.to = y, min(y+height, len(text))
}

// where says the pane if it is another one, and the line of the cursor if it has changed. It
// reports whether all of that is known.
func (v *voice) where(m *model) bool {
	b, s := &m.browser, &v.said
	here := spot{pane: b.focus, list: b.list.listSpec, any: true}
	if b.focus != keys.PagePane {
		s.page = 0
	}
	if b.focus == keys.FeedsPane {
		here.list = listSpec{}
	}
	known := false
	var at cursorAt
	switch {
	case b.snapshot == nil:
		return false
	case b.focus == keys.FeedsPane:
		at, known = nodeLine(m)
	case b.focus == keys.ListPane:
		at, known = entryLine(m, here == s.place)
	default:
		known = b.page.page != nil || b.page.err != nil
	}
	if !known {
		return false
	}
	if here != s.place {
		v.line(paneTitle(m))
		s.place, s.line = here, ""
	}
	if b.focus == keys.PagePane {
		v.page(m)
		return true
	}
	if at.line != s.line {
		v.line(at.String())
		s.line = at.line
	}
	return true
}

// cursorAt is the line of the cursor: its number, its text, and its counts. A change of the text
// is said at once, and a change of the others with the next one, since arrivals change them.
type cursorAt struct{ number, line, counts string }

func (c cursorAt) String() string {
	parts := []string{c.number, c.line, c.counts}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// paneTitle returns the name of the pane that has the focus.
func paneTitle(m *model) string {
	switch b := &m.browser; b.focus {
	case keys.FeedsPane:
		return m.Tr("feeds")
	case keys.PagePane:
		return m.Tr("entry")
	default:
		title := listName(m)
		if b.list.query != "" {
			return m.Trf("entries of %s, search %s", title, b.list.query)
		}
		return m.Trf("entries of %s", title)
	}
}

// nodeLine returns the line of the cursor in the feeds.
func nodeLine(m *model) (at cursorAt, known bool) {
	t := &m.browser.tree
	if t.at >= len(t.nodes) {
		return at, false
	}
	n := t.nodes[t.at]
	at = cursorAt{number: m.Trf("%d of %d", t.at+1, len(t.nodes)), line: n.label(&m.world)}
	switch {
	case n.kind == folderNode && t.closed[n.id]:
		at.line = m.Trf("closed folder %s", at.line)
	case n.kind == folderNode:
		at.line = m.Trf("folder %s", at.line)
	case n.kind == savedNode:
		at.line = m.Trf("saved search %s", at.line)
	case n.paused:
		at.line = m.Trf("paused feed %s", at.line)
	}
	for _, more := range []string{n.site, n.err} {
		if more != "" {
			at.line += ", " + more
		}
	}
	switch {
	case n.flagged > 0:
		at.counts = m.Trf("%d flagged", n.flagged)
	case n.unread > 0:
		at.counts = m.Trf("%d unread", n.unread)
	}
	return at, true
}

// entryLine returns the line of the cursor in the list. The list that was said before may be
// shown while it is read again; of another one, nothing is known before it is complete.
func entryLine(m *model, same bool) (at cursorAt, known bool) {
	b := &m.browser
	l := &b.list
	ref, ok := b.current()
	switch {
	case l.err != nil:
		return cursorAt{line: l.err.Error()}, true
	case !ok:
		return cursorAt{line: noEntries(m)}, l.complete
	}
	row := m.rows[keyOf(ref)]
	if row == nil || !l.complete && !same && !b.snapshot.partial {
		return at, false
	}
	at.number = m.Trf("%d of %d", l.at+1, len(l.items))
	switch {
	case b.snapshot.uncounted:
		at.number = fmt.Sprint(l.at + 1)
	case b.snapshot.partial:
		at.number = m.Trf("%d of %d", l.at+1, b.snapshot.all.Unread)
	}
	parts := append(flagWords(m, ref), strings.TrimSpace(m.o.Date(l.items[l.at].date)), row.Title)
	if f := b.snapshot.feeds[ref.Feed]; f != nil && l.of.kind != feedNode {
		parts = append(parts, f.Title)
	}
	at.line = strings.Join(parts, ", ")
	return at, true
}

// flagWords returns the flags of an entry as words.
func flagWords(m *model, ref lektordir.Ref) []string {
	words := []string{m.Tr("read")}
	if ref.Unread() {
		words[0] = m.Tr("unread")
	}
	if ref.HasFlag('F') {
		words = append(words, m.Tr("flagged"))
	}
	if others := strings.NewReplacer("S", "", "F", "").Replace(ref.Flags()); others != "" {
		words = append(words, others)
	}
	return words
}

// page says the lines of the open entry that became visible, or the line of a match.
func (v *voice) page(m *model) {
	p, s, height := &m.browser.page, &v.said, m.browser.lines()
	switch {
	case p.err != nil:
		v.line(p.err.Error())
		return
	case p.key != s.page || p.feedText != s.feedText:
		s.page, s.feedText, s.text, s.match, s.from, s.to = p.key, p.feedText, p.page, match{}, 0, 0
		v.lines(p.lines, p.y, height)
	case p.page != s.text: // the same text for another width, or after a menu
		s.text, s.from, s.to = p.page, p.y, min(p.y+height, len(p.lines))
	}
	var at match
	if p.find.at < len(p.find.matches) {
		at = p.find.matches[p.find.at]
	}
	if at != s.match && at != (match{}) {
		v.line(p.lines[at.line])
		s.from, s.to = p.y, min(p.y+height, len(p.lines))
	}
	s.match = at
	v.lines(p.lines, p.y, height)
}

// late says that something is still being read, the progress of work, and arrivals. It reports
// whether there is more to say later.
func (v *voice) late(m *model, reading bool) bool {
	if reading {
		v.line(m.Tr("reading…"))
	}
	if now := progress(m); now != v.said.progress {
		v.line(now)
		v.said.progress = now
	}
	if n := v.news.settled(); n > 0 {
		v.line(m.Trf("%d new entries", n))
	}
	return false
}

// progress returns the progress of the work in the background, "" if there is none.
func progress(m *model) string {
	if m.tasks.Len() > 0 {
		return m.tasks.Progress()
	}
	return m.dates.progress
}

// news counts entries that arrive.
type news struct {
	last   *snapshot
	n      int
	before int // n at the last call of settled
}

// count counts the arrivals in a snapshot. Entries that are there at the start are none.
func (n *news) count(s *snapshot) {
	if s == nil || s == n.last || s.partial {
		return
	}
	if n.last != nil {
		for was, is := range s.names.Since(n.last.names) {
			for _, r := range is.Came(was) {
				if r.Unread() && !r.Trashed() {
					n.n++
				}
			}
		}
	}
	n.last = s
}

func (n *news) any() bool { return n.n > 0 }

// settled returns the number of arrivals, and forgets them. It returns 0 if more have come since
// the last call, so that a delivery is one line.
func (n *news) settled() int {
	count := n.n
	if count != n.before {
		n.before = count
		return 0
	}
	n.n, n.before = 0, 0
	return count
}

// echo is a prompt as it stands on the terminal.
type echo struct {
	of   *prompt // nil if none does
	text []rune
	at   int
}

// echo writes the changes of a prompt. The cursor moves by backspaces and by repeating text, as
// every terminal understands.
func (e *echo) echo(p *prompt, w *strings.Builder) {
	if p != e.of {
		if e.of != nil {
			w.WriteString("\r\n")
		}
		if *e = (echo{of: p}); p != nil {
			w.WriteString(cells.Plain(p.label))
		}
	}
	if p == nil {
		return
	}
	same := 0
	for same < len(e.text) && same < len(p.text) && e.text[same] == p.text[same] {
		same++
	}
	if same < max(len(e.text), len(p.text)) {
		e.move(same, w)
		w.WriteString(string(p.text[same:]))
		gap := max(0, termsafe.Width(string(e.text[same:]))-termsafe.Width(string(p.text[same:])))
		w.WriteString(strings.Repeat(" ", gap) + strings.Repeat("\b", gap))
		e.text, e.at = slices.Clone(p.text), len(p.text)
	}
	e.move(p.at, w)
}

// move moves the cursor in the text that is on the terminal.
func (e *echo) move(to int, w *strings.Builder) {
	if to < e.at {
		w.WriteString(strings.Repeat("\b", termsafe.Width(string(e.text[to:e.at]))))
	} else {
		w.WriteString(string(e.text[e.at:to]))
	}
	e.at = to
}
