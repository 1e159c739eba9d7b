package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/scene"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// memory is a lektor-dir in memory. Each of its methods waits until the test sends to gate.
type memory struct {
	gate chan struct{} // each call receives once; if it is closed, no call waits

	mu    sync.Mutex
	refs  []lektordir.Ref
	marks []string // changes that were made, in order
	clips string   // file that gets a line for each text that is copied
	fail  error
	// fetcher takes the place of lektor-fetch; nil fails.
	fetcher func(args []string, line func(string)) error
	// screen holds the remembered settings; nil drops them.
	screen *values.Values
	names  names
	// unsubscribed is set if the subscription of the feed f has ended.
	unsubscribed atomic.Bool
}

// feeder is a disk that has feeds and entries.
type feeder interface {
	Feeds(context.Context) ([]tree.Feed, error)
	List(context.Context) (map[string][]lektordir.Ref, error)
}

// names makes snapshots of a disk. Each shares with the one before the feeds that did not change.
type names struct {
	mu   sync.Mutex
	last *catalog.Snapshot
	refs map[string][]lektordir.Ref
}

func (n *names) now(ctx context.Context, d feeder) (*catalog.Snapshot, error) {
	feeds, err := d.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	lists, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	abouts := map[string]*subscriptions.About{}
	for _, f := range feeds {
		abouts[f.Hash] = &subscriptions.About{Feed: &lektordir.Feed{Hash: f.Hash, Name: f.Title}, Folders: f.Folders, Paused: f.Paused, Subscribed: f.Subscribed}
		if _, ok := lists[f.Hash]; !ok {
			lists[f.Hash] = nil
		}
	}
	s, same := &catalog.Snapshot{}, n.last != nil && len(lists) == len(n.last.Feeds)
	for _, hash := range slices.Sorted(maps.Keys(lists)) {
		var f *catalog.Feed
		if n.last != nil {
			f = n.last.Feed(hash)
		}
		if f == nil || !reflect.DeepEqual(f.About, abouts[hash]) || !slices.Equal(lists[hash], n.refs[hash]) {
			f, same = catalog.NewFeed(hash, abouts[hash], lists[hash]), false
		}
		s.Feeds = append(s.Feeds, f)
	}
	if !same {
		n.last, n.refs = s, lists
	}
	return n.last, nil
}

func newMemory(n int) *memory {
	d := &memory{gate: make(chan struct{})}
	for i := range n {
		d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: fmt.Sprintf("17000000%02d.1.h", i), Place: lektordir.New})
	}
	return d
}

// hold makes calls wait for a new gate.
func (d *memory) hold() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate = make(chan struct{})
}

