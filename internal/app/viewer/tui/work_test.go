package tui

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// large is a disk with as many entries as a user has who never removes one.
type large struct {
	*memory
	byFeed map[string][]lektordir.Ref // in the order of hashes
	lists  atomic.Int32               // number of calls of List
	first  map[string]bool            // feeds that did not wait
	// rechecked is set after all feeds were looked at again.
	rechecked atomic.Bool
}

const (
	largeFeeds = 500
	largeEach  = 100
)

func newLarge() *large {
	d := &large{memory: newMemory(0), byFeed: map[string][]lektordir.Ref{}, first: map[string]bool{}}
	for i := range largeFeeds {
		for k := range largeEach {
			d.add(i, 1700000000+k*largeFeeds+i)
		}
	}
	close(d.gate)
	return d
}

func (d *large) add(feed, when int) string {
	hash := fmt.Sprintf("f%04d", feed)
	d.byFeed[hash] = append(d.byFeed[hash], lektordir.Ref{Feed: hash, Unique: fmt.Sprintf("%d.1.h", when), Place: lektordir.New})
	return hash
}

func (d *large) Feeds(context.Context) ([]tree.Feed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var feeds []tree.Feed
	for hash := range d.byFeed {
		feeds = append(feeds, tree.Feed{Hash: hash, Title: hash})
	}
	return feeds, nil
}

func (d *large) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	d.mu.Lock()
	maps.Copy(d.first, part.First)
	d.rechecked.Store(d.rechecked.Load() || part.Recheck)
	d.mu.Unlock()
	return d.names.now(ctx, d)
}

func (d *large) List(context.Context) (map[string][]lektordir.Ref, error) {
	d.lists.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	lists := map[string][]lektordir.Ref{}
	for hash, refs := range d.byFeed {
		lists[hash] = slices.Clone(refs)
	}
	return lists, nil
}

func (d *large) Mark(_ context.Context, refs []lektordir.Ref, set, unset string, _ func()) (moved []lektordir.Ref, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := map[part.Key]bool{}
	for _, r := range refs {
		keys[part.KeyOf(r)] = true
	}
	for _, of := range d.byFeed {
		for i, r := range of {
			if keys[part.KeyOf(r)] {
				of[i], err = r.WithFlags(set, unset)
				moved = append(moved, of[i])
			}
		}
	}
	return moved, err
}

// counted is a model that measures its messages: the bytes that the UI goroutine allocates for a
// message stand for the work that it does.
type counted struct {
	*model
	t       *testing.T
	msgs    chan tea.Msg
	running atomic.Int32
	most    map[string]uint64 // maximum of bytes, by the type of the message
	n       map[string]int
}

func newCounted(t *testing.T, d *large) *counted {
	ctx, cancel := context.WithCancel(context.Background())
	o := usual(Options{Keys: ParseKeys("test", nil), Width: 80, Getenv: func(string) string { return "" }})
	k := &counted{model: newModel(ctx, d, o), t: t, msgs: make(chan tea.Msg, 1000), most: map[string]uint64{}, n: map[string]int{}}
	k.Send = func(msg tea.Msg) {}
	k.browser.tree.Await = func() tea.Msg { return nil } // a test sends changes itself
	k.After = func(_ time.Duration, msg tea.Msg) tea.Cmd { return func() tea.Msg { return msg } }
	t.Cleanup(func() {
		cancel()
		for k.running.Load() > 0 {
			runtime.Gosched()
		}
	})
	k.start(k.Init())
	k.take(tea.WindowSizeMsg{Width: 120, Height: 40})
	return k
}

func (k *counted) start(cmds ...tea.Cmd) {
	// Count all commands before the first one begins.
	cmds = slices.DeleteFunc(cmds, func(cmd tea.Cmd) bool { return cmd == nil })
	k.running.Add(int32(len(cmds)))
	for _, cmd := range cmds {
		go func() {
			defer k.running.Add(-1)
			switch msg := cmd().(type) {
			case nil:
			case tea.BatchMsg:
				k.start(msg...)
			default:
				k.msgs <- msg
			}
		}()
	}
}

func (k *counted) take(msg tea.Msg) {
	k.t.Helper()
	name := fmt.Sprintf("%T", msg)
	if key, ok := msg.(tea.KeyPressMsg); ok {
		name = key.String()
	}
	if then, ok := msg.(part.Then); ok {
		name = runtime.FuncForPC(reflect.ValueOf(then).Pointer()).Name()
	}
	k.quiet()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, cmd := k.Update(msg)
	k.View()
	runtime.ReadMemStats(&after)
	k.n[name]++
	k.most[name] = max(k.most[name], after.TotalAlloc-before.TotalAlloc)
	k.start(cmd)
}

