package sharer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/opml"
	"github.com/lektordir/lektor/lektordir"
)

// edit is something that the user did since the baseline: to a feed, to a flag of an
// entry, or to an entry that is gone.
type edit struct {
	kind     editKind
	feed     string
	before   *baseFeed             // of a feed; nil for one that was not subscribed to
	sub      *feeddir.Subscription // of a feed; nil for one that is no longer
	from, to string                // of a folder: its path

	identity string // of an entry
	key      string // under which its marks are shared
	entry    *entry // nil for one that is gone
	flag     byte
	set      bool

	about about // of an entry
	err   error // about could not be read
}

type editKind uint8

const (
	editFolder editKind = iota // renamed or moved
	editFeed
	editFlag
	editGone
)

// about is what is told of an entry beside its state.
type about struct{ feedID, id, title, link string }

// diff returns the user's edits: what differs between the baseline and the lektor-dir.
func diff(base baseline, l *local) []edit {
	edits := diffFolders(base, l)
	for _, hash := range union(base, l.subs) {
		f, sub := base[hash], l.subs[hash]
		if f != nil && !f.subscribed {
			f = nil
		}
		switch {
		case f == nil && sub == nil, l.own[hash] != "", l.unread[hash]:
		case f == nil || sub == nil || f.alias != sub.Alias || !slices.Equal(f.categories, sub.Categories):
			edits = append(edits, edit{kind: editFeed, feed: hash, before: f, sub: sub})
		}
	}
	for _, feed := range slices.Sorted(maps.Keys(l.entries)) {
		edits = append(edits, diffEntries(feed, base[feed], l.entries[feed])...)
	}
	for _, feed := range slices.Sorted(maps.Keys(base)) {
		// Expiring is no deletion: of entries that were not in new/ nothing is known.
		f, sub := base[feed], l.subs[feed]
		if sub == nil || !f.subscribed {
			continue // purged, or ended: nothing was read
		}
		for _, identity := range slices.Sorted(maps.Keys(f.entries)) {
			if e := f.entries[identity]; e.unread && l.entries[feed][identity] == nil {
				edits = append(edits, edit{kind: editGone, feed: feed, identity: identity, key: e.key(identity), flag: 'S', set: true,
					about: about{feedID: sub.ID, title: "An entry of " + sub.Title()}})
			}
		}
	}
	return edits
}

// union returns the keys of both maps, sorted.
func union[A, B any](a map[string]A, b map[string]B) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// diffEntries returns the edits of the flags of a feed's entries.
func diffEntries(feed string, f *baseFeed, here map[string]*entry) (edits []edit) {
	for identity, e := range here {
		var before string
		if f != nil {
			before = f.entries[identity].flags
		}
		now := shared(e.ref)
		if before == now {
			continue
		}
		for _, c := range []byte(flags) {
			had, has := strings.IndexByte(before, c) >= 0, strings.IndexByte(now, c) >= 0
			if had != has {
				edits = append(edits, edit{kind: editFlag, feed: feed, identity: identity, key: e.key(identity), entry: e, flag: c, set: has})
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(strings.Compare(a.identity, b.identity), cmp.Compare(a.flag, b.flag))
	})
	return edits
}

// diffFolders finds folders that were renamed or moved: all feeds that were directly in
// one are in one other now.
func diffFolders(base baseline, l *local) (edits []edit) {
	members := map[string][]string{} // path before -> feeds
	still := map[string]bool{}       // paths that a feed is in now, or below
	for hash, f := range base {
		if sub := l.subs[hash]; f.subscribed && sub != nil {
			members[first(f.categories)] = append(members[first(f.categories)], hash)
			for p := first(sub.Categories); p != ""; p, _ = split(p) {
				still[p] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(members)) {
		now := first(l.subs[members[path][0]].Categories)
		one := !slices.ContainsFunc(members[path], func(hash string) bool { return first(l.subs[hash].Categories) != now })
		if path != "" && now != "" && now != path && one && !still[path] && !strings.HasPrefix(now, path+"/") {
			edits = append(edits, edit{kind: editFolder, from: path, to: now})
		}
	}
	// From the outer to the inner: what is moved with its folder is not moved.
	slices.SortStableFunc(edits, func(a, b edit) int { return len(opml.SplitPath(a.from)) - len(opml.SplitPath(b.from)) })
	return edits
}

// rebase returns the baseline for what the lektor-dir has, now that its edits are noted.
// What was not looked at, and what could not be noted, stays as it was.
func rebase(base baseline, l *local) baseline {
	now := baseline{}
	for _, hash := range union(base, l.subs) {
		old, sub := base[hash], l.subs[hash]
		if old != nil && (l.own[hash] != "" || l.unread[hash]) {
			f := now.feed(hash)
			old.shared = true
			*f = *old
			if l.entries[hash] != nil {
				f.entries = map[string]baseEntry{} // filled below
			}
			continue
		}
		if sub != nil {
			f := now.feed(hash)
			f.subscribed, f.alias, f.categories = true, sub.Alias, sub.Categories
		}
		if old != nil && (sub != nil || old.kept || l.entries[hash] != nil) {
			f := now.feed(hash)
			f.kept, f.journal = old.kept, old.journal
		}
	}
	for feed, here := range l.entries {
		f, old := now.feed(feed), base[feed]
		if old != nil && f.same(old) && old.holds(here) {
			old.shared = true
			now[feed] = old
			continue
		}
		for identity, e := range here {
			if e.late {
				if was, ok := base.entry(feed, identity); ok {
					f.entries[identity] = was
				}
				continue
			}
			f.entries[identity] = e.base(identity)
		}
	}
	return now
}

// base returns what the baseline has of an entry as it is.
func (e *entry) base(identity string) baseEntry {
	b := baseEntry{flags: shared(e.ref), unread: e.ref.Place == lektordir.New, as: e.as, kept: e.kept}
	if b.as == identity {
		b.as = ""
	}
	if b.unread {
		b.flags = ""
	}
	return b
}
