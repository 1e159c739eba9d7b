// Package list is the pane of entries: which are listed, in which order, and where the cursor is.
package list

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// Disk is what the list needs of the lektor-dir. Its methods may take long.
type Disk interface {
	// Dates returns the dates of entries. If that would take long, or ctx ends first, the
	// missing dates are the times of delivery, and whole is false.
	Dates(ctx context.Context, entries []catalog.Entry) (dates []Date, whole bool)
	// Learn reads the dates of entries, however long this takes, so that later calls of Dates
	// return them at once. It may also update the index, and calls progress repeatedly.
	Learn(ctx context.Context, entries []catalog.Entry, progress func(what string, done, total int)) error
	// Titles returns the titles of entries, in the same order.
	Titles(ctx context.Context, refs []lektordir.Ref) []string
	// SortTexts returns for each entry its title, or its author, in a form to sort by. It may take long.
	SortTexts(ctx context.Context, entries []catalog.Entry, by string) []string
	// Search returns those entries that a query selects. It calls entries once; flags is whether the query has a
	// term about flags, for example is:unread.
	Search(ctx context.Context, query string, entries func(flags bool) []catalog.Entry) ([]catalog.Entry, error)
}

// List is the second pane: entries.
type List struct {
	*part.Env
	State
	Disk  Disk
	Tree  *tree.Tree
	Marks *work.Queue                 // changes that are not made; entries are shown as they will be after these
	Pane  func() (lines int, at bool) // the lines of the pane, and whether the focus is on the list, or on an entry

	Titles   map[part.Key]string // "" while the title is being read
	Job      part.Job[part.List]
	Took     time.Duration // how long it took to make the last list
	learning bool          // the dates of entries are being read
}

// State is the state of a list of one node.
type State struct {
	Spec        Spec
	Items       []*Item
	found       string      // query that found items; not yet that of the spec while a search begins
	Sorted      *SortedList // the last list that was not a search; nil if its dates are out of date
	Complete    bool        // items are the whole list
	At, Y       int
	CursorToTop bool // move the cursor to the top when the next items come
	// when the list is complete, move to its first (1) or last (-1) unread entry; 0 does not
	Seek     int
	ReadHere map[part.Key]bool // entries read in this list; they stay in it
	Err      error             // why the list could not be made
}

// NextUnread is the effect that moves to the next unread entry.
type NextUnread struct{ By int }

// Choose lists the entries of a node.
func (l *List) Choose(of tree.ID) part.Effects {
	spec := l.Spec
	spec.Of, spec.Query, spec.Order = of, "", l.Tree.Settings.OrderOf(of)
	l.State = State{Spec: spec, ReadHere: map[part.Key]bool{}, CursorToTop: spec.Order != tree.ByDate}
	return part.Effects{part.List{}}
}

// Request requests a list.
func (l *List) Request(r part.List) {
	switch l.Complete = false; {
	case !r.Again:
		l.Job.Abandon()
		l.Job.Next = &r
	// A list that is being made is not cancelled, because no list would be complete while entries keep arriving.
	case l.Job.Next == nil:
		l.Job.Next = &r
	}
}

// Current returns the entry under the cursor; ok is false if there is none.
func (l *List) Current() (ref lektordir.Ref, ok bool) {
	if l.At >= 0 && l.At < len(l.Items) {
		return l.Marks.Now(l.Items[l.At].Ref()), true
	}
	return lektordir.Ref{}, false
}

// Outdated reports whether the items are still those of the query before. Keys move among them, but
// do nothing to an entry that the user did not search for.
func (l *List) Outdated() bool { return l.found != l.Spec.Query }

// GoTo moves the cursor for a key of the user. The next items do not move the cursor to the top.
func (l *List) GoTo(at int) { l.At, l.CursorToTop = max(0, min(at, len(l.Items)-1)), false }

// Next returns the index of the next unread entry (by 1) or of the previous one (by -1), around the end; ok is false
// if there is none.
func (l *List) Next(by int) (at int, ok bool) {
	for i := 1; i <= len(l.Items); i++ {
		at := cells.Wrap(l.At+i*by, len(l.Items))
		if l.Marks.Unread(l.Items[at].Entry) {
			return at, true
		}
	}
	return 0, false
}

