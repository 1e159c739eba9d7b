package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// variadic stands for any number of words, and at least one.
const variadic = -1

// action is what a key can do.
type action struct {
	name  string
	words int // that it takes: 0, up to 1, or variadic
	help  string
	// command is the command that does the same, for help.
	command string
	do      func(m *model, c call) tea.Cmd
}

// actionOf returns an action by its name.
func actionOf(name string) (action, bool) {
	all := actions()
	i := slices.IndexFunc(all, func(a action) bool { return a.name == name })
	if i < 0 {
		return action{}, false
	}
	return all[i], true
}

// browse makes an action of a change of the browser.
func browse(f func(b *browser) effects) func(*model, call) tea.Cmd {
	return func(m *model, _ call) tea.Cmd {
		m.apply(f(&m.browser))
		return nil
	}
}

// times makes an action of a change of the browser that is done as often as the count says.
func times(f func(b *browser, n int) effects) func(*model, call) tea.Cmd {
	return func(m *model, c call) tea.Cmd {
		m.apply(f(&m.browser, max(c.count, 1)))
		return nil
	}
}

// mark makes an action that sets and clears flags.
func mark(set, unset string) func(*model, call) tea.Cmd {
	return func(m *model, _ call) tea.Cmd {
		m.mark(set, unset)
		return nil
	}
}

// actions are all that keys can do.
func actions() []action {
	return []action{
		{"down", 0, "one line down", "", times(func(b *browser, n int) effects { return b.move(n) })},
		{"up", 0, "one line up", "", times(func(b *browser, n int) effects { return b.move(-n) })},
		{"half-down", 0, "half a page down", "", times(func(b *browser, n int) effects { return b.move(n * b.halfPage()) })},
		{"half-up", 0, "half a page up", "", times(func(b *browser, n int) effects { return b.move(-n * b.halfPage()) })},
		{"page-down", 0, "a page down", "", times(func(b *browser, n int) effects { return b.move(n * b.fullPage()) })},
		{"page-up", 0, "a page up", "", times(func(b *browser, n int) effects { return b.move(-n * b.fullPage()) })},
		{"scroll-down", 0, "the text one line down, wherever one is", "", times((*browser).scroll)},
		{"scroll-up", 0, "the text one line up", "", times(func(b *browser, n int) effects { return b.scroll(-n) })},
		{"top", 0, "to the first line, or to line N", "", times(func(b *browser, n int) effects { return b.to(n - 1) })},
		{"bottom", 0, "to the last line, or to line N", "", bottom},
		{"open", 0, "into what the cursor is on; an entry is marked as read", "show --mark", browse((*browser).open)},
		{"back", 0, "out of it, or of a search", "", browse((*browser).back)},
		{"quit", 0, "out of it; of the feeds: end", "", quit},
		{"quit-now", 0, "end", "", func(*model, call) tea.Cmd { return tea.Quit }},
		{"next-pane", 0, "to the next pane", "", browse(func(b *browser) effects { return b.pane(1) })},
		{"previous-pane", 0, "to the pane before", "", browse(func(b *browser) effects { return b.pane(-1) })},
		{"zoom", 0, "this pane alone, or all again", "", browse((*browser).toggleZoom)},
		{"fold", 0, "close a folder, or open it", "", browse((*browser).fold)},
		{"forward", 0, "a page of the entry, then the next unread one", "next", browse((*browser).forward)},
		{"next-unread", 0, "to the next unread entry, of the next feed if need be", "ls", browse(func(b *browser) effects { return b.nextUnread(1) })},
		{"previous-unread", 0, "to the unread entry before", "ls", browse(func(b *browser) effects { return b.nextUnread(-1) })},
		{"next", 0, "to the next entry", "", times((*browser).nextEntry)},
		{"previous", 0, "to the entry before", "", times(func(b *browser, n int) effects { return b.nextEntry(-n) })},
		{"next-feed", 0, "to the next feed with unread entries", "count --by feed", browse(func(b *browser) effects { return b.nextFeed(1) })},
		{"previous-feed", 0, "to the one before", "count --by feed", browse(func(b *browser) effects { return b.nextFeed(-1) })},
		{"toggle-read", 0, "read or unread", "mark --set S, --clear S", toggleRead},
		{"read", 0, "mark as read", "mark --set S", mark("S", "")},
		{"unread", 0, "mark as unread", "mark --clear S", mark("", "S")},
		{"toggle-flagged", 0, "flagged or not", "mark --set F, --clear F", toggleFlagged},
		{"flags", 1, "set and clear flags: +Fa-S", "mark --set Fa --clear S", setFlags},
		{"read-all", 0, "mark all that is listed as read", "ls -o path QUERY | mark --set S -", readAll},
		{"trash", 0, "mark as trashed", "rm", trash},
		{"undo", 0, "take back the last mark", "undo", undo},
		{"browser", 0, "open the entry in the browser; with N, its link N", "open --keep, open --keep --link N", openEntry},
		{"link", 1, "open a link by its number", "open --keep --link N", openLink},
		{"play", 0, "play the enclosure; with N, number N", "play --keep --enclosure N", play},
		{"picture", 0, "fetch a picture of the entry and show it; again: the next", "open --keep --link N", showPicture},
		{"feed-text", 0, "the feed's own text in the place of the page's article, or that again", "show --feed-text", feedText},
		{"search", 0, "search in what is listed, as one types (lektor-query(7))", "ls -a QUERY", search},
		{"save-query", 1, "save the search as a folder", "echo QUERY >etc/view/query/NAME", saveQuery},
		{"all", 0, "list read entries too, or not", "ls -a", browse((*browser).toggleAll)},
		{"sort", 0, "newest or oldest first", "ls --sort date, ls --sort -date", browse((*browser).toggleSort)},
		{"reload", 0, "read everything anew", "", reload},
		{"redraw", 0, "draw the screen anew", "", func(*model, call) tea.Cmd { return tea.ClearScreen }},
		{"suspend", 0, "stop, until the shell's fg", "", suspend},
		{"help", 0, "the keys", "", help},
		{"run", variadic, "run a command on the terminal", "", run},
		{"run-wait", variadic, "run a command, and wait for Enter", "", run},
		{"spawn", variadic, "run a command in the background", "", spawn},
	}
}

