package feeddir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// Shareable tells whether a feed may be told of in what leaves the machine:
// published documents, pages, lists for others. One that is fetched with a
// password, with headers of its own, through a filter, by a command or from a
// file is the user's own business unless he names it, and so is one that he
// marked private. why says which, in words that follow "the feed" in a sentence.
// What cannot be looked at is not shared. Tokens in the path or query of a URL
// cannot be told from other text: such a feed is marked private by its user.
func Shareable(d *lektordir.Dir, hash string) (why string, ok bool) {
	if isPrivate(d, hash) {
		return "is marked private", false
	}
	for _, f := range []struct{ path, why string }{
		{"etc/fetch/" + fileHeaders, "is asked for with headers of its own"},
		{"etc/fetch/" + fileFilter, "goes through a filter"},
	} {
		if fi, err := os.Lstat(d.Join("src", hash, f.path)); err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular()) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.why, false
		}
	}
	for _, path := range []string{urlFile, "id"} {
		line, err := atomicfile.Line(d.Join("src", hash, path))
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), ":")
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "has a " + path + " that cannot be read", false
		case hasPassword(line):
			return "has a password or user name in its URL", false
		case scheme == "exec":
			return "comes from a command", false
		case scheme == "file":
			return "comes from a file", false
		}
	}
	return "", true
}

// Unreadable is the error if what [Shareable] asks of a feed cannot be read, so that it
// was only not known whether the feed may be.
func Unreadable(d *lektordir.Dir, hash string) error {
	for _, path := range []string{privateFile, urlFile, "id"} {
		if _, err := atomicfile.Line(d.Join("src", hash, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// neverFile keeps a feed from being shared with the user's own other machines.
const neverFile = "etc/share/never"

// Never tells whether the user said, by the file src/$feed/etc/share/never, that a
// feed stays on this machine.
func Never(d *lektordir.Dir, hash string) bool {
	_, err := os.Lstat(d.Join("src", hash, neverFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// isPrivate tells whether the user marked a feed private. Any file will do but one
// that says no: whoever makes an empty one means yes.
func isPrivate(d *lektordir.Dir, hash string) bool {
	line, err := atomicfile.Line(d.Join("src", hash, privateFile))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return !strings.EqualFold(strings.TrimSpace(line), "no")
}

// hasPassword tells whether a URL has userinfo, in which a user name alone may be
// a token.
func hasPassword(url string) bool { return fetch.Public(url) != url }

// secret tells whether a value is for nobody but the user. Headers are where
// tokens are.
func secret(name, value string) bool {
	switch name {
	case fileHeaders:
		return value != ""
	case fileURL, fileFrom, "id":
		url, _, _ := strings.Cut(value, "\t")
		return hasPassword(url)
	}
	return false
}

// guard makes the file at path one that only the user can read, and makes it if
// need be: whoever replaces it then keeps the mode. A link in its place is
// removed.
func guard(path string) error {
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.Mode().Perm()&0o077 == 0 {
		return err
	}
	return f.Chmod(0o600)
}

// GuardID makes the id of a feed one that only the user can read, if it holds a
// password.
func GuardID(d *lektordir.Dir, hash, id string) error {
	if !secret("id", id) {
		return nil
	}
	return guard(filepath.Join(d.Join("src", hash), "id"))
}
