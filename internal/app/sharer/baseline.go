package sharer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// baseline is the state of the lektor-dir at the last run, and how it relates to the set:
// the common ancestor of the three-way merge. A difference between baseline and lektor-dir
// is an edit of the user. Each change adds lines, which the next commit appends to the
// store.
type baseline struct {
	feeds    map[string]*baseFeed
	changes  []byte // lines of changes since the last commit
	lineFeed string // feed of the last line
	moved    bool   // the changes describe moves of files, which must be synced first
}

// baseFeed is the recorded state of a feed.
type baseFeed struct {
	baseSub
	entries baseEntries
	stored  lineRuns // entries of the store that are not in entries yet
}

// baseEntries are the entries of a feed, by identity.
type baseEntries map[string]baseEntry

// baseSub is the recorded subscription of a feed.
type baseSub struct {
	subscribed bool
	alias      string
	categories []string
	unshared   bool  // the set does not hold the user's last edit, see [feedsync.BoundError]
	journal    int64 // size in bytes of the journal whose identities the marks already name
	// listed is the stamp of the feed's directories for which its entries agree with set and baseline, a
	// blank, and the number of marks without an entry here; "" if the feed must be listed.
	listed string
}

// baseEntry is the recorded state of an entry: its shared flags, and whether it was in
// new/.
type baseEntry struct {
	flags    string
	unread   bool
	sharedAs string // identity under which its marks are shared; "" for its own
	unshared string // flags whose last edit is not in the set
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
	f := b.feeds[feed]
	if f == nil {
		return nil
	}
	for line := range f.stored.lines(entryWord) {
		f.parseEntry(line)
	}
	f.stored = nil
	return f.entries
}

// key returns the identity under which the marks of an entry are shared.
func (b baseEntries) key(identity string) string { return cmp.Or(b[identity].sharedAs, identity) }

