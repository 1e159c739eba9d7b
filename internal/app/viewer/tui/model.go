package tui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// paneKind is one of the three panes.
type paneKind uint8

const (
	feedsPane paneKind = iota
	listPane
	pagePane
)

// model is all that the screen shows. It belongs to the goroutine of the screen, which
// never waits: what takes longer is a [tea.Cmd], and what that found comes as a message.
type model struct {
	ctx     context.Context
	disk    Disk
	o       *Options
	send    func(tea.Msg)
	program *tea.Program // nil in tests
	clock   *drawClock
	// began is when everything was begun to be read.
	began  time.Time
	retry  time.Duration                        // see the constant
	after  func(time.Duration, tea.Msg) tea.Cmd // gives a message when a time has passed
	heard  *heard
	hears  func() tea.Msg // hear
	defect *defect        // that ended it

	width, height int
	focus         paneKind
	zoom          bool
	pressed       keysPressed
	prompt        *prompt
	helping       *helpPage
	said          string // the message in the last line
	bad           bool   // which tells of a failure
	shown         graphics

	shelf    *shelf  // nil until it is read
	budget   *budget // of each shelf
	changed  map[string]bool
	scanning bool
	tree     tree
	list     list
	page     reading
	rows     map[key]Row
	asked    map[key]bool // rows that are being read

	learns  bool   // dates are being read
	learned string // how much of them

	marks   []job      // that wait for the one at work, the first
	moving  []*marking // in the order of the keys
	settled []*marking // those of moving that the scan at work will see
}

// tree is the first pane.
type tree struct {
	closed map[id]bool
	nodes  []node // that are to be seen
	at, y  int    // the cursor, and the first line of the pane
}

// list is the second pane.
type list struct {
	wanted
	items  []*item
	made   *listing // what the items are, but for what is being marked; nil for a search
	total  int      // entries, where the items are some of them; else 0
	at, y  int
	seq    int // of what was asked for last
	cancel context.CancelFunc
	busy   bool          // there is more to come
	again  bool          // it is to be listed anew when that has come
	works  bool          // one is being made
	later  bool          // and another is to be made when that has come
	began  time.Time     // when it was
	took   time.Duration // how long the last one took
	hold   bool          // it is the same once more
	home   bool          // the cursor goes to the first one that comes
	keep   *kept         // read here, and listed until one leaves
	then   func(*model) tea.Cmd
	err    error // why there is none
}

// reading is the third pane.
type reading struct {
	ref   lektordir.Ref
	key   key // the zero one for none
	page  *Page
	lines []string
	y     int
	seq   int
	width int                  // that it was asked for in
	then  func(*model) tea.Cmd // is done when the page is known
	feeds bool                 // the feed's text is asked for, not the article of the page
	err   error
}

type (
	overviewMsg struct {
		overview *Overview
		err      error
	}
	learnMsg struct {
		said string
		done bool
		err  error
	}
	shelfMsg struct {
		shelf *shelf
		err   error
		all   bool
		feeds []string
	}
	listMsg struct {
		seq   int
		made  *listing // nil for a search
		items []*item
		// marked is what was being marked when it was begun, and is so in the items.
		marked []*moves
		total  int     // see listing
		whole  bool    // all dates are known
		rest   tea.Cmd // brings the rest; nil when this is all
		err    error
	}
	rowsMsg struct {
		keys []key
		rows []Row
	}
	pageMsg struct {
		seq  int
		page *Page
		body []string
		err  error
	}
	changedMsg struct{ feeds []string }
	scanMsg    struct{}
	suspendMsg struct{}
	redrawMsg  struct{}
	// saidMsg is a message for the last line.
	saidMsg struct {
		text string
		err  error
	}
)

func newModel(ctx context.Context, d Disk, o *Options) *model {
	m := &model{
		ctx: ctx, disk: d, o: o, began: time.Now(), retry: retry, changed: map[string]bool{"": true}, rows: map[key]Row{}, asked: map[key]bool{},
		heard: newHeard(), after: later, budget: &budget{cmp.Or(o.most, mostHere), cmp.Or(o.listed, mostListed), &kept{}},
		tree: tree{closed: map[id]bool{}},
	}
	m.hears = m.hear
	m.list.cancel = func() {}
	m.list.keep = m.keepNew()
	if n := len(o.Keys.Errs); n > 0 {
		m.said, m.bad = o.Keys.Errs[0].Error(), true
	}
	return m
}

