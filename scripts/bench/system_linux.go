package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// syncDisk syncs the file system of the directory fd.
func syncDisk(fd int) error { return unix.Syncfs(fd) }

// loopbackOnly lets a socket for all addresses hear of this machine alone, and of
// a connection when there is a request.
func loopbackOnly(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		if err = unix.BindToDevice(int(fd), "lo"); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 5)
		}
	}); cerr != nil {
		return cerr
	}
	return err
}
