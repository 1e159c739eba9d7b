// Package ess is the codec of ESS and NNO documents, and the aggregation of
// many of them. Their formats are specified in "Even Shorter Syndication [ESS]
// and No Nonsense Outline [NNO]"; ess(5) and nno(5) state them exactly, with
// what the page leaves open.
//
// An ESS document tells when the entries of one feed were published: a build
// time, the feed's URL, and a pair for each entry, the minutes before the build
// and a checksum of the title. An NNO document does so for entries of many
// feeds, with the URL in front of each pair.
//
// Times are whole minutes since 1970-01-01 UTC here (see [Minute]); build times
// are written in seconds. The package knows no files and no network.
package ess

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxESS is the size, in bytes, that an ESS document is to stay within ("An 1
// kb ESS file"): what [AppendESS] cannot write so with line breaks it writes
// without them.
const MaxESS = 1024

// The minutes of an entry: those of the years 0 to 9999, which RFC 3339 can
// write. A reader takes others for nonsense.
var (
	firstMinute = Minute(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	lastMinute  = Minute(time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC))
)

// Minute returns the minute in which a moment lies, counted from 1970-01-01 UTC
// (section "Timestamp in minutes before/after build").
func Minute(t time.Time) int64 { return floorDiv(t.Unix(), 60) }

// Time returns the beginning of a minute, in UTC.
func Time(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Checksum returns the Dumb Checksum of a title as we write it (section "Dumb
// Checksum", the second definition): the sum of the first UTF-16 units of its
// code points, modulo 256. Bytes that are not UTF-8 count as U+FFFD each.
func Checksum(title string) uint8 {
	sum := uint8(0)
	for _, r := range title {
		sum += firstUnit(r)
	}
	return sum
}

// firstUnit is the low byte of the first UTF-16 unit of a code point.
func firstUnit(r rune) uint8 {
	if r >= 0x10000 {
		r = 0xD800 + (r-0x10000)>>10
	}
	return uint8(r)
}

// LoopChecksum returns the Dumb Checksum by the page's first definition: all
// UTF-16 units are added up, and 256 is subtracted while the sum is greater, so
// that it ranges from 0 to 256. It differs from [Checksum] where that sum is a
// multiple of 256, and for characters beyond U+FFFF.
func LoopChecksum(title string) int {
	sum := 0
	for _, r := range title {
		if r >= 0x10000 {
			r -= 0x10000
			sum += 0xD800 + int(r>>10) + 0xDC00 + int(r&0x3ff)
		} else {
			sum += int(r)
		}
	}
	if sum > 0 {
		sum = (sum-1)%256 + 1
	}
	return sum
}

// Matches reports whether a checksum, from 0 to 256, is that of a title by
// either definition; 256 and 0 are the same.
func Matches(title string, sum int) bool {
	return uint8(sum) == Checksum(title) || uint8(sum) == uint8(LoopChecksum(title))
}

// Entry is an entry of a feed as ESS knows it.
type Entry struct {
	Minute int64 // when it was published, see [Minute]
	Sum    uint8 // checksum of its title; 256 is 0
}

// Compare orders entries newest first, and within a minute by checksum.
func (e Entry) Compare(o Entry) int {
	return cmp.Or(cmp.Compare(o.Minute, e.Minute), cmp.Compare(e.Sum, o.Sum))
}

// FeedEntry is an entry with the URL of its feed.
type FeedEntry struct {
	Feed string
	Entry
}

// Compare orders entries newest first, then by feed, then by checksum: a total
// order of everything that a document can tell apart.
func (e FeedEntry) Compare(o FeedEntry) int {
	return cmp.Or(cmp.Compare(o.Minute, e.Minute), strings.Compare(e.Feed, o.Feed), cmp.Compare(e.Sum, o.Sum))
}

// AppendESS appends the ESS document of a feed to b, as the author's generator
// writes it (section "ESS structure"):
//
//	1503674400,http://example.com/rss.xml,
//	1,92,
//	3,68,
//	4,53
//
// with no newline at the end. The build time is rounded down to a whole minute.
// Entries are written newest first, in whatever order they are given; entries
// itself is sorted for that. Where that would make more than [MaxESS] bytes,
// the line breaks are left out. The URL is written by [EscapeURL].
func AppendESS(b []byte, build time.Time, url string, entries []Entry) []byte {
	slices.SortStableFunc(entries, Entry.Compare)
	start := len(b)
	if b = appendESS(b, Minute(build), url, entries, ",\n"); len(b)-start > MaxESS {
		b = appendESS(b[:start], Minute(build), url, entries, ",")
	}
	return b
}

// AppendESSLine is [AppendESS] without line breaks at any size.
func AppendESSLine(b []byte, build time.Time, url string, entries []Entry) []byte {
	slices.SortStableFunc(entries, Entry.Compare)
	return appendESS(b, Minute(build), url, entries, ",")
}

func appendESS(b []byte, build int64, url string, entries []Entry, sep string) []byte {
	b = strconv.AppendInt(b, build*60, 10)
	b = append(b, ',')
	b = append(b, EscapeURL(url)...)
	for _, e := range entries {
		b = append(b, sep...)
		b = appendPair(b, build, e)
	}
	return b
}

func appendPair(b []byte, build int64, e Entry) []byte {
	b = strconv.AppendInt(b, build-e.Minute, 10)
	b = append(b, ',')
	return strconv.AppendUint(b, uint64(e.Sum), 10)
}

// AppendNNO appends the NNO document of entries to b (section "NNO
// structure"), an entry a line; the comma that ends the first line tells it from
// an ESS:
//
//	1503411300,
//	http://example.com/rss.xml,223432,27,
//	http://example2.com/rss.xml,453223,44
//
// with no newline at the end. Otherwise it is as [AppendESS]: entries are
// written newest first, those of a minute in the order of their URLs as written.
func AppendNNO(b []byte, build time.Time, entries []FeedEntry) []byte {
	return appendNNO(b, build, entries, "\n")
}

// AppendNNOLine is [AppendNNO] without line breaks: the comma after the build
// time is followed by another.
func AppendNNOLine(b []byte, build time.Time, entries []FeedEntry) []byte {
	return appendNNO(b, build, entries, "")
}

func appendNNO(b []byte, build time.Time, entries []FeedEntry, end string) []byte {
	own := false
	for i, e := range entries {
		if url := EscapeURL(e.Feed); url != e.Feed {
			if !own {
				entries, own = slices.Clone(entries), true
			}
			entries[i].Feed = url
		}
	}
	slices.SortStableFunc(entries, FeedEntry.Compare)
	minute := Minute(build)
	b = append(strconv.AppendInt(b, minute*60, 10), ',')
	for i, e := range entries {
		if i > 0 || end == "" {
			b = append(b, ',')
		}
		b = append(append(b, end...), e.Feed...)
		b = append(b, ',')
		b = appendPair(b, minute, e.Entry)
	}
	return b
}

// EscapeURL writes a URL so that it is one field of a document: a comma as %2C,
// white space, controls and bytes that are not UTF-8 percent-encoded. All else
// stays byte for byte, so that what was escaped stays as it is.
func EscapeURL(url string) string {
	if strings.IndexFunc(url, special) < 0 {
		return url
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(url)+8)
	for i, r := range url {
		_, n := utf8.DecodeRuneInString(url[i:])
		if !special(r) || r == utf8.RuneError && n > 1 {
			b = append(b, url[i:i+n]...)
			continue
		}
		for _, c := range []byte(url[i : i+n]) {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// special reports whether a character cannot stand in a URL field.
func special(r rune) bool {
	return r <= ' ' || r == ',' || r >= 0x7f && r <= 0xa0 || r == utf8.RuneError || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// HasScheme reports whether a field is a URL: it begins with a scheme (RFC
// 3986, section 3.1) and a colon.
func HasScheme(field string) bool { return hasScheme([]byte(field)) }

func hasScheme(f []byte) bool {
	for i, c := range f {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i > 0 && c == ':':
			return true
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return false
}
