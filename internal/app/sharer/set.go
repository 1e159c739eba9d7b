package sharer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
)

// set is the state that all machines agree on: subscriptions, folders, and marks of
// entries. It is a value and uses neither disk nor network.
type set struct {
	subs        *feedsync.Document
	marks       map[string]map[string]*mark // by feed, then by the rest of the id (identity and flag); see of
	stored      map[string]section          // by feed: marks of the store that are not in memory
	lines       func(section, func(word string, args []byte) bool)
	peeked      map[string]map[string]*mark // by feed: its marks if it is the last one of peek, else nil
	peekedLast  string
	me          string // name of the endpoint that edits
	now         time.Time
	lastOwnEdit time.Time // time of the last edit by this endpoint

	until untils
	// withdrawn lists the feeds that the documents hide, and, with "-", the ended feeds
	// whose marks they show without title and link.
	withdrawn string

	// Differences from the store: ids of marks, and whether subscriptions differ.
	touched     map[string]bool
	subsTouched bool
}

// untils are the until dates of the published documents. complete is the date of the last
// document with all marks.
type untils struct{ subs, marks, complete time.Time }

// mark is the item for a flag of an entry.
type mark struct {
	*feedsync.Item
	newer bool // changed since the last complete document
}

func newSet(me string, now time.Time) *set {
	s := &set{marks: map[string]map[string]*mark{}, stored: map[string]section{}, peeked: map[string]map[string]*mark{},
		me: me, now: now, touched: map[string]bool{}}
	s.subs = s.empty(feedsync.OPML)
	return s
}

// empty returns a document without items.
func (s *set) empty(kind feedsync.Kind) *feedsync.Document {
	if kind == feedsync.OPML {
		return feedsync.New(kind, "Subscriptions of "+s.me, "", "")
	}
	return feedsync.New(kind, "Entries read and marked on "+s.me, "https://github.com/lektordir/lektor",
		"What lektor-share keeps equal on several machines")
}

// flags are the shared flags: seen, flagged, trashed, and the user's own.
const flags = "FSTabcdefghijklmnopqrstuvwxyz"

// stateID returns the id of the item for a flag of an entry.
func stateID(feed, identity string, flag byte) string {
	return feed + ":" + identity + ":" + string(flag)
}

// stateIDLen is the length of an id of [stateID].
const stateIDLen = 40 + 1 + 16 + 1 + 1

// splitState splits an id into the arguments of [stateID]. ok is false for an item of
// another program.
func splitState(id string) (feed, identity string, flag byte, ok bool) {
	const colon1, colon2 = 40, 40 + 1 + 16
	if len(id) != stateIDLen || id[colon1] != ':' || id[colon2] != ':' || strings.IndexByte(flags, id[colon2+1]) < 0 ||
		!entryname.IsFeedHash(id[:colon1]) || !entryname.IsIdentity(id[colon1+1:colon2]) {
		return "", "", 0, false
	}
	return id[:colon1], id[colon1+1 : colon2], id[colon2+1], true
}

// place returns the two keys under which the set stores a mark. Items of other programs are
// stored under the feed "".
func place(id string) (feed, rest string) {
	if feed, _, _, ok := splitState(id); ok {
		return feed, id[len(feed)+1:]
	}
	return "", id
}

// flag returns the flag of a mark. The id must be one of [stateID].
func (m *mark) flag() byte { return m.ID[len(m.ID)-1] }

// identity returns the entry identity of a mark. The id must be one of [stateID].
func (m *mark) identity() string { return m.ID[41:57] }

// mark returns the mark with an id, or nil.
func (s *set) mark(id string) *mark {
	feed, rest := place(id)
	return s.of(feed)[rest]
}

// of returns the marks of a feed, by the rest of their ids.
func (s *set) of(feed string) map[string]*mark {
	if s.stored[feed].size > 0 {
		s.marks[feed] = s.read(feed)
		delete(s.stored, feed)
	}
	return s.marks[feed]
}

// read is [set.of], but does not keep the marks in memory.
func (s *set) read(feed string) map[string]*mark {
	p, ok := s.stored[feed]
	if !ok {
		return s.marks[feed]
	}
	marks := map[string]*mark{}
	s.lines(p, func(_ string, args []byte) bool {
		it, ok := readMark(args)
		if !ok {
			return false
		}
		if of, rest := place(it.ID); of == feed { // items of other programs may be among them
			marks[rest] = &mark{Item: it}
		}
		return true
	})
	maps.Copy(marks, s.marks[feed]) // newer versions
	return marks
}

// peek is [set.mark] for the marks of a document, which mostly agree with the set and are sorted
// by feed: it keeps only the marks of the last feed in memory. A feed that comes again is kept.
func (s *set) peek(id string) *mark {
	feed, rest := place(id)
	marks, again := s.peeked[feed]
	switch {
	case marks != nil:
	case again, s.stored[feed].size == 0:
		marks = s.of(feed)
	default:
		s.peeked[s.peekedLast] = nil
		marks, s.peekedLast = s.read(feed), feed
		s.peeked[feed] = marks
	}
	return marks[rest]
}

// feeds returns the sorted feeds that have marks.
func (s *set) feeds() []string { return union(s.marks, s.stored) }

// flagOf returns the mark of a flag of an entry, or nil.
func (s *set) flagOf(feed, identity string, flag byte) *mark {
	return s.of(feed)[identity+":"+string(flag)]
}

// store adds a mark that was read from the store.
func (s *set) store(m *mark) {
	feed, rest := place(m.ID)
	of := s.marks[feed]
	if of == nil {
		of = map[string]*mark{}
		s.marks[feed] = of
	}
	of[rest] = m
}

