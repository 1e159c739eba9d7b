//go:build !linux

package dirfs

// fsSync would sync a whole file system by one call. This system has no call that reports errors.
type fsSync struct{}

func openFSSync(string) (*fsSync, bool, error) { return nil, false, nil }
func (*fsSync) sync() error                    { return nil }
func (*fsSync) close()                         {}

// syncFS does nothing: this system has no call for one file system, and sync(2) need not wait.
func syncFS(string) (done bool, err error) { return false, nil }

// Several machines can use one lektor-dir only on Linux.

func sharedFS(string) bool { return false }
func Refresh(string)       {}