func (d *memory) wait(ctx context.Context) {
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

func (d *memory) Feeds(ctx context.Context) ([]tree.Feed, error) {
	d.wait(ctx)
	return []tree.Feed{{Hash: "f", Title: "Feed", Folders: []string{"News / Inner"}, Subscribed: !d.unsubscribed.Load()}, {Hash: "g", Title: "Empty"}}, nil
}

func (d *memory) Now(ctx context.Context, _ catalog.Part) (*catalog.Snapshot, error) {
	return d.names.now(ctx, d)
}

func (d *memory) Await(ctx context.Context) { <-ctx.Done() }

func (d *memory) List(ctx context.Context) (map[string][]lektordir.Ref, error) {
	d.wait(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	return map[string][]lektordir.Ref{"f": slices.DeleteFunc(slices.Clone(d.refs), lektordir.Ref.Trashed)}, nil
}

func (d *memory) Counts(context.Context) (map[string]entrystore.Tally, error) { return nil, nil }
func (d *memory) Learn(context.Context, []catalog.Entry, func(string, int, int)) error {
	return nil
}

func (d *memory) Dates(ctx context.Context, entries []catalog.Entry) ([]list.Date, bool) {
	dates := make([]list.Date, len(entries))
	for i, e := range entries {
		dates[i] = list.DateOf(e.Ref().Delivered())
	}
	return dates, true
}

func (d *memory) Titles(ctx context.Context, refs []lektordir.Ref) []string {
	d.wait(ctx)
	rows := make([]string, len(refs))
	for i, r := range refs {
		rows[i] = "Title " + r.Unique[8:10]
	}
	return rows
}

func (d *memory) SortTexts(ctx context.Context, entries []catalog.Entry, by string) []string {
	d.wait(ctx)
	texts := make([]string, len(entries))
	for i, e := range entries {
		r := e.Ref()
		texts[i] = r.Unique[9:10] + r.Unique[8:9] // by the last digit
	}
	return texts
}

func (d *memory) Search(ctx context.Context, text string, entries func(flags bool) []catalog.Entry) ([]catalog.Entry, error) {
	if text == "bad:" {
		return nil, errors.New("query, column 1: bad")
	}
	d.wait(ctx)
	return slices.DeleteFunc(entries(false), func(e catalog.Entry) bool { return !strings.Contains(e.Ref().Unique, text) }), nil
}

func (d *memory) Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*page.Entry, error) {
	d.wait(ctx)
	return &page.Entry{Header: []string{"Title: " + ref.Unique}, Text: strings.Repeat("word\n", 100), Links: []string{"https://x.example/"}, Pictures: []string{"https://x.example/p.png"}}, nil
}

func (d *memory) move(refs []lektordir.Ref, set, unset string) ([]lektordir.Ref, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	at := map[string]int{}
	for i, have := range d.refs {
		at[have.Unique] = i
	}
	var moved []lektordir.Ref
	for _, r := range refs {
		if i, ok := at[r.Unique]; ok {
			d.refs[i], _ = d.refs[i].WithFlags(set, unset)
			d.marks = append(d.marks, r.Unique[8:10]+"+"+set+"-"+unset)
			moved = append(moved, d.refs[i])
		}
	}
	return moved, nil
}

func (d *memory) Mark(ctx context.Context, refs []lektordir.Ref, set, unset string, done func()) ([]lektordir.Ref, error) {
	d.wait(ctx)
	defer func() {
		for range refs {
			done()
		}
	}()
	return d.move(refs, set, unset)
}

func (d *memory) Undo(ctx context.Context) (string, []lektordir.Ref, error) {
	d.wait(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks = append(d.marks, "undo")
	return "taken back", nil, nil
}

func (d *memory) Saved(context.Context) ([]entrystore.Saved, error) { return nil, nil }
func (d *memory) Save(context.Context, string, string) error        { return nil }
func (d *memory) Look(_ context.Context, typed string) (*cells.Look, error) {
	return cells.ParseLook("look", []byte(typed)), nil
}
func (d *memory) Remember(_ context.Context, name, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.screen != nil {
		d.screen.Set(name, value)
	}
	return nil
}
func (d *memory) Command(_ context.Context, _ lektordir.Ref, of page.Program, words []string) ([]string, []string, error) {
	switch of {
	case page.FilePlayer:
		return nil, nil, errors.New("would play " + words[0])
	case page.URLPlayer, page.Browser:
		return []string{"true"}, nil, nil
	case page.Clipboard:
		return []string{"sh", "-c", `echo "clip $(cat)" >>"$1"`, "sh", d.clips}, nil, nil
	case page.Bookmarker:
		return []string{"echo", "kept"}, nil, nil
	}
	return words, nil, nil
}
func (d *memory) Content(_ context.Context, _ lektordir.Ref, form string) ([]byte, error) {
	return []byte("the " + form), nil
}
func (d *memory) SaveName(_ context.Context, _ lektordir.Ref, dir string) string {
	return dir + "x.txt"
}
func (d *memory) SaveEntry(_ context.Context, _ lektordir.Ref, path string, replace bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !replace && slices.Contains(d.marks, "save "+path) {
		return fs.ErrExist
	}
	d.marks = append(d.marks, "save "+path)
	return nil
}
func (d *memory) Download(ctx context.Context, _ lektordir.Ref, url, dir string, progress func(int64, int64)) (string, error) {
	progress(50, 200)
	d.wait(ctx)
	return dir + "/file", ctx.Err()
}
func (d *memory) Picture(context.Context, lektordir.Ref, string) ([]byte, error) {
	return nil, errors.New("no picture is fetched unasked")
}

func (d *memory) Fetcher(_ context.Context, _ string, args []string, line func(string)) ([]string, error) {
	if d.fetcher != nil {
		return nil, d.fetcher(args, line)
	}
	return nil, errors.New("nothing is fetched unasked")
}

// desk runs a model as the library does: commands in goroutines, messages one after the other.
type desk struct {
	*model
	t    *testing.T
	msgs chan tea.Msg
	busy sync.WaitGroup
	// cancel ends the context of the model.
	cancel context.CancelFunc
}

// usual returns options with those that a test does not choose.
func usual(o Options) *Options {
	o.Look, o.Screen, o.Random = cells.ParseLook("", nil), values.New('='), rand.Uint64
	o.Date = func(t time.Time) string { return t.Format(time.DateOnly) }
	o.Commands = fakeCommands{}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.Report = cmdline.NewStreams("lektor-view", o.In, o.Out, io.Discard).Report
	return &o
}

func newDesk(t *testing.T, d Disk, columns, lines int) *desk {
	ctx, cancel := context.WithCancel(context.Background())
	o := usual(Options{Keys: ParseKeys("test", nil), Width: 80, Getenv: func(string) string { return "" }})
	k := &desk{model: newModel(ctx, d, o), t: t, msgs: make(chan tea.Msg), cancel: cancel}
	t.Cleanup(func() {
		cancel()
		go func() {
			for range k.msgs {
			}
		}()
		k.busy.Wait()
		close(k.msgs)
	})
	k.Send = func(msg tea.Msg) { k.msgs <- msg }
	k.start(k.Init())
	k.update(tea.WindowSizeMsg{Width: columns, Height: lines})
	return k
}

// say shows a message, and fail an error.
func (k *desk) say(text string) { k.start(k.apply(k.Say("%s", text))) }
func (k *desk) fail(err error)  { k.start(k.apply(k.Fail(err))) }

func (k *desk) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	k.busy.Add(1)
	go func() {
		defer k.busy.Done()
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				k.start(c)
			}
		default:
			// The library's type of a sequence is not exported.
			if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
				for i := range v.Len() {
					k.msgs <- v.Index(i).Interface().(tea.Cmd)()
				}
				return
			}
			k.msgs <- msg
		}
	}()
}

