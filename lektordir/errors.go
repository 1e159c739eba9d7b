package lektordir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// NotLektorDirError is returned by [Open] for a path that is not a lektor-dir, or that you may not
// read.
type NotLektorDirError struct {
	Path    string
	Missing []string // those of tmp, new, cur and src that are not directories
	Err     error    // the error of looking for them, or nil
}

func (e *NotLektorDirError) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("you may not read %s: %v", e.Path, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("%s is not a lektor-dir: %v", e.Path, e.Err)
	}
	if len(e.Missing) == 4 {
		if _, err := os.Stat(e.Path); err != nil {
			return fmt.Sprintf("there is no lektor-dir at %s", e.Path)
		}
	}
	return fmt.Sprintf("%s is not a lektor-dir: it has no directory %s", e.Path, strings.Join(e.Missing, ", "))
}

func (e *NotLektorDirError) Unwrap() error { return e.Err }

// MalformedError is the error for a name, an entry or a feed that does not conform to
// lektor-dir(5).
type MalformedError struct {
	Path   string // relative to the lektor-dir
	Reason string
	// NoEntry is true if a name in new/ or cur/ is not that of an entry.
	NoEntry bool
	// Optional is true if an optional file of an entry cannot be read. Err is the reason and
	// names the file; Reason is empty. Its other files can be read.
	Optional bool
	Err      error
}

func (e *MalformedError) Error() string {
	switch {
	case e.Optional:
		return e.Err.Error()
	case e.NoEntry:
		return e.Path + ": not an entry: " + e.Reason
	}
	return e.Path + ": " + e.Reason
}

func (e *MalformedError) Unwrap() error { return e.Err }

// NotFoundError is returned by [Dir.Resolve] if a name matches no entry, and by [Dir.FindFeed]
// if it matches no feed, or several.
type NotFoundError struct {
	Name    string
	Newer   *Ref     // the version that replaced the entry, or nil
	NoPath  bool     // Name is a path that no entry of the lektor-dir can have
	Matches []string // hashes of the feeds, if Name is the beginning of several
	Feed    bool     // a feed was not found; otherwise an entry
}

// noFeed returns the error for a name that does not match exactly one feed.
func noFeed(name string, matches ...string) error {
	return &NotFoundError{Name: name, Matches: matches, Feed: true}
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Newer != nil:
		return fmt.Sprintf("%s was replaced by a newer version, %s", e.Name, e.Newer.Path())
	case e.NoPath:
		return e.Name + " is not the path of an entry of this lektor-dir"
	case len(e.Matches) > 1:
		return fmt.Sprintf("%s is the beginning of %d feeds' hashes: %s", e.Name, len(e.Matches),
			strings.Join(e.Matches, " "))
	case e.Feed:
		return "no feed " + e.Name
	case strings.TrimSpace(e.Name) == "":
		return fmt.Sprintf("no entry %q", e.Name)
	}
	return "no entry " + e.Name
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