// keepNew gives what a list begins to keep with.
func (m *model) keepNew() *kept { return &kept{all: m.budget.read} }

// later gives a message when a time has passed.
func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// firstRows is how many entries an overview is asked for: what a person sees, and
// pages through, before the rest is known.
const firstRows = 200

// Init begins with what can be told at once.
func (m *model) Init() tea.Cmd {
	m.scanning = true // when that is told
	ctx, d := m.ctx, m.disk
	return guarded(tea.Batch(m.askGraphics(), func() tea.Msg {
		o, err := d.Overview(ctx, firstRows)
		return overviewMsg{o, err}
	}))
}

// haveOverview shows it, and reads everything.
func (m *model) haveOverview(msg overviewMsg) tea.Cmd {
	m.scanning = false
	if msg.err != nil {
		m.fail(msg.err)
	}
	o := msg.overview
	if o == nil {
		return m.scan()
	}
	m.shelf = bareShelf(o)
	m.arrangeTree()
	m.choose(id{kind: allNode})
	for _, e := range o.Newest {
		m.list.items = append(m.list.items, &item{e.Ref, e.Date})
		m.rows[keyOf(e.Ref)] = e.Row
	}
	return m.scanWith(o.Feeds)
}

// watch tells of changes until the reader ends, those since it began too. Where they
// cannot be watched, as in a lektor-dir that is not mounted now, everything is read
// anew from time to time, until they can.
func (m *model) watch() tea.Msg {
	for since := m.began; ; {
		err := m.disk.Watch(m.ctx, since, m.heard.of)
		if err == nil || m.ctx.Err() != nil {
			return nil
		}
		m.send(saidMsg{"", fmt.Errorf("what changes is not seen: %w", err)})
		select {
		case <-m.ctx.Done():
			return nil
		case <-time.After(m.retry):
		}
		since = time.Now()
		m.heard.of("")
	}
}

// heard are the feeds of which a change was heard.
type heard struct {
	mu    sync.Mutex
	feeds map[string]bool
	wake  chan struct{} // has room for one
}

func newHeard() *heard { return &heard{feeds: map[string]bool{}, wake: make(chan struct{}, 1)} }

func (h *heard) of(feed string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds[feed] = true
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	feeds := slices.Collect(maps.Keys(h.feeds))
	clear(h.feeds)
	return feeds
}

// together is how long changes are collected before they are told, so that a fetcher,
// which makes many at once, does not make as many messages, with a key behind them.
const together = 20 * time.Millisecond

// hear waits for changes, and tells of them.
func (m *model) hear() tea.Msg {
	select {
	case <-m.ctx.Done():
		return nil
	case <-m.heard.wake:
	}
	select {
	case <-m.ctx.Done():
		return nil
	case <-time.After(together):
	}
	return changedMsg{m.heard.take()}
}

// Update takes a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if d, ok := msg.(*defect); ok {
		m.defect = d
		return m, tea.Quit
	}
	if m.clock == nil && m.program != nil {
		m.clock = newDrawClock(m.program)
	}
	m.clock.wake()
	cmd := m.take(msg)
	return m, guarded(tea.Batch(cmd, m.follow(), m.readRows()))
}

func (m *model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		// The library forgets what it draws into columns that are new (its renderer copies
		// lines into the old, narrower ones), and would leave it standing. Drawn once more
		// when that is done, all is as it believes.
		return tea.Batch(m.dropPicture(), m.layOut(), m.after(6*frame, redrawMsg{}), m.after(40*frame, redrawMsg{}))
	case redrawMsg:
		if m.shown.picture == nil {
			return tea.ClearScreen
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseMsg:
		return m.mouse(msg)
	case suspendMsg:
		return m.suspend()
	case overviewMsg:
		return m.haveOverview(msg)
	case learnMsg:
		return m.haveLearned(msg)
	case shelfMsg:
		return m.haveShelf(msg)
	case listMsg:
		return m.haveList(msg)
	case rowsMsg:
		// What was read long ago is read again.
		if len(m.rows) > maxRows {
			clear(m.rows)
		}
		for i, key := range msg.keys {
			delete(m.asked, key)
			m.rows[key] = msg.rows[i]
		}
	case pageMsg:
		return m.havePage(msg)
	case startMsg:
		return m.start(msg)
	case jobMsg:
		return m.haveJob(msg)
	case markedMsg:
		return m.haveMarked(msg)
	case changedMsg:
		for _, feed := range msg.feeds {
			m.changed[feed] = true
		}
		return tea.Batch(m.scan(), m.hears)
	case scanMsg:
		m.scanning = false
		return m.scan()
	case saidMsg:
		m.say("%s", Plain(msg.text))
		if msg.err != nil {
			m.fail(msg.err)
		}
	default:
		return m.graphicsMsg(msg)
	}
	return nil
}