// update sends a message to the model, and draws the screen.
func (k *desk) update(msg tea.Msg) {
	k.t.Helper()
	_, cmd := k.Update(msg)
	k.start(cmd)
	k.View()
}

// press presses keys as a person does, with pauses, and does not wait for commands.
func (k *desk) press(keys ...string) {
	k.t.Helper()
	for _, key := range keys {
		k.prompt.Listen()
		msg := tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
		switch key {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "tab":
			msg = tea.KeyPressMsg{Code: tea.KeyTab}
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "f13":
			msg = tea.KeyPressMsg{Code: tea.KeyF13}
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		}
		k.update(msg)
	}
}

var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (k *desk) shows() string { return styles.ReplaceAllString(k.View().Content, "") }

// until handles messages until done reports true; what is for the error.
func (k *desk) until(what string, done func() bool) {
	k.t.Helper()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case msg := <-k.msgs:
			k.update(msg)
		case <-time.After(time.Millisecond): // state outside messages may have changed
		case <-deadline:
			k.t.Fatalf("%s: not seen, but\n%s", what, k.shows())
		}
	}
}

func (k *desk) await(text string) {
	k.t.Helper()
	k.until(text, func() bool { return strings.Contains(k.shows(), text) })
}

// A disk that does not answer delays no key: each key changes the screen at once. When the disk
// answers, the changes are made in the order of the keys.
func TestSlowDisk(t *testing.T) {
	d := newMemory(20)
	k := newDesk(t, d, 80, 24)
	// The disk has answered nothing yet, and every key works.
	k.press("j", "k", "l", "h", "enter", "n", "N", "r", "m", "o", "u", "A", "d", "space", "q", "J", "K", "z", "z", "c", "a", "a", "s", "s", "i", "L", "R", "gg"[:1], "g", "G")
	k.press("?")
	if !strings.Contains(k.shows(), "the keys") {
		t.Fatalf("no help:\n%s", k.shows())
	}
	k.press("?", "/")
	if v := k.View(); v.Cursor == nil {
		t.Fatal("nothing can be typed")
	}
	k.press("esc")
	go func() {
		for range 40 {
			d.gate <- struct{}{} // let the waiting calls and all further calls return
		}
	}()
	k.browser.Focus = keys.FeedsPane
	k.await("Title 19")
	// The keys that were pressed too early did nothing, except undo.
	k.until("the jobs", func() bool { return k.browser.marks.Len() == 0 })
	d.mu.Lock()
	if got := strings.Join(d.marks, " "); got != "undo" {
		t.Errorf("%q", got)
	}
	d.marks = nil
	d.mu.Unlock()
}

