package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/lektordir"
)

// ending is a reader on a terminal whose disk is slow: it answers after the screen has gone.
type ending struct {
	tty   *terminal.Terminal
	ended chan error
	errs  *bytes.Buffer
}

func newEnding(t *testing.T, d Disk) *ending {
	e := &ending{terminal.Open(t, 80, 24), make(chan error, 1), &bytes.Buffer{}}
	o := usual(Options{In: e.tty.TTY, Out: e.tty.TTY, Keys: ParseKeys("test", nil), Width: 80, Getenv: func(string) string { return "" }})
	o.Report = cmdline.NewStreams("lektor-view", strings.NewReader(""), io.Discard, e.errs).Report
	go func() { e.ended <- Run(t.Context(), d, o) }()
	return e
}

// gone types keys, of which the last ends the reader, and waits until the screen has gone.
func (e *ending) gone(keys string) {
	e.tty.Type(keys)
	e.tty.Await("\x1b[?1049l")
}

// Changes that the disk has not begun when the reader ends are made in the order of the keys, however it
// ends, also thirty thousand.
func TestChangesAfterTheEnd(t *testing.T) {
	for _, c := range []struct {
		quit string
		n    int
	}{{"Q", 1}, {"Q", 100}, {"qq", 100}, {"\x03", 100}, {":q\r", 100}, {"Q", 30_000}} {
		d := newMemory(0)
		for i := range c.n {
			d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: fmt.Sprintf("17000%05d.1.h", i), Place: lektordir.New})
		}
		close(d.gate)
		e := newEnding(t, d)
		e.tty.Await("Title")
		e.tty.Press("C", func() bool { return strings.Contains(e.tty.Seen(), "as read?") }) // when all entries are known
		e.tty.Type("nl")
		d.hold()
		e.gone("mCydu" + c.quit)
		close(d.gate)
		if err := <-e.ended; err != nil {
			t.Errorf("%q: %v", c.quit, err)
		}
		first := d.refs[c.n-1].Unique[8:10]
		want := []string{first + "+F-"}
		for _, r := range d.refs {
			want = append(want, r.Unique[8:10]+"+S-")
		}
		want = append(want, first+"+T-", "undo")
		got := slices.Clone(d.marks)
		if len(got) == len(want) {
			slices.Sort(got[1 : len(got)-2]) // of one change
			slices.Sort(want[1 : len(want)-2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d entries, %q: %d changes, want %d: %.200q", c.n, c.quit, len(got), len(want), got)
		}
		if e.errs.Len() > 0 {
			t.Errorf("reported %q", e.errs)
		}
	}
}

// A change of a subscription that was begun is finished after the screen has gone, and its failure is
// reported.
func TestSubscriptionAfterTheEnd(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	e := newEnding(t, d)
	e.tty.Await("Title 02")
	e.gone("+http://x.example\r\rQ")
	r := <-d.runs
	if want := "add --progress -"; r.args != want {
		t.Fatalf("ran %q, want %q", r.args, want)
	}
	r.messages = []string{"http://x.example: refused"}
	r.ended <- errors.New("exit status 1")
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
	if got := e.errs.String(); got != "lektor-view: http://x.example: refused\n" {
		t.Errorf("reported %q", got)
	}
}

// stuck is a disk that marks one entry and then waits for its end.
type stuck struct{ *memory }

func (d stuck) Mark(ctx context.Context, refs []lektordir.Ref, _, _ string, done func()) ([]lektordir.Ref, error) {
	done()
	<-ctx.Done()
	return refs[:1], ctx.Err()
}

// interrupting is a standard error that is answered by ^C.
type interrupting struct {
	text bytes.Buffer
	stop context.CancelCauseFunc
}

func (w *interrupting) Write(p []byte) (int, error) {
	w.stop(cmdline.Stopped(syscall.SIGINT))
	return w.text.Write(p)
}

// After the screen has gone, progress is reported until ^C ends the program without the rest.
func TestInterruptedAfterTheEnd(t *testing.T) {
	d := stuck{newMemory(3)}
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	ctx, stop := context.WithCancelCause(t.Context())
	errs := &interrupting{stop: stop}
	k.o.Report = cmdline.NewStreams("lektor-view", strings.NewReader(""), io.Discard, errs).Report
	k.press("l")
	k.until("the list", func() bool { return k.browser.list.Complete })
	k.press("A", "y")
	k.work.Drain(ctx, k.o.Report, k.cancel)
	if got := errs.text.String(); got != "lektor-view: marked 1 of 3; ^C ends without the rest\nlektor-view: marked 1 of 3\n" {
		t.Errorf("reported %q", got)
	}
}

// If lektor-fetch is killed, the user sees that, and undo looks into the journal, which is written before each change.
func TestUndoAfterKill(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	k := newDesk(t, d, 120, 24)
	k.await("Title 02")
	answer := func(args string, err error, lines ...string) {
		t.Helper()
		r := <-d.runs
		if r.args != args {
			t.Fatalf("ran %q, want %q", r.args, args)
		}
		for _, line := range lines {
			r.line(line)
		}
		r.ended <- err
	}
	killed := &exec.ExitError{}
	k.press("l", "e")
	answer("set --raw f", nil, "url\thttp://f.example/")
	k.await("the settings of the feed")
	k.press("enter")
	k.press("M", "y", "enter")
	answer("set f -", killed)
	k.until("the failure", func() bool { return k.status.Bad })
	k.press("u")
	k.await("taken back")
	// A new feed: undo waits for the end of its task.
	k.press(strings.Split("+|x|enter|enter|u", "|")...)
	answer("add --progress -", killed)
	k.until("undo", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return strings.Join(d.marks, " ") == "undo undo"
	})
}
