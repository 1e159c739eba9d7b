package lektordir

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FeedHash gives the name of a feed's directories: the hexadecimal SHA-1 of
// its id, without a newline (specification, "Feeds").
func FeedHash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// IsFeedHash tells whether a name is such a one as [FeedHash] gives.
func IsFeedHash(name string) bool { return isHex(name, 2*sha1.Size) }

// IsIdentity tells whether a text is such a one as [Ref.Identity] gives of an entry that
// was delivered by this package.
func IsIdentity(s string) bool { return isHex(s, 16) }

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// NormalizeID gives the id of a feed that was discovered at a URL: scheme and
// host in lower case, no fragment, no default port; all else stays as it is,
// byte for byte. What is no URL with a host is an opaque identifier, and comes
// back without surrounding white space only.
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

// EscapeHost makes a host name fit for a unique name: '/', ':' and ';' become
// \057, \072 and \073 as in maildir, and so do bytes that are not printable
// ASCII. An empty name becomes "localhost"; a long one is cut.
func EscapeHost(host string) string {
	var b strings.Builder
	for i := 0; i < len(host) && b.Len() < 120; i++ {
		switch c := host[i]; {
		case c == '/' || c == ':' || c == ';' || c == '\\' || c <= ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 {
		return "localhost"
	}
	return b.String()
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
	Info   string // what follows the first ';' in cur/, without it
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
// order they stand; "" for one in new/. A bare name or an info of another form
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
func (r Ref) Delivered() time.Time {
	secs, _, _ := strings.Cut(r.Unique, ".")
	n, err := strconv.ParseInt(secs, 10, 64)
	if err != nil {
		return time.Time{}
	}
	var micros int64
	if u, ok := parseUniq(r.Unique); ok {
		micros = u.micros
	}
	return time.Unix(n, micros*1000).UTC()
}

// Identity is the 16 hexadecimal digits after I in the unique name, which
// versions of one entry share, or "" for an entry of a fetcher that writes
// none.
func (r Ref) Identity() string {
	u, ok := parseUniq(r.Unique)
	if !ok {
		return ""
	}
	return u.identity
}

// uniq is a unique name in our own form, M…P…Q…I… between time and host.
type uniq struct {
	micros   int64
	seq      int64
	identity string
	host     string
}

// parseUniq reads a unique name in our own form.
func parseUniq(name string) (uniq, bool) {
	var u uniq
	_, rest, ok := strings.Cut(name, ".")
	if !ok {
		return u, false
	}
	mid, host, ok := strings.Cut(rest, ".")
	if !ok || host == "" {
		return u, false
	}
	u.host = host
	number := func(letter byte) (int64, bool) {
		if mid == "" || mid[0] != letter {
			return 0, false
		}
		end := 1
		for end < len(mid) && mid[end] >= '0' && mid[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(mid[1:end], 10, 64)
		mid = mid[end:]
		return n, err == nil
	}
	if u.micros, ok = number('M'); !ok {
		return u, false
	}
	if _, ok = number('P'); !ok {
		return u, false
	}
	if u.seq, ok = number('Q'); !ok {
		return u, false
	}
	if len(mid) != 17 || mid[0] != 'I' || !only(mid[1:], 'f') {
		return u, false
	}
	u.identity = mid[1:]
	return u, true
}

// only reports whether there is nothing but digits in s, hexadecimal ones where last is
// 'f' rather than '9'. Each listing asks it twice of every entry.
func only(s string, last byte) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > last) {
			return false
		}
	}
	return true
}

// parseRef reads the base name of an entry's directory. A unique name begins
// with a number of seconds and has at least one more part.
func parseRef(place Place, feed, name string) (Ref, error) {
	r := Ref{Feed: feed, Place: place}
	unique, info, ok := strings.Cut(name, ";")
	r.Unique, r.Info, r.Bare = unique, info, place == Cur && !ok
	secs, rest, _ := strings.Cut(unique, ".")
	switch {
	case place == New && ok:
		return r, &NameError{Path: path.Join(place.String(), feed, name), Reason: "a name in new/ has no ';'"}
	case secs == "" || !only(secs, '9') || len(secs) > 18 || rest == "":
		return r, &NameError{Path: path.Join(place.String(), feed, name), Reason: "it is not SECONDS.UNIQUE.HOST"}
	}
	return r, nil
}

// ParsePath reads the path of an entry in new/ or cur/, relative to the lektor-dir,
// as [Ref.Path] gives it. It touches nothing: whether the entry is there is another
// question, see [Dir.Resolve]. The error is a [*NameError].
func ParsePath(rel string) (Ref, error) {
	parts := strings.Split(rel, "/")
	if len(parts) != 3 || parts[0] != New.String() && parts[0] != Cur.String() || parts[1] == "" || parts[1][0] == '.' {
		return Ref{}, &NameError{Path: rel, Reason: "it is not new/FEED/NAME or cur/FEED/NAME"}
	}
	place := New
	if parts[0] == Cur.String() {
		place = Cur
	}
	return parseRef(place, parts[1], parts[2])
}

// NameError is the error for a name in new/ or cur/ that is no entry's.
type NameError struct {
	Path   string // relative to the lektor-dir
	Reason string
}

func (e *NameError) Error() string { return e.Path + ": not an entry: " + e.Reason }

// sortFlags returns flags sorted and without duplicates, as maildir has them.
func sortFlags(flags string) string {
	b := []byte(flags)
	slices.Sort(b)
	return string(slices.Compact(b))
}

// uniqueName puts a unique name together in our own form.
func uniqueName(now time.Time, pid int, seq int64, identity, host string) string {
	b := make([]byte, 0, 96)
	b = strconv.AppendInt(b, now.Unix(), 10)
	b = append(b, ".M"...)
	b = strconv.AppendInt(b, int64(now.Nanosecond()/1000), 10)
	b = append(b, 'P')
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, 'Q')
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, 'I')
	b = append(b, identity...)
	b = append(b, '.')
	b = append(b, host...)
	return string(b)
}