// The screen shows marks before the disk has made them, and the disk makes them in order.
func TestMarksInOrder(t *testing.T) {
	d := newMemory(20)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 19")
	d.hold() // from now on the disk does not answer
	k.press("l", "m")
	if !strings.Contains(k.shows(), ">NF") {
		t.Fatalf("not marked at once:\n%s", k.shows())
	}
	k.press("r", "j", "r", "m", "m", "k", "m", "d")
	if s := k.shows(); strings.Contains(s, "Title 19") || !strings.Contains(s, "Title 18") {
		t.Fatalf("%s", s)
	}
	close(d.gate)
	k.until("the jobs", func() bool { return k.browser.marks.Len() == 0 })
	want := "19+F- 19+S- 18+S- 18+F- 18+-F 19+-F 19+T-"
	if got := strings.Join(d.marks, " "); got != want {
		t.Errorf("made %s, not %s", got, want)
	}
	// The screen shows the error of a failed mark, and then the entry as it is on the disk.
	d.mu.Lock()
	d.fail = errors.New("the disk is full")
	d.mu.Unlock()
	k.press("j", "m")
	k.await("the disk is full")
	k.until("the flag is gone", func() bool { return k.browser.marks.Len() == 0 && !strings.Contains(k.shows(), ">NF") })
}

// A search lists entries while the user types, and shows its mistakes. Esc restores the old list.
func TestSearch(t *testing.T) {
	d := newMemory(20)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 19")
	k.press("/", "0", "5")
	k.until("found", func() bool {
		s := k.shows()
		return strings.Contains(s, "Title 05") && !strings.Contains(s, "Title 19")
	})
	// The list stays at Enter, so that the next key finds an entry.
	k.press("enter", "m")
	if s := k.shows(); !strings.Contains(s, "NF") {
		t.Errorf("the entry is not flagged:\n%s", s)
	}
	k.press("esc")
	k.await("Title 19")
	// The search goes on while the user moves; the cursor stays where the user put it.
	k.press("/", "0")
	k.until("found", func() bool { return k.browser.list.Complete && !k.browser.list.CursorToTop })
	d.hold() // from now on the disk does not answer
	k.press("1", "enter", "j")
	close(d.gate)
	k.until("found", func() bool { return k.browser.list.Complete && len(k.browser.list.Items) == 11 })
	if it, _ := k.browser.list.Current(); it.Unique != "1700000018.1.h" {
		t.Errorf("the cursor is on %s:\n%s", it.Unique, k.shows())
	}
	// Until the first entries are found, no key works on an entry of the list before.
	k.until("the mark", func() bool { return k.browser.marks.Len() == 0 })
	d.hold()
	k.press("/", "7", "enter")
	k.start(k.apply(k.do(keys.Call{Action: "spawn", Words: []string{"false"}})))
	for _, key := range []string{"", "d", "enter", "n", "space", "e"} {
		if key != "" {
			k.press(key)
		}
		if k.status.Text != "the list is not complete yet" || k.browser.marks.Len() > 0 || k.browser.Focus != keys.ListPane || k.browser.list.Seek != 0 {
			t.Errorf("after %q: %d changes, and\n%s", key, k.browser.marks.Len(), k.shows())
		}
		k.status = part.Say{}
	}
	close(d.gate)
	k.until("found", func() bool { return k.browser.list.Complete && len(k.browser.list.Items) == 1 })
	k.press("m")
	if s := k.shows(); !strings.Contains(s, "NF") {
		t.Errorf("the entry is not flagged:\n%s", s)
	}
	k.press("q")
	k.press("/", "b", "a", "d", ":", "enter")
	k.await("column 1")
	k.press("q")
	k.await("Title 19")
}

