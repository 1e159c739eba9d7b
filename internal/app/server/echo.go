package server

import "golang.org/x/sys/unix"

// withoutEcho makes a terminal show nothing of what is typed, and returns the function that makes
// it show it again. All else stays as it is: lines are edited, and ^C is a signal.
func withoutEcho(fd int) (again func() error, err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	without := *before
	without.Lflag &^= unix.ECHO
	return func() error { return unix.IoctlSetTermios(fd, setTermios, before) }, unix.IoctlSetTermios(fd, setTermios, &without)
}
