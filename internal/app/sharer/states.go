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
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/lektordir"
)

// entry is an entry of the lektor-dir.
type entry struct {
	ref lektordir.Ref
	as  string // the lineage under which its state is shared
	// late tells that an edit of it could not be noted: what was seen last is still
	// what the set knows.
	late bool
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
	const colon1, colon2 = 40, 40 + 1 + 16
	if len(id) != colon2+2 || id[colon1] != ':' || id[colon2] != ':' || strings.IndexByte(flags, id[colon2+1]) < 0 ||
		!lektordir.IsFeedHash(id[:colon1]) || !lektordir.IsIdentity(id[colon1+1:colon2]) {
		return "", "", 0, false
	}
	return id[:colon1], id[colon1+1 : colon2], id[colon2+1], true
}

// sameState tells whether two marks mean the same: that there is one is all that a mark
// says.
func sameState(_, _ *feedsync.Item) bool { return true }

// list lists the entries of all feeds that are shared. Of a feed whose directories
// cannot be read nothing is known.
func (h *share) list(ctx context.Context) error {
	// What its document withdrew is here as well as before, and not gone.
	refs, err := h.d.List(ctx, lektordir.ListOptions{Withdrawn: true})
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
	h.needs(entryWeight * len(refs))
	for len(refs) > 0 {
		feed, n := refs[0].Feed, 1
		for n < len(refs) && refs[n].Feed == feed {
			n++
		}
		if err := h.listFeed(feed, refs[:n]); err != nil {
			return err
		}
		refs = refs[n:]
	}
	return nil
}

