package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/lektordir"
)

// variadic, as the number of words of an action, means one or more, and optional any number.
const variadic, optional = -1, -2

// action is something that a key can do.
type action struct {
	name  string
	words int // number of words it takes: 0, 1 (up to one), variadic or optional
	help  string
	// command is the arguments of lektor-view that do the same, for help.
	command string
	do      func(m *model, c keys.Call) tea.Cmd
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

// browse returns an action that changes the browser.
func browse(f func(b *browser) effects) func(*model, keys.Call) tea.Cmd {
	return func(m *model, _ keys.Call) tea.Cmd {
		m.apply(f(&m.browser))
		return nil
	}
}

// times returns an action that changes the browser; n is the count, at least 1.
func times(f func(b *browser, n int) effects) func(*model, keys.Call) tea.Cmd {
	return func(m *model, c keys.Call) tea.Cmd {
		m.apply(f(&m.browser, max(c.Count, 1)))
		return nil
	}
}

// mark returns an action that sets and clears flags of the chosen entry.
func mark(set, unset string) func(*model, keys.Call) tea.Cmd {
	return func(m *model, _ keys.Call) tea.Cmd {
		m.mark(set, unset)
		return nil
	}
}

// group is actions with their title in help.
type group struct {
	title   string
	actions []action
}

// groups returns all actions, in the order of the manual.
func groups() []group {
	return []group{
		{title: "reading", actions: readingActions()},
		{title: "moving", actions: moves()},
		{title: "the entry", actions: entryActions()},
		{title: "the entry in other programs", actions: exportActions()},
		{title: "lists and the screen", actions: slices.Concat(listActions(), orderActions(), lookActions())},
		{title: "feeds", actions: fetchActions()},
		{title: "commands, and many entries", actions: slices.Concat(lineActions(), commandActions())},
	}
}

// actions returns the actions of all groups.
func actions() (all []action) {
	for _, g := range groups() {
		all = append(all, g.actions...)
	}
	return all
}

// readingActions returns the actions that open entries, and leave them.
func readingActions() []action {
	return []action{
		{"open", 0, "open the line of the cursor; an entry is marked as read", "show --mark", browse((*browser).open)},
		{"forward", 0, "a page of the entry, then the next unread one", "next", browse((*browser).forward)},
		{"next-unread", 0,
			"to the next unread entry, also in the next feed; in a search in an entry: to the next match", "ls",
			nextOf(1)},
		{"previous-unread", 0, "to the previous unread entry, or match", "ls", nextOf(-1)},
		{"next", 0, "to the next entry", "", times((*browser).nextEntry)},
		{"previous", 0, "to the previous entry", "", times(func(b *browser, n int) effects { return b.nextEntry(-n) })},
		{"next-feed", 0, "to the next feed with unread entries", "count --by feed",
			browse(func(b *browser) effects { return b.nextFeed(1) })},
		{"previous-feed", 0, "to the previous feed with unread entries", "count --by feed",
			browse(func(b *browser) effects { return b.nextFeed(-1) })},
		{"back", 0, "leave a search, an entry or the list", "", browse((*browser).back)},
		{"quit", 0, "leave an entry or the list; in the feeds: end", "", quit},
	}
}

// moves returns the actions that move the cursor.
func moves() []action {
	return []action{
		{"down", 0, "one line down", "", times(func(b *browser, n int) effects { return b.move(n) })},
		{"up", 0, "one line up", "", times(func(b *browser, n int) effects { return b.move(-n) })},
		{"half-down", 0, "half a page down", "", times(func(b *browser,
			n int) effects {
			return b.move(n * b.halfPage())
		})},
		{"half-up", 0, "half a page up", "", times(func(b *browser,
			n int) effects {
			return b.move(-n * b.halfPage())
		})},
		{"page-down", 0, "a page down", "", times(func(b *browser, n int) effects { return b.move(n * b.fullPage()) })},
		{"page-up", 0, "a page up", "", times(func(b *browser, n int) effects { return b.move(-n * b.fullPage()) })},
		{"scroll-down", 0, "the text one line down, from any pane", "", times((*browser).scroll)},
		{"scroll-up", 0, "the text one line up", "", times(func(b *browser, n int) effects { return b.scroll(-n) })},
		{"top", 0, "to the first line, or to line N", "",
			times(func(b *browser, n int) effects { return b.to(n - 1) })},
		{"bottom", 0, "to the last line, or to line N", "", bottom},
		{"quit-now", 0, "end", "", end},
		{"next-pane", 0, "to the next pane", "", browse(func(b *browser) effects { return b.pane(1) })},
		{"previous-pane", 0, "to the previous pane", "", browse(func(b *browser) effects { return b.pane(-1) })},
		{"zoom", 0, "show this pane alone, or all panes", "", browse((*browser).toggleZoom)},
		{"fold", 0, "close or open a folder", "", browse((*browser).fold)},
	}
}

// entryActions returns the actions on the chosen entry.
func entryActions() []action {
	return []action{
		{"toggle-read", 0, "read or unread", "mark --set S, --clear S", toggle('S')},
		{"read", 0, "mark as read", "mark --set S", mark("S", "")},
		{"unread", 0, "mark as unread", "mark --clear S", mark("", "S")},
		{"toggle-flagged", 0, "flagged or not", "mark --set F, --clear F", toggle('F')},
		{"flags", 1, "set and clear flags: +Fa-S", "mark --set Fa --clear S", setFlags},
		{"read-all", 0, "mark all that is listed as read; in All and in folders after a question",
			"ls -o path QUERY | mark --set S -", readAll},
		{"trash", 0, "mark as trashed", "rm", trash},
		{"undo", 0, "take back the last command", "undo", undo},
		{"browser", 0, "open the entry in the browser; with N, its link N", "open --keep, open --keep --link N",
			openEntry},
		{"link", 1, "open a link by its number", "open --keep --link N", openLink},
		{"play", 0, "play the enclosure; with N, number N", "play --keep --enclosure N", play},
		{"picture", 0, "fetch a picture of the entry and show it; again: the next", "open --keep --link N",
			showPicture},
		{"feed-text", 0, "switch between the page's article and the feed's own text", "show --feed-text", feedText},
	}
}

// listActions returns the actions on lists and on the screen.
func listActions() []action {
	return []action{
		{"search", 1, "search in the list while you type (lektor-query(7)); in an entry: for a text", "ls -a QUERY",
			search},
		{"save-query", 1, "save the search as a folder", "echo QUERY >etc/view/query/NAME", saveQuery},
		{"all", 0, "list read entries too, or unread entries only", "ls -a", browse((*browser).toggleAll)},
		{"reload", 0, "read everything anew", "", reload},
		{"messages", 0, "all messages as a whole: of the last line, and of fetches", "lektor-fetch ls --broken",
			messages},
		{"repeat", 0, "say the line of the cursor again", "", repeat},
		{"redraw", 0, "draw the screen anew", "", func(*model, keys.Call) tea.Cmd { return tea.ClearScreen }},
		{"suspend", 0, "stop, until the shell's fg", "", suspend},
		{"help", 0, "the keys", "", help},
	}
}

// commandActions returns the actions that run commands.
func commandActions() []action {
	return []action{
		{"run", variadic, "run a command on the terminal", "", run},
		{"run-wait", variadic, "run a command, and wait for Enter", "", run},
		{"spawn", variadic, "run a command in the background", "", spawn},
	}
}

// bottom moves to the last line, or with a count to the line of that number.
func bottom(m *model, c keys.Call) tea.Cmd {
	line := 1 << 30
	if c.Count > 0 {
		line = c.Count - 1
	}
	m.apply(m.browser.to(line))
	return nil
}

// quit goes back one pane; from the feeds it ends the reader.
func quit(m *model, c keys.Call) tea.Cmd {
	if m.browser.focus == keys.FeedsPane {
		return end(m, c)
	}
	m.browser.page.find = finder{} // one key leaves the entry
	m.apply(m.browser.back())
	return nil
}

// tooEarly reports whether a key would work on an entry of the list, but its items are those of the
// query before. Then it shows a message.
func tooEarly(m *model) bool {
	early := m.browser.focus == keys.ListPane && m.browser.list.outdated()
	if early {
		m.apply(incomplete)
	}
	return early
}

// needEntry returns the chosen entry. If there is none, it shows a message and ok is false.
func (m *model) needEntry() (ref lektordir.Ref, ok bool) {
	if tooEarly(m) {
		return lektordir.Ref{}, false
	}
	ref, ok = m.browser.chosen()
	if !ok {
		m.say("choose an entry first")
	}
	return ref, ok
}

// needPage returns the open page. If none is open, it shows a message and returns nil. If the
// page is still being read, it returns nil, and c is done when the page is there.
func (m *model) needPage(c keys.Call) *Page {
	p := &m.browser.page
	switch {
	case m.browser.focus != keys.PagePane || !p.open() || p.err != nil:
		m.say("open an entry first")
		return nil
	case p.page == nil:
		p.pending = c
	}
	return p.page
}

// toggle returns an action that clears a flag of the chosen entry if it has it, and sets it otherwise.
func toggle(flag byte) func(*model, keys.Call) tea.Cmd {
	return func(m *model, _ keys.Call) tea.Cmd {
		switch ref, ok := m.needEntry(); {
		case !ok:
		case ref.HasFlag(flag) && (flag != 'S' || !ref.Unread()):
			m.mark("", string(flag))
		default:
			m.mark(string(flag), "")
		}
		return nil
	}
}

// mark sets and clears flags of the chosen entry.
func (m *model) mark(set, unset string) {
	ref, ok := m.needEntry()
	if !ok {
		return
	}
	m.browser.list.readHere[keyOf(ref)] = true
	m.change([]lektordir.Ref{ref}, set, unset, nil)
	if m.browser.focus == keys.ListPane && m.o.Advance && !m.input.moreActions {
		m.apply(m.browser.move(1))
	}
}

// setFlags sets and clears the flags in the word of c, or asks for them.
func setFlags(m *model, c keys.Call) tea.Cmd {
	if _, ok := m.needEntry(); !ok {
		return nil
	}
	if len(c.Words) == 0 {
		m.ask("flags, as +Fa-S: ", "", "flags")
		return nil
	}
	set, unset, err := parseFlags(c.Words[0])
	if err != nil {
		m.fail(err)
		return nil
	}
	m.mark(set, unset)
	return nil
}

// parseFlags parses flags to set and to clear: +Fa-S sets F and a, and clears S. Words can
// replace the letters: +flagged-read.
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
		return "", "", errors.New("no flags: type F for flagged, S for read, T for trashed, or a to z for your own")
	}
	return set, unset, nil
}

