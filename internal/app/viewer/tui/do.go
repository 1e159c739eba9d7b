package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// haveList takes a list that was made.
func (m *model) haveList(msg listMsg) tea.Cmd {
	l := &m.list
	if msg.seq != l.seq { // of what nobody wants any more
		l.works = false
		if l.later {
			return m.makeList()
		}
		return nil
	}
	l.err = msg.err
	var at key
	if it, ok := m.current(); ok && !l.home && (m.focus != feedsPane || l.at > 0) {
		at = keyOf(it.ref)
	}
	if l.home {
		l.at, l.y, l.home = 0, 0, false
	}
	// While the same search is made once more, what it has not found again yet stays.
	if msg.rest == nil || !l.hold || len(msg.items) >= len(l.items) {
		if l.items = msg.items; msg.made != nil {
			l.made = msg.made
		}
		m.markSince(msg.marked)
	}
	l.at = max(0, min(l.at, len(l.items)-1))
	if at != (key{}) {
		if i := find(l.items, l.at, at); i >= 0 {
			// The line of the screen stays, too, but at the top, where one looks for what
			// arrives; unless that is more than there is room for.
			if l.y > 0 || i >= m.room() {
				l.y += i - l.at
			}
			l.at = i
		}
	}
	if msg.rest != nil {
		return msg.rest
	}
	l.busy, l.works, l.took = false, false, time.Since(l.began)
	var cmds []tea.Cmd
	if then := l.then; then != nil {
		l.then = nil
		cmds = append(cmds, then(m))
	}
	if l.again {
		cmds = append(cmds, m.anew())
	}
	if !msg.whole && msg.err == nil {
		cmds = append(cmds, m.learn())
	}
	return tea.Batch(cmds...)
}

// current is the entry that the cursor of the list is on.
func (m *model) current() (*item, bool) {
	l := &m.list
	if l.at < 0 || l.at >= len(l.items) {
		return nil, false
	}
	return l.items[l.at], true
}

// chosen is the entry that a key works on: the one that is read, or that the cursor is
// on.
func (m *model) chosen() (lektordir.Ref, bool) {
	switch m.focus {
	case pagePane:
		return m.page.ref, m.page.key != (key{})
	case listPane:
		if it, ok := m.current(); ok {
			return it.ref, true
		}
	}
	return lektordir.Ref{}, false
}

// onChosen does something with the chosen entry, or says that there is none.
func (m *model) onChosen(do func(ref lektordir.Ref) tea.Cmd) tea.Cmd {
	ref, ok := m.chosen()
	if !ok {
		m.say("choose an entry first")
		return nil
	}
	return do(ref)
}

// onPage does something with what is in the entry that is read, or says that none is.
func (m *model) onPage(do func(p *Page, ref lektordir.Ref) tea.Cmd) tea.Cmd {
	switch p := &m.page; {
	case m.focus != pagePane || p.key == (key{}) || p.err != nil:
		m.say("open an entry first")
		return nil
	case p.page == nil:
		// The key was meant for the entry, which comes.
		p.then = func(m *model) tea.Cmd { return m.onPage(do) }
		return nil
	}
	return do(m.page.page, m.page.ref)
}

// move moves the cursor, or the text.
func (m *model) move(n int) tea.Cmd {
	switch m.focus {
	case feedsPane:
		return m.toNode(m.tree.at + n)
	case listPane:
		m.list.goTo(m.list.at + n)
		return nil
	}
	return m.scroll(n)
}

// scroll moves the text.
func (m *model) scroll(n int) tea.Cmd {
	m.page.y = max(0, min(m.page.y+n, len(m.page.lines)-m.room()))
	return nil
}

// to moves to a line.
func (m *model) to(n int) tea.Cmd {
	switch m.focus {
	case feedsPane:
		return m.toNode(n)
	case listPane:
		m.list.goTo(n)
		return nil
	}
	m.page.y = 0
	return m.scroll(n)
}

// toNode moves the cursor of the first pane, and lists what it is on.
func (m *model) toNode(at int) tea.Cmd {
	at = max(0, min(at, len(m.tree.nodes)-1))
	if at == m.tree.at || m.shelf == nil {
		return nil
	}
	m.tree.at = at
	return m.choose(m.tree.nodes[at].id)
}

// open goes into what the cursor is on.
func (m *model) open() tea.Cmd {
	switch m.focus {
	case feedsPane:
		if m.shelf == nil {
			return nil
		}
		m.focus = listPane
		if n := m.tree.nodes[m.tree.at]; n.id != m.list.of {
			return m.choose(n.id)
		}
		return nil
	case listPane:
		return m.read()
	}
	return m.move(max(1, m.room()-1))
}

