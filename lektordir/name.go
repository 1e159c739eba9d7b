package lektordir

import (
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
)

// FeedHash returns the name of a feed's directories: the hexadecimal SHA-1 of its id.
func FeedHash(id string) string { return entryname.FeedHash(id) }

// NormalizeID returns the id of the feed at a URL. It writes scheme and host of an http or https
// URL in lower case, and removes fragment and default port; all other bytes stay. It trims
// surrounding white space, also of any other id.
func NormalizeID(id string) string {
	id = strings.TrimSpace(id)
	u, err := url.Parse(id)
	if err != nil || u.Hostname() == "" {
		return id
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" {
		return id
	}
	// The rest is cut out of the text, because net/url would change its encoding.
	_, rest, ok := strings.Cut(id, "://")
	if !ok {
		return id
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	userinfo := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		userinfo, authority = authority[:at+1], authority[at+1:]
	}
	authority = strings.ToLower(authority)
	port := ":443"
	if scheme == "http" {
		port = ":80"
	}
	// Repeated, so that NormalizeID does not change its own results.
	for old := ""; old != authority; {
		old = authority
		authority = strings.TrimSuffix(strings.TrimSuffix(authority, ":"), port)
	}
	return scheme + "://" + userinfo + authority + tail
}

// Place is one of the directories that hold entries.
type Place uint8

// The places an entry can be in.
const (
	New Place = iota // delivered, not yet taken by a viewer
	Cur              // taken by a viewer
)

func (p Place) String() string { return entryname.Place(p == Cur) }

// Ref names an entry by its place in the lektor-dir. It is valid until a viewer moves or deletes
// the entry.
type Ref struct {
	Feed   string // directory in new/ or cur/: the feed's hash
	Unique string // SECONDS.UNIQ.HOST or, by other programs, any name; without info
	Info   string // the part after the first ';' of a name in cur/
	Place  Place
	// Bare is true for a name in cur/ without ';', as simple viewers make it.
	Bare bool
	// Mtime is the mtime of the directory, in seconds since 1970, if the unique name has no time;
	// else 0. [ParsePath], which reads no directory, leaves it 0.
	Mtime int64
}

// Name returns the base name of the entry's directory.
func (r Ref) Name() string { return r.entryName().Base() }

// Path returns the entry's path relative to the lektor-dir, with slashes.
func (r Ref) Path() string { return r.entryName().Path(r.Feed) }

// Flags returns the ASCII letters after "2," in the info of an entry in cur/, in their order, or ""
// for an entry in new/. [Dir.SetFlags] describes them; other characters are no flags. For a bare
// name, or an info of another form, it returns "S", because a viewer that writes no flags has taken
// the entry.
func (r Ref) Flags() string {
	return strings.Map(func(c rune) rune {
		if !isFlag(c) {
			return -1
		}
		return c
	}, r.afterComma())
}

func isFlag(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// afterComma returns the flags, with the characters that are no flags.
func (r Ref) afterComma() string {
	if r.Place == New {
		return ""
	}
	if flags, ok := strings.CutPrefix(r.Info, "2,"); ok && !r.Bare {
		return flags
	}
	return "S"
}

// HasFlag reports whether the entry has a flag.
func (r Ref) HasFlag(flag byte) bool {
	return strings.IndexByte(r.afterComma(), flag) >= 0
}

// Unread reports whether the entry is in new/, or in cur/ without the flag S.
func (r Ref) Unread() bool {
	return r.Place == New || !r.HasFlag('S')
}

// Trashed reports whether the entry has the flag T. Viewers do not list such an entry.
func (r Ref) Trashed() bool { return r.HasFlag('T') }

// Delivered returns the time in the unique name, in UTC: seconds, and microseconds if the name
// has them. If the name has no time, it returns that of the directory.
func (r Ref) Delivered() time.Time {
	if at := entryname.Delivered(r.Unique); !at.IsZero() {
		return at
	}
	return time.Unix(r.Mtime, 0).UTC()
}

// Identity returns the 16 hexadecimal digits after I in the unique name, which all versions of
// an entry share, or "" if the name has none, as the names by other fetchers.
func (r Ref) Identity() string { return entryname.Identity(r.Unique) }

// Compare compares entries of one feed in the order of [Dir.List], which is by time of delivery.
// If two Refs have the same unique name, the one in cur/ is greater. The greatest of several
// versions of an entry is the newest.
func (r Ref) Compare(other Ref) int { return r.entryName().Compare(other.entryName()) }

// entryName returns the Ref without its feed.
func (r Ref) entryName() entryname.Name {
	return entryname.Name{Unique: r.Unique, Info: r.Info, Cur: r.Place == Cur, Bare: r.Bare, Mtime: r.Mtime}
}

// refOf returns the Ref for a name in a feed's directory.
func refOf(feed string, n entryname.Name) Ref {
	r := Ref{Feed: feed, Unique: n.Unique, Info: n.Info, Bare: n.Bare, Mtime: n.Mtime}
	if n.Cur {
		r.Place = Cur
	}
	return r
}

// parseRef parses the base name of an entry's directory.
func parseRef(place Place, feed, name string) (Ref, error) {
	n, reason := entryname.Parse(name, place == Cur)
	if reason != "" {
		return refOf(feed, n), &MalformedError{Path: path.Join(place.String(), feed, name), Reason: reason,
			NoEntry: true}
	}
	return refOf(feed, n), nil
}

// ParsePath parses a path as [Ref.Path] returns it: that of an entry in new/ or cur/, relative to
// the lektor-dir. It does not check whether the entry exists; see [Dir.Resolve]. The error is a
// [*MalformedError].
func ParsePath(rel string) (Ref, error) {
	parts := strings.Split(rel, "/")
	if len(parts) != 3 || parts[0] != New.String() && parts[0] != Cur.String() || !entryname.IsFeed(parts[1]) {
		return Ref{}, noPath(rel)
	}
	place := New
	if parts[0] == Cur.String() {
		place = Cur
	}
	return parseRef(place, parts[1], parts[2])
}

// noPath returns the error for a path that is not of the form of an entry's path.
func noPath(rel string) error {
	return &MalformedError{Path: rel, Reason: "it is not new/FEED/NAME or cur/FEED/NAME", NoEntry: true}
}

// check returns an error if [ParsePath] would not return the Ref: its fields could name a whole
// directory of entries, or a directory outside new/ and cur/.
func (r Ref) check() error {
	if !entryname.IsFeed(r.Feed) || strings.ContainsAny(r.Name(), "/\x00") {
		return noPath(r.Path())
	}
	if _, reason := entryname.Parse(r.Unique, false); reason != "" {
		return &MalformedError{Path: r.Path(), Reason: reason, NoEntry: true}
	}
	return nil
}
