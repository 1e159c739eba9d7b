//go:build !linux

package dirfs

// fsSync syncs a whole file system by one call. This system has no such call, as sync(2)
// reports no errors.
type fsSync struct{}

func openFSSync(string) (*fsSync, bool, error) { return nil, false, nil }
func (*fsSync) sync() error                    { return nil }
func (*fsSync) close()                         {}

// syncFS does nothing, as there is no call for one file system, and the one for all
// need not wait.
func syncFS(string) (done bool, err error) { return false, nil }

// Only on Linux can several machines work on one lektor-dir.

func sharedFS(string) bool { return false }
func Refresh(string)       {}
