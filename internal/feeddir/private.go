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

// Withheld returns why a feed may not be told of in what leaves the machine (published
// documents, pages, lists for others), in words that follow "the feed" in a sentence; "" if
// it may. A feed that is fetched with a password, with headers of its own, through a filter,
// by a command or from a file is the user's own business unless he names it, and so is one
// that he marked private. Tokens in the path or query of a URL cannot be told from other
// text: such a feed is marked private by its user.
//
// A feed of which something could not be read is withheld too, and err says why.
func Withheld(d *lektordir.Dir, hash string) (why string, err error) {
	private, err := readPrivate(d, hash)
	if private {
		return "is marked private", err
	}
	for _, f := range []struct{ path, why string }{
		{"etc/fetch/" + fileHeaders, "is asked for with headers of its own"},
		{"etc/fetch/" + fileFilter, "goes through a filter"},
	} {
		if fi, err := os.Lstat(d.Join("src", hash, f.path)); err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular()) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.why, err
		}
	}
	for _, path := range []string{urlFile, "id"} {
		line, err := atomicfile.Line(d.Join("src", hash, path))
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), ":")
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "has a " + path + " that cannot be read", err
		case hasPassword(line):
			return "has a password or user name in its URL", nil
		case scheme == "exec":
			return "comes from a command", nil
		case scheme == "file":
			return "comes from a file", nil
		}
	}
	return "", nil
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
	private, _ := readPrivate(d, hash)
	return private
}

// readPrivate is isPrivate with the error if that could not be read.
func readPrivate(d *lektordir.Dir, hash string) (bool, error) {
	line, err := atomicfile.Line(d.Join("src", hash, privateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, err
	}
	return !strings.EqualFold(strings.TrimSpace(line), "no"), nil
}

// hasPassword tells whether a URL has userinfo, in which a user name alone may be
// a token.
func hasPassword(url string) bool { return fetch.Public(url) != url }

// ownURL reports whether a URL is the user's own business: it has a password, or names a
// command or a file of this machine.
func ownURL(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(url)), ":")
	return hasPassword(url) || scheme == "exec" || scheme == "file"
}

// secret reports whether a value is for nobody but the user, whatever else is set of the
// feed. Headers and commands are where tokens are.
func secret(name, value string) bool {
	switch name {
	case fileHeaders, fileFilter:
		return value != ""
	case fileURL, fileFrom, fileFinal, fileMoved, "id":
		url, _, _ := strings.Cut(value, "\t")
		return ownURL(url)
	}
	return false
}

// secretFiles are the files that are for nobody but the user if a feed is [Withheld],
// relative to src/$feed: all that have its URLs, in which there may be tokens.
var secretFiles = []string{"id", urlFile, "etc/fetch/" + fileFrom, "etc/fetch/" + fileFinal, "etc/fetch/" + fileMoved, "etc/fetch/" + fileHeaders, "etc/fetch/" + fileFilter}

// Open returns those files of a feed that others may read and should not, relative to the
// lektor-dir.
func Open(d *lektordir.Dir, hash string) (paths []string, err error) {
	why, err := Withheld(d, hash)
	if err != nil || why == "" {
		return nil, err
	}
	for _, name := range secretFiles {
		rel := filepath.Join("src", hash, name)
		fi, err := os.Lstat(d.Join(rel))
		if err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o077 != 0 {
			paths = append(paths, rel)
		}
	}
	return paths, nil
}

// Shut makes the files that [Open] returns files that only the user can read.
func Shut(d *lektordir.Dir, hash string) error {
	paths, err := Open(d, hash)
	for _, rel := range paths {
		err = errors.Join(err, guard(d.Join(rel)))
	}
	return err
}

// noteFile is there when the user was told that others may read the lektor-dir.
const noteFile = markersDir + "/told-open"

// NoteOpen records that the user is told that others may read the lektor-dir, and reports
// whether that is new.
func NoteOpen(d *lektordir.Dir) bool {
	path := d.Join(noteFile)
	if _, err := os.Lstat(path); err == nil {
		return false
	}
	if atomicfile.NoLinks(d.Path(), markersDir) == nil {
		_ = atomicfile.WriteUnsynced(path, nil) // else the user is told again
	}
	return true
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

// GuardID makes the id of a feed one that only the user can read, if it is a URL that is
// the user's own.
func GuardID(d *lektordir.Dir, hash, id string) error {
	if !secret("id", id) {
		return nil
	}
	return guard(filepath.Join(d.Join("src", hash), "id"))
}
