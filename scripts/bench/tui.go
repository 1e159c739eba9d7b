//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// The cursor shows that a key was answered: it is hidden, except while a line is typed.
const (
	cursorShown  = "\x1b[?25h"
	cursorHidden = "\x1b[?25l"
)

// drawn is the output of a program on a terminal.
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

// wait waits until done returns true for the output, and returns the time of that.
func (d *drawn) wait(what string, done func(out []byte) bool) time.Time {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		d.mu.Lock()
		ok := done(d.out.Bytes())
		d.mu.Unlock()
		if ok {
			return time.Now()
		}
	}
	must.Fail("the reader does not draw %s within a minute; it draws\n%q", what, d.out.Bytes())
	return time.Time{}
}

// tui measures the full-screen reader on the lektor-dir of the row list: the time to the first
// screen, without an index and with one, and the time to answer a key while entries are
// delivered.
func (b *bench) tui() {
	n := sizes["listed"]
	if n == 0 {
		return
	}
	dir, _ := b.listed()
	ways := b.ours("lektor-view tui")
	b.compare(group{what: fmt.Sprintf("first screen of %d, no index", n), unit: "entries", n: n, warm: true}, ways, func(w *way, _ int) measurement {
		bare := &way{bin: w.bin, dir: b.place()}
		m, _ := bare.read(dir, 0)
		return m
	})
	for _, w := range ways {
		take(w.lektor(dir, "lektor-view", "index"))
	}
	b.compare(group{what: fmt.Sprintf("first screen of %d", n), unit: "entries", n: n, warm: true}, ways, func(w *way, _ int) measurement {
		m, _ := w.read(dir, 0)
		return m
	})
	b.compare(group{what: "a key while entries arrive", unit: "keys", n: 1}, ways, func(w *way, _ int) measurement {
		m, keys := w.read(dir, 100)
		slices.Sort(keys)
		m.time, m.note = keys[len(keys)/2], "slowest "+show(keys[len(keys)-1])
		return m
	})
}

// read starts the reader, and presses keys while entries are delivered. It returns the times of
// the first screen and of each key.
func (w *way) read(dir string, press int) (m measurement, keys []time.Duration) {
	cmd := w.lektor(dir, "lektor-view", "tui")
	began := time.Now()
	d := &drawn{File: must.Get(terminal.Start(cmd, 120, 40))}
	defer d.Close()
	go d.read()
	memory := watchMemory(cmd.Process.Pid)
	m.time = d.wait("title", func(out []byte) bool {
		return bytes.Contains(out, []byte("Entry ")) || bytes.Contains(out, []byte("News "))
	}).Sub(began)
	if press > 0 {
		var over atomic.Bool
		delivered := make(chan error, 1)
		go func() {
			delivered <- must.Run(func() {
				for !over.Load() {
					arrive(dir, 10, 250)
				}
			})
		}()
		keys = d.press(press)
		over.Store(true)
		must.Do(<-delivered)
	}
	m.memory = memory()
	must.Get(d.WriteString("Q"))
	must.Do(cmd.Wait())
	return m, keys
}

// press presses keys, each after the one before was answered.
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
		time.Sleep(30 * time.Millisecond) // no user types faster
	}
	return took
}
