package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// model is the state that the screen shows. Only the UI goroutine uses it, and that goroutine
// never waits: long work is a [tea.Cmd], and its result arrives as a message.
type model struct {
	world
	jobs
	browser   browser
	marks     work.Queue
	dates     learning
	tasks     work.Tasks
	downloads downloads
	fetching  fetching
	rows      map[key]*Row // nil while the row is being read
	input     input
	status    status
	shown     picture
	clock     *drawClock
	voice     *voice  // nil if the screen is drawn
	defect    *defect // the panic that ended the reader; nil if none did
}

// jobs are the three jobs of the model.
type jobs struct {
	scan     job[scanRequest]
	lister   job[listRequest]
	pager    job[pageRequest]
	listTook time.Duration // how long it took to make the last list
	failure  status        // the error of the last scan, empty if it succeeded
}

// world holds everything outside the model. It does not change while the program runs.
type world struct {
	ctx  context.Context
	disk Disk
	o    *Options
	*texts.Printer
	terminal     *tty
	send         func(tea.Msg)
	program      *tea.Program // nil in tests
	retry        time.Duration
	after        func(time.Duration, tea.Msg) tea.Cmd // sends a message after a delay
	awaitChanges func() tea.Msg                       // waits for changes of the lektor-dir
}

// status is the message in the last line.
type status struct {
	text    string
	isError bool
}

// end shows the message of work that ended. Without one, that of a later key stays.
func (s *status) end(done status) {
	if done.text != "" {
		*s = done
	}
}

// learning is the state of the call of [Disk.Learn].
type learning struct {
	state    jobState
	progress string
}

// The requests of the three jobs.
type (
	listRequest struct{ keepOldRows bool }
	pageRequest struct{ width int }
)

// The results of the three jobs, and the other messages of the model.
type (
	listMsg struct {
		id      int
		request *listRequest
		partial []*item     // entries that a search has found so far
		list    *sortedList // the whole list; nil if it is not complete or there is an error
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
	suspendMsg struct{}
	redrawMsg  struct{}
	// thenMsg is called on the UI goroutine, after work in the background.
	thenMsg func(m *model) tea.Cmd
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
	o.Look, o.Screen = cmp.Or(o.Look, cells.ParseLook("", nil)), cmp.Or(o.Screen, values.New('='))
	if o.Random == nil {
		o.Random = rand.Uint64
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.Report = cmp.Or(o.Report, cmdline.NewStreams("lektor-view", o.In, o.Out, io.Discard).Report)
	m := &model{world: world{ctx: ctx, disk: d, o: o, Printer: texts.New(o.Getenv), terminal: newTTY(o.Out, o.Plain),
		retry: retry, after: sendLater}}
	m.awaitChanges = func() tea.Msg { return changesOf(ctx, d) }
	env := &work.Env{Ctx: ctx, Disk: d, Printer: m.Printer, Send: func(msg tea.Msg) { m.send(msg) }}
	m.marks.Env, m.tasks.Env = env, env
	m.browser = browser{marks: &m.marks, tree: tree{closed: map[id]bool{}},
		list: list{listSpec: listSpec{order: byDate}, readHere: map[key]bool{}}, textMost: o.Width,
		shape: newShape(o.Screen, o.Look.Layout)}
	m.browser.settings = settings{o.Screen, o.Random()}
	o.Look.Use(o.Screen.Get(themeSetting), o.NoColor)
	m.rows = map[key]*Row{}
	if o.Plain {
		m.voice = &voice{out: o.Out, hold: hold}
		m.browser.single = true
	}
	m.requestScan(nil)
	o.Keys.Pane = func() string {
		if m.input.menu != nil {
			return keys.Panes[keys.MenuPane]
		}
		return keys.Panes[m.browser.focus]
	}
	if errs := slices.Concat(o.Keys.Errs, o.Look.Errs); len(errs) > 0 {
		m.status = status{errs[0].Error(), true}
	}
	return m
}

// sendLater sends a message after a delay.
func sendLater(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// Init returns the command that begins to read the lektor-dir.
func (m *model) Init() tea.Cmd {
	return guarded(tea.Batch(m.askGraphics(), m.fetching.settings(m), m.beginScan()))
}

// Update handles a message, and then starts the jobs that the message requested.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if d, ok := msg.(*defect); ok {
		m.defect = d
		return m, tea.Quit
	}
	if m.clock == nil && m.program != nil {
		m.clock = newDrawClock(m.program)
	}
	_, key := msg.(tea.KeyPressMsg)
	m.clock.wake(key)
	before := m.status
	cmd := m.take(msg)
	if m.status != before && m.status.text != "" {
		m.input.keep(m.status.text)
	}
	m.browser.follow()
	return m, guarded(tea.Batch(cmd, m.marks.Begin(), m.beginScan(), m.beginList(), m.beginPage(), m.readRows(),
		m.voice.speak(m, msg)))
}

func (m *model) take(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.browser.width, m.browser.height = msg.Width, msg.Height
		// When the screen becomes wider, the library's renderer copies lines into its old,
		// narrower buffer and loses track of the new columns. So the whole screen is drawn
		// again, twice, in case a slow machine was not done with the resize the first time.
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
		return suspend(m, keys.Call{})
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
	case thenMsg:
		return msg(m)
	case work.Ended:
		return m.takeChanges(msg)
	case changedMsg:
		m.requestScan(nil)
		return m.awaitChanges
	case work.TaskMsg:
		return takeTask(m, msg)
	case statusMsg:
		m.status.end(status{cells.Plain(msg.text), false})
		if msg.err != nil {
			m.fail(msg.err)
		}
	default:
		return m.graphicsMsg(msg)
	}
	return nil
}

