package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// onTerminal is a command on the terminal. It is in the group of processes that the shell
// started as one, so what is typed there (^C, ^Z) is for it and for us.
type onTerminal struct {
	*exec.Cmd
	wait     bool // for Enter, when it has ended
	terminal *tty
}

func (c *onTerminal) SetStdin(r io.Reader)  { c.Stdin = r }
func (c *onTerminal) SetStdout(io.Writer)   { c.Stdout = c.terminal.out }
func (c *onTerminal) SetStderr(w io.Writer) { c.Stderr = w }

// Run runs the command and waits for Enter, if that is wanted.
func (c *onTerminal) Run() error {
	t := c.terminal
	before := hold(t.out)
	t.children.Add(1)
	err := c.Start()
	if err == nil {
		err = c.await()
	}
	t.childDone()
	before.takeBack(c.Process, err)
	select {
	case <-t.ending:
		return err // nobody is there to press Enter
	default:
	}
	if !c.wait {
		return err
	}
	if err != nil {
		fmt.Fprintln(c.Stdout, err)
	}
	c.awaitEnter()
	return nil
}

// errLeft is the error of a command that did not end when the reader had to.
var errLeft = errors.New("it runs on")

// patience is how long a command may take to end when the reader has to.
const patience = 2 * time.Second

// await waits for the command to end. When the reader is to end meanwhile, the command is
// asked to do so first, as both cannot have the terminal with the shell. One that does not is
// left to itself: it may have what its user has not saved.
func (c *onTerminal) await() error {
	ended := make(chan error, 1)
	go func() { ended <- reap(c.Process) }()
	select {
	case err := <-ended:
		return err
	case <-c.terminal.ending:
	}
	// An interactive shell heeds the second only.
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		_ = c.Process.Signal(s)
		_ = c.Process.Signal(syscall.SIGCONT) // a stopped one would not see it
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
		}
	}
	return errLeft
}

// reap waits for a process to end, and returns nil or how it failed. When it is stopped, as by
// ^Z, so are we with it: it is us that the shell waits for, and nobody else would let the
// process go on. A command that heeds no ^Z does not stop us either.
func reap(p *os.Process) error {
	defer p.Release() //nolint:errcheck // the process has ended
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case status.Stopped():
			// The shell lets all of our group go on. A signal of ours behind that could take back
			// the next ^Z; it is for a command in another group, or if no shell is there.
			err := stopping{}.Run()
			if group, gerr := unix.Getpgid(p.Pid); err != nil || gerr != nil || group != unix.Getpgrp() {
				_ = syscall.Kill(p.Pid, syscall.SIGCONT)
			}
		case status.Exited() && status.ExitStatus() == 0:
			return nil
		default:
			return failure(status)
		}
	}
}

// failure is how a process ended that failed.
type failure syscall.WaitStatus

func (f failure) killed() bool { return syscall.WaitStatus(f).Signaled() }

func (f failure) Error() string {
	status := syscall.WaitStatus(f)
	if f.killed() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// awaitEnter waits until somebody has seen what a command has printed: for Enter, or ^C or
// ^D, which mean the same here. Signals from keys are off, so that all of them are read.
func (c *onTerminal) awaitEnter() {
	in, ok := c.Stdin.(*os.File)
	if !ok {
		return
	}
	keys := make(chan byte)
	go func() {
		defer close(keys)
		one := make([]byte, 1)
		for one[0] != '\r' && one[0] != '\n' && one[0] != 3 && one[0] != 4 {
			if n, err := in.Read(one); n == 0 || err != nil {
				return
			}
			select {
			case keys <- one[0]:
			case <-c.terminal.ending:
				return
			}
		}
	}()
	for ask := true; ask; {
		ask = false
		state, err := term.MakeRaw(int(in.Fd()))
		fmt.Fprint(c.Stdout, "\r\n[Enter]")
		for reads := true; reads; {
			select {
			case key, more := <-keys:
				ask = key == 26 // ^Z
				reads = more && !ask
			case <-c.terminal.ending:
				reads = false
			}
		}
		if err == nil {
			_ = term.Restore(int(in.Fd()), state)
		}
		if ask {
			_ = stopping{}.Run()
		}
	}
}

// held is a terminal as it was when a command got it.
type held struct {
	file  *os.File
	state *term.State
	ours  bool // we were in its foreground
}

func hold(file *os.File) held {
	h := held{file: file}
	if file != nil {
		h.state, _ = term.GetState(int(file.Fd()))
		group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
		h.ours = err == nil && group == unix.Getpgrp()
	}
	return h
}

// afterKilled undoes what a program that draws asks of a terminal, and had no time to take
// back: keys and a mouse that send more, margins, colours, a cursor that is not seen. (Its
// screen, if it had one of its own, is ours from now on.)
const afterKilled = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[>4m\x1b[?7h\x1b7\x1b[r\x1b8\x1b[0m\x1b[?25h"

// takeBack makes the terminal as it was, whatever a command that died left of it.
func (h held) takeBack(p *os.Process, err error) {
	if h.file == nil || h.state == nil {
		return
	}
	fd := int(h.file.Fd())
	// A shell that was killed leaves the terminal to a group in which there is nobody. One that
	// somebody is in has it by right: it is that of the shell when we were sent to the
	// background.
	group, gerr := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if own := unix.Getpgrp(); h.ours && gerr == nil && group != own && (p != nil && group == p.Pid || errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)) {
		if !signal.Ignored(syscall.SIGTTOU) {
			signal.Ignore(syscall.SIGTTOU) // which would stop us in the background
			defer signal.Reset(syscall.SIGTTOU)
		}
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, own)
	}
	_ = term.Restore(fd, h.state)
	var f failure
	if errors.As(err, &f) && f.killed() && syscall.WaitStatus(f).Signal() != syscall.SIGINT {
		_, _ = h.file.WriteString(afterKilled)
	}
}

// stopping stops the process until the shell lets it go on, while the terminal is as
// that left it.
type stopping struct{}

func (stopping) SetStdin(io.Reader)  {}
func (stopping) SetStdout(io.Writer) {}
func (stopping) SetStderr(io.Writer) {}

// Run stops all of what the shell started as one, as the terminal would. It takes
// SIGSTOP for that: the Go runtime swallows SIGTSTP once somebody was notified of it.
func (s stopping) Run() error {
	if leader, err := unix.Getsid(0); err != nil || leader == unix.Getpgrp() {
		return errors.New("there is no shell that could resume it")
	}
	goes := make(chan os.Signal, 1)
	signal.Notify(goes, syscall.SIGCONT)
	defer signal.Stop(goes)
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-goes:
	case <-time.After(time.Second):
	}
	return nil
}
