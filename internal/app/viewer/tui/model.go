package tui

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// model is all that the screen shows. It belongs to the goroutine of the screen, which
// never waits: work that takes long is a [tea.Cmd], and its answer comes as a message.
type model struct {
	world
	browser  browser
	marks    marks
	scan     job[scanRequest]
	lister   job[listRequest]
	pager    job[pageRequest]
	listTook time.Duration
	dates    learning
	rows     map[key]*Row // nil while one is read
	input    input
	status   status
	shown    picture
	clock    *drawClock
	defect   *defect // that ended the reader
}

// world is everything outside of the model. It does not change.
type world struct {
	ctx      context.Context
	disk     Disk
	o        *Options
	terminal *tty
	send     func(tea.Msg)
	program  *tea.Program // nil in tests
	began    time.Time    // when the first scan began
	retry    time.Duration
	after    func(time.Duration, tea.Msg) tea.Cmd // returns a message after a time
	queue    *changeQueue
	hears    func() tea.Msg // returns the next changes of the lektor-dir
}

// status is the message in the last line.
type status struct {
	text    string
	isError bool
}

// learning is the job that makes dates known.
type learning struct {
	state    jobState
	progress string
}

// The requests of the three jobs.
type (
	scanRequest struct {
		changed map[string]bool // feeds, "" for all
		known   []Feed          // nil if they have to be read
	}
	listRequest struct{ keepOldRows bool }
	pageRequest struct{ width int }
)

// The answers to them.
type (
	overviewMsg struct {
		overview *Overview
		err      error
	}
	snapshotMsg struct {
		snapshot *snapshot
		request  *scanRequest
		err      error
	}
	scanMsg struct{} // the pause after a scan is over
	listMsg struct {
		id      int
		request *listRequest
		partial []*item     // entries that a search found until now
		made    *sortedList // the whole list; nil if it is not complete or there is an error
		took    time.Duration
		err     error
	}
	pageMsg struct {
		id    int
		page  *Page
		lines []string
		err   error
	}
	rowsMsg struct {
		keys []key
		rows []Row
	}
	learnMsg struct {
		progress string
		done     bool
		err      error
	}
	changedMsg struct{ feeds map[string]bool }
	suspendMsg struct{}
	redrawMsg  struct{}
	// statusMsg is a message for the last line.
	statusMsg struct {
		text string
		err  error
	}
)

func newModel(ctx context.Context, d Disk, o *Options) *model {
	if o.Date == nil {
		o.Date = func(t time.Time) string { return t.Format(time.DateOnly) }
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	m := &model{world: world{ctx: ctx, disk: d, o: o, terminal: newTTY(o.Out), began: time.Now(), retry: retry, after: later, queue: newChangeQueue()}}
	m.hears = func() tea.Msg { return m.queue.wait(ctx) }
	m.browser = browser{marks: &m.marks, tree: tree{closed: map[id]bool{}}, list: list{readHere: map[key]bool{}}, textMost: o.Width}
	m.rows = map[key]*Row{}
	m.scan.next = &scanRequest{changed: map[string]bool{"": true}}
	if n := len(o.Keys.Errs); n > 0 {
		m.status = status{o.Keys.Errs[0].Error(), true}
	}
	return m
}

// later returns a message after a time.
func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// firstRows is how many entries an overview shows: what a person sees, and pages through,
// before all entries are known.
const firstRows = 200

// Init begins with the overview. The first scan waits for it.
func (m *model) Init() tea.Cmd {
	m.scan.state = running
	ctx, d := m.ctx, m.disk
	return guarded(tea.Batch(m.askGraphics(), func() tea.Msg {
		o, err := d.Overview(ctx, firstRows)
		return overviewMsg{o, err}
	}))
}

// Update takes a message. Then the jobs begin for which it left a request.
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
	m.browser.follow()
	return m, guarded(tea.Batch(cmd, m.beginChange(), m.beginScan(), m.beginList(), m.beginPage(), m.readRows()))
}

