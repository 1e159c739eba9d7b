package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
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
	r, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	r.yes = o.Yes
	x, err := r.exchange()
	if err == nil && r.rep.lost {
		err = x.recover(ctx, o.DryRun)
	}
	if err != nil {
		return err
	}
	l, err := r.note(ctx)
	if err != nil {
		return err
	}
	if err := x.read(ctx, o.Quiet); err != nil {
		return err
	}
	p, err := r.plan(ctx, l, x.origins)
	if err != nil {
		return err
	}
	peers := humanize.Count(x.whole, "peer") + " read"
	if o.DryRun {
		r.describePlan(p)
		r.summary(peers, p)
		return p.failed
	}
	r.sweep()
	if err := r.commit(l); err != nil {
		return err
	}
	if err := r.apply(ctx, p); err != nil {
		return err
	}
	if err := x.publish(ctx); err != nil {
		return errors.Join(p.failed, err)
	}
	if !o.Quiet {
		r.summary(peers, p)
	}
	return cmp.Or(p.failed, x.failed)
}

// plan is the plan of a run for this lektor-dir.
type plan struct {
	local   *local
	actions []action
	waiting int               // marks and actions that cannot be applied yet
	done    [setFlags + 1]int // number of actions that were done
	failed  error             // errors of reading the lektor-dir and of actions, and actions that need --yes
}

// plan makes the plan. origins maps feeds to the place of the peer that they come from.
func (r *run) plan(ctx context.Context, l *local, origins map[string]string) (*plan, error) {
	if err := r.relist(ctx, l); err != nil {
		return nil, err
	}
	p := &plan{local: l}
	waiting := r.matchEntries(r.rep.set, r.rep.base, l)
	for _, n := range waiting {
		p.waiting += n
	}
	n := &planner{me: r.me, base: r.rep.base, local: l, allow: r.c.Fetch.AllowPrivate, origins: origins}
	p.actions = n.plan(r.rep.set)
	l.agree(r.rep.base, p.actions, waiting)
	r.warn(n.refused)
	p.failed = r.trouble
	if r.yes {
		return p, nil
	}
	rest, refused := guard(p.actions, r.rep.base, l)
	p.waiting += len(p.actions) - len(rest)
	p.actions = rest
	for _, err := range refused {
		p.failed = errors.Join(p.failed, cmdline.Hint(err, "if that is right: lektor-share sync --yes"))
	}
	return p, nil
}

// warn prints warnings.
func (r *run) warn(texts []string) {
	warnings := cmdline.Warnings{Report: r.s.Report}
	for _, text := range texts {
		warnings.Warn("%s", text)
	}
}

// apply does the actions of a plan, and saves the baseline. An error of an action is one of the plan.
// apply itself fails if ctx has ended or the store cannot be written.
func (r *run) apply(ctx context.Context, p *plan) error {
	r.trouble = nil // the plan has it
	err := (&applier{plan: p, r: r.reader, base: r.rep.base, store: r.rep.store}).apply(ctx)
	stop := errors.As(err, new(*errStop))
	if len(p.actions) > 0 && !stop {
		err = errors.Join(err, r.commit(p.local))
	}
	p.failed = errors.Join(p.failed, r.trouble, err)
	if stop {
		return cmp.Or(context.Cause(ctx), p.failed)
	}
	return context.Cause(ctx)
}

// summary prints a text, the actions that were done, and the numbers of waiting items and conflicts.
func (r *run) summary(text string, p *plan) {
	add := func(n int, format string) {
		if n > 0 {
			text += ", " + fmt.Sprintf(format, humanize.Group(int64(n)))
		}
	}
	add(p.done[setFlags], "marked %s")
	add(p.done[subscribe], "subscribed to %s")
	add(p.done[unsubscribe], "unsubscribed from %s")
	add(p.done[setAlias]+p.done[setCategories], "changed alias or folder of %s")
	if p.waiting > 0 {
		text += fmt.Sprintf(", %s waiting", humanize.Count(p.waiting, "item"))
	}
	conflicts := slices.DeleteFunc(r.rep.set.inConflict(), func(it *feedsync.Item) bool { return !it.Conflict })
	if len(conflicts) > 0 {
		text += fmt.Sprintf(", %s (see: lektor-share conflicts)", humanize.Count(len(conflicts), "conflict"))
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
		return p.failed
	}
	if err := r.commit(p.local); err != nil {
		return err
	}
	_ = r.apply(ctx, p) // p.failed has the error
	return p.failed
}