// read shows the entry that the cursor of the list is on, and marks it as read.
func (m *model) read() tea.Cmd {
	it, ok := m.current()
	if !ok {
		return nil
	}
	m.focus = pagePane
	m.list.goTo(m.list.at)
	p := &m.page
	seq := p.seq
	*p = reading{ref: it.ref, key: keyOf(it.ref), seq: seq}
	cmds := []tea.Cmd{m.dropPicture(), m.layOut()}
	m.list.keep.add(p.key)
	if it.ref.Unread() {
		cmds = append(cmds, m.change([]lektordir.Ref{it.ref}, "S", ""))
	}
	return tea.Batch(cmds...)
}

// follow shows the entry that the cursor of the list is on, if another one is seen beside it.
// It stays unread.
func (m *model) follow() tea.Cmd {
	it, ok := m.current()
	p := &m.page
	if !ok || m.focus != listPane || p.key == (key{}) || p.key == keyOf(it.ref) || m.textWidth() == 0 {
		return nil
	}
	*p = reading{ref: it.ref, key: keyOf(it.ref), seq: p.seq}
	return tea.Batch(m.dropPicture(), m.layOut())
}

// layOut makes the text of the entry that is read fit its pane.
func (m *model) layOut() tea.Cmd {
	p := &m.page
	width := m.textWidth()
	if p.key == (key{}) || width <= 0 || p.width == width {
		return nil
	}
	p.width = width
	p.seq++
	ctx, d, ref, seq, feeds := m.ctx, m.disk, p.ref, p.seq, p.feeds
	return func() tea.Msg {
		page, err := d.Page(ctx, ref, width, feeds)
		msg := pageMsg{seq: seq, page: page, err: err}
		if err == nil {
			for _, h := range page.Header {
				msg.body = append(msg.body, breakLines(h, width)...)
			}
			msg.body = append(append(msg.body, ""), breakLines(page.Text, width)...)
		}
		return msg
	}
}

func (m *model) havePage(msg pageMsg) tea.Cmd {
	p := &m.page
	if msg.seq != p.seq {
		return nil
	}
	p.err = msg.err
	if msg.err == nil {
		// Where one was in the text, one is when it is wrapped anew.
		if old := len(p.lines); old > 0 {
			p.y = p.y * len(msg.body) / old
		}
		p.page, p.lines = msg.page, msg.body
		p.y = max(0, min(p.y, len(p.lines)-m.room()))
	}
	then := p.then
	if p.then = nil; then == nil {
		return nil
	}
	return then(m)
}

// feedText shows what the feed has in the place of the article of the page, or that again.
func (m *model) feedText() tea.Cmd {
	return m.onPage(func(p *Page, _ lektordir.Ref) tea.Cmd {
		if !p.HasArticle {
			m.say("the entry has no other text than that of its feed")
			return nil
		}
		r := &m.page
		r.feeds = !r.feeds
		r.width, r.y = 0, 0
		m.say("the article of the page")
		if r.feeds {
			m.say("the text of the feed; %s shows the article of the page", m.o.Keys.of("feed-text"))
		}
		return tea.Batch(m.dropPicture(), m.layOut())
	})
}

// back goes out of what one is in.
func (m *model) back() tea.Cmd {
	switch {
	case m.focus == pagePane:
		m.focus = listPane
		return m.dropPicture()
	case m.list.query != "":
		m.list.query = ""
		return m.anew()
	case m.focus == listPane:
		m.focus = feedsPane
	}
	return nil
}

func (m *model) quit() tea.Cmd {
	if m.focus == feedsPane {
		return tea.Quit
	}
	return m.back()
}

// pane goes to another pane.
func (m *model) pane(n int) tea.Cmd {
	panes := []paneKind{feedsPane, listPane}
	if m.page.key != (key{}) {
		panes = append(panes, pagePane)
	}
	at := slices.Index(panes, m.focus)
	m.focus = panes[(at+n+len(panes))%len(panes)]
	return tea.Batch(m.dropPicture(), m.layOut())
}

func (m *model) zoomIt() tea.Cmd {
	m.zoom = !m.zoom
	return tea.Batch(m.dropPicture(), m.layOut())
}

