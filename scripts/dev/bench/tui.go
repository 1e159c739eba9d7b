//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/terminal"
)

// letters are typed into the command line. No other text on the screen has them, so that each
// shows that its key was answered.
var letters = []rune("абвгдежзиклмнопрстуфхцчшщыэюя")

// drawn is the output of a program on a terminal.
type drawn struct {
	*os.File
	output chan output // closed when the program has closed the terminal
}

// output is what a program wrote, and the time at which it was read.
type output struct {
	text []byte
	at   time.Time
}

func (d *drawn) read() {
	defer close(d.output)
	for {
		buf := make([]byte, 1<<12)
		n, err := d.File.Read(buf)
		if n > 0 {
			d.output <- output{buf[:n], time.Now()}
		}
		if err != nil {
			return
		}
	}
}

// wait waits until done returns true for the output since the last wait, and returns the time of that.
func (d *drawn) wait(what string, done func(out []byte) bool) time.Time {
	var all []byte
	minute := time.After(time.Minute)
	for {
		select {
		case o, ok := <-d.output:
			if !ok {
				must.Fail("the reader ended before it drew %s; it drew\n%q", what, all)
			}
			if all = append(all, o.text...); done(all) {
				return o.at
			}
		case <-minute:
			must.Fail("the reader does not draw %s within a minute; it draws\n%q", what, all)
		}
	}
}

// tui measures the full-screen reader on the lektor-dir of the row list: the time to the first
// screen, without an index and with one, and the time to answer a key while entries are
// delivered, also beside other work.
func (b *bench) tui() {
	n := sizes["listed"]
	if n == 0 {
		return
	}
	dir, _ := b.listed()
	ways := b.ours("lektor-view tui")
	b.compare(group{what: fmt.Sprintf("first screen of %d, no index", n), unit: "entries", n: n, warm: true}, ways,
		func(w *way, _ int) measurement {
			bare := &way{bin: w.bin, dir: b.place()}
			m, _ := read(bare.reads(dir), dir, 0)
			return m
		})
	for _, w := range ways {
		take(w.lektor(dir, "lektor-view", "index"))
	}
	b.compare(group{what: fmt.Sprintf("first screen of %d", n), unit: "entries", n: n, warm: true}, ways,
		func(w *way, _ int) measurement {
			m, _ := read(w.reads(dir), dir, 0)
			return m
		})
	for _, g := range []struct {
		what  string
		tasks []string
	}{
		{"a key while entries arrive", []string{arriveTask}},
		{"the same beside other work", append(slices.Repeat([]string{busyTask}, runtime.NumCPU()), arriveTask)},
	} {
		press := func(cmd *exec.Cmd) measurement {
			m, keys := read(cmd, dir, 100, g.tasks...)
			slices.Sort(keys)
			m.time, m.slowest = keys[len(keys)/2], keys[len(keys)-1]
			return m
		}
		echo := &way{name: "echo", once: func(*way, int) measurement { return press(again(echoArg)) }}
		b.compare(group{what: g.what, unit: "keys", n: 1}, append(slices.Clone(ways), echo),
			func(w *way, _ int) measurement {
				return press(w.reads(dir))
			})
	}
}

// reads returns a run of the reader.
func (w *way) reads(dir string) *exec.Cmd { return w.lektor(dir, "lektor-view", "tui") }

// echoArg is the first argument of a run of this program that writes each key back at once. So it
// measures the time that the kernel needs for terminals and processors: the floor of a reader.
const echoArg = "-echo"

// echoChild is the main function of such a run.
func echoChild([]string) {
	must.Get(term.MakeRaw(int(os.Stdin.Fd())))
	must.Get(os.Stdout.WriteString("Entry "))
	for buf := make([]byte, 64); ; {
		keys := buf[:must.Get(os.Stdin.Read(buf))]
		must.Get(os.Stdout.Write(keys))
		if bytes.Contains(keys, []byte("\x03")) {
			return
		}
	}
}

// read starts a reader, and presses keys, after it has read all entries, while tasks work beside it.
// It returns the times of the first screen and of each key.
func read(cmd *exec.Cmd, dir string, press int, tasks ...string) (m measurement, keys []time.Duration) {
	began := time.Now()
	d := &drawn{File: must.Get(terminal.Start(cmd, 120, 40)), output: make(chan output, 1000)}
	defer d.Close()
	go d.read()
	memory := watchMemory(cmd.Process.Pid)
	m.time = d.wait("title", func(out []byte) bool {
		return bytes.Contains(out, []byte("Entry ")) || bytes.Contains(out, []byte("News "))
	}).Sub(began)
	if press > 0 {
		atRest(cmd.Process.Pid)
	}
	var ends []func()
	for _, task := range tasks {
		ends = append(ends, beside(task, dir))
	}
	keys = d.press(press)
	for _, end := range ends {
		end()
	}
	m.memory = memory()
	must.Get(d.WriteString("\x03"))
	for range d.output { // the reader draws until it ends
	}
	must.Do(cmd.Wait())
	return m, keys
}

// atRest waits until a process has used no processor for half a second, at most a minute.
func atRest(pid int) {
	const rest = 500 * time.Millisecond
	last, since := time.Duration(-1), time.Now()
	for end := time.Now().Add(time.Minute); time.Since(since) < rest && time.Now().Before(end); time.Sleep(rest / 10) {
		if used := processor(pid); used != last {
			last, since = used, time.Now()
		}
	}
}

// press types letters, each after the one before was drawn.
func (d *drawn) press(n int) []time.Duration {
	var took []time.Duration
	if n > 0 {
		must.Get(d.WriteString(":"))
	}
	for i := range n {
		letter := string(letters[i%len(letters)])
		time.Sleep(30 * time.Millisecond) // no user types faster
		for len(d.output) > 0 {
			<-d.output
		}
		began := time.Now()
		must.Get(d.WriteString(letter))
		took = append(took, d.wait(letter, func(out []byte) bool {
			return bytes.Contains(out,
				[]byte(letter))
		}).Sub(began))
	}
	return took
}
