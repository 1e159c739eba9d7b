package sharer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/lektordir"
)

// entry is an entry of the lektor-dir.
type entry struct {
	ref lektordir.Ref
	as  string // the lineage under which its state is shared
}

// flags are those that are shared: seen, flagged, trashed, and the user's own.
const flags = "FSTabcdefghijklmnopqrstuvwxyz"

// shared gives the flags of an entry that are shared.
func shared(r lektordir.Ref) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(flags, c) {
			return c
		}
		return -1
	}, r.Flags())
}

// stateID is the id of the item for a flag of an entry.
func stateID(feed, lineage string, flag byte) string {
	return feed + ":" + lineage + ":" + string(flag)
}

// splitState undoes [stateID].
func splitState(id string) (feed, lineage string, flag byte, ok bool) {
	f := strings.Split(id, ":")
	if len(f) != 3 || !isHex(f[0], 40) || !isHex(f[1], 16) || len(f[2]) != 1 || !strings.Contains(flags, f[2]) {
		return "", "", 0, false
	}
	return f[0], f[1], f[2][0], true
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// sameState tells whether two marks mean the same: that there is one is all that a mark
// says.
func sameState(_, _ *feedsync.Item) bool { return true }

// list lists the entries of all feeds that are shared. Of a feed whose directories
// cannot be read nothing is known.
func (h *share) list(ctx context.Context) error {
	refs, err := h.d.List(ctx, lektordir.ListOptions{})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, e := range joined.Errors(err) {
		var name *lektordir.NameError
		if !errors.As(e, &name) {
			// Absence is no news then, of any feed.
			return e
		}
	}
	h.local.entries = map[string]map[string]*entry{}
	own := map[string]bool{}
	for _, ref := range refs {
		skip, ok := own[ref.Feed]
		if !ok {
			_, err := os.Stat(h.d.Join("src", ref.Feed))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			skip = err != nil || !isHex(ref.Feed, 40) || h.local.own[ref.Feed] != "" || withheld(h.d, ref.Feed) != ""
			own[ref.Feed] = skip
		}
		if skip {
			continue
		}
		feed := h.local.entries[ref.Feed]
		if feed == nil {
			feed = map[string]*entry{}
			h.local.entries[ref.Feed] = feed
		}
		lineage := ref.Identity()
		if lineage == "" {
			if lineage, err = h.lineageOf(ref); err != nil {
				return err
			}
			if lineage == "" {
				continue
			}
		}
		e := &entry{ref: ref}
		if old := h.last.feeds[ref.Feed]; old != nil {
			e.as = old.entries[lineage].as
		}
		feed[lineage] = e
	}
	return nil
}

// lineageOf gives an entry of a fetcher that writes no identity one that is made of its
// id.
func (h *share) lineageOf(ref lektordir.Ref) (string, error) {
	e, err := h.d.ReadEntry(ref, lektordir.FieldID)
	var path *fs.PathError
	if errors.As(err, &path) && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil || e.ID == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(e.ID))
	return hex.EncodeToString(sum[:8]), nil
}

// key gives the lineage under which the state of an entry is shared.
func (e *entry) key(lineage string) string {
	if e.as != "" {
		return e.as
	}
	return lineage
}

// noteStates notes in the set what the user did to entries.
func (h *share) noteStates(ctx context.Context) error {
	for _, feed := range slices.Sorted(maps.Keys(h.local.entries)) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		old := map[string]seenEntry{}
		if f := h.last.feeds[feed]; f != nil {
			old = f.entries
		}
		if err := h.noteFeed(ctx, feed, old); err != nil {
			return err
		}
	}
	return h.noteGone()
}

// edit is a flag that was set or cleared.
type edit struct {
	e       *entry
	lineage string
	flag    byte
	set     bool
}