func (m *model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.browser.width, m.browser.height = msg.Width, msg.Height
		// The library forgets what it draws into columns that are new (its renderer copies
		// lines into the old, narrower ones), and would leave it on the screen. When that is
		// done everything is drawn once more.
		return tea.Batch(m.dropPicture(), m.after(6*frame, redrawMsg{}), m.after(40*frame, redrawMsg{}))
	case redrawMsg:
		if !m.shown.on {
			return tea.ClearScreen
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseMsg:
		return m.mouse(msg)
	case suspendMsg:
		return suspend(m, call{})
	case overviewMsg:
		m.takeOverview(msg)
	case snapshotMsg:
		return m.takeSnapshot(msg)
	case scanMsg:
		m.scan.end()
	case listMsg:
		return m.takeList(msg)
	case pageMsg:
		if m.pager.awaits(msg.id) {
			m.pager.end()
			return m.do(m.browser.takePage(msg.page, msg.lines, msg.err))
		}
	case rowsMsg:
		m.takeRows(msg)
	case learnMsg:
		m.takeDates(msg)
	case startMsg:
		return m.start(msg)
	case changeMsg:
		m.takeChange(msg)
	case changedMsg:
		m.wantScan(msg.feeds)
		return m.hears
	case statusMsg:
		m.say("%s", Plain(msg.text))
		if msg.err != nil {
			m.fail(msg.err)
		}
	default:
		return m.graphicsMsg(msg)
	}
	return nil
}

// apply does what a change of the browser asks for.
func (m *model) apply(e effects) {
	if e.say != "" {
		m.say("%s", e.say)
	}
	if e.list {
		m.browser.list.complete = false
		m.lister.replace(listRequest{})
	}
	if e.read {
		m.change([]lektordir.Ref{m.browser.page.ref}, "S", "")
	}
}

// framesPerSecond is how often the library looks whether there is something to draw, the
// most that it can: at its default a key waits for up to 17 ms.
const framesPerSecond = 120

// frame is the time between two drawings.
const frame = time.Second / framesPerSecond

// say puts a message into the last line.
func (m *model) say(format string, args ...any) {
	m.status = status{fmt.Sprintf(format, args...), false}
}

// fail puts an error into the last line.
func (m *model) fail(err error) {
	if m.ctx.Err() == nil {
		m.status = status{err.Error(), true}
	}
}

// retry is how long after a failure something is tried again.
const retry = 5 * time.Second

// pause is the least time between two scans, so that hundreds of arrivals are seen in tens.
const pause = 100 * time.Millisecond

// takeOverview shows an overview, and lets the first scan begin.
func (m *model) takeOverview(msg overviewMsg) {
	m.scan.end()
	if msg.err != nil {
		m.fail(msg.err)
	}
	o := msg.overview
	if o == nil {
		return
	}
	m.scan.next.known = o.Feeds
	b := &m.browser
	b.snapshot = countsSnapshot(o)
	b.arrangeTree()
	m.apply(b.choose(id{kind: allNode}))
	for _, e := range o.Newest {
		b.list.items = append(b.list.items, &item{&e.Ref, e.Date})
		m.rows[keyOf(e.Ref)] = &e.Row
	}
}

// wantScan asks for a scan of feeds.
func (m *model) wantScan(feeds map[string]bool) {
	if m.scan.next == nil {
		m.scan.next = &scanRequest{changed: map[string]bool{}}
	}
	maps.Copy(m.scan.next.changed, feeds)
}

// beginScan looks for what has changed.
func (m *model) beginScan() tea.Cmd {
	ctx, r, id := m.scan.begin(m.ctx)
	if r == nil {
		return nil
	}
	m.marks.scanBegins(id)
	d, old := m.disk, m.browser.snapshot
	return func() tea.Msg {
		var s *snapshot
		var work workers.Group
		if r.known != nil {
			// The overview came from the index, which knows dates too. With them the entries that
			// it shows stay where they are.
			work.Go(func() error {
				_ = d.Learn(ctx, nil, func(string, int, int) {})
				return nil
			})
		}
		work.Go(func() (err error) {
			if r.changed[""] || old == nil || old.countsOnly {
				s, err = newSnapshot(ctx, d, r.known)
			} else {
				s, err = old.with(ctx, d, slices.Sorted(maps.Keys(r.changed)))
			}
			return err
		})
		err := work.Wait()
		if err == nil {
			s.scan = id
		}
		return snapshotMsg{s, r, err}
	}
}