// readAll marks the listed entries as read, those of several feeds if the user confirms.
func readAll(m *model, _ keys.Call) tea.Cmd {
	refs, of := listedUnread(m, len(m.browser.list.items)), m.browser.list.of.kind
	switch {
	case refs == nil:
	case of == allNode, of == folderNode:
		confirmRead(m, refs)
	default:
		markRead(m, refs)
	}
	return nil
}

// confirmRead marks entries of the listed node as read, if the user confirms.
func confirmRead(m *model, refs []lektordir.Ref) {
	m.input.confirm(m.Trf("mark %d entries of %s as read?", len(refs), listName(m)), func() tea.Cmd {
		markRead(m, refs)
		return nil
	})
}

// listedUnread returns the unread entries among the first n of the list. If there are none, or
// the list is not complete, it shows a message and returns nil.
func listedUnread(m *model, n int) (refs []lektordir.Ref) {
	if !m.browser.list.complete {
		m.apply(incomplete)
		return nil
	}
	for _, it := range m.browser.list.items[:n] {
		if m.marks.Unread(it.Entry) {
			refs = append(refs, m.marks.Now(it.Ref()))
		}
	}
	if len(refs) == 0 {
		m.say("these entries are read already")
	}
	return refs
}

// markRead marks entries as read; they stay in the list.
func markRead(m *model, refs []lektordir.Ref) {
	for _, r := range refs {
		m.browser.list.readHere[keyOf(r)] = true
	}
	m.say("marking %d entries as read", len(refs))
	m.change(refs, "S", "", func(r work.Result) tea.Cmd {
		m.say("%d entries marked as read; %s undoes it", len(r.Moved), m.o.Keys.Of("undo"))
		return nil
	})
}

