package sharer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// action is one change that makes the lektor-dir follow the set.
type action struct {
	kind       actionKind
	feed       string
	sub        *subscriptions.Subscription // subscription to add
	alias      string
	categories []string

	identity   string
	set, clear string // flags
}

type actionKind uint8

const (
	subscribe actionKind = iota
	unsubscribe
	setAlias
	setCategories
	setFlags
)

// planner makes the plan for a machine.
type planner struct {
	me      string
	base    *baseline
	local   *local
	allow   []netip.Prefix    // private networks whose feeds are allowed
	origins map[string]string // place of the peer that a feed comes from, by hash of the feed
	refused []string          // reasons why parts of the set are not applied here
}

// plan returns the actions for all differences between set and lektor-dir.
func (p *planner) plan(s *itemSet) []action {
	var out []action
	tree := foldersOf(s.subs)
	for _, it := range s.subs.Items() {
		if isFolder(it) || p.local.unread[it.ID] || p.local.withheld[it.ID] != "" || p.base.sub(it.ID).unshared {
			continue
		}
		out = append(out, p.feed(tree, it)...)
	}
	for _, feed := range slices.Sorted(maps.Keys(p.local.entries)) {
		if p.local.withheld[feed] == "" && s.marks.has(feed) {
			out = append(out, p.marks(s, feed)...)
		}
	}
	return out
}

// feed returns the actions for a subscription.
func (p *planner) feed(tree *folders, it *feedsync.Item) []action {
	sub := p.local.subs[it.ID]
	url := strings.TrimSpace(it.Value("", "xmlUrl"))
	switch {
	case it.Deleted && sub != nil:
		return []action{{kind: unsubscribe, feed: it.ID}}
	case it.Deleted, url == "": // an item of another program has no URL
		return nil
	}
	m, categories := meaningOf(it), tree.categories(it)
	if sub == nil {
		id := cmp.Or(strings.TrimSpace(it.Value(feedsync.LektorNamespace, "id")), url)
		if why := p.refuses(it.ID, url, id); why != "" {
			p.refused = append(p.refused, fmt.Sprintf("%s: not subscribed to: %s", feedurl.Brief(feedurl.Public(url)),
				why))
			return nil
		}
		origin := p.origins[it.ID]
		if origin == "" && it.Head().By != p.me {
			origin = "a peer of lektor-share" // it was read by an earlier run
		}
		return []action{{kind: subscribe, feed: it.ID, sub: &subscriptions.Subscription{
			ID: id, URL: url, Name: it.Value("", "title"), Alias: m.alias, Link: it.Value("", "htmlUrl"),
			Categories: categories, Origin: origin,
		}}}
	}
	var out []action
	if sub.Alias != m.alias {
		out = append(out, action{kind: setAlias, feed: it.ID, alias: m.alias})
	}
	if !slices.Equal(sub.Categories, categories) {
		out = append(out, action{kind: setCategories, feed: it.ID, categories: categories})
	}
	return out
}

// refuses returns the reason why a feed is not added, "" if it is.
func (p *planner) refuses(hash, url, id string) string {
	switch {
	case !feedurl.IsHTTP(url) || !feedurl.IsHTTP(id):
		return "it is not from an http or https URL"
	case len(url) > maxURL || len(id) > maxURL:
		return "its URL is longer than 8 KiB"
	case feedurl.Public(url) != url || feedurl.Public(id) != id:
		return "it has a user or password in its URL"
	case lektordir.FeedHash(lektordir.NormalizeID(id)) != hash:
		return "its item id is not the hash of its feed's id"
	}
	why, addr := fetch.RefusesHost(url, p.allow)
	if addr.IsValid() {
		why += fmt.Sprintf("; to allow it: lektor-share sync --allow %s", netip.PrefixFrom(addr, addr.BitLen()))
	}
	return why
}

