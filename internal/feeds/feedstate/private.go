package feedstate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Withheld returns the reason why a feed must not be published in documents, pages or lists for others,
// or "" if it may. The reason is a text that follows "the feed". A feed is withheld if the user marked it
// private, or if it is fetched with a password, with headers, through a filter, by a command or from a
// file. Tokens in the path or query of a URL cannot be recognised: the user must mark such a feed private.
//
// If a file that decides this cannot be read, the feed is withheld, and err is not nil.
func Withheld(d *lektordir.Dir, hash string) (why string, err error) {
	private, err := readPrivate(d, hash)
	if private {
		return "is marked private", err
	}
	for _, f := range []struct{ path, why string }{
		{"etc/fetch/" + fileHeaders, "is fetched with headers of its own"},
		{"etc/fetch/" + fileFilter, "goes through a filter"},
	} {
		if fi, err := os.Lstat(d.Join("src", hash, f.path)); err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular()) ||
			err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// neverFile keeps a feed from being shared with the user's other machines.
const neverFile = "etc/share/never"

// NeverShared reports whether the user excluded a feed from sharing, by the file
// src/$feed/etc/share/never.
func NeverShared(d *lektordir.Dir, hash string) bool {
	_, err := os.Lstat(d.Join("src", hash, neverFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// isPrivate reports whether the user marked a feed private: the file exists and its text is not "no". An
// empty file means yes.
func isPrivate(d *lektordir.Dir, hash string) bool {
	private, _ := readPrivate(d, hash)
	return private
}

// readPrivate is isPrivate, with an error if the file cannot be read.
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

// hasPassword reports whether a URL has a user name or a password. A user name alone may be a token.
func hasPassword(url string) bool { return feedurl.Public(url) != url }

// ownURL reports whether a URL is private: it has a password, or names a command or a file of this
// machine.
func ownURL(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(url)), ":")
	return hasPassword(url) || scheme == "exec" || scheme == "file"
}

// secret reports whether only the user may read a value, regardless of other settings. Headers and
// commands may contain tokens.
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

// secretFiles lists the files, relative to src/$feed, that only the user may read if a feed is
// [Withheld]. They have headers, commands or URLs, which may contain tokens.
var secretFiles = []string{"id", urlFile, "etc/fetch/" + fileFrom, "etc/fetch/" + fileFinal, "etc/fetch/" + fileMoved,
	"etc/fetch/" + fileHeaders, "etc/fetch/" + fileFilter}

// Exposed returns the secret files of a withheld feed that others may read, relative to the
// lektor-dir.
func Exposed(d *lektordir.Dir, hash string) (paths []string, err error) {
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

// Protect removes the permissions of other users from the files that [Exposed] returns.
func Protect(d *lektordir.Dir, hash string) error {
	paths, err := Exposed(d, hash)
	for _, rel := range paths {
		err = errors.Join(err, guard(d.Join(rel)))
	}
	return err
}

// warnedFile exists if the user was warned that others may read the lektor-dir.
const warnedFile = markersDir + "/told-open"

// RecordOpenWarning records the warning that others may read the lektor-dir, and reports whether it is the
// first.
func RecordOpenWarning(d *lektordir.Dir) bool {
	path := d.Join(warnedFile)
	if _, err := os.Lstat(path); err == nil {
		return false
	}
	if atomicfile.NoLinks(d.Path(), markersDir) == nil {
		_ = atomicfile.WriteUnsynced(path, nil) // if it fails, the user is warned again
	}
	return true
}

// guard removes the permissions of other users from the file at path, and creates the file if necessary:
// a later replacement keeps the mode. If path is a symbolic link, guard removes it first.
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

// GuardID makes the id file of a feed readable by the user only, if id is a private URL.
func GuardID(d *lektordir.Dir, hash, id string) error {
	if !secret("id", id) {
		return nil
	}
	return guard(filepath.Join(d.Join("src", hash), "id"))
}