// fold closes a folder, or opens it.
func (m *model) fold() tea.Cmd {
	if m.shelf == nil || m.focus != feedsPane {
		return nil
	}
	of := m.tree.nodes[m.tree.at].id
	if of.kind == feedNode && of.in != "" {
		of = id{kind: folderNode, name: of.in}
	}
	if of.kind != folderNode {
		return nil
	}
	m.tree.closed[of] = !m.tree.closed[of]
	m.tree.at = slices.IndexFunc(m.tree.nodes, func(n node) bool { return n.id == of })
	m.arrangeTree()
	return m.choose(of)
}

// forward goes on reading.
func (m *model) forward() tea.Cmd {
	switch m.focus {
	case feedsPane:
		return m.open()
	case listPane:
		if it, ok := m.current(); ok && it.ref.Unread() {
			return m.read()
		}
		m.focus = pagePane // what comes next is read, and not only found
		cmd := m.nextUnread(1)
		return cmd
	}
	if m.page.y+m.room() < len(m.page.lines) {
		return m.move(max(1, m.room()-1))
	}
	return m.nextUnread(1)
}

// nextUnread goes to the next unread entry, forward or back: in the list, from its other
// end, and then in what follows in the first pane. Who reads an entry reads that one.
func (m *model) nextUnread(by int) tea.Cmd {
	l := &m.list
	for i := 1; i <= len(l.items); i++ {
		at := ((l.at+i*by)%len(l.items) + len(l.items)) % len(l.items)
		if l.items[at].ref.Unread() {
			l.goTo(at)
			if m.focus == pagePane {
				return m.read()
			}
			m.focus = listPane
			return nil
		}
	}
	begin := func(m *model) tea.Cmd {
		if by < 0 {
			l.at = len(l.items)
		} else {
			l.at = -1
		}
		return m.nextUnread(by)
	}
	if l.busy && len(l.items) == 0 {
		l.then = begin // when it is known what is listed
		return nil
	}
	if cmd := m.nextFeed(by); cmd != nil {
		l.then = begin
		return cmd
	}
	if m.focus == pagePane && m.page.key == (key{}) {
		m.focus = listPane
	}
	m.say("there is no unread entry")
	return nil
}

// nextFeed lists the next feed with unread entries, or the one before.
func (m *model) nextFeed(by int) tea.Cmd {
	if m.shelf == nil {
		return nil
	}
	nodes := m.shelf.nodes
	at := slices.IndexFunc(nodes, func(n node) bool { return n.id == m.list.of })
	for i := 1; i < len(nodes); i++ {
		n := nodes[((at+i*by)%len(nodes)+len(nodes))%len(nodes)]
		if n.kind == feedNode && m.hasUnread(n.name) {
			m.show(n)
			return m.choose(n.id)
		}
	}
	return nil
}

// show opens the folders that hide a node.
func (m *model) show(n node) {
	parts := strings.Split(n.in, "/")
	for i := range parts {
		delete(m.tree.closed, id{kind: folderNode, name: strings.Join(parts[:i+1], "/")})
	}
	m.arrangeTree()
}

// nextEntry goes to another entry of the list; who reads one reads that.
func (m *model) nextEntry(n int) tea.Cmd {
	at := m.list.at + n
	if at < 0 || at >= len(m.list.items) {
		m.say("there is no entry beyond this one")
		return nil
	}
	m.list.goTo(at)
	if m.focus == pagePane {
		return m.read()
	}
	m.focus = listPane
	return nil
}

// toggle changes a flag of the chosen entry.
func (m *model) toggle(flag rune) tea.Cmd {
	return m.onChosen(func(ref lektordir.Ref) tea.Cmd {
		has := ref.HasFlag(byte(flag))
		if flag == 'S' {
			has = !ref.Unread()
		}
		if has {
			return m.mark("", string(flag))
		}
		return m.mark(string(flag), "")
	})
}

// mark sets and clears flags of the chosen entry.
func (m *model) mark(set, unset string) tea.Cmd {
	return m.onChosen(func(ref lektordir.Ref) tea.Cmd {
		m.list.keep.add(keyOf(ref))
		cmd := m.change([]lektordir.Ref{ref}, set, unset)
		if m.focus == listPane && m.o.Advance {
			m.move(1)
		}
		return cmd
	})
}

// trash marks the chosen entry as trashed. Who reads it reads the next one then.
func (m *model) trash() tea.Cmd {
	return m.onChosen(func(ref lektordir.Ref) tea.Cmd {
		if m.focus == pagePane {
			m.focus = listPane
			m.page = reading{seq: m.page.seq + 1}
		}
		m.say("trashed; %s brings it back", m.o.Keys.of("undo"))
		return tea.Batch(m.dropPicture(), m.change([]lektordir.Ref{ref}, "T", ""))
	})
}

