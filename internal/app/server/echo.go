package server

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// withoutEcho makes a terminal show nothing of what is typed, and returns the function that makes
// it as before. Lines are edited, and ^C is a signal, also if the terminal was left otherwise. If the
// user stops the program by ^Z, the shell lets the terminal show what is typed; when the program
// continues, it shows nothing again.
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
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	if err := off(); err != nil {
		signal.Stop(continued)
		return nil, err
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-continued:
				_ = off()
			case <-end:
				return
			}
		}
	}()
	return func() error {
		signal.Stop(continued)
		close(end)
		<-ended
		return unix.IoctlSetTermios(fd, setTermios, before)
	}, nil
}
