package entrystore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Selection specifies which entries to select.
type Selection struct {
	// Query selects entries. Trashed entries are selected only if it has a term about the flag T.
	Query *query.Query
	All   bool // select read entries too, even if the query has no term about flags
	// Hidden selects trashed and withdrawn entries too, even if the query has no term about them.
	Hidden bool
	// Strict lists the directory strictly, see [lektordir.ListOptions]: for callers that
	// forget, delete or unpublish what is not selected.
	Strict bool
	// Newest is the maximum number of entries, the newest ones; 0 means no limit.
	Newest int
	// Want is the fields to read of each entry. Entries that lack them are omitted.
	Want lektordir.Fields
	// Links, if not nil, selects only entries that have one of these links, in the form of
	// [feedurl.Article], and are not of its feed, whose hash is the value.
	Links map[string]string
}

// Index answers selections without reading the whole directory. See package index.
type Index interface {
	// Look returns a view of the index, nil if the directory has to be read. The error is that of
	// ctx.
	Look(ctx context.Context) (View, error)
	// Failed is called with an error of a View.
	Failed(error)
	// Missed is called after the directory was read because the index could not answer. entries is
	// the number of entries in the directory.
	Missed(entries int)
}

// View is a consistent view of an [Index].
type View interface {
	// Find calls yield for all entries that may match, and possibly for others. The caller passes the
	// error to [Index.Failed], unless ctx is done.
	Find(ctx context.Context, w Wanted, yield func(Hit) bool) error
	// Tallies counts the entries that a list shows, by feed hash.
	Tallies() (map[string]Tally, error)
	// Dates calls yield for the entries that a list shows, with their pubdates.
	Dates(ctx context.Context, yield func(ref lektordir.Ref, pubdate time.Time)) error
	// Complaints returns the errors that [lektordir.Dir.List] would return.
	Complaints() []error
	Close()
}

// Tally is the number of entries that are not trashed: all, unread and flagged ones.
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

// Plus adds another tally.
func (t *Tally) Plus(o Tally) {
	t.All += o.All
	t.Unread += o.Unread
	t.Flagged += o.Flagged
}

// Wanted specifies the entries to find in a [View].
type Wanted struct {
	Selection
	Matcher *query.Matcher
	Now     time.Time
	Folders func(feed string) []string // folders of a feed by its hash
	// Enough, if it is not nil, reports whether entries dated t or earlier can be skipped.
	Enough func(time.Time) bool
}

// Hit is an entry found in an [Index].
type Hit struct {
	Ref lektordir.Ref
	// Feed is the result of [Record.Feed]; nil if the index does not have it.
	Feed  *lektordir.Feed
	Entry lektordir.Entry // with the fields of Have
	Have  lektordir.Fields
	// Repeat is that of [query.Subject], if the query mentions it, and valid after the View is closed.
	Repeat func() bool
	// Words reports which words the entry has, see [query.Subject]. It may be called concurrently
	// until the View is closed.
	Words func(folded string) query.Verdict
}

// Select returns the entries of a selection: oldest first if Newest is set, else in no particular
// order. If the index cannot answer, Select reads the directory. If it has to open an entry that is
// malformed, it omits that with a warning. The error is that of ctx.
//
// A record takes a few hundred bytes: it keeps the fields that lists show and sort by, and those of
// Want.
func (s *Store) Select(ctx context.Context, sel Selection) ([]*Record, error) {
	found, ok, err := s.Indexed(ctx, sel)
	if ok || err != nil {
		return found, err
	}
	return s.scan(ctx, sel)
}

// Indexed is like [Store.Select], but never reads the directory: ok is false if the index cannot
// answer. The error is that of ctx.
func (s *Store) Indexed(ctx context.Context, sel Selection) (found []*Record, ok bool, err error) {
	ok, err = s.look(ctx, func(v View) (err error) {
		found, err = s.find(ctx, v, sel)
		return err
	})
	return found, ok, err
}

// look calls f with a view of the index. It reports false if the directory has to be read instead;
// the results of f must be ignored then. The error is that of ctx.
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