// At every size, each pane draws exactly as many lines as the screen has, and none is too long.
func TestSizes(t *testing.T) {
	d := newMemory(30)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 29")
	k.press("l", "enter")
	k.await("word")
	for w := 1; w <= 210; w += 3 {
		for _, h := range []int{1, 4, 5, 15, 50} {
			k.update(tea.WindowSizeMsg{Width: w, Height: h})
			for _, p := range []keys.Pane{keys.FeedsPane, keys.ListPane, keys.PagePane} {
				k.browser.Focus = p
				lines := strings.Split(k.shows(), "\n")
				if len(lines) != h && (w >= scene.LeastWidth && h >= scene.LeastHeight || len(lines) > h) {
					t.Fatalf("%dx%d: %d lines", w, h, len(lines))
				}
				for _, l := range lines {
					if n := len([]rune(l)); n > w {
						t.Fatalf("%dx%d: %d columns: %q", w, h, n, l)
					}
				}
			}
		}
	}
}

// A picture is fetched only for its key, and only if the terminal can show pictures.
func TestNoPictureUnasked(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.press("l", "enter")
	k.await("word")
	k.press("i")
	if !strings.Contains(k.shows(), "cannot show pictures") {
		t.Fatalf("%s", k.shows())
	}
	k.update(uv.PrimaryDeviceAttributesEvent{62, 4})
	k.press("i")
	k.until("the refusal", func() bool { return strings.Contains(k.shows(), "unasked") })
}

// early is a disk that has counts before it has read all. At first it reads some entries.
type early struct{ *memory }

func (d early) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	if part.Enough == nil || d.names.read() {
		return d.memory.Now(ctx, part)
	}
	feed := &subscriptions.About{Feed: &lektordir.Feed{Name: "Feed"}, Folders: []string{"News / Inner"}}
	empty := &subscriptions.About{Feed: &lektordir.Feed{Name: "Empty"}}
	return &catalog.Snapshot{Missing: 1, Feeds: []*catalog.Feed{catalog.NewFeed("f", feed, d.refs[15:]), catalog.NewFeed("g", empty, nil)}}, nil
}

func (d early) Titles(ctx context.Context, refs []lektordir.Ref) []string {
	ended, end := context.WithCancel(ctx)
	end()
	return d.memory.Titles(ended, refs)
}

// read reports whether a whole snapshot was made.
func (n *names) read() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last != nil
}

func (d early) Counts(context.Context) (map[string]entrystore.Tally, error) {
	return map[string]entrystore.Tally{"f": {All: 20, Unread: 20}}, nil
}

// Before the first list is complete, the screen shows its first entries and the counts, and the entries can be marked.
// A list that is not complete yet is not shown as empty.
func TestOverview(t *testing.T) {
	d := early{newMemory(20)}
	k := newDesk(t, d, 80, 24)
	k.await("Title 19")
	k.await("1/20")
	if s := k.shows(); !strings.Contains(s, "1/20") || !strings.Contains(s, "20 unread") || strings.Contains(s, "Title 14") {
		t.Fatalf("%s", s)
	}
	k.press("l", "j", "m", "/", "x")
	k.press("esc", "h", "j", "j", "j", "j", "n")
	if s := k.shows(); strings.Contains(s, "nothing") || strings.Contains(s, "no unread") || !strings.Contains(s, "…") {
		t.Fatalf("%s", s)
	}
	close(d.gate)
	k.await("Title 00") // the list that n waits for
	if s := k.shows(); !strings.Contains(s, " Feed  1/20") {
		t.Errorf("%s", s)
	}
	k.until("the mark", func() bool { return k.browser.marks.Len() == 0 && k.browser.list.Complete })
	if got := strings.Join(d.marks, " "); got != "18+F-" || !strings.Contains(k.shows(), "NF") {
		t.Errorf("made %q:\n%s", got, k.shows())
	}
}

// glimpse is a disk whose entries are counted late.
type glimpse struct {
	early
	counted chan struct{}
}

func (d glimpse) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	s, err := d.early.Now(ctx, part)
	if s != nil && s.Missing > 0 {
		s.Feeds[0] = catalog.NewFeed("f", s.Feeds[0].About, d.refs[15:19])
	}
	return s, err
}

func (d glimpse) Counts(ctx context.Context) (map[string]entrystore.Tally, error) {
	<-d.counted
	return d.early.Counts(ctx)
}