// apply carries out the effects of a change of the browser.
func (m *model) apply(e effects) {
	if e.say != "" {
		m.status = status{m.Tr(e.say), false}
	}
	if e.list {
		m.browser.list.complete = false
		m.lister.replace(listRequest{})
	}
	if e.read {
		m.change([]lektordir.Ref{m.browser.page.ref}, "S", "", nil)
	}
}

// framesPerSecond is how often the library draws if something changed. It is the library's
// maximum: at its default of 60, a key waits up to 17 ms.
const framesPerSecond = 120

// frame is the interval between two draws.
const frame = time.Second / framesPerSecond

// say shows a message in the last line.
func (m *model) say(format string, args ...any) {
	m.status = status{m.Trf(format, args...), false}
}

// hintMark is between an error and its hint, as between the messages of lektor-fetch.
const hintMark = "; hint: "

// fail shows an error in the last line, with its hint, unless the reader is ending.
func (m *model) fail(err error) {
	if hint, ok := errors.AsType[*cmdline.HintError](err); ok {
		err = fmt.Errorf("%w%s%s", err, hintMark, hint.Hint)
	}
	if m.ctx.Err() == nil {
		m.status = status{m.Tr(err.Error()), true}
	}
}

// pause is the least delay between two scans, so that one scan sees many arrivals. It is also
// the least interval between two progress messages.
const pause = 100 * time.Millisecond

// listAgain requests the same list again after a change. It does not cancel a list that is
// being made, because no list would be complete while entries keep arriving.
func (m *model) listAgain() {
	m.browser.list.complete = false
	if m.lister.next == nil {
		m.lister.next = &listRequest{keepOldRows: true}
	}
}

// beginList returns the command that makes the requested list, nil if there is no request, a
// list is being made, or the entries are not listed yet.
func (m *model) beginList() tea.Cmd {
	b := &m.browser
	if b.snapshot == nil {
		return nil
	}
	ctx, r, id := m.lister.begin(m.ctx)
	if r == nil {
		return nil
	}
	w := listWork{listSpec: b.list.listSpec, disk: m.disk, snapshot: b.snapshot, readHere: maps.Clone(b.list.readHere),
		old: b.list.sorted}
	send := m.send
	var sent time.Time
	w.progress = func(done, total int) {
		if now := time.Now(); now.Sub(sent) > pause {
			sent = now
			send(learnMsg{progress: m.Trf("sorting by %s: %d of %d", w.by, done, total)})
		}
		if done == total {
			send(learnMsg{})
		}
	}
	return func() tea.Msg {
		began := time.Now()
		list, err := w.make(ctx, func(found []*item) { send(listMsg{id: id, request: r, partial: found}) })
		return listMsg{id: id, request: r, list: list, took: time.Since(began), err: err}
	}
}

// takeList shows a list, or the part of it that a search has found so far.
func (m *model) takeList(msg listMsg) tea.Cmd {
	b, awaited := &m.browser, m.lister.awaits(msg.id)
	if msg.list == nil && msg.err == nil {
		// Old rows of the same list stay until the search has found at least as many.
		if awaited && (!msg.request.keepOldRows || b.list.outdated() || len(msg.partial) >= len(b.list.items)) {
			b.takeProvisional(msg.partial)
		}
		return nil
	}
	m.lister.end()
	if !awaited {
		return nil
	}
	m.listTook = msg.took
	switch {
	case msg.list == nil:
	case m.lister.next == nil: // later scans saw no change of the list
		m.marks.Listed(b.snapshot.scan)
	default:
		m.marks.Listed(msg.list.snapshot.scan)
	}
	if msg.list != nil && msg.list.snapshot.partial {
		b.takeProvisional(msg.list.items)
		return nil
	}
	m.apply(b.listed(msg.list, msg.err))
	b.list.complete = m.lister.next == nil
	if msg.list != nil && !msg.list.dated {
		return m.learn(msg.list.items)
	}
	return nil
}

