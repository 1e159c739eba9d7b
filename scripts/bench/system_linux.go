package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// syncDisk syncs the file system of the directory fd.
func syncDisk(fd int) error { return unix.Syncfs(fd) }

// loopbackOnly lets a socket for all addresses hear of this machine alone.
func loopbackOnly(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") }); cerr != nil {
		return cerr
	}
	return err
}
