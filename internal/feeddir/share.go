package feeddir

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// filePrivate marks a feed that is not to be shared, whatever is in it.
const filePrivate = "private"

// Shareable tells whether a feed may stand in what leaves the machine: a feed that
// is published, a page, a document for others. The reason is "" if it may, else
// what makes it the user's own: it is marked private, it is fetched with headers
// or a password, from a file or a command, or through a filter. The error is that
// of reading; a feed of which it is not known is not shareable.
func Shareable(d *lektordir.Dir, hash string) (reason string, err error) {
	unknown := "its settings cannot be read"
	for _, own := range []struct{ file, reason string }{
		{filePrivate, "it is private"}, {fileHeaders, "it is fetched with headers of its own"}, {fileFilter, "it goes through a filter"},
	} {
		fi, err := os.Lstat(filepath.Join(stateDir(d, hash), own.file))
		switch {
		case err == nil && (fi.Size() > 0 || own.file == filePrivate):
			return own.reason, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return unknown, err
		}
	}
	for _, path := range []string{filepath.Join(stateDir(d, hash), fileURL), d.Join("src", hash, "id")} {
		line, err := atomicfile.Line(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unknown, err
		}
		if reason := secret(line); reason != "" {
			return reason, nil
		}
	}
	return "", nil
}

// secret tells what in a URL is not for others.
func secret(raw string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(raw)), ":")
	switch scheme {
	case "exec":
		return "it comes from a command"
	case "file":
		return "it comes from a file"
	}
	if u, err := url.Parse(strings.TrimSpace(raw)); err == nil && u.User != nil || err != nil && strings.Contains(raw, "@") {
		return "its URL has a password"
	}
	return ""
}

// InCategory tells whether a category, a path of folders, is one of a feed's, or
// above one, in capitals or not. Every feed is in "".
func InCategory(categories []string, category string) bool {
	return category == "" || slices.ContainsFunc(categories, func(c string) bool {
		return strings.EqualFold(c, category) || len(c) > len(category) && c[len(category)] == '/' && strings.EqualFold(c[:len(category)], category)
	})
}