// undo takes back the last command.
func (m *model) undo() tea.Cmd {
	d := m.disk
	return m.enqueue(&moves{}, func(ctx context.Context) (string, []lektordir.Ref, error) {
		said, moved, err := d.Undo(ctx)
		return said, moved, err
	})
}

// flags sets and clears flags, which it asks for.
func (m *model) flags(words []string) tea.Cmd {
	return m.onChosen(func(lektordir.Ref) tea.Cmd {
		if len(words) == 0 {
			m.ask("flags, as +Fa-S: ", "", func(m *model, text string) tea.Cmd { return m.flags([]string{text}) })
			return nil
		}
		set, unset, err := parseFlags(words[0])
		if err != nil {
			m.fail(err)
			return nil
		}
		return m.mark(set, unset)
	})
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

func (m *model) toggleAll() tea.Cmd {
	m.list.all = !m.list.all
	m.say("unread entries only")
	if m.list.all {
		m.say("read entries, too")
	}
	m.list.made = nil
	m.list.keep = &kept{}
	return m.anew()
}

func (m *model) toggleSort() tea.Cmd {
	m.list.oldest = !m.list.oldest
	m.say("newest first")
	if m.list.oldest {
		m.say("oldest first")
	}
	return m.anew()
}

func (m *model) reload() tea.Cmd {
	m.changed[""] = true
	m.list.made = nil
	clear(m.rows)
	m.list.keep = &kept{}
	m.page.width = 0
	m.say("read anew")
	return tea.Batch(m.scan(), m.layOut())
}

func (m *model) suspend() tea.Cmd {
	send, o := m.send, m.o
	return inOrder(m.dropPicture(), tea.Exec(stopping{}, func(err error) tea.Msg {
		go send(o.size()) // it may be another one; and the library waits for this
		return saidMsg{"", err}
	}))
}

// readRows reads what the lines on the screen, and those of the next one, need.
func (m *model) readRows() tea.Cmd {
	l := &m.list
	room := m.room()
	l.keepOnScreen(room)
	var refs []lektordir.Ref
	var keys []key
	for i := max(0, l.y-room); i < min(len(l.items), l.y+2*room); i++ {
		k := keyOf(l.items[i].ref)
		if _, ok := m.rows[k]; ok || m.asked[k] {
			continue
		}
		m.asked[k] = true
		refs, keys = append(refs, l.items[i].ref), append(keys, k)
	}
	if len(refs) == 0 {
		return nil
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg { return rowsMsg{keys, d.Rows(ctx, refs)} }
}

// goTo puts the cursor where a person wants it: what was asked for before that, and comes
// later, does not take it back to the first entry.
func (l *list) goTo(at int) { l.at, l.home = max(0, min(at, len(l.items)-1)), false }

// keepOnScreen moves the first line so that the cursor is to be seen.
func (l *list) keepOnScreen(room int) { l.y = window(l.y, l.at, len(l.items), room) }

// window gives the first of the lines that a pane shows.
func window(y, at, n, room int) int {
	y = max(min(y, at), at-room+1)
	return max(0, min(y, n-room))
}

// search asks for a query, and lists what it selects while it is being typed.
func (m *model) search() tea.Cmd {
	before, focus := m.list.query, m.focus
	if m.focus == pagePane || m.focus == feedsPane {
		m.focus = listPane
	}
	p := m.ask("/", before, func(m *model, text string) tea.Cmd {
		m.list.query = strings.TrimSpace(text)
		return m.anew()
	})
	p.typed = func(m *model, text string) tea.Cmd {
		m.list.query = strings.TrimSpace(text)
		m.list.home = true
		return m.anew()
	}
	p.left = func(m *model) tea.Cmd {
		m.focus = focus
		if m.list.query == before {
			return nil
		}
		m.list.query = before
		return m.anew()
	}
	return m.dropPicture()
}

// saveQuery saves the search as a query that is listed as a folder is.
func (m *model) saveQuery(words []string) tea.Cmd {
	text := m.list.query
	if text == "" {
		m.say("search first; then it can be saved")
		return nil
	}
	if len(words) == 0 {
		m.ask("save as: ", "", func(m *model, name string) tea.Cmd { return m.saveQuery([]string{name}) })
		return nil
	}
	d, name, whole := m.disk, strings.TrimSpace(words[0]), wanted{of: m.list.of, query: text}.text()
	return m.enqueue(&moves{}, func(ctx context.Context) (string, []lektordir.Ref, error) {
		if err := d.Save(ctx, name, whole); err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("saved as %s", cmp.Or(name, "?")), nil, nil
	})
}