// Unknown counts are omitted, not shown as 0.
func TestOverviewUncounted(t *testing.T) {
	d := glimpse{early{newMemory(20)}, make(chan struct{})}
	k := newDesk(t, d, 80, 24)
	k.await("Title 18")
	if s := k.shows(); !strings.Contains(s, "1/ ") || strings.Contains(s, "0 unread") || strings.Contains(s, "Title 14") {
		t.Fatalf("%s", s)
	}
	k.press("l", "m")
	close(d.counted)
	k.await("1/20")
	if s := k.shows(); strings.Contains(s, "Title 19") {
		t.Errorf("a list that the user has entered was replaced:\n%s", s)
	}
	k.press("]")
	if s := k.shows(); strings.Contains(s, "nothing") || strings.Contains(s, "no unread") || !strings.Contains(s, "…") {
		t.Fatalf("%s", s)
	}
	close(d.gate)
	k.await("2/20") // the cursor stays on the entry that was read first
	k.until("the mark", func() bool { return k.browser.marks.Len() == 0 && k.browser.list.Complete })
	if got := strings.Join(d.marks, " "); got != "18+F-" {
		t.Errorf("made %q:\n%s", got, k.shows())
	}
}

// When the dates are learnt, the cursor stays on its entry, and the entry on its line of the
// screen. If the user has not entered the list yet, the cursor moves to the newest entry.
func TestLearnStays(t *testing.T) {
	for _, inList := range []bool{false, true} {
		d := studious{newMemory(100), make(chan struct{})}
		close(d.gate)
		k := newDesk(t, d, 80, 24)
		k.await("Title 99")
		if inList {
			k.press("l", "1", "6", "g", "g")
		}
		close(d.learnt)
		k.until("the order", func() bool { return len(k.work.Tasks.Of("")) == 0 && k.browser.list.Complete })
		line := slices.IndexFunc(strings.Split(k.shows(), "\n"), func(l string) bool { return strings.Contains(l, ">N  ") })
		k.until("rows", func() bool { return !strings.Contains(k.shows(), "…") })
		at, _ := k.browser.list.Current()
		switch {
		case inList && (at.Unique != "1700000084.1.h" || line != 16):
			t.Errorf("%s on line %d:\n%s", at.Unique, line, k.shows())
		case !inList && (k.browser.list.Y != 0 || k.browser.list.At != 0 || !strings.Contains(k.shows(), "Title 00")):
			t.Errorf("%s:\n%s", at.Unique, k.shows())
		}
	}
}

// The first entries stay on their lines when all are listed.
func TestOverviewStays(t *testing.T) {
	d := early{newMemory(20)}
	k := newDesk(t, d, 80, 24)
	k.await("Title 19")
	k.press("l", "j", "j")
	before := k.shows()
	close(d.gate)
	k.await("Title 00")
	line := func(s string) int {
		return slices.IndexFunc(strings.Split(s, "\n"), func(l string) bool { return strings.Contains(l, ">N") })
	}
	if s := k.shows(); line(s) != line(before) || !strings.Contains(strings.Split(s, "\n")[line(s)], "Title 17") {
		t.Errorf("%s\n%s", before, s)
	}
}

// studious is a disk whose dates have to be learnt. The entry delivered last is the newest before
// that, and the oldest afterwards.
type studious struct {
	*memory
	learnt chan struct{}
}

func (d studious) Dates(ctx context.Context, entries []catalog.Entry) ([]list.Date, bool) {
	dates := make([]list.Date, len(entries))
	for i, e := range entries {
		r := e.Ref()
		dates[i] = list.DateOf(r.Delivered())
		select {
		case <-d.learnt:
			dates[i] = list.DateOf(time.Unix(-r.Delivered().Unix(), 0))
		default:
		}
	}
	select {
	case <-d.learnt:
		return dates, true
	default:
		return dates, false
	}
}

func (d studious) Learn(ctx context.Context, entries []catalog.Entry, progress func(string, int, int)) error {
	progress("indexing", 7, len(entries))
	select {
	case <-d.learnt:
	case <-ctx.Done():
	}
	return nil
}