// trash marks the chosen entry as trashed, and closes it.
func trash(m *model, _ keys.Call) tea.Cmd {
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	m.browser.closePage()
	m.change([]lektordir.Ref{ref}, "T", "", func(work.Result) tea.Cmd {
		m.say("trashed; %s undoes it", m.o.Keys.Of("undo"))
		return nil
	})
	return nil
}

// undo takes back the last command of any program that marked entries or changed subscriptions.
func undo(m *model, _ keys.Call) tea.Cmd {
	m.marks.Undo(m.tasks.Of(addTask))
	return nil
}

// search asks for a query, and lists the entries that it selects while the user types. If an
// entry has the focus, it asks for a text and searches the entry.
func search(m *model, c keys.Call) tea.Cmd {
	b := &m.browser
	if len(c.Words) == 0 && b.focus == keys.PagePane && b.page.page != nil {
		m.ask("/", "", "").then = searchPage
		return nil
	}
	if len(c.Words) > 0 {
		m.apply(b.search(c.Words[0]))
		return nil
	}
	m.ask("/", b.list.query, "search").before = &beforeSearch{b.list.query, b.focus}
	b.focus = keys.ListPane
	return nil
}

// saveQuery saves the search. It asks for a name if c has none.
func saveQuery(m *model, c keys.Call) tea.Cmd {
	list := &m.browser.list
	switch {
	case list.query == "":
		m.say("no search to save: search first")
	case len(c.Words) == 0:
		m.ask("save as: ", "", "save-query")
	default:
		m.marks.Save(strings.TrimSpace(c.Words[0]), listSpec{of: list.of, query: list.query}.text())
	}
	return nil
}

