// Package ess encodes and decodes ESS and NNO documents, and aggregates them. The formats
// are specified in "Even Shorter Syndication [ESS] and No Nonsense Outline [NNO]". ess(5)
// and nno(5) describe them exactly, with details that the specification leaves open.
//
// An ESS document lists the times of the entries of one feed: a build time, the feed's URL,
// and a pair for each entry, the minutes before the build and a checksum of the title. An
// NNO document lists entries of many feeds, with the feed's URL before each pair.
//
// Times are whole minutes since 1970-01-01 UTC (see [Minute]). Build times are written in
// seconds.
package ess

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/feedurl"
)

// MaxESS is the intended maximum size of an ESS document, in bytes ("An 1 kb ESS file").
// [AppendESS] omits the line breaks of a larger document.
const MaxESS = 1024

// The range of minutes of an entry: years 0 to 9999, which RFC 3339 can express. Others are
// rejected.
var (
	firstMinute = Minute(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	lastMinute  = Minute(time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC))
)

// Minute returns the minute of a time, counted from 1970-01-01 UTC (section "Timestamp in
// minutes before/after build").
func Minute(t time.Time) int64 {
	s := t.Unix()
	return (s - (s%60+60)%60) / 60
}

// Time returns the beginning of a minute, in UTC.
func Time(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

// Checksum returns the Dumb Checksum of a title by the second definition (section "Dumb
// Checksum"), which is the one that lektor writes: the sum of the first UTF-16 units of its
// code points, modulo 256. Each invalid UTF-8 byte counts as U+FFFD.
func Checksum(title string) uint8 {
	sum := uint8(0)
	for _, r := range title {
		if r >= 0x10000 {
			r = 0xD800 + (r-0x10000)>>10
		}
		sum += uint8(r)
	}
	return sum
}

// LoopChecksum returns the Dumb Checksum by the first definition: the sum of all UTF-16
// units, from which 256 is subtracted while it is greater than 256. Its range is 0 to 256.
// It differs from [Checksum] if that sum is a multiple of 256, and for characters beyond
// U+FFFF.
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

// Matches reports whether a checksum, from 0 to 256, is one of a title by either
// definition. 256 equals 0.
func Matches(title string, sum int) bool {
	return uint8(sum) == Checksum(title) || uint8(sum) == uint8(LoopChecksum(title))
}

// Entry is an entry of a feed in ESS.
type Entry struct {
	Minute int64 // minute of publication, see [Minute]
	Sum    uint8 // checksum of its title; 256 is stored as 0
}

// Compare orders entries newest first, then by checksum.
func (e Entry) Compare(o Entry) int {
	return cmp.Or(cmp.Compare(o.Minute, e.Minute), cmp.Compare(e.Sum, o.Sum))
}

// FeedEntry is an entry with the URL of its feed.
type FeedEntry struct {
	Feed string
	Entry
}

// Compare orders entries newest first, then by feed, then by checksum. Entries that compare
// equal are equal in a document.
func (e FeedEntry) Compare(o FeedEntry) int {
	return cmp.Or(cmp.Compare(o.Minute, e.Minute), strings.Compare(e.Feed, o.Feed), cmp.Compare(e.Sum, o.Sum))
}

// AppendESS appends the ESS document of a feed to b, in the form of the author's generator
// (section "ESS structure"):
//
//	1503674400,http://example.com/rss.xml,
//	1,92,
//	3,68,
//	4,53
//
// There is no newline at the end. The build time is rounded down to a minute. AppendESS
// sorts entries, and writes them newest first. If the document would be larger than
// [MaxESS], it has no line breaks. [EscapeURL] escapes the URL.
func AppendESS(b []byte, build time.Time, url string, entries []Entry) []byte {
	slices.SortStableFunc(entries, Entry.Compare)
	start := len(b)
	if b = appendESS(b, Minute(build), url, entries); len(b)-start > MaxESS {
		return append(b[:start], unbroken(b[start:])...)
	}
	return b
}

func appendESS(b []byte, build int64, url string, entries []Entry) []byte {
	b = append(strconv.AppendInt(b, build*60, 10), ',')
	b = append(b, EscapeURL(url)...)
	for _, e := range entries {
		b = appendPair(append(b, ",\n"...), build, e)
	}
	return b
}

// unbroken returns a document without its line breaks.
func unbroken(doc []byte) []byte { return bytes.ReplaceAll(doc, []byte("\n"), nil) }

// AppendESSLine is [AppendESS] without line breaks at any size.
func AppendESSLine(b []byte, build time.Time, url string, entries []Entry) []byte {
	return append(b, unbroken(AppendESS(nil, build, url, entries))...)
}

func appendPair(b []byte, build int64, e Entry) []byte {
	b = strconv.AppendInt(b, build-e.Minute, 10)
	b = append(b, ',')
	return strconv.AppendUint(b, uint64(e.Sum), 10)
}

// AppendNNO appends the NNO document of entries to b (section "NNO structure"), one entry a
// line. The comma at the end of the first line distinguishes it from an ESS:
//
//	1503411300,
//	http://example.com/rss.xml,223432,27,
//	http://example2.com/rss.xml,453223,44
//
// There is no newline at the end. The build time and URLs are written as by [AppendESS].
// Entries are written newest first, those of a minute by their escaped URLs. AppendNNO
// sorts entries, unless it must escape a URL.
func AppendNNO(b []byte, build time.Time, entries []FeedEntry) []byte {
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
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '\n'), e.Feed...), ',')
		b = appendPair(b, minute, e.Entry)
	}
	return b
}

// AppendNNOLine is [AppendNNO] without line breaks: a second comma follows the one after
// the build time.
func AppendNNOLine(b []byte, build time.Time, entries []FeedEntry) []byte {
	doc := AppendNNO(nil, build, entries)
	return append(b, unbroken(bytes.Replace(doc, []byte("\n"), []byte(","), 1))...)
}

// EscapeURL escapes a URL for a field of a document: a comma becomes %2C; white space,
// controls and invalid UTF-8 are percent-encoded. Other bytes stay, also those of earlier
// escapes.
func EscapeURL(url string) string { return feedurl.Escape(url, special) }

// special reports whether a character must be escaped in a URL field.
func special(r rune) bool {
	return r <= ' ' || r == ',' || r >= 0x7f && r <= 0xa0 || r >= 0x2028 && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}
