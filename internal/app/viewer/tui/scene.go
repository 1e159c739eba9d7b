package tui

import (
	"cmp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
)

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView("")
	if m.voice != nil {
		return v
	}
	v.AltScreen = true
	if m.o.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.browser.Width == 0 || m.browser.Height == 0 {
		return v
	}
	s := m.scene()
	v.SetContent(s.Paint())
	if s.Prompt != nil {
		_, x := s.Prompt.Shown(s.Width)
		v.Cursor = tea.NewCursor(x, s.Height-1)
	}
	return v
}

// speak says what a message has changed, if the reader has no screen.
func (m *model) speak(msg tea.Msg) tea.Cmd {
	if m.voice == nil {
		return nil
	}
	return m.voice.Speak(m.scene(), msg, m.After)
}

// scene returns what is shown.
func (m *model) scene() *scene.Scene {
	b := &m.browser
	s := &scene.Scene{Printer: m.Printer, Layout: b.Layout, Look: m.o.Look, Dir: m.o.Name, Feeds: &b.tree,
		Page: &b.page, Prompt: m.prompt.Line, Menu: m.prompt.Menu, Pictures: &m.pictures,
		Last: scene.Last{Status: m.status, Typed: m.typed.Count + m.typed.Keys,
			Help: m.o.Keys.Of("help") + " " + m.Tr("help"), Progress: m.work.Tasks.Progress()}}
	if q := m.prompt.Question; q != nil {
		s.Last.Question = m.Tr(q.Text) + " (y/n) "
	}
	if n := s.Menu; n != nil {
		if n.Live != nil {
			n.Text = n.Live()
			n.At = max(0, min(n.At, len(n.Text)-1))
		}
		if n.Choose != nil {
			n.Y = cells.Window(n.Y, n.At, len(n.Text), s.Lines())
		}
	}
	s.Feeds.Y = cells.Window(s.Feeds.Y, s.Feeds.At, len(s.Feeds.Nodes), b.LinesOf(keys.FeedsPane))
	s.List = b.list.Scene(b.LinesOf(keys.ListPane), m.o.Date)
	if len(b.list.Items) == 0 && b.tree.Snapshot != nil && len(b.tree.Snapshot.Feeds) == 0 && b.list.Spec.Query == "" &&
		m.o.NoFetcher == nil {
		s.List.Empty = m.Trf("no feeds: %s subscribes to one", m.o.Keys.Of("subscribe"))
	}
	s.PageTitle = strings.TrimLeft(scene.FlagLetters(b.marks.Now(b.page.Ref))+" ", " ") +
		cmp.Or(b.list.Titles[b.page.Key], "…")
	s.Last.Place = m.place(s)
	return s
}

// place returns the position in the entry, the progress of a job, or the mode of the list; if there is room, keys.
func (m *model) place(s *scene.Scene) string {
	b := &m.browser
	switch {
	case s.Menu != nil:
		return m.Tr(s.Menu.Hint)
	case b.tree.Snapshot == nil:
		return m.Trf("reading %s", m.o.Name)
	case s.Focus == keys.PagePane && b.page.Entry != nil:
		return scene.Listed(s.Last.Progress, b.page.Place(m.pictures.Can()))
	case s.Last.Progress != "":
		return s.Last.Progress
	case s.List.Spec.All:
		return m.Tr("read and unread entries")
	case s.Width >= 60:
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
		case h.action == "quit" && m.browser.Focus == keys.FeedsPane:
			h.what = tr("end")
		}
		hints = append(hints, key+" "+h.what)
	}
	return strings.Join(hints, "  ")
}
