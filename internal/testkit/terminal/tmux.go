package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tmux is a terminal with a screen. tmux, which shares no code with the programs, renders their
// output as a user would see it.
type Tmux struct {
	Width, Height int

	t      testing.TB
	socket string
}

// NewTmux runs a command of /bin/sh on a screen with this many columns and lines. When the
// command has ended, the screen stays. If tmux is not installed, the test is skipped.
func NewTmux(t testing.TB, columns, lines int, env []string, script string) *Tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed, which draws the screen")
	}
	// The path of the test's own directory may be too long for a socket.
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	x := &Tmux{Width: columns, Height: lines, t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = x.command("kill-server").Run()
		os.RemoveAll(dir)
	})
	// Run the command in a shell with job control, like a user's.
	cmd := x.command("new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines), "-s", "t", "sh", "-c",
		script+"\nexec cat")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	return x
}

func (x *Tmux) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", x.socket, "-f", os.DevNull}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "TMUX_PANE=", "LC_ALL=C.UTF-8")
	return cmd
}

func (x *Tmux) run(args ...string) string {
	x.t.Helper()
	out, err := x.command(args...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// typing is the pause of a person before a key. Keys of one call are one write, without pauses.
const typing = 40 * time.Millisecond

// Keys types keys by tmux's names for them: "Enter", "C-d", "Escape", or characters.
func (x *Tmux) Keys(keys ...string) {
	x.t.Helper()
	time.Sleep(typing)
	x.run(append([]string{"send-keys", "-t", "t"}, keys...)...)
}

// Type types text.
func (x *Tmux) Type(text string) {
	x.t.Helper()
	time.Sleep(typing)
	x.run("send-keys", "-t", "t", "-l", text)
}

// Resize changes the size of the screen.
func (x *Tmux) Resize(columns, lines int) {
	x.t.Helper()
	x.run("resize-window", "-t", "t", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(lines))
	x.Width, x.Height = columns, lines
}

// Screen returns the lines of the screen, without blanks at their ends.
func (x *Tmux) Screen() []string {
	x.t.Helper()
	return strings.Split(strings.TrimSuffix(x.run("capture-pane", "-p", "-t", "t"), "\n"), "\n")
}

// Tell returns a property of the pane by a format of tmux, such as #{pane_title}.
func (x *Tmux) Tell(format string) string {
	x.t.Helper()
	return strings.TrimSuffix(x.run("display-message", "-p", "-t", "t", format), "\n")
}

// Until waits until done returns true for the screen, for at most a minute, and returns the
// screen.
func (x *Tmux) Until(what string, done func(lines []string) bool) []string {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		lines := x.Screen()
		if done(lines) {
			return lines
		}
		if time.Now().After(end) {
			x.t.Fatalf("%s: not seen within a minute; the screen is\n%s", what, strings.Join(lines, "\n"))
		}
	}
}

// Await waits until a text is on the screen.
func (x *Tmux) Await(text string) []string {
	x.t.Helper()
	return x.Until(fmt.Sprintf("%q", text), func(lines []string) bool {
		return strings.Contains(strings.Join(lines,
			"\n"), text)
	})
}

// Styled is like [Tmux.Screen], with the escape sequences of colours and styles.
func (x *Tmux) Styled() []string {
	x.t.Helper()
	return strings.Split(strings.TrimSuffix(x.run("capture-pane", "-p", "-e", "-t", "t"), "\n"), "\n")
}