// selectRun is one run of [Store.Select].
type selectRun struct {
	store   *Store
	sel     Selection
	ctx     context.Context
	matcher *query.Matcher
	pending []*Record // found entries that may have to be read
	found   []*Record
	// oldest is the date of the oldest of the Newest entries; zero until that many were found.
	oldest time.Time
}

func (s *Store) selecting(ctx context.Context, sel Selection) *selectRun {
	if sel.Newest > 0 {
		sel.Want |= lektordir.FieldPubDate
	}
	if sel.Links != nil {
		sel.Want |= linkFields
	}
	return &selectRun{store: s, sel: sel, ctx: ctx, matcher: sel.Query.Bind(s.Now)}
}

// lookedAtOnce is the number of entries that are read in parallel.
const lookedAtOnce = 1024

// add adds an entry, unless its known fields show that the query does not select it.
func (q *selectRun) add(r *Record) error {
	if !q.sel.Query.Empty() {
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

// decide reads the pending entries, and keeps those that the query selects.
func (q *selectRun) decide() error {
	fields := q.sel.Query.Fields() | q.sel.Want
	kept, err := Filter(q.ctx, q.pending, func(r *Record) bool {
		wanted := !r.maybe
		if r.maybe {
			yes, err := r.Decide(q.matcher, fields)
			wanted = q.store.Usable(err) && yes
		}
		wanted = wanted && q.store.Usable(r.Read(q.sel.Want))
		if q.sel.Links != nil {
			feed, linked := q.sel.Links[feedurl.Article(r.URL())]
			wanted = wanted && linked && feed != r.Ref.Feed
		}
		r.dropUnneeded(q.sel.Want)
		return wanted
	})
	q.found = append(q.found, kept...)
	clear(q.pending)
	q.pending = q.pending[:0]
	if q.sel.Newest > 0 && len(q.found) > 2*q.sel.Newest+lookedAtOnce {
		q.trim()
	}
	return err
}

// trim sorts the entries newest first, and keeps Newest of them.
func (q *selectRun) trim() {
	slices.SortFunc(q.found, func(a, b *Record) int { return ByDate(b, a) })
	if len(q.found) >= q.sel.Newest {
		clear(q.found[q.sel.Newest:])
		q.found = q.found[:q.sel.Newest]
		q.oldest = q.found[q.sel.Newest-1].Date()
	}
}

// enough reports whether entries dated t or earlier can be skipped.
func (q *selectRun) enough(t time.Time) bool {
	before := len(q.found)
	if q.decide() != nil {
		return true
	}
	if len(q.found) > before && len(q.found) >= q.sel.Newest {
		q.trim()
	}
	return !q.oldest.IsZero() && q.oldest.Unix() > t.Unix()
}

// end returns the entries found.
func (q *selectRun) end() ([]*Record, error) {
	if err := q.decide(); err != nil {
		return nil, err
	}
	if q.sel.Newest > 0 {
		q.trim()
		slices.Reverse(q.found)
	}
	return q.found, nil
}

// OnlyUnread and SkipTrashed report whether read and trashed entries are excluded, and Withdrawn whether withdrawn ones
// are included, in addition to the query. A term about flags, trashed or withdrawn entries in the query overrides the
// default.
func (sel *Selection) OnlyUnread() bool  { return !sel.All && !sel.Query.MentionsState() }
func (sel *Selection) SkipTrashed() bool { return !sel.Hidden && !sel.Query.MentionsTrash() }
func (sel *Selection) Withdrawn() bool   { return sel.Hidden || sel.Query.MentionsWithdrawn() }

// find finds the entries of a selection in an index.
func (s *Store) find(ctx context.Context, view View, sel Selection) ([]*Record, error) {
	for _, err := range view.Complaints() {
		s.Report(err)
	}
	q := s.selecting(ctx, sel)
	w := Wanted{Selection: q.sel, Matcher: q.matcher, Now: s.Now, Folders: s.Folders}
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
	if sel.Query.MentionsRepeat() {
		s.repeats(ctx)
	}
	onlyUnread := sel.OnlyUnread()
	total := 0
	var bad []error
	for refs, err := range s.Dir.ListFeeds(ctx, lektordir.ListOptions{SkipTrashed: sel.SkipTrashed(),
		Withdrawn: sel.Withdrawn(), Strict: sel.Strict}) {
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
