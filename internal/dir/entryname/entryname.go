// Package entryname reads and makes the names of entries' directories. It touches no disk.
package entryname

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Name is the base name of an entry's directory, which is in cur/ if Cur is set, else in new/.
type Name struct {
	Unique string // SECONDS.UNIQUE.HOST or, by other programs, any name; without info
	Info   string // the part after the first ';' of a name in cur/
	Cur    bool
	Bare   bool  // a name in cur/ without ';'
	Mtime  int64 // of the directory, in seconds since 1970, if the unique name has no time ([Timed])
}

// Base returns the base name of the directory.
func (n Name) Base() string {
	if !n.Cur || n.Bare {
		return n.Unique
	}
	return n.Unique + ";" + n.Info
}

// Path returns the path of the directory of an entry of a feed, relative to the lektor-dir, with slashes.
func (n Name) Path(feed string) string { return Place(n.Cur) + "/" + feed + "/" + n.Base() }

// Place returns the name of cur/, if cur is true, or of new/.
func Place(cur bool) string {
	if cur {
		return "cur"
	}
	return "new"
}

// Parse parses the base name of a directory in new/ or cur/. Any name without ';' is a unique
// name, because not all programs that make entries make names in lektor's form. If the name is not
// that of an entry, reason says why; otherwise it is empty. Mtime is left to the caller.
func Parse(base string, cur bool) (n Name, reason string) {
	unique, info, ok := strings.Cut(base, ";")
	n = Name{Unique: unique, Info: info, Cur: cur, Bare: cur && !ok}
	switch {
	case !cur && ok:
		return n, "a name in new/ has no ';'"
	case !IsFeed(unique):
		return n, "it begins with '.' or ';'"
	}
	return n, ""
}

// Timed reports whether a unique name has the time of delivery: it begins with a number of seconds,
// and has at least one more part. The time of an entry with another name is that of its directory.
func Timed(unique string) bool {
	_, ok := seconds(unique)
	return ok
}

// seconds returns the number with which a unique name begins; ok is that of [Timed].
func seconds(unique string) (n int64, ok bool) {
	secs, rest, _ := strings.Cut(unique, ".")
	if secs == "" || !only(secs, '9') || len(secs) > 18 || rest == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(secs, 10, 64)
	return n, err == nil
}

// IsFeed reports whether a name can be that of a feed's directory: a hash, or any other file name
// that does not begin with a dot, as other programs may use.
func IsFeed(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}

// EscapeHost escapes a host name for a unique name: '/', ':' and ';' become \057, \072 and \073 as
// in maildir. Backslashes and bytes that are not printable ASCII are escaped likewise. An empty
// name becomes "localhost"; a long one is truncated.
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

// IsIdentity reports whether a text has the form of an entry's identity: 16 hexadecimal
// digits.
func IsIdentity(s string) bool { return isHex(s, 16) }

// FeedHash returns the name of a feed's directories: the hexadecimal SHA-1 of its id.
func FeedHash(id string) string {
	sum := sha1.Sum([]byte(id))
	return hex.EncodeToString(sum[:])
}

// IsFeedHash reports whether a text has the form of a feed's hash: the 40 hexadecimal digits
// of a SHA-1.
func IsFeedHash(s string) bool { return isHex(s, 2*sha1.Size) }

func isHex(s string, n int) bool { return len(s) == n && only(s, 'f') }

// only reports whether s has only digits: hexadecimal ones if last is 'f', decimal ones if it is
// '9'. It is fast, because a listing calls it twice for each entry.
func only(s string, last byte) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > last) {
			return false
		}
	}
	return true
}

// Parts holds the parts of a unique name in lektor's form,
// SECONDS.M<micros>P<pid>Q<seq>I<identity>.HOST, except seconds.
type Parts struct {
	Micros   int64
	PID      int64
	Seq      int64
	Identity string
	Host     string
}

