package fetcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// UpdateOptions are the options of [Update] and [History].
type UpdateOptions struct {
	Common
	Feeds              []string // "-" reads a list; if empty, Update fetches the feeds that are due, History all feeds
	Nul                bool     // the items that "-" reads end with NUL
	All, Quiet, DryRun bool
	Want
	Format string // format in which delivered entries are printed
}

// Update fetches feeds and delivers new and updated entries.
func Update(ctx context.Context, o UpdateOptions, s *cmdline.Streams) error {
	find := func(d *lektordir.Dir) func(string) (string, error) { return entrystore.Finding(d, false) }
	return o.run(ctx, s, find, func(r *Runner, sel Selection) error {
		tasks, err := r.tasks(sel)
		for _, t := range tasks {
			printLine(s, feedurl.Public(t.url))
		}
		return err
	})
}

// run fetches feeds. find returns the feed with a name that the user typed. A dry run calls dry
// instead.
func (o UpdateOptions) run(ctx context.Context, s *cmdline.Streams, find func(*lektordir.Dir) func(string) (string,
	error), dry func(*Runner, Selection) error) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	p, err := newPrinter(s, o.Format)
	if err != nil {
		return err
	}
	sel := Selection{Want: o.Want}
	if len(o.Feeds) > 0 {
		sel.Feeds, _, err = entrystore.Named(ctx, o.Feeds, o.Nul, s, find(d))
		if err != nil || len(sel.Feeds) == 0 {
			return err // no feed was found, or the list on standard input is empty
		}
	} else if o.All {
		sel.Reason = Forced
	}
	r, err := o.runner(s, d, p)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.DryRun {
		return dry(r, sel)
	}
	r.Recover(ctx)
	return errors.Join(r.fetch(ctx, sel, o.Quiet, s), r.Close())
}

// fetch fetches feeds and reports the result.
func (r *Runner) fetch(ctx context.Context, sel Selection, quiet bool, s *cmdline.Streams) error {
	sum, err := r.Update(ctx, sel)
	switch {
	case err != nil:
		return err
	case quiet:
	case r.opts.Steps:
		fmt.Fprintf(s.Out, "done\t%s\n", sum)
	case sum.Feeds > 0:
		s.Report.Info("%s", sum)
	case s.ErrIsTerminal():
		// A timer that runs every minute should not log this.
		s.Report.Info("nothing is due; -a fetches all feeds")
	}
	if sum.Failed > 0 && s.Report.Errors() == 0 {
		return &cmdline.ExitError{Status: cmdline.StatusRemote}
	}
	return nil
}

// WatchOptions are the options of [Watch].
type WatchOptions struct {
	Common
	Format string // format in which delivered entries are printed
}

// Watch fetches each feed when it is due, until ctx is done.
func Watch(ctx context.Context, o WatchOptions, s *cmdline.Streams) error {
	p, err := newPrinter(s, o.Format)
	if err != nil {
		return err
	}
	r, end, err := o.begin(ctx, s, false, p)
	if err != nil {
		return err
	}
	defer end()
	// Failures while watching were reported then and do not change the exit status; being stopped
	// is the normal end.
	return errors.Join(r.Watch(ctx, nil), r.Close())
}
