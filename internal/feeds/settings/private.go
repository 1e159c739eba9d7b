package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
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
		{"etc/fetch/" + feedfiles.FileHeaders, "is fetched with headers of its own"},
		{"etc/fetch/" + feedfiles.FileFilter, "goes through a filter"},
	} {
		if fi, err := os.Lstat(d.Join("src", hash, f.path)); err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular()) ||
			err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.why, err
		}
	}
	for _, path := range []string{feedfiles.PathURL, "id"} {
		line, err := atomicfile.Line(d.Join("src", hash, path))
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), ":")
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "has a " + path + " that cannot be read", err
		case feedfiles.HasPassword(line):
			return "has a password or user name in its URL", nil
		case scheme == "exec":
			return "comes from a command", nil
		case scheme == "file":
			return "comes from a file", nil
		}
	}
	return "", nil
}

// NeverShared reports whether the user excluded a feed from sharing, by the file
// src/$feed/etc/share/never.
func NeverShared(d *lektordir.Dir, hash string) bool {
	_, err := os.Lstat(d.Join("src", hash, feedfiles.PathNever))
	return !errors.Is(err, fs.ErrNotExist)
}

// IsPrivate reports whether the user marked a feed private: the file exists and its text is not "no". An
// empty file means yes.
func IsPrivate(d *lektordir.Dir, hash string) bool {
	private, _ := readPrivate(d, hash)
	return private
}

// readPrivate is IsPrivate, with an error if the file cannot be read.
func readPrivate(d *lektordir.Dir, hash string) (bool, error) {
	line, err := atomicfile.Line(d.Join("src", hash, feedfiles.PathPrivate))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, err
	}
	return !strings.EqualFold(strings.TrimSpace(line), "no"), nil
}

// Exposed returns the secret files of a withheld feed that others may read, relative to the
// lektor-dir. If hide is set, it removes the permissions of others.
func Exposed(d *lektordir.Dir, hash string, hide bool) (paths []string, err error) {
	why, err := Withheld(d, hash)
	if err != nil || why == "" {
		return nil, err
	}
	for _, name := range feedfiles.SecretFiles {
		rel := filepath.Join("src", hash, name)
		fi, lerr := os.Lstat(d.Join(rel))
		if lerr != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o077 == 0 {
			continue
		}
		paths = append(paths, rel)
		if hide {
			err = errors.Join(err, feedfiles.Hide(d.Join(rel)))
		}
	}
	return paths, err
}

// Protect hides the files that [Exposed] returns.
func Protect(d *lektordir.Dir, hash string) error { _, err := Exposed(d, hash, true); return err }
