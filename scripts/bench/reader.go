package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/lektordir"
)

// By the cursor one sees that a key was answered: it is hidden, but in a line that is
// typed.
const (
	cursorShown  = "\x1b[?25h"
	cursorHidden = "\x1b[?25l"
)

// drawn is what a program draws on a terminal.
type drawn struct {
	*os.File
	mu  sync.Mutex
	out bytes.Buffer
}

func (d *drawn) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := d.File.Read(buf)
		d.mu.Lock()
		d.out.Write(buf[:n])
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait waits until what was drawn is as it should be, and tells when it was.
func (d *drawn) wait(what string, done func(out []byte) bool) time.Time {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		d.mu.Lock()
		ok := done(d.out.Bytes())
		d.mu.Unlock()
		if ok {
			return time.Now()
		}
	}
	must.Fail("the reader draws no %s in a minute, but\n%q", what, d.out.Bytes())
	return time.Time{}
}

// reading measures the full-screen reader on the lektor-dir of the lists: how long it
// takes to the first screen, for the first time in its life and when there is an index,
// and how long to answer a key while entries are delivered.
func (o options) reading(dir string, t *table) {
	if o.listed < 1 {
		return
	}
	feeds := o.reader
	if feeds == "" {
		feeds = filepath.Join(dir, "feeds")
		if _, err := os.Stat(feeds); err != nil {
			o.unread(feeds)
		}
	}
	must.Do(os.MkdirAll(dir, 0o700))
	us := &contestant{name: "lektor-view tui"}
	measure := func(what string, home func() string, busy bool) (keys []time.Duration) {
		var first measurement
		for round := range o.rounds + 1 {
			m, took := o.readOnce(feeds, home(), busy && round == o.rounds)
			if round > 0 { // the first one warms the cache
				most := max(first.memory, m.memory)
				first.keep(m)
				first.memory = most
			}
			keys = append(keys, took...)
		}
		t.group(fmt.Sprintf("%s of %d", what, o.listed), "entries").add(us, float64(o.listed), first)
		return keys
	}
	measure("first screen, no index,", func() string { return must.Get(os.MkdirTemp(dir, "home.")) }, false)
	must.Do(command(dir, o.built("lektor-view"), "--dir", feeds, "index").Run())
	keys := measure("first screen", func() string { return dir }, true)
	slices.Sort(keys)
	t.group("a key while entries arrive, median", "keys").add(us, 1, measurement{time: keys[len(keys)/2]})
	t.group(fmt.Sprintf("the slowest of %d", len(keys)), "keys").add(us, 1, measurement{time: keys[len(keys)-1]})
}

// readOnce starts the reader, and if busy presses keys while entries are delivered.
func (o options) readOnce(feeds, home string, busy bool) (m measurement, keys []time.Duration) {
	cmd := command(home, o.built("lektor-view"), "--dir", feeds, "tui")
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	began := time.Now()
	d := &drawn{File: must.Get(terminal.Start(cmd, 120, 40))}
	defer d.Close()
	go d.read()
	memory := watchMemory(cmd.Process.Pid)
	m.time = d.wait("title", func(out []byte) bool {
		return bytes.Contains(out, []byte("Entry ")) || bytes.Contains(out, []byte("News "))
	}).Sub(began)
	if busy {
		var over atomic.Bool
		delivered := make(chan error, 1)
		go func() { delivered <- must.Run(func() { deliverUntil(feeds, &over) }) }()
		keys = d.press(200)
		over.Store(true)
		must.Do(<-delivered)
	}
	m.memory = memory()
	must.Get(d.WriteString("Q"))
	must.Do(cmd.Wait())
	return m, keys
}

// press presses keys, each when the one before was answered.
func (d *drawn) press(n int) []time.Duration {
	var took []time.Duration
	for i := range n {
		key, shown := "/", true
		if i%2 == 1 {
			key, shown = "\r", false
		}
		began := time.Now()
		must.Get(d.WriteString(key))
		at := d.wait("cursor", func(out []byte) bool {
			return bytes.LastIndex(out, []byte(cursorShown)) > bytes.LastIndex(out, []byte(cursorHidden)) == shown
		})
		took = append(took, at.Sub(began))
		time.Sleep(30 * time.Millisecond) // nobody types faster
	}
	return took
}

// deliverUntil delivers entries, twenty of each of ten feeds at a time, as a fetcher
// does.
func deliverUntil(feeds string, over *atomic.Bool) {
	for !over.Load() {
		round := time.Now()
		library(feeds, 10, func(i int) (*lektordir.Feed, []lektordir.Item) {
			id := fmt.Sprintf("http://feed%d.example/", i)
			var items []lektordir.Item
			for k := range 20 {
				e := lektordir.Entry{
					ID: fmt.Sprintf("%snews/%d/%d", id, round.UnixNano(), k), Title: fmt.Sprintf("News %d of feed %d", k, i), Content: []byte(strings.Repeat("text ", 50)),
					PubDate: round,
				}
				items = append(items, lektordir.Item{Entry: e, GUID: e.ID, Text: string(e.Content)})
			}
			return &lektordir.Feed{ID: id, Name: fmt.Sprintf("Feed %d", i)}, items
		})
	}
}
