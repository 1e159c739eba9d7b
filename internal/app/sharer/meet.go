package sharer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/journal"
	"github.com/lektordir/lektor/lektordir"
)

// meeting finds which entries the marks of a feed mean. A mark bears the identity that an
// entry has on the machine that made it; on another that met the feed before its guids
// changed, or after, the entry has another one. The journal of either machine may know
// both: marks name all identities that it knows.
type meeting struct {
	r       *reader
	set     *set
	base    *baseline
	entries baseEntries // of the baseline
	feed    string
	here    map[string]lektordir.Ref
	news    bool              // there are marks, entries or lines of the journal since the last time
	journal map[string]string // identity -> the one that the entry's name has
	byAs    map[string]string // identity that is shared -> the own one
	named   map[string]string // see names
	byID    map[string]string // id of an entry -> its own identity, "" for several
}

// meet assigns to entries the identities under which marks of them are shared, and returns how
// many marks are of no entry that is here.
func (r *reader) meet(s *set, base *baseline, l *local, changed []string) (waiting int) {
	newMarks := map[string]bool{}
	for _, id := range changed {
		feed, _ := place(id)
		newMarks[feed] = true
	}
	for _, feed := range slices.Sorted(maps.Keys(s.marks)) {
		here := l.entries[feed]
		if feed == "" || l.own[feed] != "" || len(here) == 0 && l.subs[feed] == nil {
			continue
		}
		entries := base.entries(feed)
		m := &meeting{r: r, set: s, base: base, entries: entries, feed: feed, here: here, byAs: entries.own(here), news: newMarks[feed]}
		for identity := range here {
			_, known := entries[identity]
			m.news = m.news || !known
		}
		strangers := m.strangers()
		size := journalSize(r.d, feed)
		sub := base.sub(feed)
		grown := base.feeds[feed] != nil && sub.journal != size
		if m.news = m.news || grown; len(strangers) > 0 || grown {
			var err error
			m.journal, err = journal.Lineages(r.d.Join(commit.JournalPath(feed)))
			r.fails(err)
			if grown && err == nil {
				m.tell()
				sub.journal = size
				base.setSub(feed, sub)
			}
		}
		for _, other := range slices.Sorted(maps.Keys(strangers)) {
			if own := m.find(other, strangers[other]); own != "" {
				m.link(own, other)
			} else {
				waiting += m.live(strangers[other])
			}
		}
	}
	return waiting
}

