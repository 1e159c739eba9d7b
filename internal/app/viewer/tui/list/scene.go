package list

import (
	"cmp"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/lektordir"
)

// Scene is the second pane.
type Scene struct {
	Spec                         Spec
	Name                         string
	Err                          string
	Empty                        string // the message if there are no entries
	Complete, Partial, Uncounted bool
	At, Top, Total, Unread       int // unread entries are counted before all are listed
	Entries                      []EntryScene
	Cursor                       EntryScene // that of the cursor, if total is not 0
}

// EntryScene is a line of the second pane.
type EntryScene struct {
	Ref         lektordir.Ref
	Date, Feed  string
	Title       string
	Known       bool // the title is
	OtherFeedIn bool // the list may have entries of other feeds
}

// Scene returns the pane with the lines that a height has room for.
func (l *List) Scene(height int, date func(time.Time) string) Scene {
	s := Scene{Spec: l.Spec, Name: l.Tree.Name(l.Spec.Of), Complete: l.Complete, At: l.At, Total: len(l.Items)}
	snapshot := cmp.Or(l.Tree.Snapshot, &tree.Snapshot{})
	s.Partial, s.Uncounted, s.Unread = snapshot.Partial, snapshot.Uncounted, snapshot.All.Unread
	if l.err != nil {
		s.Err = l.err.Error()
	}
	switch {
	case l.Spec.Query != "":
		s.Empty = l.Tr("nothing matches")
	case l.Spec.IncludesRead():
		s.Empty = l.Tr("no entries")
	default:
		s.Empty = l.Trf("nothing unread: %s shows read entries", l.KeyOf("all"))
	}
	l.Y = cells.Window(l.Y, l.At, len(l.Items), height)
	s.Top = l.Y
	line := func(it *Item) EntryScene {
		ref, title := l.Marks.Now(it.Ref()), l.Titles[it.ID()]
		e := EntryScene{Ref: ref, Date: date(it.date.Time()), Title: "…", Known: title != nil,
			OtherFeedIn: l.Spec.Of.Kind != tree.FeedNode}
		if title != nil {
			e.Title = *title
		}
		if f := snapshot.Feeds[ref.Feed]; f != nil {
			e.Feed = f.Title
		}
		return e
	}
	for _, it := range l.Items[l.Y:min(len(l.Items), l.Y+height)] {
		s.Entries = append(s.Entries, line(it))
	}
	if l.At >= 0 && l.At < len(l.Items) {
		s.Cursor = line(l.Items[l.At])
	}
	return s
}
