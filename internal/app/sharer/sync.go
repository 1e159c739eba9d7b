package sharer

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// follow, and publishes.
func Sync(ctx context.Context, o SyncOptions, s *command.Streams) error {
	r, rep, err := o.begin(s)
	if err != nil {
		return err
	}
	defer r.end()
	x, err := r.exchange(rep)
	if err != nil {
		return err
	}
	t, err := x.turn(ctx, o)
	if err != nil {
		return err
	}
	if o.DryRun {
		r.summary(rep, len(t.peers), "", t.waiting)
		return t.result(r)
	}
	r.sweep()
	if err := rep.commit(t.local.own); err != nil {
		return err
	}
	// What was read of peers is remembered once the set has it.
	if err := x.remember(t.peers); err != nil {
		return err
	}
	a, bad := r.follow(ctx, rep, t.local, t.actions)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if bad = errors.Join(t.result(r), bad); errors.As(bad, new(*errStop)) {
		return bad
	}
	if err := x.publish(ctx); err != nil {
		if !isURL(r.target) || lasting(err) {
			return errors.Join(bad, err)
		}
		s.Report.Print(err)
		t.failed++
	}
	if !o.Quiet {
		whole := slices.DeleteFunc(t.peers, func(n *news) bool { return n.broken })
		r.summary(rep, len(whole), a.summary(), t.waiting+a.waiting)
	}
	if bad == nil && t.failed > 0 {
		return errRemote
	}
	return bad
}

// turn is what a sync finds out before it changes anything.
type turn struct {
	local   *local
	peers   []*news
	failed  int // peers that could not be read
	actions []action
	refused []error // actions that wait for the user
	waiting int     // marks and actions that could not be applied yet
}

// turn notes what was done here, merges what others publish, and plans what is to be done.
func (x *exchange) turn(ctx context.Context, o SyncOptions) (*turn, error) {
	t := &turn{}
	var err error
	if x.rep.lost {
		if err := x.recover(ctx, o.DryRun); err != nil {
			return t, err
		}
	}
	if t.local, err = x.note(ctx, x.rep); err != nil {
		return t, err
	}
	var changed []string
	if t.peers, changed, t.failed, err = x.read(ctx, o.Quiet); err != nil {
		return t, err
	}
	if err := x.overwritten(ctx); err != nil {
		return t, err
	}
	x.plan(t, changed, x.origins, o.Yes, o.DryRun)
	return t, nil
}

// plan plans what is to be done here for what is in the set.
func (x *exchange) plan(t *turn, changed []string, origins map[string]string, yes, dryRun bool) {
	t.waiting = x.meet(x.rep.set, x.rep.base, t.local, changed)
	p := &planner{base: x.rep.base, local: t.local, allow: x.c.Fetch.AllowPrivate, origins: origins}
	t.actions = p.plan(x.rep.set)
	warnings := command.Warnings{Report: x.s.Report}
	for _, why := range p.refused {
		warnings.Warn("%s", why)
	}
	if !yes {
		all := len(t.actions)
		t.actions, t.refused = guard(t.actions, t.local)
		t.waiting += all - len(t.actions)
	}
	if dryRun {
		for _, line := range describeActions(t.actions, t.local) {
			x.s.Report.Info("%s", line)
		}
	}
}

// result returns what could not be read here, and what waits for the user.
func (t *turn) result(r *run) error {
	bad := r.trouble
	for _, err := range t.refused {
		bad = errors.Join(bad, command.Hint(err, "if that is right: lektor-share sync --yes"))
	}
	return bad
}

func (r *run) summary(p *replica, peers int, done string, waiting int) {
	conflicts := 0
	for _, it := range p.set.inConflict() {
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
	r, rep, l, err := o.noted(ctx, s)
	if err != nil {
		return err
	}
	defer r.end()
	return r.applyNow(ctx, rep, l, o.Yes, o.DryRun)
}

// applyNow saves the set, and applies what is in it.
func (r *run) applyNow(ctx context.Context, rep *replica, l *local, yes, dryRun bool) error {
	x, t := &exchange{run: r, rep: rep}, &turn{local: l}
	x.plan(t, nil, nil, yes, dryRun)
	if dryRun {
		return t.result(r)
	}
	if err := rep.commit(l.own); err != nil {
		return err
	}
	_, bad := r.follow(ctx, rep, l, t.actions)
	return errors.Join(t.result(r), bad)
}
