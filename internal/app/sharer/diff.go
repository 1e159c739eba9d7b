package sharer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/opml"
)

// edit is a change by the user since the baseline: of a folder, a feed, a flag of an entry,
// or the removal of an entry.
type edit struct {
	kind editKind
	feed string

	flag     byte
	set      bool
	identity string // entry: its own identity
	key      string // entry: identity under which its marks are shared
	text     *entryText

	sub    *subEdit    // feed
	folder *folderMove // folder
}

// subEdit is an edit of a subscription. before is the recorded one, nil if there was none, and now the present
// one, nil if it has ended.
type subEdit struct {
	before *baseSub
	now    *subscriptions.Subscription
}

// folderMove has the path of a folder before and after.
type folderMove struct{ from, to string }

type editKind uint8

const (
	editFolder editKind = iota // renamed or moved
	editFeed
	editFlag
	editGone
)

// entryText is the description of an entry in a mark.
type entryText struct{ feedID, id, title, link string }

// diff returns the edits of the user: the differences between baseline and lektor-dir.
func diff(base *baseline, l *local) []edit {
	edits := diffFolders(base, l)
	for _, hash := range union(base.feeds, l.subs) {
		f, sub := base.sub(hash), l.subs[hash]
		d := subEdit{now: sub}
		if f.subscribed {
			d.before = &f
		}
		switch {
		case d.before == nil && sub == nil, l.withheld[hash] != "", l.unread[hash]:
		case d.before == nil || sub == nil || f.alias != sub.Alias || !slices.Equal(f.categories, sub.Categories):
			edits = append(edits, edit{kind: editFeed, feed: hash, sub: &d})
		}
	}
	for _, feed := range union(base.feeds, l.entries) {
		if l.unchanged[feed] == "" {
			edits = append(edits, diffEntries(feed, base, l)...)
		}
	}
	return edits
}

// union returns the sorted keys of both maps.
func union[A, B any](a map[string]A, b map[string]B) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// diffEntries returns the edits of flags of a feed's entries. The removal of an entry in new/ counts as
// reading it. Other entries also expire.
func diffEntries(feed string, base *baseline, l *local) (edits []edit) {
	entries, here := base.entries(feed), l.entries[feed]
	for identity, ref := range here {
		e := entries[identity]
		before, now := e.flags, shared(ref)
		if before == now {
			continue
		}
		for _, c := range []byte(flags) {
			if is := strings.IndexByte(now, c) >= 0; is != (strings.IndexByte(before, c) >= 0) {
				edits = append(edits, edit{kind: editFlag, feed: feed, identity: identity,
					key: cmp.Or(e.sharedAs, identity), flag: c, set: is})
			}
		}
	}
	// Entries of a feed that was purged or has ended are missing for another reason.
	if sub := l.subs[feed]; sub != nil && base.sub(feed).subscribed {
		for identity, e := range entries {
			if _, ok := here[identity]; !ok && e.unread {
				edits = append(edits, edit{kind: editGone, feed: feed, identity: identity,
					key: cmp.Or(e.sharedAs, identity), flag: 'S', set: true,
					text: &entryText{feedID: sub.ID, title: "An entry of " + sub.Title()}})
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(strings.Compare(a.identity, b.identity), cmp.Compare(a.flag, b.flag))
	})
	return edits
}

// diffFolders returns the folders that were renamed or moved: all their feeds, two or more, are now
// in one other folder that is new. A feed that is moved alone does not take its folder along: another
// machine may be adding feeds to the folder.
func diffFolders(base *baseline, l *local) (edits []edit) {
	members := map[string][]string{} // old path -> feeds directly in it
	before, now := map[string]bool{}, map[string]bool{}
	for hash, f := range base.feeds {
		addPaths(before, f.categories...)
		if sub := l.subs[hash]; f.subscribed && sub != nil {
			members[first(f.categories)] = append(members[first(f.categories)], hash)
			addPaths(now, first(sub.Categories))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(members)) {
		to := first(l.subs[members[path][0]].Categories)
		together := len(members[path]) > 1 && !slices.ContainsFunc(members[path],
			func(hash string) bool { return first(l.subs[hash].Categories) != to })
		if path != "" && to != "" && together && !before[to] && !now[path] {
			edits = append(edits, edit{kind: editFolder, folder: &folderMove{path, to}})
		}
	}
	// Outer folders come first, as moving them moves the inner ones.
	slices.SortStableFunc(edits,
		func(a, b edit) int { return len(opml.SplitPath(a.folder.from)) - len(opml.SplitPath(b.folder.from)) })
	return edits
}

// addPaths adds categories, and the folders that they are in.
func addPaths(paths map[string]bool, categories ...string) {
	for _, p := range categories {
		for ; p != ""; p, _ = split(p) {
			paths[p] = true
		}
	}
}
