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
	"sync"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/lektordir"
)

// entryMatcher finds the entries that the marks of a feed refer to. A mark has the identity of
// the entry on the machine that made it. On a machine that met the feed before or after its
// guids changed, the entry has another identity. The journal of either machine may know
// both, and marks name all identities that the journal knows.
type entryMatcher struct {
	set     *itemSet
	base    *baseline
	entries baseEntries // recorded entries
	feed    string
	here    map[string]lektordir.Ref
	own     map[string]string        // identity on any machine -> own identity
	named   map[string]string        // further identity in a mark -> identity of the mark, or the reverse
	ids     func() map[string]string // ids of entries -> own identity
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
		m := &entryMatcher{set: s, base: base, entries: base.entries(feed), feed: feed, here: here}
		size, sub, strangers := int64(0), base.sub(feed), m.strangers()
		if fi, err := os.Stat(r.d.Join(feedfiles.JournalPath(feed))); err == nil {
			size = fi.Size()
		}
		grown := base.feeds[feed] != nil && sub.journal != size
		if !grown && len(strangers) == 0 {
			continue
		}
		lineages, failed := journal.Lineages(r.d.Join(commit.JournalPath(feed)))
		if grown && failed == nil {
			m.addIdentities(lineages)
			sub.journal = size
			base.setSub(feed, sub)
		}
		m.learn(lineages)
		m.ids = sync.OnceValue(func() map[string]string {
			if !grown && !s.news[feed] {
				return nil // reading the ids of all entries is slow, so it is done only after a change
			}
			ids, err := r.entryIDs(here)
			failed = errors.Join(failed, err)
			return ids
		})
		for _, other := range slices.Sorted(maps.Keys(strangers)) {
			if own := m.find(other, strangers[other]); own != "" {
				m.link(own, other)
			} else {
				waiting[feed] += m.live(strangers[other])
			}
		}
		if failed != nil {
			r.addTrouble(failed)
			delete(l.stamps, feed) // the next run tries again
		}
	}
	return waiting
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

// learn sets own, where the entries that are here come first, and named.
func (m *entryMatcher) learn(lineages map[string]string) {
	m.own, m.named = m.entries.bySharedIdentity(m.here), map[string]string{}
	for identity := range m.here {
		m.own[identity] = cmp.Or(m.own[identity], identity)
	}
	for other, own := range lineages {
		if _, known := m.own[other]; !known && m.has(own) {
			m.own[other] = own
		}
	}
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
}

// find returns the own identity of the entry that another identity refers to, "" if the
// entry is not here. marks are the marks with the other identity.
func (m *entryMatcher) find(other string, marks []mark) string {
	if own := cmp.Or(m.own[other], m.own[m.named[other]]); own != "" {
		return own
	}
	for _, k := range marks {
		for _, id := range k.item().Children(feedsync.LektorNamespace, "entry") {
			if own := m.ids()[id]; own != "" {
				return own
			}
		}
	}
	return ""
}

// link makes the marks of two identities belong to one entry. If both have marks, all
// machines continue with the lower identity, and its missing marks are copied from the
// other.
func (m *entryMatcher) link(own, other string) {
	key := m.entries.key(own)
	switch {
	case key == other:
		return
	case !strings.ContainsFunc(flags, func(c rune) bool { return m.mark(key, byte(c)) != nil }):
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
	m.own[as] = own
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
func (m *entryMatcher) addIdentities(lineages map[string]string) {
	others := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(lineages)) {
		others[lineages[id]] = append(others[lineages[id]], id)
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

// maxIdentities is the maximum number of identities that are added to a mark at once.
const maxIdentities = 16