// takeSnapshot shows a snapshot, and asks for the list again if it may have changed. After
// an error the old one stays on the screen.
func (m *model) takeSnapshot(msg snapshotMsg) tea.Cmd {
	if msg.err != nil {
		m.fail(msg.err)
		m.wantScan(msg.request.changed)
		return m.after(m.retry, scanMsg{})
	}
	b := &m.browser
	old := b.snapshot
	first := old == nil || old.countsOnly
	b.snapshot = msg.snapshot
	b.arrangeTree()
	switch {
	case old == nil:
		m.apply(b.choose(id{kind: allNode}))
	case first || msg.request.changed[""] || b.listHas(msg.request.changed):
		m.listAgain()
	default:
		m.marks.listed(msg.snapshot.scan)
	}
	again := m.after(max(pause, 3*m.listTook), scanMsg{})
	if first {
		return tea.Batch(again, m.watch, m.hears)
	}
	return again
}

// listAgain asks for the same list again, after something changed. A list that is being
// made is shown before, so that arrivals do not keep it from being seen.
func (m *model) listAgain() {
	m.browser.list.complete = false
	if m.lister.next == nil {
		m.lister.next = &listRequest{keepOldRows: true}
	}
}

// beginList makes the list that the browser wants. It waits until all entries are known.
func (m *model) beginList() tea.Cmd {
	b := &m.browser
	if b.snapshot == nil || b.snapshot.countsOnly {
		return nil
	}
	ctx, r, id := m.lister.begin(m.ctx)
	if r == nil {
		return nil
	}
	w := listWork{listSpec: b.list.listSpec, disk: m.disk, snapshot: b.snapshot, readHere: maps.Clone(b.list.readHere), old: b.list.sorted}
	send := m.send
	return func() tea.Msg {
		began := time.Now()
		made, err := w.make(ctx, func(found []*item) { send(listMsg{id: id, request: r, partial: found}) })
		return listMsg{id: id, request: r, made: made, took: time.Since(began), err: err}
	}
}

// takeList shows a list, or the part of it that a search found until now.
func (m *model) takeList(msg listMsg) tea.Cmd {
	b, wanted := &m.browser, m.lister.awaits(msg.id)
	if msg.made == nil && msg.err == nil {
		// Rows of the same search stay until it has found as many again.
		if wanted && (!msg.request.keepOldRows || len(msg.partial) >= len(b.list.items)) {
			b.take(msg.partial)
		}
		return nil
	}
	m.lister.end()
	if !wanted {
		return nil
	}
	m.listTook = msg.took
	if msg.made != nil {
		m.marks.listed(msg.made.snapshot.scan)
	}
	m.apply(b.listed(msg.made, msg.err))
	b.list.complete = m.lister.next == nil
	if msg.made != nil && !msg.made.dated {
		return m.learn(msg.made.items)
	}
	return nil
}

// learn makes the dates of entries known.
func (m *model) learn(items []*item) tea.Cmd {
	if m.dates.state != idle {
		return nil
	}
	m.dates.state = running
	ctx, d, send := m.ctx, m.disk, m.send
	return func() tea.Msg {
		refs := make([]*lektordir.Ref, len(items))
		for i, it := range items {
			refs[i] = it.ref
		}
		var sent time.Time
		err := d.Learn(ctx, refs, func(what string, done, total int) {
			if now := time.Now(); now.Sub(sent) > pause {
				sent = now
				send(learnMsg{progress: fmt.Sprintf("%s: %d of %d", what, done, total)})
			}
		})
		return learnMsg{done: true, err: err}
	}
}

// takeDates sorts the list again when dates are known.
func (m *model) takeDates(msg learnMsg) {
	m.dates.progress = msg.progress
	if !msg.done {
		return
	}
	m.dates.state = idle
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	m.browser.list.sorted = nil // it has other dates now
	m.listAgain()
}

