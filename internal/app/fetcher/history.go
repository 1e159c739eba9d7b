package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// History fetches feeds, and delivers the entries of their archives (RFC 5005, section 4), or, if
// Pages is not 0, of their pages (section 3).
func History(ctx context.Context, o UpdateOptions, s *cmdline.Streams) error {
	o.All, o.Archives = true, o.Pages == 0
	find := func(d *lektordir.Dir) func(string) (string, error) {
		find := entrystore.Finding(d, false)
		return func(name string) (string, error) {
			hash, err := find(name)
			var none *lektordir.NotFoundError
			if errors.As(err, new(*subscriptions.NotSubscribedError)) || errors.As(err, &none) &&
				len(none.Matches) == 0 {
				err = cmdline.Hint(err, "to subscribe and fetch the whole feed: lektor-fetch add --history")
			}
			return hash, err
		}
	}
	return o.run(ctx, s, find, func(r *Runner, sel Selection) error { return r.printHistories(ctx, sel, s) })
}

// printHistories prints a line for each feed: its kind, the first document of its history, and what is
// stored of it. It changes nothing.
func (r *Runner) printHistories(ctx context.Context, sel Selection, s *cmdline.Streams) error {
	tasks, err := r.tasks(sel)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		line, err := r.historyLine(ctx, t)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			s.Report.Print(prefixed(feedurl.Public(t.url), err))
		default:
			printLine(s, line)
		}
	}
	return nil
}

// historyLine returns the line for a feed.
func (r *Runner) historyLine(ctx context.Context, t task) (string, error) {
	st, err := r.state(t.hash)
	if err != nil {
		return "", err
	}
	req, err := st.Request()
	if err != nil {
		return "", err
	}
	if !feedurl.IsHTTP(req.URL) {
		return feedurl.Public(req.URL) + ": only feeds fetched by HTTP have a history", nil
	}
	s := &lockedFeed{r: r, hash: t.hash, st: st} // nothing is written, so it needs no lock
	if err := s.trusted(); err != nil {
		return "", err
	}
	req.ETag, req.LastModified = "", ""
	resp, err := r.Client.Get(ctx, req)
	if err != nil {
		return "", err
	}
	body, err := s.filtered(ctx, req.URL, resp.Body)
	if err != nil {
		return "", err
	}
	feed, err := s.document(body, req, resp)
	if err != nil {
		return "", err
	}
	doc := rfc5005.Subscribed(feed, resp.FinalURL, req.URL)
	h := history.Of(r.Dir, t.hash)
	record, err := h.Archives()
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s: %s", feedurl.Public(req.URL), cmp.Or(string(doc.Kind), "plain"))
	if first := cmp.Or(doc.Prev, doc.Next); first != "" {
		line += ", begins at " + feedurl.Public(first)
		if doc.Guessed {
			line += " (guessed)"
		}
	}
	line += "; " + humanize.Count(record.Len(), "archive") + " recorded"
	if gap := h.Gap(); gap != nil {
		line += "; missing: " + gap.String()
	}
	return line, nil
}