// journalSize is the size of the journal of a feed, 0 where there is none.
func journalSize(d *lektordir.Dir, feed string) int64 {
	fi, err := os.Stat(d.Join(feeddir.JournalPath(feed)))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// has reports whether an entry of an identity is here.
func (m *meeting) has(identity string) bool {
	_, ok := m.here[identity]
	return ok
}

// strangers returns the marks of identities that are not those of entries that are here.
func (m *meeting) strangers() map[string][]*mark {
	found := map[string][]*mark{}
	for _, k := range m.set.marks[m.feed] {
		identity := k.identity()
		if !m.has(identity) || m.entries.key(identity) != identity {
			found[identity] = append(found[identity], k)
		}
	}
	return found
}

// live counts the marks that are set, without those that this endpoint has edited: their
// entry was here, and has expired.
func (m *meeting) live(marks []*mark) (n int) {
	ours := func(u feedsync.Update) bool { return u.By == m.set.me }
	for _, k := range marks {
		if !k.Deleted && !slices.ContainsFunc(k.History, ours) {
			n++
		}
	}
	return n
}

// stated reports whether there are marks of an identity.
func (m *meeting) stated(identity string) bool {
	return strings.ContainsFunc(flags, func(c rune) bool { return m.set.flagOf(m.feed, identity, byte(c)) != nil })
}

// find returns the own identity of the entry that another one means, "" if none is here.
// Marks are those of the other one.
func (m *meeting) find(other string, marks []*mark) string {
	if own, ok := m.byAs[other]; ok {
		return own
	}
	if m.has(other) {
		return other // whose marks are shared under another one
	}
	if own := m.journal[other]; m.has(own) {
		return own
	}
	if name, ok := m.names()[other]; ok {
		if own := cmp.Or(m.byAs[name], name); m.has(own) {
			return own
		}
	}
	if !m.news {
		return ""
	}
	// Reading the ids of all entries is for when something is new.
	for _, k := range marks {
		if id, ok := k.ChildText(feedsync.LektorNamespace, "entry"); ok && m.ids()[id] != "" {
			return m.ids()[id]
		}
	}
	return ""
}

// ids returns the own identities of the entries by id, as far as one alone has the id.
func (m *meeting) ids() map[string]string {
	if m.byID != nil {
		return m.byID
	}
	m.byID = map[string]string{}
	for identity, ref := range m.here {
		entry, err := m.r.d.ReadEntry(ref, lektordir.FieldID)
		if isUnreadable(err) {
			// It may be the second of two with one id: nothing is known then.
			m.r.fails(err)
			m.byID = map[string]string{}
			return m.byID
		}
		if err != nil || entry.ID == "" {
			continue
		}
		id := fetch.Public(entry.ID)
		if _, several := m.byID[id]; several {
			m.byID[id] = ""
			continue
		}
		m.byID[id] = identity
	}
	return m.byID
}

// link makes the marks of two identities those of one entry. If both have marks, the lower
// identity is the one under which all machines go on, and gets what the other has.
func (m *meeting) link(own, other string) {
	key := m.entries.key(own)
	switch {
	case key == other:
		return
	case !m.stated(key):
		m.shares(own, other)
		return
	}
	keep, drop := min(key, other), max(key, other)
	m.shares(own, keep)
	for _, c := range []byte(flags) {
		from := m.set.flagOf(m.feed, drop, c)
		if from == nil || from.Deleted || m.set.flagOf(m.feed, keep, c) != nil {
			continue
		}
		// Two machines that do this at once make items that mean the same.
		_ = m.set.modify(feedsync.RSS, stateID(m.feed, keep, c), from.Content(), "")
	}
	m.name(keep, []string{drop})
}

// shares makes an identity the one under which the marks of an entry are shared.
func (m *meeting) shares(own, as string) {
	m.byAs[as] = own
	if as == own {
		as = ""
	}
	if e, ok := m.entries[own]; ok && e.as != as {
		e.as = as
		m.base.setEntry(m.feed, own, e)
	}
}

// tell adds to marks the identities that the journal knows of their entries. It is no edit:
// of two items that mean the same the longer one stays, on every machine.
func (m *meeting) tell() {
	others := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(m.journal)) {
		others[m.journal[id]] = append(others[m.journal[id]], id)
	}
	for own, ids := range others {
		if m.has(own) {
			m.name(m.entries.key(own), append([]string{own}, ids...))
		}
	}
}

// name adds identities to the marks that are shared under another one.
func (m *meeting) name(key string, ids []string) {
	for _, c := range []byte(flags) {
		k := m.set.flagOf(m.feed, key, c)
		if k == nil {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
			return id == key || bytes.Contains(k.Content(), []byte(">"+id+"<"))
		})
		if len(missing) == 0 {
			continue
		}
		content, ok := bytes.CutSuffix(k.Content(), []byte("</item>"))
		if !ok {
			continue
		}
		var more strings.Builder
		for _, id := range missing[:min(len(missing), maxIdentities)] {
			fmt.Fprintf(&more, `<lektor:identity>%s</lektor:identity>`, id)
		}
		if told, err := k.Recast(slices.Concat(content, []byte(more.String()), []byte("</item>"))); err == nil {
			m.set.put(told)
		}
	}
}

// names returns, for the identities that marks name beside their own, the one that they are
// shared under; and for that one those of entries that are here.
func (m *meeting) names() map[string]string {
	if m.named != nil {
		return m.named
	}
	m.named = map[string]string{}
	for _, k := range m.set.marks[m.feed] {
		if !bytes.Contains(k.Content(), []byte("identity>")) {
			continue
		}
		_ = feedsync.EachChild(k.Content(), func(ns, name, text string) {
			if ns != feedsync.LektorNamespace || name != "identity" {
				return
			}
			m.named[text] = k.identity()
			if m.has(text) {
				m.named[k.identity()] = text
			}
		})
	}
	return m.named
}

// maxIdentities is how many identities of an entry a mark is given at once.
const maxIdentities = 16