// bySharedIdentity maps shared identities to own ones, for the entries of present that share
// their marks under another identity.
func (b baseEntries) bySharedIdentity(present map[string]lektordir.Ref) map[string]string {
	out := map[string]string{}
	for identity, e := range b {
		if e.sharedAs == "" {
			continue
		}
		if _, ok := present[identity]; ok {
			out[e.sharedAs] = identity
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
	case f.subscribed == s.subscribed && f.alias == s.alias && f.unshared == s.unshared && f.journal == s.journal &&
		f.listed == s.listed && slices.Equal(f.categories, s.categories):
		return
	}
	f.baseSub, b.moved = s, true
	b.changes, b.lineFeed = s.appendTo(b.changes, hash), hash
}

// setListed records whether a feed must be listed, see [baseSub].
func (b *baseline) setListed(feed, state string) {
	if f := b.feeds[feed]; f.listed != state {
		f.listed = state
		b.line(feed, []byte(strings.TrimSpace("listed "+state)+"\n"))
	}
}

// saved records that the store has all changes.
func (b *baseline) saved() { b.changes, b.lineFeed, b.moved = nil, "", false }

// line adds a line about a feed.
func (b *baseline) line(feed string, line []byte) {
	if b.lineFeed != feed {
		b.changes, b.lineFeed = fmt.Appendf(b.changes, "of %s\n", feed), feed
	}
	b.changes = append(b.changes, line...)
}

// setEntry records the changed state of an entry.
func (b *baseline) setEntry(feed, identity string, e baseEntry) {
	if b.feeds[feed] == nil {
		b.setSub(feed, baseSub{})
	}
	b.entries(feed)[identity], b.moved = e, true
	b.line(feed, e.appendTo(nil, identity))
}

// follow records the state of the lektor-dir, after its edits were added to the set. Feeds
// and entries that could not be read stay as they were.
func (b *baseline) follow(l *local) {
	for _, hash := range union(b.feeds, l.subs) {
		sub, s, here := l.subs[hash], b.sub(hash), l.entries[hash]
		readable := l.withheld[hash] == "" && !l.unread[hash]
		switch {
		case !readable:
		case sub != nil:
			s.subscribed, s.alias, s.categories = true, sub.Alias, sub.Categories
			b.setSub(hash, s)
		case s.unshared || here != nil:
			b.setSub(hash, baseSub{unshared: s.unshared, journal: s.journal})
		default:
			b.moved = true
			delete(b.feeds, hash)
			b.changes, b.lineFeed = fmt.Appendf(b.changes, "end %s\n", hash), ""
			continue
		}
		if l.unchanged[hash] != "" || !readable && here == nil {
			continue
		}
		entries := b.entries(hash)
		for identity := range entries {
			if _, ok := here[identity]; !ok && !l.unknown[entryID{hash, identity}] {
				b.moved = true
				delete(entries, identity)
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
		if f := b.feeds[feed]; f != nil {
			f.pack()
		}
	}
}

// appendAll appends the lines of the whole baseline.
func (b *baseline) appendAll(to []byte) []byte {
	for _, hash := range slices.Sorted(maps.Keys(b.feeds)) {
		f := b.feeds[hash]
		b.entries(hash)
		f.pack()
		to = f.appendTo(to, hash)
		for _, run := range f.stored {
			to = append(to, run...)
		}
	}
	return to
}

// pack turns the entries into lines, which take less memory.
func (f *baseFeed) pack() {
	var lines []byte
	for _, identity := range slices.Sorted(maps.Keys(f.entries)) {
		lines = f.entries[identity].appendTo(lines, identity)
	}
	f.stored = append(f.stored, lines)
	f.entries = map[string]baseEntry{}
}

// appendTo appends the lines of a feed, without its entries.
func (s baseSub) appendTo(b []byte, hash string) []byte {
	word := "feed"
	if s.subscribed {
		word = "subscribed"
	}
	b = fmt.Appendf(b, "%s %s\n", word, hash)
	if s.alias != "" {
		b = append(textfile.AppendField(append(b, "alias "...), s.alias), '\n')
	}
	for _, c := range s.categories {
		b = append(textfile.AppendField(append(b, "in "...), c), '\n')
	}
	if s.unshared {
		b = append(b, "kept\n"...)
	}
	if s.journal > 0 {
		b = fmt.Appendf(b, "journal %d\n", s.journal)
	}
	if s.listed != "" {
		b = fmt.Appendf(b, "listed %s\n", s.listed)
	}
	return b
}

// entryWord is the first word of the line of an entry.
const entryWord = "entry "

// appendTo appends the line of an entry. An earlier line names the feed.
func (e baseEntry) appendTo(b []byte, identity string) []byte {
	b = append(append(b, entryWord...), identity...)
	if e.unread {
		b = append(b, " new"...)
	} else {
		b = append(append(b, " -"...), e.flags...)
	}
	if e.sharedAs != "" || e.unshared != "" {
		b = append(append(b, ' '), cmp.Or(e.sharedAs, "-")...)
	}
	if e.unshared != "" {
		b = append(append(b, ' '), e.unshared...)
	}
	return append(b, '\n')
}

// parseLine reads a line. It reports false for a line that does not belong to a baseline.
func (b *baseline) parseLine(line, word, rest []byte) bool {
	switch string(word) {
	case "feed", "subscribed", "of":
		if b.lineFeed = string(rest); b.feeds[b.lineFeed] == nil {
			b.feeds[b.lineFeed] = &baseFeed{entries: map[string]baseEntry{}}
		}
		if string(word) != "of" {
			b.feeds[b.lineFeed].baseSub = baseSub{subscribed: string(word) == "subscribed"}
		}
		return true
	case "end":
		delete(b.feeds, string(rest))
		b.lineFeed = ""
		return true
	}
	f := b.feeds[b.lineFeed]
	if f == nil {
		return false
	}
	var err error
	switch string(word) {
	case "alias":
		f.alias = textfile.Unescape(rest)
	case "in":
		f.categories = append(f.categories, textfile.Unescape(rest))
	case "kept":
		f.unshared = true
	case "journal":
		f.journal, err = strconv.ParseInt(string(rest), 10, 64)
	case "listed":
		f.listed = string(rest)
	case "gone":
		delete(b.entries(b.lineFeed), string(rest))
	case "entry":
		f.stored.add(line)
	default:
		return false
	}
	return err == nil
}

// parseEntry reads the line of an entry. It ignores one that is invalid, though its checksum is right.
func (f *baseFeed) parseEntry(rest []byte) {
	identity, rest, ok := bytes.Cut(rest, []byte{' '})
	flags, rest, _ := bytes.Cut(rest, []byte{' '})
	as, kept, _ := bytes.Cut(rest, []byte{' '})
	if !ok || len(flags) == 0 {
		return
	}
	e := baseEntry{unread: string(flags) == "new", unshared: string(kept)}
	if !e.unread {
		e.flags = string(flags[1:])
	}
	if string(as) != "-" {
		e.sharedAs = string(as)
	}
	f.entries[string(identity)] = e
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
