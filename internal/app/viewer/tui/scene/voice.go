package scene

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Voice is the reader without a screen, for screen readers and simple terminals: after each
// message it writes lines of text that say what has changed for the user. It compares the scene
// with what it said last, so that actions need not know of it. Its methods run on the UI
// goroutine.
type Voice struct {
	Out  io.Writer
	text strings.Builder // to be written at the end of the call
	// Hold is how long the user must press no key before arrivals and progress are said.
	Hold    time.Duration
	waits   bool // a SpeakMsg is on its way
	pressed bool // a key was pressed since the last SpeakMsg
	size    tea.WindowSizeMsg
	said    said
	typed   echo
	news    news
}

// SpeakMsg comes when progress and arrivals may be said.
type SpeakMsg struct{}

// said is what the user has heard.
type said struct {
	began    bool
	place    string   // where the user is: a pane and what it lists
	line     string   // the line of the cursor, without its number
	page     part.Key // entry whose text was said
	feedText bool
	text     *page.Entry // the text that from and to are lines of
	match    page.Match  // match of a search in the entry
	from, to int         // lines of the page or the menu
	menu     string
	status   string
	keys     string
	progress string
}

// Forget lets the next call of Speak say again where the user is: the menu if one is open, else
// the pane.
func (v *Voice) Forget() {
	if v.said.menu != "" {
		v.said.menu = ""
		return
	}
	v.said = said{began: true, progress: v.said.progress}
}

// Speak says what has changed after a message. It returns the command that says the rest later,
// nil if there is no rest; after sends a message after a delay.
func (v *Voice) Speak(s *Scene, msg tea.Msg, after func(time.Duration, tea.Msg) tea.Cmd) tea.Cmd {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		if size == v.size {
			v.said.place = "" // a command had the terminal
		}
		v.size = size
	}
	_, key := msg.(tea.KeyPressMsg)
	if key {
		v.pressed = true
		v.said.status, v.said.keys = "", ""
	}
	v.news.count(s.Feeds.Snapshot)
	if !v.said.began {
		v.said.began = true
		v.line(s.Last.Help)
	}
	_, late := msg.(SpeakMsg)
	rest := v.all(s, key)
	if late {
		v.waits = false
		if !v.pressed && s.Prompt == nil && s.Last.Question == "" && s.Menu == nil {
			if rest {
				v.line(s.Tr("reading…"))
			}
			v.change(&v.said.progress, s.Last.Progress)
			if n := v.news.settled(); n > 0 {
				v.line(s.Trf("%d new entries", n))
			}
			rest = false
		}
	}
	v.flush()
	if v.waits || !rest && v.news.n == 0 && s.Last.Progress == v.said.progress {
		return nil
	}
	v.waits, v.pressed = true, false
	return after(v.Hold, SpeakMsg{})
}

// End ends the line of a prompt that is open when the reader ends.
func (v *Voice) End() {
	if v != nil && v.typed.of != nil {
		v.typed.echo(nil, &v.text)
		v.flush()
	}
}

// Hold is how long arrivals and progress wait until the user presses no key.
const Hold = 3 * time.Second

// flush writes the lines. If the terminal is gone, reading from it fails too, which ends the
// reader.
func (v *Voice) flush() {
	_, _ = io.WriteString(v.Out, v.text.String())
	v.text.Reset()
}

// line says a line of text.
func (v *Voice) line(text string) {
	if text = strings.TrimRight(cells.Plain(text), " "); text != "" {
		v.text.WriteString(text + "\r\n")
	}
}

// change says a text unless it was said last.
func (v *Voice) change(said *string, text string) {
	if text != *said {
		v.line(text)
	}
	*said = text
}

// all says everything that changed but arrivals and progress. It reports whether the place of
// the user is still being read.
func (v *Voice) all(s *Scene, key bool) (reading bool) {
	if v.typed.echo(s.Prompt, &v.text); s.Prompt != nil {
		return false
	}
	if s.Last.Question != "" {
		v.change(&v.said.keys, s.Last.Question)
		return false
	}
	v.change(&v.said.status, s.Last.Status.Text)
	v.change(&v.said.keys, s.Last.Typed)
	if s.Menu != nil {
		v.menu(s, key)
		return false
	}
	if v.said.menu != "" {
		v.said.menu, v.said.place, v.said.text = "", "", nil
	}
	return !v.where(s)
}

