package sharer

import (
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/units"
)

// SyncOptions are those of [Sync].
type SyncOptions struct {
	Common
	Yes    bool // end subscriptions and trash entries, however many
	DryRun bool
	Quiet  bool
}

// Sync notes what was done here, merges what others publish, makes the lektor-dir
// follow, and publishes. A dry run ends when that is planned.
func Sync(ctx context.Context, o SyncOptions, s *command.Streams) error {
	r, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	x, err := r.exchange()
	if err != nil {
		return err
	}
	l, err := x.merge(ctx, o)
	if err != nil {
		return err
	}
	p := r.plan(l, x.changed, x.origins, o.Yes)
	if o.DryRun {
		r.describePlan(p)
		r.summary(len(x.news), "", p.waiting)
		return r.result(p)
	}
	r.sweep()
	done, waiting, bad := r.follow(ctx, p)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.As(bad, new(*errStop)) {
		return bad
	}
	if err := x.share(ctx); err != nil {
		return errors.Join(bad, err)
	}
	if !o.Quiet {
		r.summary(x.whole(), done, waiting)
	}
	if bad == nil && x.failed > 0 {
		return errRemote
	}
	return bad
}

// merge notes in the set what was done here, and merges what others publish.
func (x *exchange) merge(ctx context.Context, o SyncOptions) (*local, error) {
	if x.rep.lost {
		if err := x.recover(ctx, o.DryRun); err != nil {
			return nil, err
		}
	}
	l, err := x.note(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.read(ctx, o.Quiet); err != nil {
		return nil, err
	}
	return l, x.overwritten(ctx)
}

// share remembers what was read of peers, as the set has it now, and publishes. A server
// that may take the documents the next time counts as a peer that could not be read.
func (x *exchange) share(ctx context.Context) error {
	if err := x.remember(); err != nil {
		return err
	}
	err := x.publish(ctx)
	if err == nil || !isURL(x.target) || lasting(err) {
		return err
	}
	x.s.Report.Print(err)
	x.failed++
	return nil
}

// plan is what is to be done here for what is in the set.
type plan struct {
	local   *local
	actions []action
	waiting int   // marks and actions that cannot be applied yet
	refused error // actions that wait for the user
}

// result returns what could not be read here, and what waits for the user.
func (r *run) result(p *plan) error { return errors.Join(r.trouble, p.refused) }

// plan plans what is to be done. changed are the marks that peers have changed, origins
// the documents on servers that feeds come from.
func (r *run) plan(l *local, changed []string, origins map[string]string, yes bool) *plan {
	p := &plan{local: l, waiting: r.meet(r.rep.set, r.rep.base, l, changed)}
	n := &planner{base: r.rep.base, local: l, allow: r.c.Fetch.AllowPrivate, origins: origins}
	p.actions = n.plan(r.rep.set)
	warnings := command.Warnings{Report: r.s.Report}
	for _, why := range n.refused {
		warnings.Warn("%s", why)
	}
	if yes {
		return p
	}
	kept, refused := guard(p.actions, l)
	p.waiting += len(p.actions) - len(kept)
	p.actions = kept
	for _, err := range refused {
		p.refused = errors.Join(p.refused, command.Hint(err, "if that is right: lektor-share sync --yes"))
	}
	return p
}

// follow saves the set, and makes the lektor-dir what it says. It returns what was done in
// words, and how much waits.
func (r *run) follow(ctx context.Context, p *plan) (done string, waiting int, err error) {
	if err := r.commit(p.local.own); err != nil {
		return "", 0, &errStop{err}
	}
	a := &applier{r: &r.reader, local: p.local, base: r.rep.base, store: r.rep.store}
	if len(p.actions) > 0 {
		err = a.apply(ctx, p.actions)
		if !errors.As(err, new(*errStop)) {
			err = errors.Join(err, r.commit(p.local.own))
		}
	}
	return a.summary(), p.waiting + a.waiting, errors.Join(r.result(p), err)
}

func (r *run) summary(peers int, done string, waiting int) {
	conflicts := 0
	for _, it := range r.rep.set.inConflict() {
		if it.Conflict {
			conflicts++
		}
	}
	text := fmt.Sprintf("%s read", units.Count(peers, "peer"))
	if done != "" {
		text += ", " + done
	}
	if waiting > 0 {
		text += fmt.Sprintf(", %s waiting", units.Count(waiting, "item"))
	}
	if conflicts > 0 {
		text += fmt.Sprintf(", %s (see: lektor-share conflicts)", units.Count(conflicts, "conflict"))
	}
	r.s.Report.Info("%s", text)
}

// ApplyOptions are those of [Apply].
type ApplyOptions struct {
	Common
	Yes, DryRun bool
}

// Apply makes the lektor-dir what the set says, and does nothing else: for what was
// fetched since, of which the set knew already.
func Apply(ctx context.Context, o ApplyOptions, s *command.Streams) error {
	r, l, err := o.noted(ctx, s)
	if err != nil {
		return err
	}
	defer r.end()
	return r.applyNow(ctx, l, o.Yes, o.DryRun)
}

// applyNow applies what is in the set.
func (r *run) applyNow(ctx context.Context, l *local, yes, dryRun bool) error {
	p := r.plan(l, nil, nil, yes)
	if dryRun {
		r.describePlan(p)
		return r.result(p)
	}
	_, _, err := r.follow(ctx, p)
	return err
}
