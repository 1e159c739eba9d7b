package sharer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/feedsync"
)

// set is what all machines are to agree on: the subscriptions and folders, and the marks of
// entries. It is a value: it knows neither disk nor network.
type set struct {
	subs  *feedsync.Document
	marks map[string]map[string]*mark // feed, identity and flag as in an id
	me    string                      // the endpoint that edits
	now   time.Time
	made  time.Time // of the last edit of this endpoint

	until untils
	// withdrawn are the feeds that the documents do not show, or show without title and link.
	withdrawn string

	// Differences from what is stored: marks, by id, and whether subscriptions differ.
	touched     map[string]bool
	subsTouched bool
}

// untils are those of the published documents: subscriptions, marks, and all marks when they
// were last written as one document.
type untils struct{ subs, marks, complete time.Time }

// mark is the item of a flag of an entry.
type mark struct {
	*feedsync.Item
	newer bool // than the document with all marks
}

func newSet(me string, now time.Time) *set {
	s := &set{marks: map[string]map[string]*mark{}, me: me, now: now, touched: map[string]bool{}}
	s.subs = s.empty(feedsync.OPML)
	return s
}

// empty returns a document without items.
func (s *set) empty(kind feedsync.Kind) *feedsync.Document {
	if kind == feedsync.OPML {
		return feedsync.New(kind, "Subscriptions of "+s.me, "", "")
	}
	return feedsync.New(kind, "Entries read and marked on "+s.me, "https://github.com/lektordir/lektor", "What lektor-share keeps equal on several machines")
}

// flags are those that are shared: seen, flagged, trashed, and the user's own.
const flags = "FSTabcdefghijklmnopqrstuvwxyz"

// stateID is the id of the item for a flag of an entry.
func stateID(feed, identity string, flag byte) string {
	return feed + ":" + identity + ":" + string(flag)
}

// splitState undoes [stateID].
func splitState(id string) (feed, identity string, flag byte, ok bool) {
	const colon1, colon2 = 40, 40 + 1 + 16
	if len(id) != colon2+2 || id[colon1] != ':' || id[colon2] != ':' || strings.IndexByte(flags, id[colon2+1]) < 0 ||
		!entryname.IsFeedHash(id[:colon1]) || !entryname.IsIdentity(id[colon1+1:colon2]) {
		return "", "", 0, false
	}
	return id[:colon1], id[colon1+1 : colon2], id[colon2+1], true
}

// place returns the two keys of a mark in the set. The items of other programs belong to
// the feed "".
func place(id string) (feed, rest string) {
	if feed, _, _, ok := splitState(id); ok {
		return feed, id[len(feed)+1:]
	}
	return "", id
}

// flag is that of a mark of ours.
func (m *mark) flag() byte { return m.ID[len(m.ID)-1] }

// identity is that of the entry that a mark of ours is of.
func (m *mark) identity() string { return m.ID[41:57] }

// mark returns the mark with an id, or nil.
func (s *set) mark(id string) *mark {
	feed, rest := place(id)
	return s.marks[feed][rest]
}

// flagOf returns the mark of a flag of an entry, or nil.
func (s *set) flagOf(feed, identity string, flag byte) *mark {
	return s.marks[feed][identity+":"+string(flag)]
}

// store puts a mark into the set as it was read from the store.
func (s *set) store(m *mark) {
	feed, rest := place(m.ID)
	of := s.marks[feed]
	if of == nil {
		of = map[string]*mark{}
		s.marks[feed] = of
	}
	of[rest] = m
}

// put puts an item into the marks.
func (s *set) put(it *feedsync.Item) {
	s.store(&mark{it, true})
	s.touched[it.ID] = true
}

// allPublished notes that the document with all marks has them.
func (s *set) allPublished() {
	for _, marks := range s.marks {
		for _, m := range marks {
			m.newer = false
		}
	}
}