// learn starts [Disk.Learn] for the entries of a list, unless it is running.
func (m *model) learn(items []*item) tea.Cmd {
	if m.dates.state != idle {
		return nil
	}
	m.dates.state = running
	ctx, d, send, w := m.ctx, m.disk, m.send, &m.world
	return func() tea.Msg {
		entries := make([]catalog.Entry, len(items))
		for i, it := range items {
			entries[i] = it.Entry
		}
		var sent time.Time
		err := d.Learn(ctx, entries, func(what string, done, total int) {
			if now := time.Now(); now.Sub(sent) > pause {
				sent = now
				send(learnMsg{progress: w.Trf("%s: %d of %d", w.Tr(what), done, total)})
			}
		})
		return learnMsg{done: true, err: err}
	}
}

// takeDates shows the progress of learn, and requests the list again when learn is done.
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
	m.browser.list.sorted = nil // its dates are stale
	// A running request has the stale list. Its dates would be missing again, and be learned again.
	m.lister.abandon()
	m.listAgain()
}

// beginPage returns the command that reads the open entry and wraps its text for the width of
// the pane, nil if that is done or no text is shown.
func (m *model) beginPage() tea.Cmd {
	p, width := &m.browser.page, m.browser.textWidth()
	if !p.open() || width <= 0 || p.width == width {
		return nil
	}
	// Cancel the read of another entry: a slow one must not delay this one.
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
				msg.lines = append(msg.lines, cells.BreakLines(h, width)...)
			}
			msg.lines = append(append(msg.lines, ""), cells.BreakLines(page.Text, width)...)
		}
		return msg
	}
}

// change sets and clears flags: on the screen at once, on the disk in the order of the keys. If then
// is not nil, it is called when the disk has made the change.
func (m *model) change(refs []lektordir.Ref, set, unset string, then func(r work.Result) tea.Cmd) {
	c, err := m.marks.Flags(refs, set, unset)
	if err != nil {
		m.fail(err)
		return
	}
	c.Then = then
	if c.Trashes() {
		m.browser.hide()
	}
}

// takeChanges handles the end of a change, and before that the ends of those before it.
func (m *model) takeChanges(last work.Ended) tea.Cmd {
	var cmds []tea.Cmd
	for _, e := range m.marks.Take(last) {
		cmds = append(cmds, takeChange(m, e))
	}
	return tea.Batch(cmds...)
}

// takeChange handles a change that the disk made, and requests a scan of the feeds it touched.
func takeChange(m *model, e work.Ended) (cmd tea.Cmd) {
	if e.Message != "" {
		m.say("%s", e.Message)
	}
	switch {
	case e.Err != nil:
		m.fail(e.Err)
	case e.Then != nil:
		cmd = e.Then(e.Result)
	}
	for _, r := range e.Moved {
		if keyOf(r) == m.browser.page.key {
			m.browser.page.ref = r
		}
	}
	if changed := e.Changed(); len(changed) > 0 {
		m.requestScan(changed)
	}
	return cmd
}

// takeTask handles the progress or the end of a task. At the end it shows the message for the user, if
// there is one.
func takeTask(m *model, msg work.TaskMsg) tea.Cmd {
	m.tasks.Take(msg)
	switch {
	case !msg.Ended:
	case msg.Task.Then != nil:
		return msg.Task.Then(msg.Err)
	case msg.Err != nil:
		m.status = status{msg.Err.Error(), true}
	default:
		m.status.end(status{msg.Done, false})
	}
	return nil
}

// maxRows is the number of rows in m.rows above which all are dropped.
const maxRows = 4000

// takeRows adds rows to m.rows.
func (m *model) takeRows(msg rowsMsg) {
	if len(m.rows) > maxRows {
		clear(m.rows)
	}
	for i, key := range msg.keys {
		m.rows[key] = &msg.rows[i]
	}
}

// readRows returns the command that reads the missing rows of the lines on the screen and of
// one page before and after them, nil if none is missing.
func (m *model) readRows() tea.Cmd {
	l, lines := &m.browser.list, linesOf(&m.browser, keys.ListPane)
	l.y = cells.Window(l.y, l.at, len(l.items), lines)
	var refs []lektordir.Ref
	var keys []key
	for i := max(0, l.y-lines); i < min(len(l.items), l.y+2*lines); i++ {
		k := l.items[i].ID()
		if _, ok := m.rows[k]; !ok {
			m.rows[k] = nil
			refs, keys = append(refs, l.items[i].Ref()), append(keys, k)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg { return rowsMsg{keys, d.Rows(ctx, refs)} }
}
