//go:build !linux

package dirfs

import "os"

// This system has no call that syncs a whole file system and reports errors.

func openFS(string) (*os.File, error) { return nil, nil }
func syncFile(*os.File) error         { return nil }

// syncFS does nothing: this system has no call for one file system, and sync(2) need not wait.
func syncFS(string) (done bool, err error) { return false, nil }

// Several machines can use one lektor-dir only on Linux.

func sharedFS(string) bool { return false }
func Refresh(string)       {}