// sorted returns the marks that are wanted, in the order of their ids.
func (s *set) sorted(want func(feed string, m *mark) bool) []*mark {
	var out []*mark
	for feed, marks := range s.marks {
		for _, m := range marks {
			if want(feed, m) {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b *mark) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// inConflict returns all items in conflict, and those that would be within themselves.
func (s *set) inConflict() []*feedsync.Item {
	circle := foldersOf(s.subs).circle
	out := slices.DeleteFunc(s.subs.Items(), func(it *feedsync.Item) bool { return !it.Conflict && !slices.Contains(circle, it.ID) })
	for _, m := range s.sorted(func(_ string, m *mark) bool { return m.Conflict }) {
		out = append(out, m.Item)
	}
	return out
}

// isMark reports whether an item belongs to the marks.
func (s *set) isMark(it *feedsync.Item) bool { return s.subs.Item(it.ID) == nil }

// find returns the item with an id, nil if there is none.
func (s *set) find(kind feedsync.Kind, id string) *feedsync.Item {
	if kind == feedsync.OPML {
		return s.subs.Item(id)
	}
	if m := s.mark(id); m != nil {
		return m.Item
	}
	return nil
}

// replace puts an item into the set, in the place of the one with its id.
func (s *set) replace(kind feedsync.Kind, it *feedsync.Item) {
	if kind == feedsync.OPML {
		s.subs.Append(it)
		s.subsTouched = true
		return
	}
	s.put(it)
}

// merge merges what a peer has, and returns the ids of the subscriptions and of the marks
// that are new or changed.
func (s *set) merge(docs []*feedsync.Document) (subs, marks []string) {
	for _, doc := range docs {
		if doc.Kind == feedsync.OPML {
			for _, c := range s.subs.Merge(doc, feedsync.Rules{Equal: sameOutline}) {
				s.subsTouched = true
				if c.Incoming {
					subs = append(subs, c.Item.ID)
				}
			}
			continue
		}
		marks = append(marks, s.mergeMarks(doc)...)
	}
	s.subs.Arrange()
	return subs, marks
}

// sameState reports whether two marks mean the same: a mark says that it is there.
func sameState(_, _ *feedsync.Item) bool { return true }

// merged returns what comes of merging a mark of a peer.
func (s *set) merged(it *feedsync.Item) *feedsync.Item {
	if m := s.mark(it.ID); m != nil {
		return feedsync.Merge(m.Item, it, feedsync.Rules{Equal: sameState}).Item
	}
	return it
}

// isNews reports whether a mark of a peer would change the set.
func (s *set) isNews(it *feedsync.Item) bool {
	m := s.mark(it.ID)
	return m == nil || s.merged(it) != m.Item
}

func (s *set) mergeMarks(in *feedsync.Document) (changed []string) {
	for _, it := range in.Items() {
		if s.isNews(it) {
			s.put(s.merged(it))
			changed = append(changed, it.ID)
		}
	}
	return changed
}

// modify makes the next version of an item, or the first: its content, in the form of
// [feedsync.Canonical], or with nil its deletion. An edit of an item in conflict settles the conflict.
func (s *set) modify(kind feedsync.Kind, id string, content []byte, parent string) error {
	it := s.find(kind, id)
	when := s.moment(it)
	var next *feedsync.Item
	var err error
	switch {
	case it == nil:
		next, err = feedsync.Create(id, nil, when, s.me)
	case it.Conflict:
		next, err = it.Resolve(nil, content == nil, when, s.me)
	default:
		next, err = it.Update(nil, content == nil, when, s.me)
	}
	if err != nil {
		return err
	}
	if content != nil {
		if err := next.PutContent(content); err != nil {
			return err
		}
		next.Parent = parent
	}
	s.edited(kind, next, when)
	return nil
}

// edited puts an item into the set that this endpoint has edited.
func (s *set) edited(kind feedsync.Kind, it *feedsync.Item, when time.Time) {
	if when.After(s.made) {
		s.made = when
	}
	s.replace(kind, it)
}

// moment is when an edit happens: now, but for the endpoint's own order of edits.
func (s *set) moment(it *feedsync.Item) time.Time {
	when := s.now
	if it != nil {
		when = it.Moment(s.now, s.me)
	}
	return when.UTC().Truncate(time.Second)
}

// next returns an until that is later than the one before: it grows with every change
// (section 2.1).
func (s *set) next(before time.Time) time.Time {
	until := s.now.UTC().Truncate(time.Second)
	if !until.After(before) {
		until = before.Add(time.Second)
	}
	return until
}

// unsubscribed reports whether the set holds the tombstone of a feed.
func (s *set) unsubscribed(feed string) bool {
	it := s.subs.Item(feed)
	return it != nil && it.Deleted
}

// withdraw sets which feeds the documents do not show, for the feeds that this machine
// withholds, and reports whether that has changed.
func (s *set) withdraw(own map[string]string) bool {
	var feeds []string
	for _, feed := range slices.Sorted(maps.Keys(own)) {
		if len(s.marks[feed]) > 0 || s.subs.Item(feed) != nil {
			feeds = append(feeds, feed)
		}
	}
	for _, feed := range slices.Sorted(maps.Keys(s.marks)) {
		if own[feed] == "" && s.unsubscribed(feed) {
			feeds = append(feeds, "-"+feed)
		}
	}
	now := strings.Join(feeds, " ")
	if now == s.withdrawn {
		return false
	}
	s.withdrawn = now
	return true
}

// withheld returns the feeds that are in no document.
func (s *set) withheld() map[string]bool {
	out := map[string]bool{}
	for _, feed := range strings.Fields(s.withdrawn) {
		if feed[0] != '-' {
			out[feed] = true
		}
	}
	return out
}

// lastEdit is the time of the last edit in the set that an endpoint made.
func (s *set) lastEdit(by string) (last time.Time) {
	look := func(it *feedsync.Item) {
		for _, u := range it.History {
			if u.By == by && u.When.After(last) {
				last = u.When
			}
		}
	}
	for _, it := range s.subs.Items() {
		look(it)
	}
	for _, m := range s.sorted(func(string, *mark) bool { return true }) {
		look(m.Item)
	}
	return last
}

// label is what an item is called to a person.
func label(it *feedsync.Item) string {
	if title, ok := it.ChildText("", "title"); ok {
		return title
	}
	return cmp.Or(it.Value("", "text"), it.Value("", "title"), it.ID)
}
