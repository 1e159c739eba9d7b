package feedconv

import (
	"fmt"
	"slices"
)

func (o Options) maxBytes() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return DefaultMaxBytes
}

func (o Options) maxEntries() int {
	if o.MaxEntries > 0 {
		return o.MaxEntries
	}
	return DefaultMaxEntries
}

// DefaultMaxBytes is the largest document that [Parse] reads unless
// [Options.MaxBytes] says otherwise: 16 MiB, counted after decompression.
const DefaultMaxBytes = 16 << 20

// DefaultMaxEntries is the largest number of entries that [Parse] takes from
// one document unless [Options.MaxEntries] says otherwise.
const DefaultMaxEntries = 20000

// maxList is the maximum number of authors, of categories, of enclosures … of an entry or a feed.
const maxList = 1000

// leftOut adds the warning for entries beyond the limit.
func leftOut(f *Feed, limit int) {
	f.warn("only the first %d entries were read", limit)
	f.Warnings[len(f.Warnings)-1].Limit = "MaxEntries"
}

func (f *Feed) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, Warning{Text: fmt.Sprintf(format, args...)})
}

// warnOnce is like warn, but adds the same warning only once.
func (f *Feed) warnOnce(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(f.Warnings, func(w Warning) bool { return w.Text == text }) {
		f.warn("%s", text)
	}
}
