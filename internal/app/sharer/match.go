package sharer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// entryMatcher finds the entries that the marks of a feed refer to. A mark has the identity of
// the entry on the machine that made it. On a machine that met the feed before or after its
// guids changed, the entry has another identity. The journal of either machine may know
// both, and marks name all identities that the journal knows.
type entryMatcher struct {
	r          *reader
	set        *itemSet
	base       *baseline
	entries    baseEntries // recorded entries
	feed       string
	here       map[string]lektordir.Ref
	changed    bool              // marks, entries or the journal have changed since the last run
	journal    map[string]string // identity -> identity in the entry's name
	bySharedID map[string]string // shared identity -> own identity
	named      map[string]string // result of names
	byID       map[string]string // id of an entry -> own identity; "" if several entries have the id
	failed     error             // the journal or an entry could not be read
}

// matchEntries assigns to entries the identities under which their marks are shared. It returns the
// number of set marks without an entry here, by feed.
func (r *reader) matchEntries(s *itemSet, base *baseline, l *local) map[string]int {
	waiting := map[string]int{}
	for _, feed := range s.marks.feeds() {
		here := l.entries[feed]
		if known, ok := l.unchanged[feed]; ok {
			_, n, _ := strings.Cut(known, " ")
			waiting[feed], _ = strconv.Atoi(n)
			continue
		}
		if feed == "" || l.withheld[feed] != "" || len(here) == 0 && l.subs[feed] == nil {
			continue
		}
		entries := base.entries(feed)
		m := &entryMatcher{r: r, set: s, base: base, entries: entries, feed: feed, here: here,
			bySharedID: entries.bySharedIdentity(here), changed: s.news[feed]}
		for identity := range here {
			_, known := entries[identity]
			m.changed = m.changed || !known
		}
		strangers := m.strangers()
		size := journalSize(r.d, feed)
		sub := base.sub(feed)
		grown := base.feeds[feed] != nil && sub.journal != size
		if m.changed = m.changed || grown; len(strangers) > 0 || grown {
			m.journal, m.failed = journal.Lineages(r.d.Join(commit.JournalPath(feed)))
			if grown && m.failed == nil {
				m.addIdentities()
				sub.journal = size
				base.setSub(feed, sub)
			}
		}
		for _, other := range slices.Sorted(maps.Keys(strangers)) {
			if own := m.find(other, strangers[other]); own != "" {
				m.link(own, other)
			} else {
				waiting[feed] += m.live(strangers[other])
			}
		}
		if m.failed != nil {
			r.addTrouble(m.failed)
			delete(l.stamps, feed) // the next run tries again
		}
	}
	return waiting
}