// noteFeed notes what the user did to the entries of a feed. What is told of them is
// read on all processors: at first that is most of them.
func (h *share) noteFeed(ctx context.Context, feed string, old map[string]seenEntry) error {
	entries := h.local.entries[feed]
	var edits []edit
	about := map[*entry]*mark{}
	for _, lineage := range slices.Sorted(maps.Keys(entries)) {
		e := entries[lineage]
		before, now := old[lineage].flags, shared(e.ref)
		if before == now {
			continue
		}
		for _, c := range []byte(flags) {
			had, has := strings.IndexByte(before, c) >= 0, strings.IndexByte(now, c) >= 0
			if had == has {
				continue
			}
			it := h.states.Item(stateID(feed, e.key(lineage), c))
			if said := it != nil && !it.Deleted; said == has {
				continue
			}
			edits = append(edits, edit{e, e.key(lineage), c, has})
			about[e] = &mark{}
		}
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for e, m := range about {
		g.Go(func() error {
			*m = *h.describe(e.ref)
			return nil
		})
	}
	_ = g.Wait()
	for _, d := range edits {
		if err := h.mark(feed, d.lineage, d.flag, d.set, about[d.e]); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// noteGone takes an entry that was unread in new/, and is gone without having been
// trashed, for read: a viewer that deletes what it shows did so. Other entries that are
// gone keep their state, as expiring is no deletion.
func (h *share) noteGone() error {
	for _, feed := range slices.Sorted(maps.Keys(h.last.feeds)) {
		f := h.last.feeds[feed]
		if h.local.subs[feed] == nil || !f.subscribed {
			continue // purged, or ended: nothing was read
		}
		for _, lineage := range slices.Sorted(maps.Keys(f.entries)) {
			e := f.entries[lineage]
			if !e.unread || h.local.entries[feed][lineage] != nil {
				continue
			}
			key := (&entry{as: e.as}).key(lineage)
			if it := h.states.Item(stateID(feed, key, 'S')); it != nil {
				continue
			}
			if err := h.mark(feed, key, 'S', true, &mark{feedID: h.local.subs[feed].ID, title: "An entry of " + h.local.subs[feed].Title()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark is what is told of an entry beside its state.
type mark struct{ feedID, id, title, link string }

// words are what flags are called in documents.
var words = map[byte]string{'S': "read", 'F': "flagged", 'T': "trashed"}

func wordOf(flag byte) string { return cmp.Or(words[flag], string(flag)) }

func (h *share) describe(ref lektordir.Ref) *mark {
	m := &mark{}
	if e, _ := h.d.ReadEntry(ref, lektordir.FieldTitle|lektordir.FieldID|lektordir.FieldLink); e != nil {
		m.id, m.title, m.link = e.ID, e.Title, e.URL()
	}
	if sub := h.local.subs[ref.Feed]; sub != nil {
		m.feedID = sub.ID
	} else if f := h.d.FeedOf(ref); f != nil {
		m.feedID = f.ID
	}
	return m
}

// mark sets or clears a flag in the set.
func (h *share) mark(feed, lineage string, flag byte, set bool, m *mark) error {
	id := stateID(feed, lineage, flag)
	if !set {
		return h.modify(h.states, id, nil, "")
	}
	title := cmp.Or(strings.TrimSpace(m.title), m.id)
	b := fmt.Appendf(nil, `<item xmlns:lektor="%s"><title>%s</title>`, feedsync.LektorNamespace, feedsync.Text(fetch.PublicText(title)))
	if fetch.IsHTTP(m.link) {
		b = fmt.Appendf(b, "<link>%s</link>", feedsync.Text(fetch.Public(m.link)))
	}
	b = fmt.Appendf(b, `<guid isPermaLink="false">%s</guid><category>%s</category><lektor:feed>%s</lektor:feed>`, feedsync.Text(id), wordOf(flag), feedsync.Text(fetch.Public(m.feedID)))
	if m.id != "" {
		b = fmt.Appendf(b, "<lektor:entry>%s</lektor:entry>", feedsync.Text(fetch.Public(m.id)))
	}
	return h.modify(h.states, id, append(b, "</item>"...), "")
}

// wanted is what the set says of an entry.
type wanted struct{ set, clear string }

// applyStates makes the flags of entries what the set says, by renames as a viewer's.
// changed are ids of items that are new: for these, and for entries that are new here,
// it is found out which entry is meant where the lineage does not tell.
func (h *share) applyStates(ctx context.Context, changed map[string]bool, dryRun bool) error {
	want := map[*entry]*wanted{}
	strangers := map[string][]*feedsync.Item{} // by feed: items of no entry that is here
	for _, it := range h.states.Items() {
		feed, lineage, flag, ok := splitState(it.ID)
		if !ok || h.local.own[feed] != "" {
			continue
		}
		entries := h.local.entries[feed]
		e := entries[lineage]
		if e == nil || e.as != "" && e.as != lineage {
			strangers[feed] = append(strangers[feed], it)
			continue
		}
		add(want, e, flag, !it.Deleted)
	}
	for feed, items := range strangers {
		h.recognise(feed, items, changed, want)
	}
	var bad error
	count := 0
	for e, w := range want {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		to, err := e.ref.WithFlags(w.set, w.clear)
		if err != nil || shared(to) == shared(e.ref) {
			continue
		}
		if count++; dryRun {
			continue
		}
		h.change()
		switch err := h.setFlags(e.ref, w); {
		case err == nil:
			// Not what it is now, if the user was quicker: his is an edit.
			e.ref = to
		case errors.Is(err, fs.ErrNotExist):
			h.waiting++ // somebody moved it; the next sync looks again
		default:
			bad = errors.Join(bad, err)
		}
	}
	if dryRun && count > 0 {
		h.s.Report.Info("would mark %d entries", count)
	}
	return bad
}

func add(want map[*entry]*wanted, e *entry, flag byte, set bool) {
	w := want[e]
	if w == nil {
		w = &wanted{}
		want[e] = w
	}
	if set {
		w.set += string(flag)
	} else {
		w.clear += string(flag)
	}
}

// setFlags marks an entry that a viewer may move in the same moment: then it is looked
// for once, and what the viewer did to other flags stays.
func (h *share) setFlags(ref lektordir.Ref, w *wanted) error {
	_, err := h.d.SetFlags(ref, w.set, w.clear)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now, rerr := h.d.Resolve(ref.Path())
	if rerr != nil {
		return err
	}
	_, err = h.d.SetFlags(now, w.set, w.clear)
	return err
}

// recognise finds the entries of a feed that items with other lineages mean: by the
// identities in the journal, else by the id of the entry, if one has it.
func (h *share) recognise(feed string, items []*feedsync.Item, changed map[string]bool, want map[*entry]*wanted) {
	entries := h.local.entries[feed]
	for _, it := range items {
		if !it.Deleted && (len(entries) > 0 || h.local.subs[feed] != nil) {
			h.waiting++
		}
	}
	if len(entries) == 0 {
		return
	}
	byAs := map[string]*entry{}
	for lineage, e := range entries {
		if e.as != "" && e.as != lineage {
			byAs[e.as] = e
		}
	}
	journal, err := h.d.Lineages(feed)
	if err != nil {
		h.s.Report.Warn("%v", err)
	}
	var old *seenFeed
	if old = h.last.feeds[feed]; old == nil {
		old = &seenFeed{}
	}
	// Reading the ids of all entries is for when something is new.
	news := slices.ContainsFunc(items, func(it *feedsync.Item) bool { return changed[it.ID] })
	for lineage := range entries {
		if _, ok := old.entries[lineage]; !ok {
			news = true
		}
	}
	var byID map[string]*entry
	for _, it := range items {
		_, lineage, flag, _ := splitState(it.ID)
		e := byAs[lineage]
		if e == nil {
			if found := entries[journal[lineage]]; found != nil && found.as == "" {
				e = found
			}
		}
		if e == nil && news {
			if byID == nil {
				byID = h.byID(entries)
			}
			if id, ok := it.ChildText(feedsync.LektorNamespace, "entry"); ok {
				e = byID[id]
			}
		}
		if e == nil || e.as != "" && e.as != lineage || h.stated(feed, e) {
			continue
		}
		e.as = lineage
		byAs[lineage] = e
		if !it.Deleted {
			h.waiting--
		}
		add(want, e, flag, !it.Deleted)
	}
}

// stated tells whether the set has a state for an entry under its own lineage.
func (h *share) stated(feed string, e *entry) bool {
	if e.as != "" {
		return false
	}
	lineage := e.ref.Identity()
	for _, c := range []byte(flags) {
		if lineage != "" && h.states.Item(stateID(feed, lineage, c)) != nil {
			return true
		}
	}
	return false
}

// byID gives the entries of a feed by their ids, as far as one alone has it.
func (h *share) byID(entries map[string]*entry) map[string]*entry {
	found := map[string]*entry{}
	for _, e := range entries {
		r, err := h.d.ReadEntry(e.ref, lektordir.FieldID)
		if err != nil || r.ID == "" {
			continue
		}
		id := fetch.Public(r.ID)
		if _, several := found[id]; several {
			found[id] = nil
			continue
		}
		found[id] = e
	}
	return found
}

// remember looks at the lektor-dir as it is now, for the next run.
func (h *share) remember() error {
	l := &seen{made: h.last.made, feeds: map[string]*seenFeed{}, data: h.last.data}
	for hash, sub := range h.local.subs {
		l.feeds[hash] = &seenFeed{subscribed: true, alias: sub.Alias, categories: sub.Categories}
	}
	// Of what is not looked at the last look counts.
	for hash, f := range h.last.feeds {
		if h.local.own[hash] != "" || h.local.unread[hash] {
			l.feeds[hash] = f
		}
	}
	for feed, entries := range h.local.entries {
		f := l.feeds[feed]
		if f == nil {
			f = &seenFeed{}
			l.feeds[feed] = f
		}
		f.entries = make(map[string]seenEntry, len(entries))
		for lineage, e := range entries {
			as := e.as
			if as == lineage {
				as = ""
			}
			f.entries[lineage] = seenEntry{flags: shared(e.ref), unread: e.ref.Place == lektordir.New, as: as}
		}
	}
	h.last = l
	return h.writeLast(l)
}
