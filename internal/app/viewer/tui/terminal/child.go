package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Child is a command that runs on the terminal. It has a process group of its own in the foreground, so that ^C and ^Z
// send signals to it alone.
type Child struct {
	*exec.Cmd
	*Terminal
	Wait bool // wait for Enter after the command has ended
	pid  int
}

// Run runs the command, restores the terminal, and waits for Enter if c.wait is set. The terminal is the standard input
// of the command, unless that has another.
func (c *Child) Run() error {
	t := c.Terminal
	if c.Stdin == nil {
		c.Stdin = t.in
	}
	c.Stdout, c.Stderr = t.out, os.Stderr
	restore := t.save()
	if t.owned() {
		c.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: int(t.out.Fd())}
	}
	err := c.Start()
	if err == nil {
		c.pid = c.Process.Pid
		err = c.await()
	}
	if c.SysProcAttr != nil {
		t.await(c.pid)
	}
	restore(err)
	select {
	case <-t.ending:
		return err // the reader is ending: do not wait for Enter
	default:
	}
	if !c.Wait {
		return err
	}
	if err != nil {
		fmt.Fprintln(c.Stdout, err)
	}
	c.awaitEnter()
	return nil
}

// errStillRuns is the error of a command that did not end when the reader ended.
var errStillRuns = errors.New("the command did not end and is still running")

// patience is how long a command may take to end after each signal that asks it to.
const patience = 2 * time.Second

// await waits for the command to end. If the reader has to end first, it asks the command to
// end by SIGTERM and SIGHUP, because the command and the shell cannot share the terminal. A
// command that ignores both is left running: it may hold unsaved work.
func (c *Child) await() error {
	ended := make(chan error, 1)
	go func() { ended <- c.reap() }()
	select {
	case err := <-ended:
		return err
	case <-c.Terminal.ending:
	}
	// An interactive shell ignores SIGTERM.
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		c.signal(s)
		c.signal(syscall.SIGCONT) // a stopped process handles no signals
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
		}
	}
	return errStillRuns
}

// signal sends a signal to the command, and to the processes in its group.
func (c *Child) signal(s syscall.Signal) {
	if c.SysProcAttr != nil {
		_ = syscall.Kill(-c.pid, s)
	} else {
		_ = syscall.Kill(c.pid, s)
	}
}

// reap waits for the command to end. It returns nil if the exit status is 0, else a failure or
// the error of the wait. If the command is stopped, for example by ^Z, the reader stops itself
// too: the shell waits for the reader, and only its fg can resume both. If the command ignores
// ^Z, the reader does not stop either.
func (c *Child) reap() error {
	defer c.Process.Release() //nolint:errcheck // the process has ended
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case status.Stopped():
			var alone error                                  // no shell could resume the reader
			if c.SysProcAttr == nil || !c.Terminal.owned() { // after bg and fg, only the command does not have it
				alone = stop() // without a shell, the command goes on at once
			}
			if c.SysProcAttr != nil && (alone != nil || c.Terminal.owned()) { // after bg, the shell has it
				c.Terminal.foreground(c.pid)
			}
			c.signal(syscall.SIGCONT)
		case status.Exited() && status.ExitStatus() == 0:
			return nil
		default:
			return failure{status}
		}
	}
}

// failure is the wait status of a process that failed. It is an error.
type failure struct{ syscall.WaitStatus }

func (f failure) Error() string {
	if f.Signaled() {
		return "signal: " + f.Signal().String()
	}
	return fmt.Sprintf("exit status %d", f.ExitStatus())
}

// awaitEnter waits for Enter, ^C or ^D, so that the user can read the output of a command. The
// terminal is raw meanwhile, so keys send no signals. ^Z stops the reader.
func (c *Child) awaitEnter() {
	in := int(c.in.Fd())
	for ask := true; ask; {
		state, err := term.MakeRaw(in)
		fmt.Fprint(c.Stdout, "\r\n[Enter]")
		pressed := make(chan byte, 1)
		go func() {
			one := make([]byte, 1)
			for !slices.Contains([]byte{'\r', '\n', 3, 4, 26}, one[0]) {
				if n, err := c.in.Read(one); n == 0 || err != nil {
					break
				}
			}
			pressed <- one[0]
		}()
		select {
		case key := <-pressed:
			ask = key == 26 // ^Z
		case <-c.Terminal.ending:
			ask = false
		}
		fmt.Fprint(c.Stdout, "\r\n")
		if err == nil {
			_ = term.Restore(in, state)
		}
		if ask {
			_ = Stopping{c.Terminal}.Run()
		}
	}
}

// afterKilled resets the modes that a full-screen program sets and had no time to reset: mouse
// reports, key modes, margins, colours and a hidden cursor. It does not leave the alternate
// screen, because the reader uses that one itself.
const afterKilled = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[>4m\x1b[?7h\x1b7\x1b[r\x1b8\x1b[0m\x1b[?25h"

// owned reports whether the reader's process group is in the foreground of the terminal.
func (t *Terminal) owned() bool {
	group, err := unix.IoctlGetInt(int(t.out.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// foreground puts a process group into the foreground of the terminal.
func (t *Terminal) foreground(group int) {
	signal.Ignore(syscall.SIGTTOU) // it would stop the reader in the background; [signal.Reset] does not undo this
	_ = unix.IoctlSetPointerInt(int(t.out.Fd()), unix.TIOCSPGRP, group)
}

// await waits until the reader is in the foreground of the terminal: after bg, the shell is, until fg. It takes the
// terminal back from a command that has ended.
func (t *Terminal) await(command int) {
	for {
		switch group, err := unix.IoctlGetInt(int(t.out.Fd()), unix.TIOCGPGRP); {
		case errors.Is(err, unix.EIO):
			t.lost() // the kernel reports it to the foreground alone
			return
		case err != nil || group == unix.Getpgrp():
			return
		case group == command || errors.Is(unix.Kill(-group, 0), unix.ESRCH):
			t.foreground(unix.Getpgrp())
			return
		}
		select {
		case <-t.ending:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// save returns the function that sets the terminal back to its present state after a command, also if the command
// was killed; err is the command's error.
func (t *Terminal) save() (restore func(err error)) {
	fd := int(t.out.Fd())
	state, stateErr := term.GetState(fd)
	return func(err error) {
		if stateErr != nil {
			return
		}
		_ = term.Restore(fd, state)
		if f, ok := errors.AsType[failure](err); ok && f.Signaled() && !t.plain && f.Signal() != syscall.SIGINT {
			_, _ = t.out.WriteString(afterKilled)
		}
	}
}

// Stopping is a [tea.ExecCommand] that stops the process group until the shell resumes it in the foreground.
// The library restores the terminal before and takes it again after.
type Stopping struct{ *Terminal }

func (s Stopping) Run() error {
	err := stop()
	s.await(0)
	return err
}

// stop stops the process group, as ^Z on the terminal would, until a process resumes it. It sends SIGSTOP: the Go
// runtime drops SIGTSTP after a call of [signal.Notify] for it.
func stop() error {
	if leader, err := unix.Getsid(0); err != nil || leader == unix.Getpgrp() {
		return errors.New("cannot stop: no shell could resume the reader")
	}
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-resumed:
	case <-time.After(time.Second):
	}
	return nil
}
