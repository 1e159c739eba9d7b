package server

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// withoutEcho makes a terminal show nothing of what is typed, and returns the function that makes
// it as before. Lines are edited, and ^C is a signal, also if the terminal was left otherwise. If the
// user stops the program by ^Z, the shell lets the terminal show what is typed; when the program
// continues, it shows nothing again. ^\, which ends the program at once, makes it as before, too.
func withoutEcho(fd int) (asBefore func() error, err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	without := *before
	without.Lflag &^= unix.ECHO
	without.Lflag |= unix.ICANON | unix.ISIG
	without.Iflag |= unix.ICRNL
	off := func() error { return unix.IoctlSetTermios(fd, setTermios, &without) }
	on := func() error { return unix.IoctlSetTermios(fd, setTermios, before) }
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGCONT, unix.SIGQUIT)
	if err := off(); err != nil {
		signal.Stop(signals)
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range signals {
			if s == unix.SIGCONT {
				_ = off()
				continue
			}
			_ = on()
			signal.Reset(unix.SIGQUIT)
			_ = unix.Kill(unix.Getpid(), unix.SIGQUIT)
		}
	}()
	return func() error {
		signal.Stop(signals) // after this none is sent, so that the channel can be closed
		close(signals)
		<-ended
		return on()
	}, nil
}
