package sharer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/errlist"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// SyncOptions are the options of [Sync].
type SyncOptions struct {
	Common
	Yes    bool // end subscriptions, trash entries and lose marks without limit
	DryRun bool
	Quiet  bool
}

// Sync makes the lektor-dir and its peers agree: it adds the edits of the user to the set,
// merges what peers publish, plans what differs between set and lektor-dir, saves the set,
// applies the plan, and publishes. A dry run ends with the plan.
func Sync(ctx context.Context, o SyncOptions, s *cmdline.Streams) error {
	x, err := o.beginExchange(s)
	if err != nil {
		return err
	}
	defer x.end()
	l, err := x.diff(ctx, o.DryRun)
	if err != nil {
		return err
	}
	if err := x.mergePeers(ctx, o.Quiet); err != nil {
		return err
	}
	p, err := x.plan(ctx, l, x.origins)
	if err != nil {
		return err
	}
	if o.DryRun {
		return x.show(p)
	}
	if err := x.save(p); err != nil {
		return err
	}
	done, err := x.apply(ctx, p)
	if err != nil {
		return err
	}
	if err := x.publish(ctx); err != nil {
		return errors.Join(done.failed, err)
	}
	return x.report(done, o.Quiet)
}

// beginExchange begins a run and its exchange with peers.
func (o SyncOptions) beginExchange(s *cmdline.Streams) (*exchange, error) {
	r, err := o.begin(s)
	if err != nil {
		return nil, err
	}
	r.yes = o.Yes
	x, err := r.exchange()
	if err != nil {
		r.end()
		return nil, err
	}
	return x, nil
}

// diff adds the edits of the user to the set. If the set was lost, it is first read back
// from the peers.
func (x *exchange) diff(ctx context.Context, dryRun bool) (*local, error) {
	if x.rep.lost {
		if err := x.recover(ctx, dryRun); err != nil {
			return nil, err
		}
	}
	return x.note(ctx)
}

// mergePeers reads what peers publish and merges it into the set. It fails if another
// lektor-dir publishes as this endpoint.
func (x *exchange) mergePeers(ctx context.Context, quiet bool) error {
	if err := x.read(ctx, quiet); err != nil {
		return err
	}
	return x.overwritten(ctx)
}

// show prints the plan of a dry run.
func (x *exchange) show(p *plan) error {
	x.describePlan(p)
	x.summary(humanize.Count(len(x.updates), "peer")+" read", "", p.waiting)
	return x.result(p)
}

// publish saves the records of the peers that were merged, and publishes the documents. An
// error of the server that may be gone at the next sync counts as one of a peer.
func (x *exchange) publish(ctx context.Context) error {
	if err := x.remember(); err != nil {
		return err
	}
	err := x.publishDocuments(ctx)
	if err == nil || !isURL(x.target) || slices.ContainsFunc(errlist.Errors(err),
		func(e error) bool { return !mayPass(e) }) {
		return err
	}
	x.s.Report.Print(err)
	x.failed = true
	return nil
}

// report prints the summary of a sync, unless quiet, and returns its error.
func (x *exchange) report(done outcome, quiet bool) error {
	if !quiet {
		x.summary(humanize.Count(x.completePeers(), "peer")+" read", done.text, done.waiting)
	}
	switch {
	case done.failed == nil && x.refused:
		return errReported
	case done.failed == nil && x.failed:
		return errRemote
	}
	return done.failed
}

// plan is the plan of a run for this lektor-dir.
type plan struct {
	local   *local
	actions []action
	waiting int   // marks and actions that cannot be applied yet
	refused error // error for actions that need --yes
}

// result returns the errors of reading the lektor-dir, and of actions that need --yes.
func (r *run) result(p *plan) error { return errors.Join(r.trouble, p.refused) }

// plan makes the plan. origins maps feeds to the place of the peer that they come from.
func (r *run) plan(ctx context.Context, l *local, origins map[string]string) (*plan, error) {
	if err := r.relist(ctx, l); err != nil {
		return nil, err
	}
	p := &plan{local: l}
	waiting := r.meet(r.rep.set, r.rep.base, l)
	for _, n := range waiting {
		p.waiting += n
	}
	n := &planner{me: r.me, base: r.rep.base, local: l, allow: r.c.Fetch.AllowPrivate, origins: origins}
	p.actions = n.plan(r.rep.set)
	l.agree(r.rep.base, p.actions, waiting)
	warnings := cmdline.Warnings{Report: r.s.Report}
	for _, why := range n.refused {
		warnings.Warn("%s", why)
	}
	if r.yes {
		return p, nil
	}
	rest, refused := guard(p.actions, r.rep.base, l)
	p.waiting += len(p.actions) - len(rest)
	p.actions = rest
	for _, err := range refused {
		p.refused = errors.Join(p.refused, cmdline.Hint(err, "if that is right: lektor-share sync --yes"))
	}
	return p, nil
}

// save removes temporary files of killed runs, and writes set and baseline to the store
// before the lektor-dir is changed.
func (r *run) save(p *plan) error {
	r.sweep()
	return r.commit(p.local)
}

// outcome is the result of applying a plan.
type outcome struct {
	text    string // the actions that were done, for the summary
	waiting int    // marks and actions that cannot be applied yet
	failed  error  // errors of actions, of reading the lektor-dir, and refused actions
}

// apply does the actions of a plan, and saves the baseline. An error of an action is part
// of the outcome. apply itself fails if ctx has ended or the store cannot be written.
func (r *run) apply(ctx context.Context, p *plan) (outcome, error) {
	a := &applier{r: &r.reader, local: p.local, base: r.rep.base, store: r.rep.store}
	var err error
	if len(p.actions) > 0 {
		err = a.apply(ctx, p.actions)
		if !errors.As(err, new(*errStop)) {
			err = errors.Join(err, r.commit(p.local))
		}
	}
	done := outcome{a.summary(), p.waiting + a.waiting, errors.Join(r.result(p), err)}
	switch {
	case ctx.Err() != nil:
		return done, context.Cause(ctx)
	case errors.As(err, new(*errStop)):
		return done, done.failed
	}
	return done, nil
}

func (r *run) summary(text, done string, waiting int) {
	conflicts := 0
	for _, it := range r.rep.set.inConflict() {
		if it.Conflict {
			conflicts++
		}
	}
	if done != "" {
		text += ", " + done
	}
	if waiting > 0 {
		text += fmt.Sprintf(", %s waiting", humanize.Count(waiting, "item"))
	}
	if conflicts > 0 {
		text += fmt.Sprintf(", %s (see: lektor-share conflicts)", humanize.Count(conflicts, "conflict"))
	}
	r.s.Report.Info("%s", text)
}

// ApplyOptions are the options of [Apply].
type ApplyOptions struct {
	Common
	Yes, DryRun bool
}

// Apply applies the set to the lektor-dir and does nothing else. It is for entries that
// were fetched after their marks were read.
func Apply(ctx context.Context, o ApplyOptions, s *cmdline.Streams) error {
	r, l, err := o.openRecordingEdits(ctx, o.Yes, s)
	if err != nil {
		return err
	}
	defer r.end()
	return r.applyNow(ctx, l, o.DryRun)
}

// applyNow plans and applies the set, or prints the plan.
func (r *run) applyNow(ctx context.Context, l *local, dryRun bool) error {
	p, err := r.plan(ctx, l, nil)
	if err != nil {
		return err
	}
	if dryRun {
		r.describePlan(p)
		return r.result(p)
	}
	if err := r.commit(p.local); err != nil {
		return err
	}
	done, _ := r.apply(ctx, p) // done.failed holds the errors
	return done.failed
}
