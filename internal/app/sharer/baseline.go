package sharer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// baseline is what the lektor-dir had, and what the set knows of it: the third leg of the
// merge. A difference between it and the lektor-dir is an edit of the user's.
type baseline map[string]*baseFeed

// baseFeed is what a feed had.
type baseFeed struct {
	subscribed bool
	alias      string
	categories []string
	kept       bool  // the set does not hold the user's last edit of it, see [feedsync.BoundError]
	journal    int64 // size of the journal whose identities the marks name
	entries    map[string]baseEntry
	shared     bool // entries belong to several baselines, see [baseline.feed]
}

// baseEntry is what an entry had: its shared flags, and whether it was in new/.
type baseEntry struct {
	flags  string
	unread bool
	as     string // identity under which its marks are shared; "" for its own
	kept   string // flags whose last edit the set does not hold
}

// key returns the identity under which the marks of an entry are shared.
func (e baseEntry) key(identity string) string { return cmp.Or(e.as, identity) }

// clone copies the baseline. Both have the same feeds until one is changed.
func (b baseline) clone() baseline {
	for _, f := range b {
		f.shared = true
	}
	return maps.Clone(b)
}

// entry returns what an entry had.
func (b baseline) entry(feed, identity string) (baseEntry, bool) {
	f := b[feed]
	if f == nil {
		return baseEntry{}, false
	}
	e, ok := f.entries[identity]
	return e, ok
}

// feed returns the feed to be changed, which is added if it is not there, and copied if
// another baseline has it, too.
func (b baseline) feed(hash string) *baseFeed {
	f := b[hash]
	switch {
	case f == nil:
		f = &baseFeed{entries: map[string]baseEntry{}}
	case f.shared:
		c := *f
		f, c.entries, c.shared = &c, maps.Clone(f.entries), false
	}
	b[hash] = f
	return f
}

// holds reports whether the entries are those that are here.
func (f *baseFeed) holds(here map[string]*entry) bool {
	if len(f.entries) != len(here) {
		return false
	}
	for identity, e := range here {
		if was, ok := f.entries[identity]; !ok || !e.late && was != e.base(identity) {
			return false
		}
	}
	return true
}

// same reports whether two feeds are equal but for their entries.
func (f *baseFeed) same(o *baseFeed) bool {
	return f.subscribed == o.subscribed && f.alias == o.alias && f.kept == o.kept && f.journal == o.journal && slices.Equal(f.categories, o.categories)
}

// appendFeed appends the lines of a feed without its entries.
func (f *baseFeed) appendFeed(b []byte, hash string) []byte {
	word := "feed"
	if f.subscribed {
		word = "subscribed"
	}
	b = fmt.Appendf(b, "%s %s\n", word, hash)
	if f.alias != "" {
		b = fmt.Appendf(b, "alias %s\n", f.alias)
	}
	for _, c := range f.categories {
		b = fmt.Appendf(b, "in %s\n", c)
	}
	if f.kept {
		b = append(b, "kept\n"...)
	}
	if f.journal > 0 {
		b = fmt.Appendf(b, "journal %d\n", f.journal)
	}
	return b
}

// appendTo appends the line of an entry, below a line that names its feed.
func (e baseEntry) appendTo(b []byte, identity string) []byte {
	b = append(append(b, "entry "...), identity...)
	if e.unread {
		b = append(b, " new"...)
	} else {
		b = append(append(b, " -"...), e.flags...)
	}
	if e.as != "" || e.kept != "" {
		b = append(append(b, ' '), cmp.Or(e.as, "-")...)
	}
	if e.kept != "" {
		b = append(append(b, ' '), e.kept...)
	}
	return append(b, '\n')
}

// appendChanges appends the lines that make the old baseline the new one.
func appendChanges(b []byte, old, now baseline) []byte {
	for _, hash := range slices.Sorted(maps.Keys(old)) {
		if now[hash] == nil {
			b = fmt.Appendf(b, "end %s\n", hash)
		}
	}
	none := &baseFeed{}
	for _, hash := range slices.Sorted(maps.Keys(now)) {
		f, was := now[hash], old[hash]
		if f == was {
			continue
		}
		named := was == nil || !f.same(was)
		if was == nil {
			was = none
		}
		if named {
			b = f.appendFeed(b, hash)
		}
		line := func(identity string, e baseEntry, gone bool) {
			if !named {
				b = fmt.Appendf(b, "of %s\n", hash)
				named = true
			}
			if gone {
				b = fmt.Appendf(b, "gone %s\n", identity)
				return
			}
			b = e.appendTo(b, identity)
		}
		for _, identity := range changed(was.entries, f.entries) {
			e, ok := f.entries[identity]
			line(identity, e, !ok)
		}
	}
	return b
}

// changed returns the identities of the entries in which two feeds differ, sorted.
func changed(old, now map[string]baseEntry) []string {
	var out []string
	for identity, e := range now {
		if was, ok := old[identity]; !ok || was != e {
			out = append(out, identity)
		}
	}
	for identity := range old {
		if _, ok := now[identity]; !ok {
			out = append(out, identity)
		}
	}
	slices.Sort(out)
	return out
}

// baseReader reads lines of a baseline.
type baseReader struct {
	base baseline
	feed *baseFeed
}

// take reads a line; it reports false for one that is none of a baseline's.
func (r *baseReader) take(word string, rest []byte) bool {
	switch word {
	case "feed", "subscribed":
		r.feed = r.base.feed(string(rest))
		r.feed.subscribed, r.feed.alias, r.feed.categories, r.feed.kept, r.feed.journal = word == "subscribed", "", nil, false, 0
		return true
	case "of":
		r.feed = r.base.feed(string(rest))
		return true
	case "end":
		delete(r.base, string(rest))
		r.feed = nil
		return true
	}
	if r.feed == nil {
		return false
	}
	switch word {
	case "alias":
		r.feed.alias = string(rest)
	case "in":
		r.feed.categories = append(r.feed.categories, string(rest))
	case "kept":
		r.feed.kept = true
	case "journal":
		n, err := strconv.ParseInt(string(rest), 10, 64)
		r.feed.journal = n
		return err == nil
	case "gone":
		delete(r.feed.entries, string(rest))
	case "entry":
		return r.entry(rest)
	default:
		return false
	}
	return true
}

// entry reads the line of an entry.
func (r *baseReader) entry(rest []byte) bool {
	identity, rest, ok := bytes.Cut(rest, []byte{' '})
	flags, rest, _ := bytes.Cut(rest, []byte{' '})
	as, kept, _ := bytes.Cut(rest, []byte{' '})
	if !ok || len(flags) == 0 {
		return false
	}
	e := baseEntry{unread: string(flags) == "new", kept: string(kept)}
	if !e.unread && len(flags) > 1 {
		e.flags = intern(flags[1:])
	}
	if string(as) != "-" {
		e.as = string(as)
	}
	r.feed.entries[string(identity)] = e
	return true
}

// intern returns the flags as a string that all entries with them have in common.
func intern(b []byte) string {
	switch string(b) {
	case "S":
		return "S"
	case "F":
		return "F"
	case "FS":
		return "FS"
	}
	return strings.Clone(string(b))
}