// Chance moves to an unread entry at random; ok is false if there is no other than that of the cursor.
func (l *List) Chance() (ok bool) {
	var unread []int
	for i, it := range l.Items {
		if i != l.At && l.Marks.Unread(it.Entry) {
			unread = append(unread, i)
		}
	}
	if len(unread) == 0 {
		return false
	}
	l.GoTo(unread[l.Tree.Settings.Random()%uint64(len(unread))])
	return true
}

// Hide removes entries that are being trashed.
func (l *List) Hide() {
	l.Items = overlay(l.Marks, l.Items)
	l.At = max(0, min(l.At, len(l.Items)-1))
}

// Search lists the entries of the node that match a query.
func (l *List) Search(query string) part.Effects {
	query = strings.TrimSpace(query)
	if query == l.Spec.Query {
		// The entries are listed already. The key after Enter must not find an empty list.
		return nil
	}
	l.Spec.Query = query
	return part.Effects{part.List{}}
}

// Save saves the search. It asks for a name if the action has none.
func (l *List) Save(g part.Given) part.Effects {
	switch {
	case l.Spec.Query == "":
		return l.Say("no search to save: search first")
	case len(g.Words) == 0:
		return g.Ask(part.Ask{Label: "save as: "})
	}
	l.Marks.Save(strings.TrimSpace(g.Words[0]), l.Spec.text())
	return nil
}

// ToggleAll switches between all entries and unread ones only.
func (l *List) ToggleAll(part.Given) part.Effects {
	l.Spec.All = !l.Spec.All
	l.Reread()
	said := l.Say("unread entries only")
	if l.Spec.All {
		said = l.Say("read and unread entries")
	}
	return append(said, part.List{})
}

// Reread lets the list be made anew.
func (l *List) Reread() { l.Sorted, l.ReadHere = nil, map[part.Key]bool{} }

// Sort sorts the list, and later lists of its node.
func (l *List) Sort(o tree.Order) part.Effects {
	if o.By == "random" {
		o.Down = false
		l.Tree.Settings.Seed = l.Tree.Settings.Random() // shuffled anew each time
	}
	l.Tree.Remember("sort", l.Spec.Of, o.String())
	l.Spec.Order = l.Tree.Settings.OrderOf(l.Spec.Of)
	return part.Effects{part.Say{Text: tree.SortedBy(l.Printer, o)}, part.List{}}
}

// Mark sets and clears flags of an entry, which stays in the list.
func (l *List) Mark(ref lektordir.Ref, set, unset string) part.Effects {
	l.ReadHere[part.KeyOf(ref)] = true
	return part.Effects{part.Change{Refs: []lektordir.Ref{ref}, Set: set, Unset: unset}}
}

// OnUnread does something with the unread entries among the first n of the list, if there are any.
func (l *List) OnUnread(n int, do func(refs []lektordir.Ref) part.Effects) part.Effects {
	var refs []lektordir.Ref
	for _, it := range l.Items[:n] {
		if l.Marks.Unread(it.Entry) {
			refs = append(refs, l.Marks.Now(it.Ref()))
		}
	}
	return l.ifAny(refs, do)
}

// ifAny does something with unread entries, if there are any.
func (l *List) ifAny(refs []lektordir.Ref, do func(refs []lektordir.Ref) part.Effects) part.Effects {
	if len(refs) == 0 {
		return l.Say("these entries are read already")
	}
	return do(refs)
}

// markRead marks entries as read; they stay in the list.
func (l *List) markRead(refs []lektordir.Ref) part.Effects {
	for _, r := range refs {
		l.ReadHere[part.KeyOf(r)] = true
	}
	return append(l.Say("marking %d entries as read", len(refs)), part.Change{Refs: refs, Set: "S",
		Then: func(moved []lektordir.Ref) part.Effects {
			return l.Say("%d entries marked as read; %s undoes it", len(moved), l.KeyOf("undo"))
		}})
}

// confirmRead marks entries of the listed node as read, if the user confirms.
func (l *List) confirmRead(refs []lektordir.Ref) part.Effects {
	return part.Effects{part.Confirm{Text: l.Trf("mark %d entries of %s as read?", len(refs), l.Tree.Name(l.Spec.Of)),
		Yes: func() part.Effects { return l.markRead(refs) }}}
}