// framesPerSecond is how often the library looks whether there is something to be drawn,
// which is the most that it can: at its default a key waits for as long as 17 ms.
const framesPerSecond = 120

// frame is how long the library waits between two drawings.
const frame = time.Second / framesPerSecond

// maxRows is how many rows are remembered.
const maxRows = 4000

// say puts a message into the last line; fail one about a failure.
func (m *model) say(format string, args ...any) { m.said, m.bad = fmt.Sprintf(format, args...), false }
func (m *model) fail(err error) {
	if m.ctx.Err() == nil {
		m.said, m.bad = err.Error(), true
	}
}

// retry is how long after a failure something is tried again.
const retry = 5 * time.Second

// pause is how long after a look at the directory the next one begins, so that what
// comes in hundreds is seen in tens.
const pause = 100 * time.Millisecond

// scan looks for what has changed, unless that is being done.
func (m *model) scan() tea.Cmd {
	if m.scanning || len(m.changed) == 0 {
		return nil
	}
	return m.scanWith(nil)
}

// scanWith looks for what has changed, when the feeds were read just now, if they are
// not nil.
func (m *model) scanWith(known []Feed) tea.Cmd {
	m.scanning = true
	all := m.changed[""] || m.shelf == nil || m.shelf.bare
	feeds := slices.Sorted(maps.Keys(m.changed))
	clear(m.changed)
	m.settled = slices.DeleteFunc(slices.Clone(m.moving), func(mark *marking) bool { return !mark.done })
	ctx, d, old, budget := m.ctx, m.disk, m.shelf, m.budget
	return func() tea.Msg {
		var s *shelf
		var work workers.Group
		if known != nil {
			// The overview came from what knows the dates, too. With them the entries that
			// it shows stay where they are.
			work.Go(func() error {
				_ = d.Learn(ctx, nil, func(string, int, int) {})
				return nil
			})
		}
		work.Go(func() (err error) {
			if all {
				s, err = newShelf(ctx, d, known, budget)
			} else {
				s, err = old.with(ctx, d, feeds)
			}
			return err
		})
		err := work.Wait()
		return shelfMsg{s, err, all, feeds}
	}
}

func (m *model) haveShelf(msg shelfMsg) tea.Cmd {
	if msg.err != nil {
		// What there was is shown until it can be read.
		m.fail(msg.err)
		for _, hash := range msg.feeds {
			m.changed[hash] = true
		}
		return m.after(m.retry, scanMsg{})
	}
	again := m.after(max(pause, 3*m.list.took), scanMsg{})
	m.moving = slices.DeleteFunc(m.moving, func(mark *marking) bool { return slices.Contains(m.settled, mark) })
	first, shown := m.shelf == nil || m.shelf.bare, m.shelf != nil
	m.shelf = msg.shelf
	m.arrangeTree()
	touched := first || msg.all
	for _, hash := range msg.feeds {
		touched = touched || m.touches(hash)
	}
	if !touched {
		return again
	}
	if first && shown {
		cmd := m.anew()
		m.list.hold = true
		return tea.Batch(again, cmd, m.watch, m.hears)
	}
	if first {
		return tea.Batch(again, m.choose(id{kind: allNode}), m.watch, m.hears)
	}
	return tea.Batch(again, m.relist())
}

// touches tells whether the list may have entries of a feed.
func (m *model) touches(hash string) bool {
	switch of := m.list.of; of.kind {
	case feedNode:
		return of.name == hash
	case folderNode:
		f := m.shelf.feeds[hash]
		return f != nil && inFolder(f.Folders, of.name)
	}
	return true
}