// Split parses a unique name in lektor's form; ok is false for other forms.
func Split(unique string) (p Parts, ok bool) {
	_, rest, ok := strings.Cut(unique, ".")
	if !ok {
		return p, false
	}
	mid, host, ok := strings.Cut(rest, ".")
	if !ok || host == "" {
		return p, false
	}
	p.Host = host
	p.Micros, mid, ok = number(mid, 'M', true)
	p.PID, mid, ok = number(mid, 'P', ok)
	p.Seq, mid, ok = number(mid, 'Q', ok)
	if !ok || len(mid) != 17 || mid[0] != 'I' || !only(mid[1:], 'f') {
		return p, false
	}
	p.Identity = mid[1:]
	return p, true
}

// number reads a letter and a number with which s begins, if ok. It is fast, since listings split names often.
func number(s string, letter byte, ok bool) (n int64, rest string, valid bool) {
	if !ok || s == "" || s[0] != letter {
		return 0, s, false
	}
	i := 1
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n > (math.MaxInt64-9)/10 {
			return 0, s, false
		}
		n = 10*n + int64(s[i]-'0')
	}
	return n, s[i:], i > 1
}

// Unique returns a unique name in lektor's form.
func Unique(now time.Time, pid int, seq int64, identity, host string) string {
	return string(AppendUnique(make([]byte, 0, 96), now, pid, seq, identity, host))
}

// AppendUnique appends what [Unique] returns to b.
func AppendUnique(b []byte, now time.Time, pid int, seq int64, identity, host string) []byte {
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
	return append(b, host...)
}

// Identity returns the 16 hexadecimal digits after I in a unique name, which all versions of an
// entry share, or "" if the name has none.
func Identity(unique string) string {
	p, ok := Split(unique)
	if !ok {
		return ""
	}
	return p.Identity
}

// Delivered returns the time in a unique name, in UTC: seconds, and microseconds if the name
// has them; if it has no time (see [Timed]), the zero Time.
func Delivered(unique string) time.Time {
	n, ok := seconds(unique)
	if !ok {
		return time.Time{}
	}
	var micros int64
	if p, ok := Split(unique); ok {
		micros = p.Micros
	}
	return time.Unix(n, micros*1000).UTC()
}

// key is what unique names are sorted by first: time and sequence number. Names of another form
// have only seconds, and come before lektor's names of the same second.
type key struct{ secs, micros, seq int64 }

// keyOf returns the key of a name; mtime is [Name.Mtime].
func keyOf(unique string, mtime int64) key {
	n, ok := seconds(unique)
	if !ok {
		return key{mtime, -1, 0}
	}
	p, ok := Split(unique)
	if !ok {
		p.Micros, p.Seq = -1, 0
	}
	return key{n, p.Micros, p.Seq}
}

func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a.secs, b.secs), cmp.Compare(a.micros, b.micros), cmp.Compare(a.seq, b.seq))
}

// Compare compares unique names by time, then by sequence number, then bytewise.
func Compare(a, b string) int { return Name{Unique: a}.Compare(Name{Unique: b}) }

// Compare compares names of entries of one feed, as [Compare] does, but knows the times of all. Of two
// names with the same unique name, the one in cur/ is greater.
func (n Name) Compare(other Name) int { return n.keyed().compare(other.keyed()) }

// keyed is a name with its key.
type keyed struct {
	key
	Name
}

func (n Name) keyed() keyed { return keyed{keyOf(n.Unique, n.Mtime), n} }

func (a keyed) compare(b keyed) int {
	if c := cmp.Or(a.key.compare(b.key), strings.Compare(a.Unique, b.Unique)); c != 0 {
		return c
	}
	if a.Cur != b.Cur {
		if b.Cur {
			return -1
		}
		return 1
	}
	return strings.Compare(a.Info, b.Info)
}

// Sort sorts names of one feed by time of delivery, as Compare does.
func Sort(names []Name) {
	// Each unique name is parsed once, not in every comparison.
	all := make([]keyed, len(names))
	for i, n := range names {
		all[i] = n.keyed()
	}
	slices.SortFunc(all, keyed.compare)
	for i := range all {
		names[i] = all[i].Name
	}
}