// ReadAll marks the listed entries as read, those of several feeds if the user confirms.
func (l *List) ReadAll(part.Given) part.Effects {
	if kind := l.Spec.Of.Kind; kind == tree.AllNode || kind == tree.FolderNode {
		return l.OnUnread(len(l.Items), l.confirmRead)
	}
	return l.OnUnread(len(l.Items), l.markRead)
}

// ReadAbove marks the entries above the cursor as read.
func (l *List) ReadAbove(part.Given) part.Effects {
	if l.At == 0 {
		return l.Say("there are no entries above the cursor")
	}
	return l.OnUnread(l.At, l.markRead)
}

// ReadNode marks the entries of the node as read, if the user confirms.
func (l *List) ReadNode(part.Given) part.Effects {
	switch {
	case l.Spec.Of.Kind != tree.SavedNode:
		return l.ifAny(l.Tree.Unread(), l.confirmRead)
	case !l.Complete: // only the list knows the entries
		return l.Incomplete()
	}
	return l.OnUnread(len(l.Items), l.confirmRead)
}

// Incomplete is the message about a key that works on the list, if it is pressed too early.
func (l *List) Incomplete() part.Effects { return l.Say("the list is not complete yet") }

// Begin returns the command that makes the requested list, nil if there is no request, a
// list is being made, or the entries are not listed yet.
func (l *List) Begin() tea.Cmd {
	if l.Tree.Snapshot == nil {
		return nil
	}
	ctx, r := l.Job.Begin(l.Ctx)
	if r == nil {
		return nil
	}
	w := Work{Spec: l.Spec, Disk: l.Disk, Snapshot: l.Tree.Snapshot, ReadHere: maps.Clone(l.ReadHere),
		Old: l.Sorted}
	return func() tea.Msg {
		began := time.Now()
		list, err := w.Make(ctx, func(found []*Item) {
			l.Send(part.Then(func() part.Effects {
				// Old rows of the same list stay until the search has found at least as many.
				if ctx.Err() == nil && (!r.Again || l.Outdated() || len(found) >= len(l.Items)) {
					l.takeProvisional(found)
				}
				return nil
			}))
		})
		took := time.Since(began)
		return part.Then(func() part.Effects { return l.takeList(ctx, list, took, err) })
	}
}

// takeList shows a complete list or its error, unless ctx has ended, and moves to an unread entry if seek is set.
func (l *List) takeList(ctx context.Context, list *SortedList, took time.Duration, err error) part.Effects {
	dropped := ctx.Err() != nil
	l.Job.End()
	if dropped {
		return nil
	}
	l.Took = took
	if list != nil {
		l.Marks.Listed(list.snapshot.Scan)
		if list.snapshot.Partial {
			l.takeProvisional(list.Items)
			return nil
		}
	}
	by := l.Seek
	l.Err, l.Complete, l.Seek = err, l.Job.Next == nil, 0
	if err != nil {
		l.take(nil)
		return nil
	}
	l.take(list.Items)
	if list.text() == "" {
		l.Sorted = list
	}
	var e part.Effects
	if by != 0 {
		l.At = -1
		if by < 0 {
			l.At = len(l.Items)
		}
		e = part.Effects{NextUnread{by}}
	}
	if !list.Dated && !l.learning {
		l.learning = true
		e = append(e, l.learn(list.Items))
	}
	return e
}

// learn returns the task that reads the dates of entries, after which the list is made again.
func (l *List) learn(items []*Item) part.Task {
	return part.Task{
		Do: func(ctx context.Context, progress func(string)) (string, error) {
			entries := make([]catalog.Entry, len(items))
			for i, it := range items {
				entries[i] = it.Entry
			}
			items = nil // there are newer ones while this runs, and a list can have millions
			return "", l.Disk.Learn(ctx, entries, func(what string, done, total int) {
				progress(l.Trf("%s: %d of %d", l.Tr(what), done, total))
			})
		},
		Then: func(err error) part.Effects {
			l.learning = false
			if err != nil {
				return l.Fail(err)
			}
			l.Sorted = nil // its dates are stale
			// A running request has the stale list. Its dates would be missing again, and be learned again.
			l.Job.Abandon()
			return part.Effects{part.List{Again: true}}
		}}
}

