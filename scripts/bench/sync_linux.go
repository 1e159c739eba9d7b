package main

import "golang.org/x/sys/unix"

// syncDisk syncs the file system of the directory fd.
func syncDisk(fd int) error { return unix.Syncfs(fd) }
