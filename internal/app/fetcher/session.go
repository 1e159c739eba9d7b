package fetcher

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/delivery"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/stage"
	"github.com/lektordir/lektor/lektordir"
)

// session is a feed at work: its lock, which txn holds, its state, and what is to be
// delivered. It belongs to one goroutine.
type session struct {
	r    *Runner
	hash string
	txn  *stage.Txn
	st   *feeddir.State
}

// open locks a feed and loads its state. If another process has the feed, the error is a
// [*commit.BusyError]: at once, or after some seconds of waiting. Close the session.
func (r *Runner) open(ctx context.Context, hash string, wait bool) (*session, error) {
	begin := r.Writer.Begin
	if wait {
		begin = func(hash string) (*commit.Txn, error) { return r.Writer.BeginWait(ctx, hash) }
	}
	txn, err := begin(hash)
	if err != nil {
		return nil, err
	}
	// Another machine may have fetched the feed just now.
	feeddir.Fresh(r.Dir, hash)
	st, err := r.state(hash)
	if err != nil {
		txn.Close()
		return nil, err
	}
	return &session{r: r, hash: hash, txn: delivery.On(r.Dir, txn), st: st}, nil
}

// Close unlocks the feed. Entries that are staged and not committed are removed.
func (s *session) Close() {
	s.txn.Close()
}

// state loads the state of a feed. To save it, the caller must hold the feed's lock.
func (r *Runner) state(hash string) (*feeddir.State, error) {
	st, err := feeddir.Load(r.Dir, hash)
	if err != nil {
		return nil, err
	}
	st.DefaultInterval = r.opts.Interval
	st.Limits = fmt.Sprintf("%s=%d", FlagMaxEntries, cmp.Or(r.opts.MaxEntries, feedconv.DefaultMaxEntries))
	return st, nil
}

// commit commits what is staged. When it returns without an error, the entries are
// durable, marked if they were read elsewhere, and reported. committing is called when the
// commit waits for others to be committed with.
func (s *session) commit(committing func()) error {
	done := make(chan error, 1)
	s.txn.Commit(func(err error) { done <- err })
	committing()
	if err := <-done; err != nil {
		return err
	}
	moved := s.mark()
	if s.r.opts.Delivered == nil {
		return nil
	}
	var refs []lektordir.Ref
	for _, unique := range s.txn.Delivered() {
		ref := lektordir.Ref{Feed: s.hash, Unique: unique}
		if to, ok := moved[ref]; ok {
			ref = to
		}
		refs = append(refs, ref)
	}
	s.r.print.Lock()
	defer s.r.print.Unlock()
	if len(refs) > 0 {
		s.r.opts.Delivered(refs)
	}
	return nil
}

// mark marks entries that were read elsewhere, if marks wait, and returns where they are
// now. Marks that fail wait for the next visit.
func (s *session) mark() map[lektordir.Ref]lektordir.Ref {
	if !s.st.Awaits() {
		return nil
	}
	moved, err := feeddir.MarkArrived(s.r.Dir, s.hash, s.r.now())
	if err != nil {
		s.r.report.Warn("%v", err)
	}
	return moved
}

// dates are those of the document of a feed with such a history.
func dates(h *feeddir.History) stage.Dates {
	if h.Stored() {
		// An archive may have a later version (RFC 5005, section 4.1).
		return stage.NotOlder
	}
	return stage.AnyDate
}

// describe writes what a document says of the feed into src/$feed. id is for a
// feed that is not there yet.
func (s *session) describe(feed *feedconv.Feed, id, name string) error {
	old, _ := s.r.Dir.ReadFeed(s.hash)
	if old == nil {
		old = &lektordir.Feed{}
	}
	id = cmp.Or(old.ID, id)
	if lektordir.FeedHash(id) != s.hash {
		// The file is lost; the URL is the id as long as the feed did not move.
		if id, _ = feeddir.URL(s.r.Dir, s.hash); lektordir.FeedHash(id) != s.hash {
			return fmt.Errorf("src/%s: the id of the feed is lost", s.hash)
		}
	}
	authors := make([]string, 0, len(feed.Authors))
	for _, p := range feed.Authors {
		authors = append(authors, p.String())
	}
	title := strings.Join(strings.Fields(feed.Title), " ")
	if err := s.txn.PutFeed((&lektordir.Feed{
		ID:          id,
		Name:        cmp.Or(name, title, old.Name, feeddir.DefaultName(id)),
		Description: feed.Description,
		Language:    feed.Language,
		Image:       feed.Image,
		Copyright:   feed.Copyright,
		Author:      strings.Join(authors, ", "),
		Link:        feed.Link,
		Generator:   feed.Generator.String(),
	}).Files()); err != nil {
		return err
	}
	if err := feeddir.GuardID(s.r.Dir, s.hash, id); err != nil {
		return err
	}
	return feeddir.PushOf(feed.Clouds, feed.Links).Write(s.r.Dir, s.hash)
}

// stage stages what is new in a document of a feed, after describe. article is that of
// [delivery.Options].
func (s *session) stage(ctx context.Context, feed *feedconv.Feed, article func(int) (delivery.Article, bool)) (stage.Result, error) {
	p := s.st.OnUpdate()
	h := feeddir.HistoryOf(s.r.Dir, s.hash)
	// The rest of a document that was left short is not known. If it was cut off, the mark
	// may stand in the part that is missing.
	whole := !feed.Truncated && limited(feed) < 0
	var old []string
	was := false
	if !whole {
		var bad error
		old, was, bad = s.r.Dir.Complete(s.hash)
		was = was && bad == nil
	}
	ranks := feed.Complete || feed.Truncated && was
	o := delivery.Options{Dates: dates(h), Article: article}
	out, err := delivery.StageWith(ctx, s.txn, feed, p, o)
	switch {
	case err != nil:
	case ranks:
		// Before what is new is there: nobody is to see it come and not find it.
		ids := out.Ranked
		if !whole {
			if !was {
				return out, nil // everything is shown
			}
			in := map[string]bool{}
			for _, id := range ids {
				in[id] = true
			}
			ids = append(ids, slices.DeleteFunc(old, func(id string) bool { return in[id] })...)
		}
		err = h.Present(ids)
	default:
		err = h.NotComplete()
	}
	return out, err
}