// marks returns the actions for the entries of a feed.
func (p *planner) marks(s *itemSet, feed string) (out []action) {
	here, entries := p.local.entries[feed], p.base.entries(feed)
	own := entries.bySharedIdentity(here)
	wanted := map[string]*action{}
	for rest, m := range s.marks.of(feed) {
		key, c := keyOf(rest)
		identity := cmp.Or(own[key], key)
		ref, ok := here[identity]
		if !ok || ref.HasFlag(c) == !m.deleted() {
			continue
		}
		if entries.key(identity) != key || strings.IndexByte(entries[identity].unshared, c) >= 0 {
			continue
		}
		a := wanted[identity]
		if a == nil {
			a = &action{kind: setFlags, feed: feed, identity: identity}
			wanted[identity] = a
		}
		if m.deleted() {
			a.clear += string(c)
		} else {
			a.set += string(c)
		}
	}
	for _, identity := range slices.Sorted(maps.Keys(wanted)) {
		a, ref := wanted[identity], here[identity]
		if to, err := ref.WithFlags(a.set, a.clear); err == nil && shared(to) != shared(ref) {
			out = append(out, *a)
		}
	}
	return out
}

// maxLost is the number of marks or unread entries that may always disappear in one run.
const maxLost = 20

// guardEdits returns an error if so many unread entries have disappeared, or so many marks, that a
// disk may be missing, or an old backup in place of the lektor-dir. A mark counts as lost if it is
// F, or if its entry is in new/ again, where no program puts one back. deleted reports whether
// lektor has deleted entries of a feed.
func guardEdits(edits []edit, base *baseline, l *local, deleted func(feed string) bool) error {
	lost, total := map[byte]int{}, map[byte]int{} // by flag; 0 is for unread entries
	for _, d := range edits {
		switch {
		case d.kind == editGone && !deleted(d.feed):
			lost[0]++
		case d.kind == editFlag && !d.set && (d.flag == 'F' ||
			l.entries[d.feed][d.identity].Place == lektordir.New):
			lost[d.flag]++
		}
	}
	maps.DeleteFunc(lost, func(_ byte, n int) bool { return n <= maxLost })
	if len(lost) == 0 {
		return nil
	}
	for feed := range base.feeds {
		if l.entries[feed] == nil && l.unchanged[feed] == "" && l.subs[feed] == nil {
			continue
		}
		for _, e := range base.entries(feed) {
			if e.unread && l.subs[feed] != nil {
				total[0]++
			}
			for _, flag := range []byte(e.flags) {
				total[flag]++
			}
		}
	}
	var bad error
	for _, flag := range slices.Sorted(maps.Keys(lost)) {
		switch n := lost[flag]; {
		case 2*n <= total[flag]:
		case flag == 0:
			bad = cmdline.Hint(fmt.Errorf("%d of %d unread entries are neither in new/ nor in cur/ any more; nothing is shared", n, total[0]),
				"mount the disk, or restore them; if you deleted them, so that they count as read: lektor-share sync --yes")
		default:
			bad = errors.Join(bad,
				cmdline.Hint(fmt.Errorf("%d of %d entries that were %s are not %[3]s any more; nothing is shared", n,
					total[flag], wordOf(flag)),
					"if this is an old backup, restore its etc/share too, and run: lektor-share init --renew; if you cleared the marks: lektor-share sync --yes"))
		}
	}
	return bad
}

// maxTrash is the number of entries that a sync may always trash.
const maxTrash = 100

// guard removes the actions that would end more than half of more than two subscriptions,
// or trash more than maxTrash and more than half of the entries. It returns the remaining
// actions, and an error for each kind that it removed.
func guard(actions []action, base *baseline, l *local) (rest []action, errs []error) {
	isEnd := func(a action) bool { return a.kind == unsubscribe }
	isTrash := func(a action) bool { return a.kind == setFlags && strings.Contains(a.set, "T") }
	ends, trashed, entries := 0, 0, 0
	for _, a := range actions {
		if isEnd(a) {
			ends++
		} else if isTrash(a) {
			trashed++
		}
	}
	if len(l.subs) > 2 && 2*ends > len(l.subs) {
		errs = append(errs, fmt.Errorf("refused to end %d of %d subscriptions", ends, len(l.subs)))
		actions = slices.DeleteFunc(actions, isEnd)
	}
	if trashed <= maxTrash {
		return actions, errs
	}
	for _, here := range l.entries {
		entries += len(here)
	}
	for feed := range l.unchanged {
		entries += len(base.entries(feed))
	}
	if 2*trashed > entries {
		errs = append(errs, fmt.Errorf("refused to trash %d of %d entries", trashed, entries))
		actions = slices.DeleteFunc(actions, isTrash)
	}
	return actions, errs
}
