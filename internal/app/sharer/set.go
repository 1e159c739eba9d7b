package sharer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
)

// itemSet is the state that all machines agree on: subscriptions, folders, and marks of
// entries. It is a value and uses neither disk nor network.
type itemSet struct {
	subs        *feedsync.Document
	marks       *marks
	me          string // name of the endpoint that edits
	now         time.Time
	lastOwnEdit time.Time // time of the last edit by this endpoint

	dates documentDates
	// withdrawn lists the feeds that the documents hide, and, with "-", the ended feeds
	// whose marks they show without title and link.
	withdrawn string

	news        map[string]bool // feeds whose marks a peer has changed
	subsTouched bool            // the subscriptions differ from those of the store
}

// documentDates are the until dates of the published documents. complete is the date of the last
// document with all marks.
type documentDates struct{ subs, marks, complete time.Time }

func newSet(me string, now time.Time) *itemSet {
	s := &itemSet{marks: newMarks(), news: map[string]bool{}, me: me, now: now}
	s.subs = s.empty(feedsync.OPML)
	return s
}

// empty returns a document without items.
func (s *itemSet) empty(kind feedsync.Kind) *feedsync.Document {
	if kind == feedsync.OPML {
		return feedsync.New(kind, "Subscriptions of "+s.me, "", "")
	}
	return feedsync.New(kind, "Entries read and marked on "+s.me, "https://github.com/lektordir/lektor",
		"What lektor-share keeps equal on several machines")
}

// inConflict returns all items in conflict, and folders that would be inside themselves.
func (s *itemSet) inConflict() []*feedsync.Item {
	cycle := foldersOf(s.subs).cycle
	out := slices.DeleteFunc(s.subs.Items(), func(it *feedsync.Item) bool {
		return !it.Conflict &&
			!slices.Contains(cycle, it.ID)
	})
	for _, m := range s.marks.sorted(mark.inConflict) {
		out = append(out, m.item())
	}
	return out
}

// find returns the item with an id, or nil.
func (s *itemSet) find(kind feedsync.Kind, id string) *feedsync.Item {
	if kind == feedsync.OPML {
		return s.subs.Item(id)
	}
	return s.marks.item(id)
}

// mergeSubs merges the subscriptions of a peer. It returns the ids of those that are new or changed.
func (s *itemSet) mergeSubs(doc *feedsync.Document) (changed []string) {
	for _, c := range s.subs.Merge(doc, feedsync.Rules{Equal: sameOutline}) {
		s.subsTouched = true
		if c.Incoming {
			changed = append(changed, c.Item.ID)
		}
	}
	return changed
}

// mergeMark merges a mark of a peer. Two marks of one id always mean the same: only their existence counts.
func (s *itemSet) mergeMark(it *feedsync.Item) {
	old, now := s.marks.item(it.ID), it
	if old != nil {
		now = feedsync.Merge(old, it, feedsync.Rules{Equal: func(_, _ *feedsync.Item) bool { return true }}).Item
	}
	if now != old {
		s.marks.put(now)
		feed, _ := splitID(it.ID)
		s.news[feed] = true
	}
}

// modify adds the next version of an item, or the first one, see [itemSet.edited].
func (s *itemSet) modify(kind feedsync.Kind, id string, deleted bool, content []byte, parent string) error {
	next, err := s.edited(id, s.find(kind, id), deleted, content, parent)
	if err == nil {
		s.put(kind, next)
	}
	return err
}

// edited returns the next version of an item, or the first one if it is nil. content is in the form of
// [feedsync.Canonical]; if it is nil, content and parent stay. If the item is in conflict, the edit settles
// the conflict.
func (s *itemSet) edited(id string, it *feedsync.Item, deleted bool, content []byte, parent string) (
	next *feedsync.Item, err error) {
	when := s.now
	if it == nil {
		next, err = feedsync.Create(id, when, s.me)
	} else {
		// An earlier edit by this endpoint may require a later time.
		next, err = it.Resolve(deleted, it.Moment(when, s.me), s.me)
	}
	if err != nil || content == nil {
		return next, err
	}
	next.Parent = parent
	return next.WithContent(content)
}

// put adds an item that this endpoint has edited, and updates the time of the last edit.
func (s *itemSet) put(kind feedsync.Kind, it *feedsync.Item) {
	s.lastOwnEdit = latest(s.lastOwnEdit, it.Head().When)
	if kind == feedsync.OPML {
		s.subs.Append(it)
		s.subsTouched = true
		return
	}
	s.marks.put(it)
}

// next returns an until date later than before, as it must grow with every change (section
// 2.1).
func (s *itemSet) next(before time.Time) time.Time {
	return latest(s.now.UTC().Truncate(time.Second), before.Add(time.Second))
}

// unsubscribed reports whether the set holds a tombstone for a feed.
func (s *itemSet) unsubscribed(feed string) bool {
	it := s.subs.Item(feed)
	return it != nil && it.Deleted
}

// withdraw updates withdrawn for the feeds that this machine withholds, and reports whether
// it has changed.
func (s *itemSet) withdraw(withheld map[string]string) bool {
	var feeds []string
	for _, feed := range slices.Sorted(maps.Keys(withheld)) {
		if s.marks.has(feed) || s.subs.Item(feed) != nil {
			feeds = append(feeds, feed)
		}
	}
	for _, feed := range s.marks.feeds() {
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
func (s *itemSet) withheld() map[string]bool {
	out := map[string]bool{}
	for _, feed := range strings.Fields(s.withdrawn) {
		if feed[0] != '-' {
			out[feed] = true
		}
	}
	return out
}

// label returns the title of an item for people.
func label(it *feedsync.Item) string {
	titles := append(it.Children("", "title"), it.Value("", "text"), it.Value("", "title"), it.ID)
	return cmp.Or(titles...)
}