// beginPage reads the entry that is open and makes its text fit its pane.
func (m *model) beginPage() tea.Cmd {
	p, width := &m.browser.page, m.browser.textWidth()
	if !p.open() || width <= 0 || p.width == width {
		return nil
	}
	// A slow entry must not keep the next one from being read.
	m.pager.end()
	p.width = width
	m.pager.next = &pageRequest{width}
	ctx, r, id := m.pager.begin(m.ctx)
	d, ref, feedText := m.disk, p.ref, p.feedText
	return func() tea.Msg {
		page, err := d.Page(ctx, ref, r.width, feedText)
		msg := pageMsg{id: id, page: page, err: err}
		if err == nil {
			for _, h := range page.Header {
				msg.lines = append(msg.lines, breakLines(h, width)...)
			}
			msg.lines = append(append(msg.lines, ""), breakLines(page.Text, width)...)
		}
		return msg
	}
}

// change marks entries: on the screen at once, on the disk when it is their turn.
func (m *model) change(refs []lektordir.Ref, set, unset string) {
	c, err := newChange(refs, set, unset)
	if err != nil {
		m.fail(err)
		return
	}
	m.marks.add(c)
	if c.kind == trashChange {
		m.browser.hide()
	}
}

// beginChange makes the next change on the disk.
func (m *model) beginChange() tea.Cmd {
	c := m.marks.begin()
	if c == nil {
		return nil
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg { return c.make(ctx, d) }
}

// takeChange asks for a scan of the feeds that were changed.
func (m *model) takeChange(msg changeMsg) {
	m.marks.made(msg.change)
	if msg.said != "" {
		m.say("%s", msg.said)
	}
	if msg.err != nil {
		m.fail(msg.err)
	}
	for _, r := range msg.moved {
		if keyOf(r) == m.browser.page.key {
			m.browser.page.ref = r
		}
	}
	if changed := msg.changed(); len(changed) > 0 {
		m.wantScan(changed)
	}
}

// maxRows is how many rows are remembered.
const maxRows = 4000

// takeRows remembers rows.
func (m *model) takeRows(msg rowsMsg) {
	if len(m.rows) > maxRows {
		clear(m.rows)
	}
	for i, key := range msg.keys {
		m.rows[key] = &msg.rows[i]
	}
}

// readRows reads the rows of the lines on the screen, and of the pages beside it.
func (m *model) readRows() tea.Cmd {
	l, room := &m.browser.list, m.browser.room()
	l.y = window(l.y, l.at, len(l.items), room)
	var refs []lektordir.Ref
	var keys []key
	for i := max(0, l.y-room); i < min(len(l.items), l.y+2*room); i++ {
		ref := *l.items[i].ref
		k := keyOf(ref)
		if _, ok := m.rows[k]; !ok {
			m.rows[k] = nil
			refs, keys = append(refs, ref), append(keys, k)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg { return rowsMsg{keys, d.Rows(ctx, refs)} }
}

// watch reports changes to the queue until the reader ends, those since it began too. If
// they cannot be watched, as in a lektor-dir that is not mounted now, everything is read
// again from time to time, until they can.
func (m *model) watch() tea.Msg {
	for since := m.began; ; {
		err := m.disk.Watch(m.ctx, since, m.queue.add)
		if err == nil || m.ctx.Err() != nil {
			return nil
		}
		m.send(statusMsg{"", fmt.Errorf("what changes is not seen: %w", err)})
		select {
		case <-m.ctx.Done():
			return nil
		case <-time.After(m.retry):
		}
		since = time.Now()
		m.queue.add("")
	}
}

// changeQueue collects the feeds that changed.
type changeQueue struct {
	mu    sync.Mutex
	feeds map[string]bool
	wake  chan struct{} // has room for one
}

func newChangeQueue() *changeQueue {
	return &changeQueue{feeds: map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (q *changeQueue) add(feed string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.feeds[feed] = true
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// changeDebounce is how long changes are collected, so that a fetcher, which makes many at
// once, does not make as many messages, with a key behind them.
const changeDebounce = 20 * time.Millisecond

// wait returns the next changes.
func (q *changeQueue) wait(ctx context.Context) tea.Msg {
	select {
	case <-ctx.Done():
		return nil
	case <-q.wake:
	}
	time.Sleep(changeDebounce)
	q.mu.Lock()
	defer q.mu.Unlock()
	msg := changedMsg{q.feeds}
	q.feeds = map[string]bool{}
	return msg
}
