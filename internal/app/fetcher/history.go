package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// HistoryOptions are those of [History].
type HistoryOptions struct {
	Common
	Feeds         []string // none for all; "-" reads them
	Nul           bool     // what "-" reads ends with NUL
	Pages         int      // so many pages, the first among them, or [AllPages]; 0 goes through archives
	Quiet, DryRun bool
	Format        string // of what is printed of entries delivered
}

// History fetches feeds, and delivers what is in their archives (RFC 5005, section 4),
// or in their pages (section 3).
func History(ctx context.Context, o HistoryOptions, s *command.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	p, err := newPrinter(s, o.Format)
	if err != nil {
		return err
	}
	sel := Selection{All: true, Want: Want{Archives: o.Pages == 0, Pages: o.Pages}}
	if len(o.Feeds) > 0 {
		find := &feeddir.Finder{Dir: d}
		sel.Feeds, _, err = entries.Feeds(ctx, o.Feeds, o.Nul, s, func(name string) (string, error) {
			hash, err := find.Find(name)
			var none *lektordir.NoFeedError
			if errors.As(err, new(*feeddir.NotSubscribedError)) || errors.As(err, &none) && len(none.Matches) == 0 {
				return "", command.Hint(err, "lektor-fetch add --history subscribes, and brings the whole feed")
			}
			return hash, entries.FeedHint(err)
		})
		if err != nil || len(sel.Feeds) == 0 {
			return err
		}
	}
	r, err := o.runner(s, d, p)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.DryRun {
		return r.inquire(ctx, sel, s)
	}
	r.Recover(ctx)
	return errors.Join(r.fetch(ctx, sel, o.Quiet, s), r.Close())
}

// inquire tells of feeds, in a line each, what they are, where their history begins,
// and what of it is stored. It changes nothing.
func (r *Runner) inquire(ctx context.Context, sel Selection, s *command.Streams) error {
	tasks, err := r.tasks(sel)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		line, err := r.inquiry(ctx, t)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			s.Report.Print(prefixed(fetch.Public(t.url), err))
		default:
			printLine(s, line)
		}
	}
	return nil
}

// inquiry gives the line for a feed.
func (r *Runner) inquiry(ctx context.Context, t task) (string, error) {
	st, err := r.state(t.hash)
	if err != nil {
		return "", err
	}
	req, err := st.Request()
	if err != nil {
		return "", err
	}
	if !fetch.IsHTTP(req.URL) {
		return fetch.Public(req.URL) + ": what is not fetched by HTTP has no history", nil
	}
	s := &session{r: r, hash: t.hash, st: st} // nothing is written, so there is no lock
	if err := s.trusted(); err != nil {
		return "", err
	}
	req.ETag, req.LastModified = "", ""
	resp, err := r.Client.Get(ctx, req)
	if err != nil {
		return "", err
	}
	feed, err := s.document(ctx, req, resp)
	if err != nil {
		return "", err
	}
	doc := history.Subscribed(feed, resp.FinalURL, req.URL)
	h := feeddir.HistoryOf(r.Dir, t.hash)
	record, err := h.Archives()
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s: %s", fetch.Public(req.URL), cmp.Or(string(doc.Kind), "plain"))
	if first := cmp.Or(doc.Prev, doc.Next); first != "" {
		line += ", begins at " + fetch.Public(first)
		if doc.Guessed {
			line += " (guessed)"
		}
	}
	line += "; " + units.Count(record.Len(), "archive") + " recorded"
	if gap := h.Gap(); gap != nil {
		line += "; missing: " + gap.String()
	}
	return line, nil
}