// bottom moves to the last line, or to the line of the count.
func bottom(m *model, c call) tea.Cmd {
	line := 1 << 30
	if c.count > 0 {
		line = c.count - 1
	}
	m.apply(m.browser.to(line))
	return nil
}

// quit leaves the pane, and from the feeds the reader.
func quit(m *model, _ call) tea.Cmd {
	if m.browser.focus == feedsPane {
		return tea.Quit
	}
	m.apply(m.browser.back())
	return nil
}

// needEntry returns the entry that a key works on, or says that there is none.
func (m *model) needEntry() (lektordir.Ref, bool) {
	ref, ok := m.browser.chosen()
	if !ok {
		m.say("choose an entry first")
	}
	return ref, ok
}

// needPage returns the page that is open, or says that none is. If it has not been read
// yet, the action is done when it has.
func (m *model) needPage(c call) *Page {
	p := &m.browser.page
	switch {
	case m.browser.focus != pagePane || !p.open() || p.err != nil:
		m.say("open an entry first")
		return nil
	case p.page == nil:
		p.pending = c
	}
	return p.page
}

// toggleRead marks the chosen entry as read, or as unread if it is read.
func toggleRead(m *model, _ call) tea.Cmd {
	if ref, ok := m.needEntry(); ok {
		toggle(m, "S", !ref.Unread())
	}
	return nil
}

// toggleFlagged sets the flag F of the chosen entry, or clears it.
func toggleFlagged(m *model, _ call) tea.Cmd {
	if ref, ok := m.needEntry(); ok {
		toggle(m, "F", ref.HasFlag('F'))
	}
	return nil
}

// toggle clears a flag of the chosen entry if it has it, and sets it otherwise.
func toggle(m *model, flag string, has bool) {
	if has {
		m.mark("", flag)
	} else {
		m.mark(flag, "")
	}
}

// mark sets and clears flags of the chosen entry.
func (m *model) mark(set, unset string) {
	ref, ok := m.needEntry()
	if !ok {
		return
	}
	m.browser.list.readHere[keyOf(ref)] = true
	m.change([]lektordir.Ref{ref}, set, unset)
	if m.browser.focus == listPane && m.o.Advance {
		m.apply(m.browser.move(1))
	}
}