// put adds or replaces the item of a mark, and marks it as changed.
func (s *set) put(it *feedsync.Item) {
	s.store(&mark{it, true})
	s.touched[it.ID] = true
	clear(s.peeked)
}

// allPublished records that the complete document has all marks.
func (s *set) allPublished() {
	for _, marks := range s.marks {
		for _, m := range marks {
			m.newer = false
		}
	}
}

// sorted yields the marks with their feeds, sorted by feed and id. Without all, it yields
// those in memory, among which are the newer ones and those in conflict.
func (s *set) sorted(all bool) iter.Seq2[string, *mark] {
	return func(yield func(string, *mark) bool) {
		for _, feed := range s.feeds() {
			marks := s.marks[feed]
			if all {
				marks = s.read(feed)
			}
			for _, rest := range slices.Sorted(maps.Keys(marks)) {
				if !yield(feed, marks[rest]) {
					return
				}
			}
		}
	}
}

// inConflict returns all items in conflict, and folders that would be inside themselves.
func (s *set) inConflict() []*feedsync.Item {
	cycle := foldersOf(s.subs).cycle
	out := slices.DeleteFunc(s.subs.Items(), func(it *feedsync.Item) bool {
		return !it.Conflict &&
			!slices.Contains(cycle, it.ID)
	})
	for _, m := range s.sorted(false) {
		if m.Conflict {
			out = append(out, m.Item)
		}
	}
	return out
}

// isMark reports whether an item is a mark, not a subscription or folder.
func (s *set) isMark(it *feedsync.Item) bool { return s.subs.Item(it.ID) == nil }

// find returns the item with an id, or nil.
func (s *set) find(kind feedsync.Kind, id string) *feedsync.Item {
	if kind == feedsync.OPML {
		return s.subs.Item(id)
	}
	if m := s.mark(id); m != nil {
		return m.Item
	}
	return nil
}

// replace adds an item, or replaces the one with the same id.
func (s *set) replace(kind feedsync.Kind, it *feedsync.Item) {
	if kind == feedsync.OPML {
		s.subs.Append(it)
		s.subsTouched = true
		return
	}
	s.put(it)
}

// merge merges the documents of a peer. It returns the ids of the subscriptions and marks
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

// sameState reports whether two marks mean the same. Two marks of one id always do: only
// their existence counts.
func sameState(_, _ *feedsync.Item) bool { return true }

// merged returns the result of merging a peer's mark with one of the set, which may be nil.
func merged(m *mark, it *feedsync.Item) *feedsync.Item {
	if m != nil {
		return feedsync.Merge(m.Item, it, feedsync.Rules{Equal: sameState}).Item
	}
	return it
}

// isNews reports whether a peer's mark would change the set.
func (s *set) isNews(it *feedsync.Item) bool {
	m := s.peek(it.ID)
	return m == nil || merged(m, it) != m.Item
}

func (s *set) mergeMarks(in *feedsync.Document) (changed []string) {
	for _, it := range in.Items() {
		m := s.mark(it.ID)
		if now := merged(m, it); m == nil || now != m.Item {
			s.put(now)
			changed = append(changed, it.ID)
		}
	}
	return changed
}

// modify adds the next version of an item, or the first one. content is in the form of
// [feedsync.Canonical]; nil deletes the item. If the item is in conflict, the edit settles
// the conflict.
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

// edited adds an item that this endpoint has edited, and updates the time of the last edit.
func (s *set) edited(kind feedsync.Kind, it *feedsync.Item, when time.Time) {
	if when.After(s.lastOwnEdit) {
		s.lastOwnEdit = when
	}
	s.replace(kind, it)
}

// moment returns the time of an edit: now, or later if an earlier edit by this endpoint
// requires it.
func (s *set) moment(it *feedsync.Item) time.Time {
	when := s.now
	if it != nil {
		when = it.Moment(s.now, s.me)
	}
	return when.UTC().Truncate(time.Second)
}

// next returns an until date later than before, as it must grow with every change (section
// 2.1).
func (s *set) next(before time.Time) time.Time {
	until := s.now.UTC().Truncate(time.Second)
	if !until.After(before) {
		until = before.Add(time.Second)
	}
	return until
}

// unsubscribed reports whether the set holds a tombstone for a feed.
func (s *set) unsubscribed(feed string) bool {
	it := s.subs.Item(feed)
	return it != nil && it.Deleted
}

// withdraw updates withdrawn for the feeds that this machine withholds, and reports whether
// it has changed.
func (s *set) withdraw(withheld map[string]string) bool {
	var feeds []string
	for _, feed := range slices.Sorted(maps.Keys(withheld)) {
		if len(s.marks[feed]) > 0 || s.stored[feed].size > 0 || s.subs.Item(feed) != nil {
			feeds = append(feeds, feed)
		}
	}
	for _, feed := range s.feeds() {
		if withheld[feed] == "" && s.unsubscribed(feed) {
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

// withheld returns the feeds that the documents hide.
func (s *set) withheld() map[string]bool {
	out := map[string]bool{}
	for _, feed := range strings.Fields(s.withdrawn) {
		if feed[0] != '-' {
			out[feed] = true
		}
	}
	return out
}

// lastEdit returns the time of the last edit by an endpoint.
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
	for _, m := range s.sorted(true) {
		look(m.Item)
	}
	return last
}

// label returns the title of an item for people.
func label(it *feedsync.Item) string {
	if title, ok := it.ChildText("", "title"); ok {
		return title
	}
	return cmp.Or(it.Value("", "text"), it.Value("", "title"), it.ID)
}
