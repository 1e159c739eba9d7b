package fetcher

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/marks"
	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

// lockedFeed is a feed, locked: its lock, which txn holds, its state, and staged entries. It is not
// safe for concurrent use.
type lockedFeed struct {
	r    *Runner
	hash string
	txn  *stage.Stager
	st   *schedule.State
}

// open locks a feed and loads its state. If another process holds the lock, it returns a
// [*commit.BusyError]: at once, or if wait is set after some seconds. The caller must close the
// locked feed.
func (r *Runner) open(ctx context.Context, hash string, wait bool) (*lockedFeed, error) {
	begin := r.Writer.Begin
	if wait {
		begin = func(hash string) (*commit.Txn, error) { return r.Writer.BeginWait(ctx, hash) }
	}
	txn, err := begin(hash)
	if err != nil {
		return nil, err
	}
	// Another machine may have fetched the feed just now.
	schedule.Revalidate(r.Dir, hash)
	st, err := r.state(hash)
	if err != nil {
		txn.Close()
		return nil, err
	}
	return &lockedFeed{r: r, hash: hash, txn: feedstage.On(r.Dir, txn), st: st}, nil
}

// Close unlocks the feed and removes entries that are staged but not committed.
func (s *lockedFeed) Close() {
	s.txn.Close()
}

// state loads the state of a feed. To save it, the caller must hold the feed's lock.
func (r *Runner) state(hash string) (*schedule.State, error) {
	st, err := schedule.Load(r.Dir, hash)
	if err != nil {
		return nil, err
	}
	st.Settings.DefaultInterval = r.opts.Interval
	st.Document.Limits = fmt.Sprintf("%s=%d", FlagMaxEntries, cmp.Or(r.opts.MaxEntries, feedconv.DefaultMaxEntries))
	return st, nil
}

// commit commits the staged entries. If it returns nil, they are durable, marked if they were read
// elsewhere, and reported to Options.Delivered. commit calls committing while it waits for other
// feeds to share the commit.
func (s *lockedFeed) commit(committing func()) error {
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

// mark applies marks of entries that were read elsewhere, and returns the new names of moved
// entries. Marks that fail are tried again at the next visit.
func (s *lockedFeed) mark() map[lektordir.Ref]lektordir.Ref {
	if !s.st.HasMarks() {
		return nil
	}
	moved, err := marks.SetArrived(s.r.Dir, s.hash, s.r.now())
	if err != nil {
		s.r.report.Warn("%v", err)
	}
	return moved
}

// dates returns the rule for versions of a document of the feed.
func dates(h *history.History) stage.Dates {
	if h.Stored() {
		// An archive may have a later version (RFC 5005, section 4.1).
		return stage.NotOlder
	}
	return stage.AnyDate
}

// describe writes the title and other metadata of a document to src/$feed. id is the id of a feed
// that does not exist yet.
func (s *lockedFeed) describe(feed *feedconv.Feed, id, name string) error {
	old, _ := s.r.Dir.ReadFeed(s.hash)
	if old == nil {
		old = &lektordir.Feed{}
	}
	id = cmp.Or(old.ID, id)
	if lektordir.FeedHash(id) != s.hash {
		// The id file is lost; the URL is the id if the feed did not move.
		if id, _ = feedfiles.URL(s.r.Dir, s.hash); lektordir.FeedHash(id) != s.hash {
			return fmt.Errorf("src/%s: the id of the feed is lost", s.hash)
		}
	}
	now := fromfeed.Feed(id, feed)
	if name != "" {
		now.Name = name
	} else if strings.TrimSpace(feed.Title) == "" {
		now.Name = cmp.Or(old.Name, subscriptions.DefaultName(id))
	}
	if err := s.txn.PutFeed(now.Files()); err != nil {
		return err
	}
	if err := feedfiles.HideID(s.r.Dir, s.hash, id); err != nil {
		return err
	}
	return push.Of(feed.Clouds, feed.Links).Write(s.r.Dir, s.hash)
}

// stage stages new and updated entries of a document, after describe. revise is the parameter of
// [feedstage.Document].
func (s *lockedFeed) stage(ctx context.Context, feed *feedconv.Feed,
	revise func(int, *lektordir.Entry)) (stage.Result, error) {
	h := history.Of(s.r.Dir, s.hash)
	// If the document is truncated or limited, the rest is unknown, maybe with the mark that the
	// feed is complete.
	whole := !feed.Truncated && limited(feed) < 0
	var old []string
	wasComplete := false
	if !whole {
		var bad error
		old, wasComplete, bad = s.r.Dir.Complete(s.hash)
		wasComplete = wasComplete && bad == nil
	}
	ranks := feed.Complete || feed.Truncated && wasComplete
	doc := feedstage.Document(feed, s.st.Settings.OnUpdate(), revise)
	doc.Dates = dates(h)
	out, err := s.txn.Stage(ctx, doc)
	switch {
	case err != nil:
	case ranks:
		// Before the entries are committed: otherwise a viewer could see an entry and not list it.
		ids := out.Ranked
		if !whole {
			if !wasComplete {
				return out, nil // all entries are shown
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