// arrangeTree gives the first pane the nodes that no closed folder hides, and leaves the
// cursor on the one it is on.
func (m *model) arrangeTree() {
	var on id
	if m.tree.at < len(m.tree.nodes) {
		on = m.tree.nodes[m.tree.at].id
	}
	m.tree.nodes = nil
	hidden := -1 // deeper than this is hidden
	for _, n := range m.shelf.nodes {
		if hidden >= 0 && n.depth > hidden {
			continue
		}
		hidden = -1
		if m.tree.closed[n.id] {
			hidden = n.depth
		}
		m.tree.nodes = append(m.tree.nodes, n)
	}
	if at := slices.IndexFunc(m.tree.nodes, func(n node) bool { return n.id == on }); at >= 0 {
		m.tree.at = at
	}
	m.tree.at = min(m.tree.at, len(m.tree.nodes)-1)
}

// choose lists what a node is of.
func (m *model) choose(of id) tea.Cmd {
	if at := slices.IndexFunc(m.tree.nodes, func(n node) bool { return n.id == of }); at >= 0 {
		m.tree.at = at
	}
	l := &m.list
	l.of, l.query = of, ""
	l.items, l.made, l.total, l.at, l.y, l.err = nil, nil, 0, 0, 0, nil
	l.keep = m.keepNew()
	l.then = nil
	return m.anew()
}

// relist lists the same again, after something changed: when what was asked for has
// come, so that no arrival keeps a list from being seen.
func (m *model) relist() tea.Cmd {
	if m.list.busy {
		m.list.again = true
		return nil
	}
	cmd := m.anew()
	m.list.hold = true
	return cmd
}

// anew lists what is wanted now.
func (m *model) anew() tea.Cmd {
	l := &m.list
	l.cancel()
	l.again = false
	if m.shelf == nil {
		return nil
	}
	l.seq++
	l.busy, l.hold = true, false
	if m.shelf.bare {
		return nil // it is made when everything is known
	}
	// What is given up ends soon, and then this begins: two at once would be slower, and
	// in memory at once.
	if l.works {
		l.later = true
		return nil
	}
	return m.makeList()
}

// makeList makes the list that is wanted.
func (m *model) makeList() tea.Cmd {
	l := &m.list
	l.works, l.later, l.began = true, false, time.Now()
	ctx, cancel := context.WithCancel(m.ctx)
	l.cancel = cancel
	s, d, w, keep, seq, marked := m.shelf, m.disk, l.wanted, l.keep, l.seq, m.marked()
	if text := w.text(); text != "" {
		return (&searching{wanted: w, text: text, shelf: s, keep: keep, seq: seq, marked: marked}).step(ctx, d)
	}
	old := l.made
	return func() tea.Msg {
		var made *listing
		ok := false
		if old != nil && old.wanted == w {
			made, ok = old.with(ctx, d, s, keep)
		}
		if !ok {
			var err error
			if made, err = s.list(ctx, d, w, keep); err != nil {
				return listMsg{seq: seq, err: err}
			}
		}
		return listMsg{seq: seq, made: made, items: overlaid(made.items, marked), marked: marked, whole: made.whole, total: made.total}
	}
}

// learn makes the dates known of what is listed, in the background.
func (m *model) learn() tea.Cmd {
	if m.learns {
		return nil
	}
	m.learns = true
	ctx, d, send, items := m.ctx, m.disk, m.send, m.list.items
	return func() tea.Msg {
		refs := make([]lektordir.Ref, len(items))
		for i, it := range items {
			refs[i] = it.ref
		}
		var told time.Time
		err := d.Learn(ctx, refs, func(what string, done, total int) {
			if now := time.Now(); now.Sub(told) > pause {
				told = now
				send(learnMsg{said: fmt.Sprintf("%s: %d of %d", what, done, total)})
			}
		})
		return learnMsg{done: true, err: err}
	}
}

// haveLearned lists anew when dates are known.
func (m *model) haveLearned(msg learnMsg) tea.Cmd {
	m.learned = msg.said
	if !msg.done {
		return nil
	}
	m.learns = false
	if msg.err != nil {
		m.fail(msg.err)
		return nil
	}
	m.list.made = nil // it has other dates now
	return m.relist()
}
