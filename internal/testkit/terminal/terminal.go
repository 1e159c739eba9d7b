// Package terminal makes pseudo terminals for tests. Commands get one as their standard streams,
// and tests read their output.
package terminal

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"
	"golang.org/x/text/width"
)

// Terminal is a pseudo terminal of a test. It is safe for concurrent use.
type Terminal struct {
	// TTY is the end for the program.
	TTY *os.File

	t       testing.TB
	control *os.File
	read    chan struct{} // closed when all output was read
	mu      sync.Mutex
	out     bytes.Buffer
}

// Open opens a terminal with this many columns and lines; 0 means an unknown size. It is closed
// after the test.
func Open(t testing.TB, columns, lines int) *Terminal {
	t.Helper()
	control, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(control, &pty.Winsize{Cols: uint16(columns), Rows: uint16(lines)}); err != nil {
		t.Fatal(err)
	}
	control = closable(t, control)
	term := &Terminal{TTY: tty, t: t, control: control, read: make(chan struct{})}
	t.Cleanup(func() { tty.Close(); control.Close(); <-term.read })
	go func() {
		defer close(term.read)
		buf := make([]byte, 1<<15)
		for ended := false; ; {
			n, err := control.Read(buf)
			term.mu.Lock()
			term.out.Write(buf[:n])
			whole := bytes.Contains(term.out.Bytes(), []byte(end))
			term.mu.Unlock()
			// On Linux, EIO means that all programs have closed the terminal. The read may miss
			// the last output, which the next read returns.
			if whole || err != nil && (ended || !errors.Is(err, syscall.EIO)) {
				return
			}
			ended = err != nil
		}
	}()
	return term
}

// closable returns the file in a mode in which closing it ends reads.
func closable(t testing.TB, f *os.File) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}

// end is written when all programs have ended: on Linux a reader does not always see that all
// have closed the terminal.
const end = "\x00end\x00"

// Start starts a program on a new terminal with this many columns and lines, and returns
// the other end. It is for benchmarks, not for tests.
func Start(cmd *exec.Cmd, columns, lines int) (*os.File, error) {
	return pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(columns), Rows: uint16(lines)})
}

// Output closes the program's end, and returns all that was written there, with "\n" for
// newlines.
func (t *Terminal) Output() string {
	t.t.Helper()
	_, _ = t.TTY.WriteString(end) // TTY may be closed already
	t.TTY.Close()
	select {
	case <-t.read:
	case <-time.After(time.Minute):
		t.t.Fatal("the output of the terminal cannot be read to its end")
	}
	return t.Seen()
}

// Seen returns the output so far.
func (t *Terminal) Seen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	written, _, _ := strings.Cut(t.out.String(), end)
	return strings.ReplaceAll(written, "\r\n", "\n")
}

// Await waits until a text was written, for at most a minute.
func (t *Terminal) Await(text string) {
	t.t.Helper()
	t.Until(func(seen string) bool { return strings.Contains(seen, text) })
}

// Until waits until done returns true for the output so far, for at most a minute.
func (t *Terminal) Until(done func(seen string) bool) {
	t.t.Helper()
	for end := time.Now().Add(time.Minute); !done(t.Seen()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.t.Fatalf("the awaited output was not written within a minute; the output is\n%q", t.Seen())
		}
	}
}

// Type writes to the terminal as a keyboard does; \x03 is ^C.
func (t *Terminal) Type(keys string) {
	t.t.Helper()
	if _, err := t.control.WriteString(keys); err != nil {
		t.t.Fatal(err)
	}
}

// Press types a key, and again each second, until done returns true, for at most a minute:
// programs discard input while they handle ^C.
func (t *Terminal) Press(key string, done func() bool) {
	t.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		t.Type(key)
		for again := time.Now().Add(time.Second); time.Now().Before(again); time.Sleep(5 * time.Millisecond) {
			if done() {
				return
			}
		}
	}
	t.t.Fatalf("%q had no effect within a minute; the output is\n%q", key, t.Seen())
}

// Command returns a program with the terminal as its controlling terminal, and with env added to
// the environment.
func (t *Terminal) Command(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TTY, t.TTY, t.TTY
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return cmd
}

// sgr matches escape sequences for colours and styles.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Plain returns text without colours.
func Plain(text string) string { return sgr.ReplaceAllString(text, "") }

// Columns returns the number of columns of a line without colours, by the tables of Unicode. It
// shares no code with the programs. It counts joined characters separately, so it never returns
// too little.
func Columns(line string) int {
	n := 0
	for _, r := range line {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			n += 2
		default:
			if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
				n++
			}
		}
	}
	return n
}

// Hangup closes the test's end, as a terminal does whose window is closed.
func (t *Terminal) Hangup() { t.control.Close() }
