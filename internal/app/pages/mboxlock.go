package pages

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
)

// errLocked tells that somebody else has a mailbox locked.
var errLocked = errors.New("locked by another program")

// lockMbox opens a mailbox, which is made if need be, and takes both locks, without
// waiting. owner is who has them then.
func lockMbox(path, owner string) (*os.File, func(), error) {
	// Not O_APPEND, with which nothing is written at an offset.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil, err
	}
	unlock := func() { _ = f.Close() }
	err = atomicfile.Retry(func() error {
		return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	})
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		unlock()
		return nil, nil, fmt.Errorf("%s is %w", path, errLocked)
	case err != nil:
		unlock()
		return nil, nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	// Somebody may have put another file in its place meanwhile.
	if there, err := atomicfile.InPlace(f); err != nil || !there {
		unlock()
		return nil, nil, fmt.Errorf("%s is %w", path, errLocked)
	}
	dot := path + ".lock"
	if err := takeDot(dot, owner); err != nil {
		unlock()
		return nil, nil, err
	}
	return f, func() {
		_ = os.Remove(dot)
		unlock()
	}, nil
}

// takeDot makes the file that is the other lock. It holds the process and the host,
// as those of other programs do, and who we are.
func takeDot(dot, owner string) error {
	f, err := os.OpenFile(dot, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return command.Hint(fmt.Errorf("%s is %w", strings.TrimSuffix(dot, ".lock"), errLocked), "if no mail program is at work on it, remove %s", dot)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d:%s\n", os.Getpid(), owner)
	return errors.Join(err, f.Close())
}

// dropDot removes a lock that a kill of ours has left. Whoever calls it knows that no
// process of ours has it; others do not write what we do.
func dropDot(dot, owner string) {
	line, err := atomicfile.Line(dot)
	if _, whose, ok := strings.Cut(line, ":"); err == nil && ok && whose == owner {
		_ = os.Remove(dot)
	}
}
