//go:build !linux

package dirfs

// fsSync syncs a whole file system by one call, which this system does not
// have: sync(2) tells no errors.
type fsSync struct{}

func openFSSync(string) (*fsSync, bool, error) { return nil, false, nil }
func (*fsSync) sync() error                    { return nil }
func (*fsSync) close()                         {}

// syncFS does nothing, as there is no call for one file system, and the one for all
// need not wait.
func syncFS(string) (done bool, err error) { return false, nil }

// That several machines work on one lektor-dir is for Linux.

func sharedFS(string) bool { return false }
func Refresh(string)       {}
