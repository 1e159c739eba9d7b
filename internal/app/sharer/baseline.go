package sharer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/lektordir"
)

// baseline is the state of the lektor-dir at the last run, and how it relates to the set:
// the common ancestor of the three-way merge. A difference between baseline and lektor-dir
// is an edit of the user. Each change adds lines, which the next commit appends to the
// store.
type baseline struct {
	feeds map[string]*baseFeed
	lines []byte // lines of changes since the last commit
	of    string // feed of the last line
}

// baseFeed is the recorded state of a feed.
type baseFeed struct {
	baseSub
	entries baseEntries
}

// baseEntries are the entries of a feed, by identity.
type baseEntries map[string]baseEntry

// baseSub is the recorded subscription of a feed.
type baseSub struct {
	subscribed bool
	alias      string
	categories []string
	kept       bool  // the set does not hold the user's last edit, see [feedsync.BoundError]
	journal    int64 // size in bytes of the journal whose identities the marks already name
}

// baseEntry is the recorded state of an entry: its shared flags, and whether it was in
// new/.
type baseEntry struct {
	flags  string
	unread bool
	as     string // identity under which its marks are shared; "" for its own
	kept   string // flags whose last edit is not in the set
}

// at returns e with the flags and the place of a reference.
func (e baseEntry) at(ref lektordir.Ref) baseEntry {
	if e.unread = ref.Place == lektordir.New; e.unread {
		e.flags = ""
	} else {
		e.flags = shared(ref)
	}
	return e
}

// entries returns the recorded entries of a feed, nil for an unknown feed.
func (b *baseline) entries(feed string) baseEntries {
	if f := b.feeds[feed]; f != nil {
		return f.entries
	}
	return nil
}

// key returns the identity under which the marks of an entry are shared.
func (b baseEntries) key(identity string) string { return cmp.Or(b[identity].as, identity) }

// own maps shared identities to own ones, for entries in here that share their marks under
// another identity.
func (b baseEntries) own(here map[string]lektordir.Ref) map[string]string {
	out := map[string]string{}
	for identity, e := range b {
		if e.as == "" {
			continue
		}
		if _, ok := here[identity]; ok {
			out[e.as] = identity
		}
	}
	return out
}

// sub returns the recorded subscription of a feed, the zero value for an unknown feed.
func (b *baseline) sub(hash string) baseSub {
	if f := b.feeds[hash]; f != nil {
		return f.baseSub
	}
	return baseSub{}
}

// setSub records the subscription of a feed.
func (b *baseline) setSub(hash string, s baseSub) {
	f := b.feeds[hash]
	switch {
	case f == nil:
		f = &baseFeed{entries: map[string]baseEntry{}}
		b.feeds[hash] = f
	case f.subscribed == s.subscribed && f.alias == s.alias && f.kept == s.kept && f.journal == s.journal && slices.Equal(f.categories, s.categories):
		return
	}
	f.baseSub = s
	b.lines, b.of = s.appendTo(b.lines, hash), hash
}

// line adds a line about a feed.
func (b *baseline) line(feed string, line []byte) {
	if b.of != feed {
		b.lines, b.of = fmt.Appendf(b.lines, "of %s\n", feed), feed
	}
	b.lines = append(b.lines, line...)
}

// setEntry records the changed state of an entry.
func (b *baseline) setEntry(feed, identity string, e baseEntry) {
	if b.feeds[feed] == nil {
		b.setSub(feed, baseSub{})
	}
	b.feeds[feed].entries[identity] = e
	b.line(feed, e.appendTo(nil, identity))
}

