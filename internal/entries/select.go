package entries

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Selection says which entries are wanted.
type Selection struct {
	// Query says it; what has the flag T is wanted only if the query asks about it.
	Query *query.Query
	All   bool // read ones too, whatever the query says
	// Hidden wants also what is trashed, and what feeds have withdrawn, whatever the
	// query says.
	Hidden bool
	// Strict lists the directory strictly, see [lektordir.ListOptions]: for callers that
	// forget, delete or unpublish what is not selected.
	Strict bool
	// Newest keeps at most this many entries, the newest; 0 means no limit.
	Newest int
	// Want is what is read of each, in parallel; an entry that lacks it is left out.
	Want lektordir.Fields
}

// An Index answers selections without reading the whole directory. See package index.
type Index interface {
	// Look gives what it knows; nil where the directory has to be read. The error is the
	// context's.
	Look(ctx context.Context) (View, error)
	// Failed is told the error of a View, and Missed that the directory was read, and of
	// how many entries.
	Failed(error)
	Missed(entries int)
}

// View is an [Index] at one moment.
type View interface {
	// Find calls yield for all entries that may be wanted, and for others. Its error is
	// one for [Index.Failed], or the context's.
	Find(ctx context.Context, w Wanted, yield func(Hit) bool) error
	// Tallies counts what a list shows, by the hashes of the feeds.
	Tallies() (map[string]Tally, error)
	// Dates calls yield for entries that a list shows, with what is known of their dates.
	Dates(ctx context.Context, yield func(feed, unique string, pubdate time.Time)) error
	// Complaints are what [lektordir.Dir.List] would have complained of.
	Complaints() []error
	Close()
}

// Tally is how many entries of a feed a list shows: of those that are not trashed all,
// the unread and the flagged ones.
type Tally struct{ All, Unread, Flagged int }

// Add counts an entry that is not trashed.
func (t *Tally) Add(r lektordir.Ref) {
	t.All++
	if r.Unread() {
		t.Unread++
	}
	if r.HasFlag('F') {
		t.Flagged++
	}
}

// Plus adds others.
func (t *Tally) Plus(o Tally) {
	t.All += o.All
	t.Unread += o.Unread
	t.Flagged += o.Flagged
}

// Wanted is what a [View] is asked for.
type Wanted struct {
	Query   *query.Query
	Matcher *query.Matcher
	Now     time.Time
	// These are about all entries, whatever the query says.
	OnlyUnread, SkipTrashed, Withdrawn bool
	Folders                            func(feed string) []string // of a feed by its hash
	Want                               lektordir.Fields           // of each entry, besides what the query needs
	// Enough, unless it is nil, tells whether nothing is wanted of what is dated at a
	// time or before.
	Enough func(time.Time) bool
}

// Hit is an entry that an [Index] knows.
type Hit struct {
	Ref lektordir.Ref
	// Feed is what [Record.Feed] tells of; nil where the index does not know.
	Feed  *lektordir.Feed
	Entry lektordir.Entry // with the fields of Have
	Have  lektordir.Fields
	// Words tells what words the entry has, see [query.Subject]; it may be called
	// concurrently until the View is closed.
	Words func(folded string) query.Verdict
}

// Select returns the entries of a selection, in no order that means anything unless
// Newest is set: then from the oldest to the newest. All are found before the first is
// returned; if the index fails meanwhile, the directory is read instead. Malformed ones
// among those that had to be opened are left out with a warning. The error is the
// context's.
//
// A record holds a few hundred bytes: of what was read, or an index knows, it keeps what
// lists show and are ordered by, and the fields of Want.
func (s *Store) Select(ctx context.Context, sel Selection) ([]*Record, error) {
	found, ok, err := s.Indexed(ctx, sel)
	if ok || err != nil {
		return found, err
	}
	return s.scan(ctx, sel)
}

// Indexed is [Store.Select] for callers that can do something better than wait for a
// reading of the directory: ok is false if the index cannot answer. The error is the
// context's.
func (s *Store) Indexed(ctx context.Context, sel Selection) (found []*Record, ok bool, err error) {
	ok, err = s.look(ctx, func(v View) (err error) {
		found, err = s.find(ctx, v, sel)
		return err
	})
	return found, ok, err
}

// look lets f ask the index. It reports false if the directory has to be read instead;
// then the results of f are void. The error is the context's.
func (s *Store) look(ctx context.Context, f func(View) error) (ok bool, err error) {
	if s.Index == nil {
		return false, nil
	}
	view, err := s.Index.Look(ctx)
	if view == nil || err != nil {
		return false, err
	}
	err = f(view)
	view.Close()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		s.Index.Failed(err)
	}
	return err == nil, nil
}

// selecting is a run of [Store.Select].
type selecting struct {
	*Store
	Selection
	ctx     context.Context
	matcher *query.Matcher
	first   lektordir.Fields // what the query needs, but for the content
	pending []*Record        // found, and perhaps to be read
	found   []*Record
	// oldest is, once Newest are found, the date of the oldest of them.
	oldest time.Time
}

