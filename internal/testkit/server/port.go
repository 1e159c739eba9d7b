package server

import (
	"errors"
	"runtime"
	"syscall"
)

// Port reserves an unused port of 127.0.0.1 until free is called: the system assigns it to
// no other socket, and refuses connections to it. With listen, a program can still listen
// on the port by its number. Systems other than Linux allow that only if the port is not
// reserved, so there another process may get it first.
func Port(listen bool) (port int, free func(), err error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, err
	}
	free = func() { syscall.Close(fd) }
	// With SO_REUSEADDR, which package net sets too, Linux lets one of the sockets bound to a
	// port listen.
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		free()
		return 0, nil, err
	}
	name, err := syscall.Getsockname(fd)
	at, ok := name.(*syscall.SockaddrInet4)
	if err == nil && !ok {
		err = errors.New("a socket of IPv4 has an address of another kind")
	}
	if err != nil {
		free()
		return 0, nil, err
	}
	if listen && runtime.GOOS != "linux" {
		free()
		free = func() {}
	}
	return at.Port, free, nil
}