// While dates are learnt, the screen shows the progress and new entries. Then the list is sorted.
func TestLearn(t *testing.T) {
	d := studious{newMemory(20), make(chan struct{})}
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("indexing: 7 of 20")
	k.await("Title 19")
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000020.1.h", Place: lektordir.New})
	d.mu.Unlock()
	k.update(part.Then(k.browser.tree.Noticed))
	k.await("/21")
	close(d.learnt)
	k.until("the order", func() bool {
		return len(k.work.Tasks.Of("")) == 0 && strings.Index(k.shows(), "Title 00") < strings.Index(k.shows(), "Title 20")
	})
	if strings.Contains(k.shows(), "indexing") {
		t.Errorf("%s", k.shows())
	}
}

// away is a disk that is unmounted for a while.
type away struct {
	*memory
	gone    atomic.Bool
	asks    atomic.Int64 // calls of Now while it is gone
	changed chan bool
}

func (d *away) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	if d.gone.Load() {
		d.asks.Add(1)
		return d.names.last, errors.New("it is not there")
	}
	return d.memory.Now(ctx, part)
}

func (d *away) Await(ctx context.Context) {
	select {
	case <-d.changed:
	case <-ctx.Done():
	}
}

// If the lektor-dir is unmounted, its entries stay on the screen, with the error. When it is
// mounted again, it is read and watched as before.
func TestAway(t *testing.T) {
	d := &away{memory: newMemory(5), changed: make(chan bool)}
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.browser.tree.Retry = time.Millisecond
	k.await("Title 04")
	d.gone.Store(true)
	d.changed <- true
	k.until("the failure", func() bool { return k.status.Bad && strings.Contains(k.shows(), "it is not there") })
	if s := k.shows(); !strings.Contains(s, "Title 04") || !strings.Contains(s, "5 unread") {
		t.Fatalf("%s", s)
	}
	// Later attempts do not repeat the message.
	k.say("another message")
	asks := d.asks.Load()
	k.until("more attempts", func() bool { return d.asks.Load() > asks+3 })
	if k.status.Text != "another message" {
		t.Errorf("it says %q again", k.status.Text)
	}
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000009.1.h", Place: lektordir.New})
	d.mu.Unlock()
	d.gone.Store(false)
	k.await("Title 09")
	if k.status != (part.Say{Text: "another message"}) {
		t.Errorf("%+v", k.status)
	}
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000010.1.h", Place: lektordir.New})
	d.mu.Unlock()
	go func() { d.changed <- true }()
	k.await("Title 10")
}

// The open entry has the flags that another program sets, and keys change these.
func TestOpenEntryRenamed(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := openPage(t, d, 80, 24)
	k.until("the mark", k.settled)
	if _, err := d.move([]lektordir.Ref{k.browser.page.Ref}, "F", ""); err != nil {
		t.Fatal(err)
	}
	k.update(part.Then(k.browser.tree.Noticed))
	k.until("the flag", func() bool { return k.browser.page.Ref.HasFlag('F') })
	k.press("m")
	k.until("the mark", k.settled)
	if last := d.marks[len(d.marks)-1]; last != "02+-F" {
		t.Errorf("the change is %s", last)
	}
}

// Help has the whole text and the command of each key on a narrow screen too.
func TestHelpIsWhole(t *testing.T) {
	d := newMemory(1)
	close(d.gate)
	k := newDesk(t, d, 40, 15)
	k.await("Feed")
	k.press("?")
	all := strings.Join(strings.Fields(strings.Join(k.prompt.Menu.Text, " ")), " ")
	for _, a := range actions() {
		if a.command != "" && k.o.Keys.Of(a.name) != a.name && !strings.Contains(all, a.help+" ("+a.command+")") && a.name != "yank" {
			t.Errorf("help does not have %s (%s)", a.help, a.command)
		}
	}
	for _, line := range k.prompt.Menu.Text {
		if n := termsafe.Width(line); n > 39 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// The hint of an error is shown if there is room, and never instead of the reason.
func TestHint(t *testing.T) {
	d := newMemory(1)
	close(d.gate)
	k := newDesk(t, d, 40, 15)
	for _, c := range []struct {
		width int
		want  string
	}{{30, "no browser was found"}, {80, "no browser was found; hint: set the variable"}} {
		k.update(tea.WindowSizeMsg{Width: c.width, Height: 15})
		k.fail(cmdline.Hint(errors.New("no browser was found"), "set the variable"))
		if s := k.shows(); strings.TrimSpace(s[strings.LastIndex(s, "\n"):]) != c.want {
			t.Errorf("%d columns: %s", c.width, s)
		}
	}
}