// journalSize returns the size of a feed's journal in bytes, 0 if there is none.
func journalSize(d *lektordir.Dir, feed string) int64 {
	fi, err := os.Stat(d.Join(feedfiles.JournalPath(feed)))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// has reports whether an entry with an identity is here.
func (m *entryMatcher) has(identity string) bool {
	_, ok := m.here[identity]
	return ok
}

// strangers returns the marks, by identity, that are not shared under the identity of an
// entry here.
func (m *entryMatcher) strangers() map[string][]mark {
	found := map[string][]mark{}
	for rest, k := range m.set.marks.of(m.feed) {
		identity, _ := keyOf(rest)
		if !m.has(identity) || m.entries.key(identity) != identity {
			found[identity] = append(found[identity], k)
		}
	}
	return found
}

// live counts the marks that are set and were never edited by this endpoint. If this
// endpoint has edited a mark, the entry was here and has expired.
func (m *entryMatcher) live(marks []mark) (n int) {
	ours := func(u feedsync.Update) bool { return u.By == m.set.me }
	for _, k := range marks {
		if !k.deleted() && !slices.ContainsFunc(k.item().History, ours) {
			n++
		}
	}
	return n
}

// mark returns the item for a flag of an identity, or nil.
func (m *entryMatcher) mark(identity string, flag byte) *feedsync.Item {
	return m.set.marks.item(stateID(m.feed, identity, flag))
}

// hasMarks reports whether there are marks with an identity.
func (m *entryMatcher) hasMarks(identity string) bool {
	return strings.ContainsFunc(flags, func(c rune) bool { return m.mark(identity, byte(c)) != nil })
}

// find returns the own identity of the entry that another identity refers to, "" if the
// entry is not here. marks are the marks with the other identity.
func (m *entryMatcher) find(other string, marks []mark) string {
	if own, ok := m.bySharedID[other]; ok {
		return own
	}
	if m.has(other) {
		return other // its marks are shared under another identity
	}
	if own := m.journal[other]; m.has(own) {
		return own
	}
	if name, ok := m.names()[other]; ok {
		if own := cmp.Or(m.bySharedID[name], name); m.has(own) {
			return own
		}
	}
	if !m.changed {
		return ""
	}
	// Reading the ids of all entries is slow, so it is done only after a change.
	for _, k := range marks {
		for _, id := range k.item().Children(feedsync.LektorNamespace, "entry") {
			if own := m.ids()[id]; own != "" {
				return own
			}
		}
	}
	return ""
}

// ids maps ids of entries to own identities. An id that several entries have maps to "".
func (m *entryMatcher) ids() map[string]string {
	if m.byID != nil {
		return m.byID
	}
	m.byID = map[string]string{}
	for identity, ref := range m.here {
		entry, err := m.r.d.ReadEntry(ref, lektordir.FieldID)
		if isUnreadable(err) {
			// The unreadable entry may have the same id as another, so no id is certain.
			m.failed = errors.Join(m.failed, err)
			m.byID = map[string]string{}
			return m.byID
		}
		if err != nil || entry.ID == "" {
			continue
		}
		id := feedurl.Public(entry.ID)
		if _, several := m.byID[id]; several {
			m.byID[id] = ""
			continue
		}
		m.byID[id] = identity
	}
	return m.byID
}

// link makes the marks of two identities belong to one entry. If both have marks, all
// machines continue with the lower identity, and its missing marks are copied from the
// other.
func (m *entryMatcher) link(own, other string) {
	key := m.entries.key(own)
	switch {
	case key == other:
		return
	case !m.hasMarks(key):
		m.setSharedAs(own, other)
		return
	}
	keep, drop := min(key, other), max(key, other)
	m.setSharedAs(own, keep)
	for _, c := range []byte(flags) {
		from := m.mark(drop, c)
		if from == nil || from.Deleted || m.mark(keep, c) != nil {
			continue
		}
		// If two machines do this at once, their items mean the same.
		_ = m.set.modify(feedsync.RSS, stateID(m.feed, keep, c), false, from.Content, "")
	}
	m.addNames(keep, []string{drop})
}

// setSharedAs sets the identity under which the marks of an entry are shared.
func (m *entryMatcher) setSharedAs(own, as string) {
	m.bySharedID[as] = own
	if as == own {
		as = ""
	}
	if e, ok := m.entries[own]; ok && e.sharedAs != as {
		e.sharedAs = as
		m.base.setEntry(m.feed, own, e)
	}
}

// addIdentities adds to marks the identities that the journal knows for their entries. An
// addition is not an edit: if two items mean the same, all machines keep the longer one.
func (m *entryMatcher) addIdentities() {
	others := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(m.journal)) {
		others[m.journal[id]] = append(others[m.journal[id]], id)
	}
	for own, ids := range others {
		if m.has(own) {
			m.addNames(m.entries.key(own), append([]string{own}, ids...))
		}
	}
}

// addNames adds identities to the marks that are shared under key.
func (m *entryMatcher) addNames(key string, ids []string) {
	for _, c := range []byte(flags) {
		k := m.mark(key, c)
		if k == nil {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			return id == key || bytes.Contains(k.Content, []byte(">"+id+"<"))
		})
		if len(missing) == 0 {
			continue
		}
		content, ok := bytes.CutSuffix(k.Content, []byte("</item>"))
		if !ok {
			continue
		}
		var more strings.Builder
		for _, id := range missing[:min(len(missing), maxIdentities)] {
			fmt.Fprintf(&more, `<lektor:identity>%s</lektor:identity>`, id)
		}
		if longer, err := k.WithContent(slices.Concat(content, []byte(more.String()), []byte("</item>"))); err == nil {
			m.set.marks.put(longer)
		}
	}
}

// names maps each further identity in a mark to the identity of the mark. If an entry here
// has the further identity, names also maps the identity of the mark to this one.
func (m *entryMatcher) names() map[string]string {
	if m.named != nil {
		return m.named
	}
	m.named = map[string]string{}
	for rest, k := range m.set.marks.of(m.feed) {
		if !bytes.Contains(k.line, []byte("identity>")) {
			continue
		}
		identity, _ := keyOf(rest)
		for _, other := range k.item().Children(feedsync.LektorNamespace, "identity") {
			if m.named[other] = identity; m.has(other) {
				m.named[identity] = other
			}
		}
	}
	return m.named
}

// maxIdentities is the maximum number of identities that are added to a mark at once.
const maxIdentities = 16