func (k *counted) key(name string) {
	k.t.Helper()
	msg := tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
	switch name {
	case "enter":
		msg = tea.KeyPressMsg{Code: tea.KeyEnter}
	case "esc":
		msg = tea.KeyPressMsg{Code: tea.KeyEscape}
	}
	k.take(msg)
}

// quiet waits until no command runs.
func (k *counted) quiet() {
	k.t.Helper()
	for deadline := time.Now().Add(time.Minute); k.running.Load() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			k.t.Fatalf("%d commands run", k.running.Load())
		}
	}
}

// idle handles messages until no more come.
func (k *counted) idle() {
	k.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if time.Now().After(deadline) {
			k.t.Fatal("there is no end of messages")
		}
		k.quiet()
		select {
		case msg := <-k.msgs:
			k.take(msg)
		default:
			return
		}
	}
}

// The UI goroutine does as much work for a message with 100,000 entries as with 100. Another
// goroutine makes the list, so a key does not wait. Only the key that marks all entries as read
// takes about 60 ms for 100,000 entries.
func TestWorkForMessages(t *testing.T) {
	d := newLarge()
	k := newCounted(t, d)
	k.idle()
	if n := len(k.browser.list.Items); n != largeFeeds*largeEach {
		t.Fatalf("%d entries", n)
	}
	arrive := func(feed, when int) {
		d.mu.Lock()
		d.add(feed, when)
		d.mu.Unlock()
		k.take(part.Then(k.browser.tree.Noticed))
	}
	k.key("l")
	for round := range 2 {
		for _, name := range []string{"j", "j", "k", "n", "m", "r", "enter", "n", "q", "G", "n", "g", "/", "5", "esc", "/", "1", "enter", "esc", "s", "a", "a", "]", "["} {
			k.key(name)
			if name != "g" {
				arrive(round, 1800000000+len(k.n))
			}
			if round == 0 {
				k.idle()
			}
		}
		k.idle()
		for _, name := range []string{"h", "g", "g", "l"} {
			k.key(name)
		}
		k.idle()
	}
	k.key("a") // list read entries too
	k.idle()
	k.key("A")
	k.key("y")
	for _, name := range []string{"j", "n", "m", "k"} {
		k.key(name)
	}
	k.idle()
	if n := k.browser.tree.Snapshot.All.Unread; k.browser.marks.Len() > 0 || n > 0 {
		t.Errorf("%d are unread, %d changes are left", n, k.browser.marks.Len())
	}
	for name, bytes := range k.most {
		most := uint64(300_000)
		switch {
		case name == "A", name == "y":
			most += 500 * largeFeeds * largeEach // the key marks each entry
		case strings.Contains(name, "(*Tree).Begin."), strings.Contains(name, "(*List).Begin."):
			most += 40 * largeFeeds * largeEach // a list copies the keys of readHere
		}
		if bytes > most {
			t.Errorf("for %s the screen made %d bytes", name, bytes)
		}
	}
}

// Changes that arrive during a scan of the lektor-dir share the scan after it.
func TestArrivalsTogether(t *testing.T) {
	d := newLarge()
	k := newCounted(t, d)
	k.idle()
	before := d.lists.Load()
	k.key("l")
	for i := range 200 {
		d.mu.Lock()
		d.add(i, 1800000000+i)
		d.mu.Unlock()
		_, cmd := k.Update(part.Then(k.browser.tree.Noticed))
		if i == 0 {
			k.start(cmd)
		}
	}
	k.idle()
	if n := d.lists.Load() - before; n < 2 || n > 3 {
		t.Errorf("%d scans", n)
	}
	if n := len(k.browser.list.Items); n != largeFeeds*largeEach+200 {
		t.Errorf("%d entries", n)
	}
}

// Work that ends without a message leaves the message of a key that was pressed meanwhile.
func TestEndWithoutMessage(t *testing.T) {
	d := newMemory(1)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 00")
	task, begun := k.work.Tasks.Begin(part.Task{Name: "work", Do: func(_ context.Context, progress func(string)) (string, error) {
		progress("half")
		return "", nil
	}})
	look := begun[0].(part.Run)()
	for _, end := range []tea.Msg{part.Effects{part.Say{}}, look, task.Await()} {
		k.say("the message of a key")
		k.update(end)
		if got := k.status.Text; got != "the message of a key" {
			t.Errorf("got %q after %#v; want the message of a key", got, end)
		}
	}
	if n := len(k.work.Tasks.Of("work")); n > 0 {
		t.Errorf("got %d tasks after the end; want none", n)
	}
}