// listFeed takes the entries of a feed, if it is shared.
func (h *share) listFeed(feed string, refs []lektordir.Ref) error {
	if _, err := os.Stat(h.d.Join("src", feed)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if !lektordir.IsFeedHash(feed) || h.local.own[feed] != "" || h.local.subs[feed] == nil && h.withheld(feed) != "" {
		return nil
	}
	old := map[string]seenEntry{}
	if f := h.last.feeds[feed]; f != nil {
		old = f.entries
	}
	all := make([]entry, len(refs))
	here := make(map[string]*entry, len(refs))
	for i, ref := range refs {
		lineage := ref.Identity()
		if lineage == "" {
			var err error
			if lineage, err = h.lineageOf(ref); err != nil {
				return err
			}
			if lineage == "" {
				continue
			}
		}
		all[i] = entry{ref: ref, as: old[lineage].as}
		here[lineage] = &all[i]
	}
	h.local.entries[feed] = here
	return nil
}

// lineageOf gives an entry of a fetcher that writes no identity one that is made of its
// id.
func (h *share) lineageOf(ref lektordir.Ref) (string, error) {
	e, err := h.d.ReadEntry(ref, lektordir.FieldID)
	if unreadable(err) {
		return "", err
	}
	if err != nil || e.ID == "" {
		return "", nil
	}
	sum := sha256.Sum256([]byte(e.ID))
	return hex.EncodeToString(sum[:8]), nil
}

// unreadable tells whether a file that is there could not be read.
func unreadable(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !errors.Is(err, fs.ErrNotExist)
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
	about   about
	err     error // it could not be read
}

// noteFeed notes what the user did to the entries of a feed. What is told of them is
// read on all processors: at first that is most of them.
func (h *share) noteFeed(ctx context.Context, feed string, old map[string]seenEntry) error {
	var edits []edit
	for lineage, e := range h.local.entries[feed] {
		before, now := old[lineage].flags, shared(e.ref)
		if before == now {
			continue
		}
		for _, c := range []byte(flags) {
			had, has := strings.IndexByte(before, c) >= 0, strings.IndexByte(now, c) >= 0
			if had == has {
				continue
			}
			m, ok := h.states.find(stateID(feed, e.key(lineage), c))
			if said := ok && !m.deleted; said != has {
				edits = append(edits, edit{e: e, lineage: e.key(lineage), flag: c, set: has})
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(strings.Compare(a.lineage, b.lineage), cmp.Compare(a.flag, b.flag))
	})
	if err := h.describe(ctx, feed, edits); err != nil {
		return err
	}
	h.needs(markWeight * len(edits))
	var bad error
	for _, d := range edits {
		if d.err != nil {
			// It is an edit, of which nothing could be told now.
			bad, d.e.late = d.err, true
			continue
		}
		if err := h.mark(feed, d.lineage, d.flag, d.set, &d.about); err != nil {
			return err
		}
	}
	h.fails(bad) // one of many will do
	return nil
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
			if _, ok := h.states.find(stateID(feed, key, 'S')); ok {
				continue
			}
			if err := h.mark(feed, key, 'S', true, &about{feedID: h.local.subs[feed].ID, title: "An entry of " + h.local.subs[feed].Title()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// about is what is told of an entry beside its state.
type about struct{ feedID, id, title, link string }

// words are what flags are called in documents.
var words = map[byte]string{'S': "read", 'F': "flagged", 'T': "trashed"}

func wordOf(flag byte) string { return cmp.Or(words[flag], string(flag)) }

// describe reads what is told of the entries of a feed that a flag was set of.
func (h *share) describe(ctx context.Context, feed string, edits []edit) error {
	var read [2]func(lektordir.Ref, lektordir.Fields) (*lektordir.Entry, error)
	for _, place := range []lektordir.Place{lektordir.New, lektordir.Cur} {
		read[place] = h.d.ReadEntry
		if len(edits) < 8 {
			continue
		}
		if r, err := h.d.NewReader(place, feed); err == nil {
			defer r.Close()
			read[place] = r.ReadEntry
		}
	}
	return entries.Parallel(ctx, len(edits), func(i int) {
		ref := edits[i].e.ref
		if !edits[i].set {
			return
		}
		m := &edits[i].about
		e, err := read[ref.Place](ref, lektordir.FieldTitle|lektordir.FieldID|lektordir.FieldLink)
		if unreadable(err) {
			edits[i].err = err
			return
		}
		if e != nil {
			m.id, m.title, m.link = e.ID, e.Title, e.URL()
		}
		if sub := h.local.subs[feed]; sub != nil {
			m.feedID = sub.ID
		} else if f := h.d.FeedOf(ref); f != nil {
			m.feedID = f.ID
		}
	})
}

// mark sets or clears a flag in the set.
func (h *share) mark(feed, lineage string, flag byte, set bool, m *about) error {
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

// wanted is what the set says of an entry that is not so.
type wanted struct {
	e          *entry
	set, clear string
}

// applyStates makes the flags of entries what the set says, by renames as a viewer's.
// changed are ids of items that are new: for these, and for entries that are new here,
// it is found out which entry is meant where the lineage does not tell.
func (h *share) applyStates(ctx context.Context, changed map[string]bool, dryRun bool) error {
	var want []*wanted
	for feed, marks := range h.states.byFeed() {
		if feed != "" && h.local.own[feed] == "" {
			want = append(want, h.wantedOf(feed, marks, changed)...)
		}
	}
	var bad error
	count := 0
	for _, w := range want {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		to, err := w.e.ref.WithFlags(w.set, w.clear)
		if err != nil || shared(to) == shared(w.e.ref) {
			continue
		}
		if count++; dryRun {
			continue
		}
		h.change()
		switch err := h.setFlags(w.e.ref, w); {
		case err == nil:
			// Not what it is now, if the user was quicker: his is an edit.
			w.e.ref = to
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

// wantedOf gives what the set says of the entries of a feed, as far as it is not so.
func (h *share) wantedOf(feed string, marks []mark, changed map[string]bool) (want []*wanted) {
	here := h.local.entries[feed]
	var strangers []mark // of no entry that is here
	for len(marks) > 0 {
		lineage, n := marks[0].lineage, 1
		for n < len(marks) && marks[n].lineage == lineage {
			n++
		}
		e := here[lineage]
		if e == nil || e.as != "" && e.as != lineage {
			strangers = append(strangers, marks[:n]...)
		} else if w := wantedBy(e, marks[:n]); w != nil {
			want = append(want, w)
		}
		marks = marks[n:]
	}
	if len(strangers) > 0 {
		want = append(want, h.recognise(feed, strangers, changed)...)
	}
	return want
}

// wantedBy gives what marks say of an entry, nil if it has them.
func wantedBy(e *entry, marks []mark) *wanted {
	if e.late {
		return nil // the user has just said something else
	}
	var w *wanted
	has := shared(e.ref)
	for _, m := range marks {
		if strings.IndexByte(has, m.flag) >= 0 == !m.deleted {
			continue
		}
		if w == nil {
			w = &wanted{e: e}
		}
		if m.deleted {
			w.clear += string(m.flag)
		} else {
			w.set += string(m.flag)
		}
	}
	return w
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

// recognise finds the entries of a feed that marks of other lineages mean: by the
// identities in the journal, else by the id of the entry, if one has it.
func (h *share) recognise(feed string, marks []mark, changed map[string]bool) (want []*wanted) {
	here := h.local.entries[feed]
	if len(here) > 0 || h.local.subs[feed] != nil {
		for _, m := range marks {
			if !m.deleted {
				h.waiting++
			}
		}
	}
	if len(here) == 0 {
		return nil
	}
	byAs := map[string]*entry{}
	for lineage, e := range here {
		if e.as != "" && e.as != lineage {
			byAs[e.as] = e
		}
	}
	journal, err := h.d.Lineages(feed)
	h.fails(err)
	var old *seenFeed
	if old = h.last.feeds[feed]; old == nil {
		old = &seenFeed{}
	}
	// Reading the ids of all entries is for when something is new.
	news := slices.ContainsFunc(marks, func(m mark) bool { return changed[m.id(feed)] })
	for lineage := range here {
		if _, ok := old.entries[lineage]; !ok {
			news = true
		}
	}
	var byID map[string]*entry
	for _, m := range marks {
		e := byAs[m.lineage]
		if e == nil {
			if found := here[journal[m.lineage]]; found != nil && found.as == "" {
				e = found
			}
		}
		if e == nil && news {
			if byID == nil {
				byID = h.byID(here)
			}
			if it := h.states.read(m.id(feed), m); it != nil {
				if id, ok := it.ChildText(feedsync.LektorNamespace, "entry"); ok {
					e = byID[id]
				}
			}
		}
		if e == nil || e.as != "" && e.as != m.lineage || h.stated(feed, e) {
			continue
		}
		e.as = m.lineage
		byAs[m.lineage] = e
		if !m.deleted {
			h.waiting--
		}
		if w := wantedBy(e, []mark{m}); w != nil {
			if n := len(want); n > 0 && want[n-1].e == e {
				w = want[n-1].and(w)
				want = want[:n-1]
			}
			want = append(want, w)
		}
	}
	return want
}

// and joins two that are of one entry.
func (w *wanted) and(o *wanted) *wanted {
	return &wanted{w.e, w.set + o.set, w.clear + o.clear}
}

// stated tells whether the set has a state for an entry under its own lineage.
func (h *share) stated(feed string, e *entry) bool {
	if e.as != "" {
		return false
	}
	lineage := e.ref.Identity()
	for _, c := range []byte(flags) {
		if lineage == "" {
			break
		}
		if _, ok := h.states.find(stateID(feed, lineage, c)); ok {
			return true
		}
	}
	return false
}

// byID gives the entries of a feed by their ids, as far as one alone has it.
func (h *share) byID(here map[string]*entry) map[string]*entry {
	found := map[string]*entry{}
	for _, e := range here {
		r, err := h.d.ReadEntry(e.ref, lektordir.FieldID)
		if unreadable(err) {
			// It may be the second of two with one id: nothing is known then.
			h.fails(err)
			return map[string]*entry{}
		}
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
