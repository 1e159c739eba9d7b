package feedfiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
	"golang.org/x/sys/unix"
)

// HasPassword reports whether a URL has a user name or a password. A user name alone may be a token.
func HasPassword(url string) bool { return feedurl.Public(url) != url }

// IsPrivateURL reports whether a URL is private: it has a password, or names a command or a file of this
// machine.
func IsPrivateURL(url string) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(url)), ":")
	return HasPassword(url) || scheme == "exec" || scheme == "file"
}

// IsSecret reports whether only the user may read a value, regardless of other settings. Headers and
// commands may contain tokens.
func IsSecret(name, value string) bool {
	switch name {
	case FileHeaders, FileFilter:
		return value != ""
	case FileURL, FileFrom, FileFinal, FileMoved, "id":
		url, _, _ := strings.Cut(value, "\t")
		return IsPrivateURL(url)
	}
	return false
}

// SecretFiles lists the files, relative to src/$feed, that only the user may read if a feed is
// [settings.Withheld]. They have headers, commands or URLs, which may contain tokens.
var SecretFiles = []string{"id", PathURL, "etc/fetch/" + FileFrom, "etc/fetch/" + FileFinal, "etc/fetch/" + FileMoved,
	"etc/fetch/" + FileHeaders, "etc/fetch/" + FileFilter}

// Hide removes the permissions of other users from the file at path, and creates the file if necessary:
// a later replacement keeps the mode. If path is a symbolic link, Hide removes it first.
func Hide(path string) error {
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

// HideID makes the id file of a feed readable by the user only, if id is a private URL.
func HideID(d *lektordir.Dir, hash, id string) error {
	if !IsSecret("id", id) {
		return nil
	}
	return Hide(filepath.Join(d.Join("src", hash), "id"))
}

// Trusted returns an error if a command of a feed (an exec: URL, a filter) must not be run, because
// another user may have written it: the lektor-dir and everything on the path to the file of the
// setting must belong to the user of this process, and nobody else may have write permission; see
// [atomicfile.Trusted]. If setting is empty, Trusted checks the directory of the settings; if
// hash is empty, it checks src. The error has the reason and the remedy.
func Trusted(d *lektordir.Dir, hash, setting string) error {
	if hash == "" {
		return TrustedFile(d, "src")
	}
	return TrustedFile(d, "src", hash, "etc", "fetch", setting)
}

// TrustedFile is [Trusted] for any file of the lektor-dir that contains commands. parts are the
// directories on the path, and the file.
func TrustedFile(d *lektordir.Dir, parts ...string) error {
	path := d.Path()
	for _, part := range append([]string{""}, parts...) {
		path = filepath.Join(path, part)
		if err := atomicfile.Trusted(path, "commands from it are not run"); err != nil {
			return err
		}
	}
	return nil
}
