package server

import (
	"maps"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
)

// tally counts the unread entries of a stream.
type tally struct {
	unread int
	newest time.Time // of the last entry, read or unread
}

// add adds the entries of a feed.
func (t *tally) add(o tally) {
	t.unread += o.unread
	if o.newest.After(t.newest) {
		t.newest = o.newest
	}
}

// of returns the counts as an answer.
func (t *tally) of(id string) greader.Unread {
	u := greader.Unread{ID: id, Count: t.unread, Newest: "0"}
	if !t.newest.IsZero() {
		u.Newest = greader.Micros(t.newest)
	}
	return u
}

// unreadCounts implements unread-count. Streams without unread entries are only in it if the
// client asks for all.
func (c *request) unreadCounts() error {
	v, err := c.currentView()
	if err != nil {
		return err
	}
	folders, sum := map[string]*tally{}, tally{}
	answer := greader.UnreadCounts{Counts: []greader.Unread{}}
	all := c.values.Get("all") == "true"
	names := v.Folders()
	for _, f := range v.Feeds {
		t := tally{f.Unread, f.Newest()}
		sum.add(t)
		if t.unread > 0 || all {
			answer.Counts = append(answer.Counts, t.of(greader.FeedID(f.Hash)))
		}
		for _, name := range v.FoldersOf(f, names) {
			if folders[name] == nil {
				folders[name] = &tally{}
			}
			folders[name].add(t)
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

// FoldersOf returns the names of a feed's folders that clients see, of which names has one spelling each.
func (v *View) FoldersOf(f *catalog.Feed, names map[string]string) (list []string) {
	for _, folder := range v.folders(f) {
		if name := names[folderKey(folder)]; name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
