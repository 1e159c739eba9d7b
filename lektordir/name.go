package lektordir

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
)

// FeedHash returns the name of a feed's directories: the hexadecimal SHA-1 of
// its id, without a newline (specification, "Feeds").
func FeedHash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// NormalizeID returns the id of a feed that was discovered at a URL: scheme and
// host in lower case, no fragment, no default port; all else stays as it is,
// byte for byte. An id that is not a URL with a host is opaque, and is only trimmed of
// surrounding white space.
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
	// The rest is cut out of the text rather than put together by net/url,
	// which would encode anew what the publisher chose to write.
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
	// Again and again, as what comes out must not change when it comes in.
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

func (p Place) String() string {
	if p == Cur {
		return "cur"
	}
	return "new"
}

// Ref names one entry by where it is. It is a value and stays valid as a name
// only until a viewer moves the entry.
type Ref struct {
	Feed   string // directory under new/ or cur/: the feed's hash
	Unique string // SECONDS.UNIQ.HOST, without info
	Info   string // the part after the first ';' of a name in cur/
	Place  Place
	// Bare is true for a name in cur/ without ';', which the specification's
	// own viewer makes.
	Bare bool
}

// Name is the base name of the entry's directory.
func (r Ref) Name() string {
	if r.Place == New || r.Bare {
		return r.Unique
	}
	return r.Unique + ";" + r.Info
}

// Path is the entry's path relative to the lektor-dir, with slashes.
func (r Ref) Path() string {
	return r.Place.String() + "/" + r.Feed + "/" + r.Name()
}

// Flags are the letters after "2," in the info of an entry in cur/, in the
// order they stand ([Dir.SetFlags] says what each means); "" for one in new/. A bare name or an info of another form
// has the flag S: some viewer took the entry, and knew no flags.
func (r Ref) Flags() string {
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
	return strings.IndexByte(r.Flags(), flag) >= 0
}

// Unread reports whether the entry is in new/, or in cur/ without S.
func (r Ref) Unread() bool {
	return r.Place == New || !r.HasFlag('S')
}

// Trashed reports whether the entry has the flag T: viewers list it no more,
// until T is cleared, or it is removed.
func (r Ref) Trashed() bool { return r.HasFlag('T') }

// Delivered is the time in the unique name, in UTC: seconds, and microseconds
// where the name has them.
func (r Ref) Delivered() time.Time { return entryname.Delivered(r.Unique) }

// Identity is the 16 hexadecimal digits after I in the unique name, which
// versions of one entry share, or "" for an entry of a fetcher that writes
// none.
func (r Ref) Identity() string { return entryname.Identity(r.Unique) }

// Compare orders entries of one feed as [Dir.List] does: by time of delivery. If
// a unique name is in two places, the one in cur/ is the later one. The last of several
// versions of an entry is shown for all.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(entryname.Compare(r.Unique, other.Unique), cmp.Compare(r.Place, other.Place), strings.Compare(r.Info, other.Info))
}

// refOf returns a name in a feed's directories as a Ref.
func refOf(feed string, n entryname.Name) Ref {
	r := Ref{Feed: feed, Unique: n.Unique, Info: n.Info, Bare: n.Bare}
	if n.Cur {
		r.Place = Cur
	}
	return r
}

// parseRef reads the base name of an entry's directory.
func parseRef(place Place, feed, name string) (Ref, error) {
	n, reason := entryname.Parse(name, place == Cur)
	if reason != "" {
		return refOf(feed, n), &MalformedError{Path: path.Join(place.String(), feed, name), Reason: reason, NoEntry: true}
	}
	return refOf(feed, n), nil
}

// ParsePath reads the path of an entry in new/ or cur/, relative to the lektor-dir,
// as [Ref.Path] returns it. It does not check whether the entry exists; see [Dir.Resolve].
// The error is a [*MalformedError].
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

// noPath returns the error for a path that does not have the form of an entry's.
func noPath(rel string) error {
	return &MalformedError{Path: rel, Reason: "it is not new/FEED/NAME or cur/FEED/NAME", NoEntry: true}
}

// check returns an error unless the Ref names an entry, as those do that [ParsePath] returns.
// Without it, a Ref that was put together by hand could name a whole directory of entries, or one
// outside new/ and cur/.
func (r Ref) check() error {
	if !entryname.IsFeed(r.Feed) || strings.ContainsAny(r.Name(), "/\x00") {
		return noPath(r.Path())
	}
	if _, reason := entryname.Parse(r.Unique, false); reason != "" {
		return &MalformedError{Path: r.Path(), Reason: reason, NoEntry: true}
	}
	return nil
}

// sortFlags returns flags sorted and without duplicates, as maildir has them.
func sortFlags(flags string) string {
	b := []byte(flags)
	slices.Sort(b)
	return string(slices.Compact(b))
}