// take shows the items of a list. The cursor stays on its entry, and the entry on its line of
// the screen.
func (l *List) take(items []*Item) {
	lines, at := l.Pane()
	var on catalog.Entry
	stays := l.At >= 0 && l.At < len(l.Items) && !l.CursorToTop && (at || l.At > 0)
	if stays {
		on = l.Items[l.At].Entry
	} else if l.CursorToTop {
		l.At, l.Y, l.CursorToTop = 0, 0, false
	}
	l.Items, l.found = overlay(l.Marks, items), l.Spec.Query
	l.At = max(0, min(l.At, len(l.Items)-1))
	if !stays {
		return
	}
	if i := slices.IndexFunc(l.Items, func(it *Item) bool { return it.Same(on) }); i >= 0 {
		// At the top new entries should become visible, so the entry may move down the screen.
		if l.Y > 0 || i >= lines {
			l.Y += i - l.At
		}
		l.At = i
	}
}

// takeProvisional shows items that may not be in the order of the list yet.
func (l *List) takeProvisional(items []*Item) {
	top := l.CursorToTop && l.Spec.Order != tree.ByDate
	l.take(items)
	l.CursorToTop = top
}

// maxTitles is the number of titles above which all are dropped.
const maxTitles = 4000

// ReadTitles returns the command that reads the missing titles of the lines on the screen and of
// one page before and after them, nil if none is missing.
func (l *List) ReadTitles() tea.Cmd {
	lines, _ := l.Pane()
	l.Y = cells.Window(l.Y, l.At, len(l.Items), lines)
	var refs []lektordir.Ref
	for i := max(0, l.Y-lines); i < min(len(l.Items), l.Y+2*lines); i++ {
		k := l.Items[i].ID()
		if _, ok := l.Titles[k]; !ok {
			l.Titles[k] = ""
			refs = append(refs, l.Items[i].Ref())
		}
	}
	if len(refs) == 0 {
		return nil
	}
	return func() tea.Msg {
		titles := l.Disk.Titles(l.Ctx, refs)
		return part.Then(func() part.Effects {
			if len(l.Titles) > maxTitles {
				clear(l.Titles)
			}
			for i, r := range refs {
				l.Titles[part.KeyOf(r)] = cmp.Or(titles[i], " ") // an empty title is read, too
			}
			return nil
		})
	}
}

// SortMenu shows a menu of the orders of entries.
func (l *List) SortMenu(reversed bool) part.Effects {
	return tree.OrderMenu(l.Printer, l.Tr("sort the list by"), tree.EntryOrders, l.Spec.Order, reversed, l.Sort)
}

// Scene is the second pane.
type Scene struct {
	*List
	Name    string
	Empty   string // the message if there are no entries
	Count   int    // of all entries, or of the unread ones before all are listed; 0 if it is unknown
	Entries []EntryScene
}

// EntryScene is a line of the second pane.
type EntryScene struct {
	Ref         lektordir.Ref
	Date, Title string // the title is "" if it is not read yet
	Feed        string // "" in the list of one feed
}

// Scene returns the pane with the lines that a height has room for.
func (l *List) Scene(height int, date func(time.Time) string) Scene {
	s := Scene{List: l, Name: l.Tree.Name(l.Spec.Of), Count: len(l.Items)}
	snapshot := cmp.Or(l.Tree.Snapshot, &tree.Snapshot{})
	if snapshot.Uncounted {
		s.Count = 0
	} else if snapshot.Partial {
		s.Count = snapshot.All.Unread
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
	for _, it := range l.Items[l.Y:min(len(l.Items), l.Y+height)] {
		ref := l.Marks.Now(it.Ref())
		e := EntryScene{Ref: ref, Date: date(it.date.Time()), Title: l.Titles[it.ID()]}
		if f := snapshot.Feeds[ref.Feed]; f != nil && l.Spec.Of.Kind != tree.FeedNode {
			e.Feed = f.Title
		}
		s.Entries = append(s.Entries, e)
	}
	return s
}
