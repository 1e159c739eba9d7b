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
	Spec              Spec
	Name              string
	Err               string
	Empty             string // the message if there are no entries
	Complete, Partial bool
	At, Top, Total    int
	Count             int // of all entries, or of the unread ones before all are listed; 0 if it is unknown
	Entries           []EntryScene
}

// EntryScene is a line of the second pane.
type EntryScene struct {
	Ref         lektordir.Ref
	Date, Title string
	Feed        string // "" in the list of one feed
	Known       bool   // the title is
}

// Scene returns the pane with the lines that a height has room for.
func (l *List) Scene(height int, date func(time.Time) string) Scene {
	s := Scene{Spec: l.Spec, Name: l.Tree.Name(l.Spec.Of), Complete: l.Complete, At: l.At, Total: len(l.Items)}
	snapshot := cmp.Or(l.Tree.Snapshot, &tree.Snapshot{})
	if s.Partial, s.Count = snapshot.Partial, s.Total; snapshot.Uncounted {
		s.Count = 0
	} else if s.Partial {
		s.Count = snapshot.All.Unread
	}
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
	for _, it := range l.Items[l.Y:min(len(l.Items), l.Y+height)] {
		ref, title := l.Marks.Now(it.Ref()), l.Titles[it.ID()]
		e := EntryScene{Ref: ref, Date: date(it.date.Time()), Title: "…", Known: title != nil}
		if title != nil {
			e.Title = *title
		}
		if f := snapshot.Feeds[ref.Feed]; f != nil && l.Spec.Of.Kind != tree.FeedNode {
			e.Feed = f.Title
		}
		s.Entries = append(s.Entries, e)
	}
	return s
}