// follow records the state of the lektor-dir, after its edits were added to the set. Feeds
// and entries that could not be read stay as they were.
func (b *baseline) follow(l *local) {
	for _, hash := range union(b.feeds, l.subs) {
		f, sub := b.feeds[hash], l.subs[hash]
		s := b.sub(hash)
		switch {
		case f != nil && (l.own[hash] != "" || l.unread[hash]):
			if l.entries[hash] == nil {
				continue
			}
		case sub != nil:
			s.subscribed, s.alias, s.categories = true, sub.Alias, sub.Categories
			b.setSub(hash, s)
		case s.kept || l.entries[hash] != nil:
			b.setSub(hash, baseSub{kept: s.kept, journal: s.journal})
		default:
			delete(b.feeds, hash)
			b.lines, b.of = fmt.Appendf(b.lines, "end %s\n", hash), ""
			continue
		}
		here := l.entries[hash]
		for identity := range b.feeds[hash].entries {
			if _, ok := here[identity]; !ok && !l.unknown[entryID{hash, identity}] {
				delete(b.feeds[hash].entries, identity)
				b.line(hash, []byte("gone "+identity+"\n"))
			}
		}
	}
	for feed, here := range l.entries {
		entries := b.entries(feed)
		for identity, ref := range here {
			was, ok := entries[identity]
			if e := was.at(ref); e != was || !ok {
				b.setEntry(feed, identity, e)
			}
		}
	}
}

// appendAll appends the lines of the whole baseline.
func (b *baseline) appendAll(to []byte) []byte {
	for _, hash := range slices.Sorted(maps.Keys(b.feeds)) {
		f := b.feeds[hash]
		to = f.appendTo(to, hash)
		for _, identity := range slices.Sorted(maps.Keys(f.entries)) {
			to = f.entries[identity].appendTo(to, identity)
		}
	}
	return to
}

// appendTo appends the lines of a feed, without its entries.
func (s baseSub) appendTo(b []byte, hash string) []byte {
	word := "feed"
	if s.subscribed {
		word = "subscribed"
	}
	b = fmt.Appendf(b, "%s %s\n", word, hash)
	if s.alias != "" {
		b = fmt.Appendf(b, "alias %s\n", s.alias)
	}
	for _, c := range s.categories {
		b = fmt.Appendf(b, "in %s\n", c)
	}
	if s.kept {
		b = append(b, "kept\n"...)
	}
	if s.journal > 0 {
		b = fmt.Appendf(b, "journal %d\n", s.journal)
	}
	return b
}

// appendTo appends the line of an entry. An earlier line names the feed.
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

// take reads a line. It reports false for a line that does not belong to a baseline.
func (b *baseline) take(word string, rest []byte) bool {
	switch word {
	case "feed", "subscribed", "of":
		if b.of = string(rest); b.feeds[b.of] == nil {
			b.feeds[b.of] = &baseFeed{entries: map[string]baseEntry{}}
		}
		if word != "of" {
			b.feeds[b.of].baseSub = baseSub{subscribed: word == "subscribed"}
		}
		return true
	case "end":
		delete(b.feeds, string(rest))
		b.of = ""
		return true
	}
	f := b.feeds[b.of]
	if f == nil {
		return false
	}
	var err error
	switch word {
	case "alias":
		f.alias = string(rest)
	case "in":
		f.categories = append(f.categories, string(rest))
	case "kept":
		f.kept = true
	case "journal":
		f.journal, err = strconv.ParseInt(string(rest), 10, 64)
	case "gone":
		delete(f.entries, string(rest))
	case "entry":
		return f.takeEntry(rest)
	default:
		return false
	}
	return err == nil
}

// takeEntry reads the line of an entry, and reports whether it is valid.
func (f *baseFeed) takeEntry(rest []byte) bool {
	identity, rest, ok := bytes.Cut(rest, []byte{' '})
	flags, rest, _ := bytes.Cut(rest, []byte{' '})
	as, kept, _ := bytes.Cut(rest, []byte{' '})
	if !ok || len(flags) == 0 {
		return false
	}
	e := baseEntry{unread: string(flags) == "new", kept: string(kept)}
	if !e.unread {
		e.flags = string(flags[1:])
	}
	if string(as) != "-" {
		e.as = string(as)
	}
	f.entries[string(identity)] = e
	return true
}

// shared returns those flags of an entry that are shared.
func shared(r lektordir.Ref) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(flags, c) {
			return c
		}
		return -1
	}, r.Flags())
}