// setFlags sets and clears flags that it asks for.
func setFlags(m *model, c call) tea.Cmd {
	if _, ok := m.needEntry(); !ok {
		return nil
	}
	if len(c.words) == 0 {
		m.ask("flags, as +Fa-S: ", "", "flags")
		return nil
	}
	set, unset, err := parseFlags(c.words[0])
	if err != nil {
		m.fail(err)
		return nil
	}
	m.mark(set, unset)
	return nil
}

// parseFlags reads +Fa-S or +flagged-read: set F and a, clear S.
func parseFlags(s string) (set, unset string, err error) {
	s = strings.ReplaceAll(s, " ", "")
	for s != "" {
		to := &set
		if sign := s[0]; sign == '+' || sign == '-' {
			s = s[1:]
			if sign == '-' {
				to = &unset
			}
		}
		end := strings.IndexAny(s, "+-")
		if end < 0 {
			end = len(s)
		}
		flags, err := query.ParseFlags(s[:end])
		if refused, ok := errors.AsType[*query.FlagError](err); ok {
			return "", "", fmt.Errorf("%w; %s", refused, refused.Hint)
		}
		*to, s = *to+flags, s[end:]
	}
	if set+unset == "" {
		return "", "", errors.New("no flag was given: F flagged, S read, T trashed, a to z your own")
	}
	return set, unset, nil
}

// readAll marks the listed entries as read.
func readAll(m *model, _ call) tea.Cmd {
	if !m.browser.list.complete {
		m.say("the list is not complete yet")
		return nil
	}
	var refs []lektordir.Ref
	for _, it := range m.browser.list.items {
		if m.marks.unread(*it.ref) {
			refs = append(refs, m.marks.now(*it.ref))
			m.browser.list.readHere[keyOf(*it.ref)] = true
		}
	}
	if len(refs) == 0 {
		m.say("all of these are read")
		return nil
	}
	m.say("%s marked as read; %s takes it back", units.Count(len(refs), "entry"), m.o.Keys.of("undo"))
	m.change(refs, "S", "")
	return nil
}

// trash marks the chosen entry as trashed, and closes it.
func trash(m *model, _ call) tea.Cmd {
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	m.browser.closePage()
	m.say("trashed; %s brings it back", m.o.Keys.of("undo"))
	m.change([]lektordir.Ref{ref}, "T", "")
	return nil
}

// undo takes back the last command.
func undo(m *model, _ call) tea.Cmd {
	m.marks.add(&change{kind: undoChange})
	return nil
}

// search asks for a query, and lists the entries that it selects while the user types.
func search(m *model, c call) tea.Cmd {
	b := &m.browser
	if len(c.words) > 0 {
		m.apply(b.search(c.words[0]))
		return nil
	}
	m.ask("/", b.list.query, "search").before = &beforeSearch{b.list.query, b.focus}
	b.focus = listPane
	return nil
}

// saveQuery saves the search as a query that is listed as a folder is.
func saveQuery(m *model, c call) tea.Cmd {
	list := &m.browser.list
	switch {
	case list.query == "":
		m.say("search first; then it can be saved")
	case len(c.words) == 0:
		m.ask("save as: ", "", "save-query")
	default:
		m.marks.add(&change{kind: saveChange, name: strings.TrimSpace(c.words[0]), query: listSpec{of: list.of, query: list.query}.text()})
	}
	return nil
}

// reload reads everything again.
func reload(m *model, _ call) tea.Cmd {
	m.wantScan(map[string]bool{"": true})
	clear(m.rows)
	m.apply(m.browser.reread())
	return nil
}

// feedText shows the text of the feed instead of the article of the page, or that again.
func feedText(m *model, c call) tea.Cmd {
	page := m.needPage(c)
	if page == nil {
		return nil
	}
	if !page.HasArticle {
		m.say("the entry has no other text than that of its feed")
		return nil
	}
	m.say("the article of the page")
	if m.browser.page.toggleFeedText() {
		m.say("the text of the feed; %s shows the article of the page", m.o.Keys.of("feed-text"))
	}
	return nil
}

// suspend stops the reader until the shell lets it go on.
func suspend(m *model, _ call) tea.Cmd {
	send, t := m.send, m.terminal
	return inOrder(m.dropPicture(), tea.Exec(stopping{}, func(err error) tea.Msg {
		go send(t.size()) // it may have changed; and the library waits for this callback
		return statusMsg{"", err}
	}))
}
