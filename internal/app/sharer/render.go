package sharer

import (
	"errors"
	"io"
	"time"

	"github.com/lektordir/lektor/internal/feedsync"
)

// view is what the documents show of a set: a filter, which changes nothing of it.
type view struct {
	*set
	hide    map[string]bool // feeds that are in no document
	related func(document string) []feedsync.Related
}

// blankMark stands for a mark of a feed that nobody is subscribed to any more: which entry
// it was is nobody's business.
func blankMark(id string, flag byte) []byte {
	return []byte(`<item><title>(no subscription any more)</title><guid isPermaLink="false">` + feedsync.Text(id) + `</guid><category>` + wordOf(flag) + `</category></item>`)
}

// subscriptions returns the document with the subscriptions and folders.
func (v view) subscriptions() *feedsync.Document {
	doc := v.empty(feedsync.OPML)
	hidden := v.hiddenFolders()
	for _, it := range v.subs.Items() {
		if !v.hide[it.ID] && !hidden[it.ID] {
			doc.Append(it)
		}
	}
	doc.Arrange()
	doc.SetSharing(&feedsync.Sharing{Until: v.until.subs, Version: feedsync.SpecVersion, Related: v.related(subsFile)})
	return doc
}

// hiddenFolders returns the folders that hold feeds which are in no document, and nothing
// else.
func (v view) hiddenFolders() map[string]bool {
	t := foldersOf(v.subs)
	holds, shows := map[string]bool{}, map[string]bool{}
	for _, it := range v.subs.Items() {
		if it.Deleted || isFolder(it) {
			continue
		}
		for id := t.parent[it.ID]; id != ""; id = t.parent[id] {
			if v.hide[it.ID] {
				holds[id] = true
			} else {
				shows[id] = true
			}
		}
	}
	for id := range shows {
		delete(holds, id)
	}
	return holds
}

// writeMarks writes a document of marks: all of them, or those that are newer than the
// last document with all.
func (v view) writeMarks(w io.Writer, newer bool) error {
	doc := v.empty(feedsync.RSS)
	sharing := &feedsync.Sharing{Until: v.until.complete, Version: feedsync.SpecVersion}
	if newer {
		sharing.Since, sharing.Until = v.until.complete, v.until.marks
		if !sharing.Since.IsZero() {
			sharing.Window = int(sharing.Until.Sub(sharing.Since)/(24*time.Hour)) + 1
		}
		sharing.Related = []feedsync.Related{{Link: completeFile, Type: "complete", Until: v.until.complete}}
	}
	sharing.Related = append(sharing.Related, v.related(partialFile)...)
	doc.SetSharing(sharing)
	marks := v.sorted(func(feed string, m *mark) bool { return !v.hide[feed] && (!newer || m.newer) })
	var bad error
	err := doc.WriteItems(w, func(yield func(*feedsync.Item) bool) {
		for _, m := range marks {
			it, err := v.shown(m)
			if err != nil || !yield(it) {
				bad = err
				return
			}
		}
	})
	return errors.Join(bad, err)
}

// shown returns what a document shows of a mark.
func (v view) shown(m *mark) (*feedsync.Item, error) {
	feed, _, flag, ours := splitState(m.ID)
	if !ours || !v.unsubscribed(feed) {
		return m.Item, nil
	}
	return m.Blank(blankMark(m.ID, flag))
}

// size is about how long the marks in a document are, in bytes.
func (v view) size(newer bool) int {
	n := 0
	for feed, marks := range v.marks {
		if v.hide[feed] {
			continue
		}
		for _, m := range marks {
			if !newer || m.newer {
				n += len(m.Content()) + 60 + 100*len(m.History)
			}
		}
	}
	return n
}