func (s *Store) selecting(ctx context.Context, sel Selection) *selecting {
	if sel.Newest > 0 {
		sel.Want |= lektordir.FieldPubDate
	}
	return &selecting{Store: s, Selection: sel, ctx: ctx, matcher: sel.Query.Bind(s.Now), first: sel.Query.Fields() &^ lektordir.FieldContent}
}

// lookedAtOnce is how many entries are read together.
const lookedAtOnce = 1024

// add adds an entry, unless what is known of it tells that the query does not want it.
func (q *selecting) add(r *Record) error {
	if !q.Query.Empty() {
		switch r.Match(q.matcher) {
		case query.No:
			return nil
		case query.Maybe:
			r.maybe = true
		}
	}
	if q.pending = append(q.pending, r); len(q.pending) < lookedAtOnce {
		return nil
	}
	return q.decide()
}

// decide decides about the entries that are pending.
func (q *selecting) decide() error {
	kept, err := Filter(q.ctx, q.pending, func(r *Record) bool {
		wanted := r.wanted(q.matcher, q.first, q.Want)
		r.settle(q.Want)
		return wanted
	})
	q.found = append(q.found, kept...)
	clear(q.pending)
	q.pending = q.pending[:0]
	if q.Newest > 0 && len(q.found) > 2*q.Newest+lookedAtOnce {
		q.trim()
	}
	return err
}

// trim keeps the newest entries, the newest first.
func (q *selecting) trim() {
	slices.SortFunc(q.found, func(a, b *Record) int { return ByDate(b, a) })
	if len(q.found) >= q.Newest {
		clear(q.found[q.Newest:])
		q.found = q.found[:q.Newest]
		q.oldest = q.found[q.Newest-1].Date()
	}
}

// enough reports whether entries dated t or earlier can be skipped.
func (q *selecting) enough(t time.Time) bool {
	before := len(q.found)
	if q.decide() != nil {
		return true
	}
	if len(q.found) > before && len(q.found) >= q.Newest {
		q.trim()
	}
	return !q.oldest.IsZero() && q.oldest.Unix() > t.Unix()
}

// end returns what was found.
func (q *selecting) end() ([]*Record, error) {
	if err := q.decide(); err != nil {
		return nil, err
	}
	if q.Newest > 0 {
		q.trim()
		slices.Reverse(q.found)
	}
	return q.found, nil
}

// onlyUnread, skipTrashed and withdrawn report which entries a selection is about,
// whatever its query says.
func (sel *Selection) onlyUnread() bool  { return !sel.All && !sel.Query.MentionsState() }
func (sel *Selection) skipTrashed() bool { return !sel.Hidden && !sel.Query.MentionsTrash() }
func (sel *Selection) withdrawn() bool   { return sel.Hidden || sel.Query.MentionsWithdrawn() }

// find finds the entries of a selection by an index.
func (s *Store) find(ctx context.Context, view View, sel Selection) ([]*Record, error) {
	for _, err := range view.Complaints() {
		s.Report(err)
	}
	q := s.selecting(ctx, sel)
	w := Wanted{
		Query: sel.Query, Matcher: q.matcher, Now: s.Now, OnlyUnread: sel.onlyUnread(),
		SkipTrashed: sel.skipTrashed(), Withdrawn: sel.withdrawn(), Folders: s.Folders, Want: q.Want,
	}
	if sel.Newest > 0 {
		w.Enough = q.enough
	}
	err := view.Find(ctx, w, func(h Hit) bool { return q.add(s.hit(h)) == nil })
	if err != nil {
		return nil, err
	}
	return q.end()
}

// scan finds the entries of a selection by reading the directory.
func (s *Store) scan(ctx context.Context, sel Selection) ([]*Record, error) {
	q := s.selecting(ctx, sel)
	onlyUnread := sel.onlyUnread()
	total := 0
	var bad []error
	for refs, err := range s.Dir.ListFeeds(ctx, lektordir.ListOptions{SkipTrashed: sel.skipTrashed(), Withdrawn: sel.withdrawn(), Strict: sel.Strict}) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			bad = append(bad, err)
		}
		total += len(refs)
		for _, ref := range refs {
			if onlyUnread && !ref.Unread() {
				continue
			}
			if err := q.add(s.Record(ref)); err != nil {
				return nil, err
			}
		}
	}
	s.Report(errors.Join(bad...))
	found, err := q.end()
	if err == nil && s.Index != nil {
		s.Index.Missed(total)
	}
	return found, err
}

// wanted reads what is needed to tell whether the entry is: cheap files first,
// the content only if those do not tell.
func (r *Record) wanted(m *query.Matcher, first, want lektordir.Fields) bool {
	if !r.maybe {
		return want == 0 || r.s.Usable(r.Read(want))
	}
	if !r.s.Usable(r.Read(want | first)) {
		return false
	}
	verdict := r.Match(m)
	if verdict == query.Maybe {
		if !r.s.Usable(r.Read(first | lektordir.FieldContent | lektordir.FieldType)) {
			return false
		}
		verdict = r.Match(m)
	}
	return verdict == query.Yes
}
