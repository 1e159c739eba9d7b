//go:build !linux

package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncDisk syncs all file systems, as no call is for one of them.
func syncDisk(int) error { return unix.Sync() }

// loopbackOnly is an error: there is no one listener for all loopback addresses.
func loopbackOnly(_, _ string, _ syscall.RawConn) error { return errors.ErrUnsupported }
