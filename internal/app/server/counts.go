package server

import (
	"maps"
	"slices"

	"github.com/lektordir/lektor/internal/greader"
	"github.com/lektordir/lektor/lektordir"
)

// tally counts the unread entries of a stream.
type tally struct {
	unread int
	newest *lektordir.Ref // read or unread
}

// add adds the entries of a feed.
func (t *tally) add(o tally) {
	t.unread += o.unread
	if t.newest == nil || o.newest != nil && o.newest.Delivered().After(t.newest.Delivered()) {
		t.newest = o.newest
	}
}

// of returns the counts as an answer.
func (t *tally) of(id string) greader.Unread {
	u := greader.Unread{ID: id, Count: t.unread, Newest: "0"}
	if t.newest != nil {
		u.Newest = greader.Micros(t.newest.Delivered())
	}
	return u
}

// unreadCounts implements unread-count. Streams without unread entries are only in it if the
// client asks for all.
func (c *call) unreadCounts() error {
	v, err := c.look()
	if err != nil {
		return err
	}
	feeds, folders, sum := map[string]*tally{}, map[string]*tally{}, tally{}
	for _, hash := range v.feeds {
		feeds[hash] = &tally{}
	}
	for _, e := range v.entries {
		if e.ref.Trashed() {
			continue
		}
		t := feeds[e.ref.Feed]
		t.newest = e.ref // they rise
		if e.ref.Unread() {
			t.unread++
		}
	}
	answer := greader.UnreadCounts{Counts: []greader.Unread{}}
	all := c.values.Get("all") == "true"
	names := v.folderNames()
	for _, hash := range v.feeds {
		t := feeds[hash]
		sum.add(*t)
		if t.unread > 0 || all {
			answer.Counts = append(answer.Counts, t.of(greader.FeedID(hash)))
		}
		for _, name := range v.labels(hash, names) {
			if folders[name] == nil {
				folders[name] = &tally{}
			}
			folders[name].add(*t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		if t := folders[name]; t.unread > 0 || all {
			answer.Counts = append(answer.Counts, t.of(greader.LabelID(name)))
		}
	}
	answer.Counts = append(answer.Counts, sum.of(greader.StateID(greader.ReadingList)))
	answer.Max = sum.unread
	return c.json(answer)
}

// labels returns the names of a feed's folders that clients see, of which names has one spelling each.
func (v *view) labels(hash string, names map[string]string) (list []string) {
	for _, folder := range v.folders(hash) {
		if name := names[folderKey(folder)]; name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