// menu says the title of a menu and the line of its cursor, or the lines of a text.
func (v *Voice) menu(scene *Scene, key bool) {
	s, n := &v.said, scene.Menu
	if title := scene.Tr(n.Title); title != s.menu {
		v.line(title)
		v.line(scene.Tr(n.Hint))
		s.menu, s.line, s.from, s.to, key = title, "", 0, 0, true
	}
	if n.Choose == nil {
		v.lines(n.Text, n.Y, scene.Lines())
	} else if n.At < len(n.Text) {
		at := scene.Trf("%d of %d", n.At+1, len(n.Text))
		if s.from != n.At || key && s.line != n.Text[n.At] {
			v.line(at + ", " + n.Text[n.At])
		}
		s.from, s.line = n.At, n.Text[n.At]
	}
}

// lines says the lines of a text that became visible by scrolling to line y.
func (v *Voice) lines(text []string, y, height int) {
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
func (v *Voice) where(scene *Scene) bool {
	s := &v.said
	pane := scene.Focus
	here := fmt.Sprintf("%d %#v", pane, scene.List.Spec)
	if pane == keys.FeedsPane {
		here = "feeds"
	}
	if pane != keys.PagePane {
		s.page = 0
	}
	known := false
	var at cursorAt
	switch {
	case scene.Feeds.Snapshot == nil:
		return false
	case pane == keys.FeedsPane:
		at, known = scene.NodeLine()
	case pane == keys.ListPane:
		at, known = scene.EntryLine(here == s.place)
	default:
		known = scene.Page.Entry != nil || scene.Page.Err != nil
	}
	if !known {
		return false
	}
	if here != s.place {
		v.line(scene.title())
		s.place, s.line = here, ""
	}
	if pane == keys.PagePane {
		v.page(scene.Page, scene.Lines())
	} else if at.line != s.line {
		v.line(at.String())
		s.line = at.line
	}
	return true
}

// page says the lines of the open entry that became visible, or the line of a match.
func (v *Voice) page(p *page.Page, height int) {
	s := &v.said
	switch {
	case p.Err != nil:
		v.change(&s.line, p.Err.Error())
		return
	case p.Key != s.page || p.FeedText != s.feedText:
		s.page, s.feedText, s.text, s.match, s.from, s.to = p.Key, p.FeedText, p.Entry, page.Match{}, 0, 0
		v.lines(p.Lines, p.Y, height)
	case p.Entry != s.text: // the same text for another width, or after a menu
		s.text, s.from, s.to = p.Entry, p.Y, min(p.Y+height, len(p.Lines))
	}
	at, ok := p.Match()
	if ok && at != s.match {
		v.line(p.Lines[at.Line])
		s.from, s.to = p.Y, min(p.Y+height, len(p.Lines))
	}
	s.match = at
	v.lines(p.Lines, p.Y, height)
}

// news counts entries that arrive.
type news struct {
	last   *tree.Snapshot
	n      int
	before int // n at the last call of settled
}

// count counts the arrivals in a snapshot. Entries that are there at the start are none.
func (n *news) count(s *tree.Snapshot) {
	if s == nil || s == n.last || s.Partial {
		return
	}
	if n.last != nil {
		for was, is := range s.Names.Since(n.last.Names) {
			for _, r := range is.Came(was) {
				if r.Unread() && !r.Trashed() {
					n.n++
				}
			}
		}
	}
	n.last = s
}

// settled returns the number of arrivals, and forgets them. It returns 0 if more have come since
// the last call, so that a delivery is one line.
func (n *news) settled() (count int) {
	if n.n == n.before {
		count, n.n = n.n, 0
	}
	n.before = n.n
	return count
}

// echo is a prompt as it stands on the terminal.
type echo struct {
	of   *prompt.Line // nil if none does
	text []rune
	at   int
}

// echo writes the changes of a prompt. The cursor moves by backspaces and by repeating text, as
// every terminal understands.
func (e *echo) echo(p *prompt.Line, w *strings.Builder) {
	if p != e.of {
		if e.of != nil {
			w.WriteString("\r\n")
		}
		if *e = (echo{of: p}); p != nil {
			w.WriteString(cells.Plain(p.Label))
		}
	}
	if p == nil {
		return
	}
	same := 0
	for same < len(e.text) && same < len(p.Text) && e.text[same] == p.Text[same] {
		same++
	}
	if same < max(len(e.text), len(p.Text)) {
		e.move(same, w)
		w.WriteString(string(p.Text[same:]))
		gap := max(0, termsafe.Width(string(e.text[same:]))-termsafe.Width(string(p.Text[same:])))
		w.WriteString(strings.Repeat(" ", gap) + strings.Repeat("\b", gap))
		e.text, e.at = slices.Clone(p.Text), len(p.Text)
	}
	e.move(p.At, w)
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
