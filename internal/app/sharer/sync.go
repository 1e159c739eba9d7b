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
	if r.rep.lost {
		if err := x.recover(ctx, o.DryRun); err != nil {
			return err
		}
	}
	l, err := r.note(ctx)
	if err != nil {
		return err
	}
	if err := x.read(ctx, o.Quiet); err != nil {
		return err
	}
	if err := x.overwritten(ctx); err != nil {
		return err
	}
	p := r.plan(l, x.changed, x.origins, o.Yes)
	if o.DryRun {
		r.describePlan(p)
		r.summary(len(x.news), "", p.waiting)
		return p.err
	}
	r.sweep()
	done, waiting, bad := r.follow(ctx, p)
	if errors.As(bad, new(*errStop)) || ctx.Err() != nil {
		return bad
	}
	// What was read of peers is remembered once the set has it.
	if err := x.remember(); err != nil {
		return errors.Join(bad, err)
	}
	if err := x.publish(ctx); err != nil {
		if !isURL(r.target) || lasting(err) {
			return errors.Join(bad, err)
		}
		s.Report.Print(err)
		x.failed++
	}
	if !o.Quiet {
		r.summary(x.whole(), done, waiting)
	}
	if bad == nil && x.failed > 0 {
		return errRemote
	}
	return bad
}

// plan is what is to be done here for what is in the set.
type plan struct {
	local   *local
	actions []action
	waiting int   // marks and actions that cannot be applied yet
	err     error // what could not be read here, and what waits for the user
}

// plan plans what is to be done. changed are the marks that peers have changed, origins
// the documents on servers that told of feeds.
func (r *run) plan(l *local, changed []string, origins map[string]string, yes bool) *plan {
	p := &plan{local: l, waiting: r.meet(r.rep.set, r.rep.base, l, changed)}
	n := &planner{base: r.rep.base, local: l, allow: r.c.Fetch.AllowPrivate, origins: origins}
	p.actions = n.plan(r.rep.set)
	warnings := command.Warnings{Report: r.s.Report}
	for _, why := range n.refused {
		warnings.Warn("%s", why)
	}
	p.err = r.trouble
	if yes {
		return p
	}
	kept, refused := guard(p.actions, l)
	p.waiting += len(p.actions) - len(kept)
	p.actions = kept
	for _, err := range refused {
		p.err = errors.Join(p.err, command.Hint(err, "if that is right: lektor-share sync --yes"))
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
	return a.summary(), p.waiting + a.waiting, errors.Join(p.err, err)
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
		return p.err
	}
	_, _, err := r.follow(ctx, p)
	return err
}
