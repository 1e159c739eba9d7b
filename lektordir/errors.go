package lektordir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// NotLektorDirError is returned by [Open] for a path that is not a lektor-dir.
type NotLektorDirError struct {
	Path    string
	Missing []string // names from tmp, new, cur and src; all if Path itself is missing
	Err     error    // why, when it is not just missing
}

func (e *NotLektorDirError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s is no lektor-dir: %v", e.Path, e.Err)
	}
	if len(e.Missing) == 4 {
		if _, err := os.Stat(e.Path); err != nil {
			return fmt.Sprintf("there is no lektor-dir at %s", e.Path)
		}
	}
	return fmt.Sprintf("%s is no lektor-dir: it has no directory %s", e.Path, strings.Join(e.Missing, ", "))
}

func (e *NotLektorDirError) Unwrap() error { return e.Err }

// MalformedError is the error for a name, an entry or a feed that is not as lektor-dir(5) has
// it. A walk goes on past it.
type MalformedError struct {
	Path   string // relative to the lektor-dir
	Reason string
	// NoEntry is true for a name in new/ or cur/ that is no entry's. Otherwise the entry or feed
	// lacks an obligatory file, or has something else in its place.
	NoEntry bool
	// Optional is true if a file that need not be there cannot be read, for the reason Err, which
	// names it. Without the file the entry is sound.
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

// NotFoundError is returned by [Dir.Resolve] and [Dir.FindFeed] for a name of no entry or
// feed, or of several.
type NotFoundError struct {
	Name    string
	Newer   *Ref     // the newer version that replaced the entry
	Matches []string // hashes of the feeds whose beginning Name is, if they are several
	Feed    bool     // Name is no feed's; otherwise it is no entry's
}

// noFeed returns the error for a name that is no feed's.
func noFeed(name string, matches ...string) error {
	return &NotFoundError{Name: name, Matches: matches, Feed: true}
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Newer != nil:
		return fmt.Sprintf("%s was replaced by a newer version, %s", e.Name, e.Newer.Path())
	case len(e.Matches) > 1:
		return fmt.Sprintf("%s is the beginning of %d feeds: %s", e.Name, len(e.Matches), strings.Join(e.Matches, " "))
	case e.Feed:
		return "no feed " + e.Name
	case strings.TrimSpace(e.Name) == "":
		return fmt.Sprintf("no entry %q", e.Name)
	}
	return "no entry " + e.Name
}

// isNoEntry reports whether an error is about a name that is no entry's.
func isNoEntry(err error) bool {
	bad, ok := errors.AsType[*MalformedError](err)
	return ok && bad.NoEntry
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