// reload reads everything again.
func reload(m *model, _ keys.Call) tea.Cmd {
	m.requestScan(anyFeed)
	m.scan.next.recheck = true
	clear(m.rows)
	m.apply(m.browser.reread())
	return readLook(m)
}

// feedText switches between the text of the feed and the article of the page.
func feedText(m *model, c keys.Call) tea.Cmd {
	page := m.needPage(c)
	if page == nil {
		return nil
	}
	if !page.HasArticle {
		m.say("the entry has only the text of its feed")
		return nil
	}
	m.say("the article of the page")
	if m.browser.page.toggleFeedText() {
		m.say("the text of the feed; %s shows the article of the page", m.o.Keys.Of("feed-text"))
	}
	return nil
}

// repeat says the line of the cursor again: as a line with --plain, else in the last line.
func repeat(m *model, _ keys.Call) tea.Cmd {
	if m.voice != nil {
		m.voice.forget()
		return nil
	}
	at, known := entryLine(m, true)
	if m.browser.focus == keys.FeedsPane {
		at, known = nodeLine(m)
	}
	if known && m.input.menu == nil {
		m.say("%s", at)
	}
	return nil
}

// suspend stops the reader until the shell resumes it.
func suspend(m *model, _ keys.Call) tea.Cmd {
	send, t := m.send, m.terminal
	return inOrder(m.dropPicture(), tea.Exec(stopping{}, func(err error) tea.Msg {
		go send(t.size()) // the size may have changed; in a goroutine, as the library waits for this callback
		return statusMsg{"", err}
	}))
}

// check returns an error if there is no such action or it does not take these words.
func check(c keys.Call) error {
	if c.Action == "none" {
		return nil
	}
	a, ok := actionOf(c.Action)
	switch {
	case !ok:
		return fmt.Errorf("there is no action %q", c.Action)
	case a.words == 0 && len(c.Words) > 0:
		return fmt.Errorf("%s takes no words", c.Action)
	case a.words == 1 && len(c.Words) > 1:
		return fmt.Errorf("%s takes one word", c.Action)
	case a.words == variadic && len(c.Words) == 0:
		return fmt.Errorf("%s takes a command", c.Action)
	}
	return nil
}

// ParseKeys parses a file of keys; name is its name in messages.
func ParseKeys(name string, text []byte) *keys.Keys { return keys.Parse(name, text, check) }

// RunsCommands reports whether a key runs a command.
func RunsCommands(k *keys.Keys) bool {
	for _, b := range k.Bound {
		for _, c := range b {
			_, piped := pipeForm(c.Words)
			if a, _ := actionOf(c.Action); a.words == variadic || a.words == optional && len(piped) > 0 {
				return true
			}
		}
	}
	return false
}
