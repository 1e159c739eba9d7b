package sharer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// applier makes the lektor-dir follow, an action after the other. The baseline gets each
// when it is done: to say so before would make an edit of what a kill has left undone, and
// to say so at the end would apply again what the user took back after a kill.
type applier struct {
	r       *reader
	local   *local
	base    baseline
	store   *store
	step    func() // called before each change of a file
	waiting int    // actions that could not be done yet
	done    [setFlags + 1]int
}

// errStop reports that nothing more can be applied, as the store cannot be written.
type errStop struct{ error }

func (e *errStop) Unwrap() error { return e.error }

// apply does the actions. What fails does not keep the others.
func (a *applier) apply(ctx context.Context, actions []action) error {
	var feeds, marks []action
	for _, act := range actions {
		if act.kind == setFlags {
			marks = append(marks, act)
		} else {
			feeds = append(feeds, act)
		}
	}
	bad := a.applyFeeds(ctx, feeds)
	for _, act := range marks {
		if errors.As(bad, new(*errStop)) || context.Cause(ctx) != nil {
			break
		}
		bad = errors.Join(bad, a.mark(act))
	}
	return errors.Join(bad, a.store.flush(), context.Cause(ctx))
}

// acting does something to what is at a path of the lektor-dir, between the lines of the
// store that say so; after is what the baseline has of it then.
func (a *applier) acting(rel string, after []byte, do func() error) error {
	if err := a.store.begin(rel, after); err != nil {
		return &errStop{err}
	}
	a.step()
	err := do()
	a.store.finish(err == nil)
	return err
}

// mark marks an entry.
func (a *applier) mark(act action) error {
	e := act.entry
	to, err := e.ref.WithFlags(act.set, act.clear)
	if err != nil {
		return err
	}
	// Not what it is now, if the user was quicker: that is an edit.
	after := entry{ref: to, as: e.as, kept: e.kept}
	lines := fmt.Appendf(nil, "of %s\n", act.feed)
	err = a.acting(e.ref.Path(), after.base(act.identity).appendTo(lines, act.identity), func() error {
		return a.setFlags(e.ref, act)
	})
	switch {
	case err == nil:
		e.ref = to
		a.base.feed(act.feed).entries[act.identity] = after.base(act.identity)
		a.done[setFlags]++
	case errors.Is(err, fs.ErrNotExist):
		a.waiting++ // somebody moved it; the next sync looks again
		return nil
	}
	return err
}

// setFlags marks an entry that a viewer may move in the same moment: then it is looked
// for once, and what the viewer did to other flags stays.
func (a *applier) setFlags(ref lektordir.Ref, act action) error {
	_, err := a.r.d.SetFlags(ref, act.set, act.clear)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now, rerr := a.r.d.Resolve(ref.Path())
	if rerr != nil {
		return err
	}
	_, err = a.r.d.SetFlags(now, act.set, act.clear)
	return err
}

// applyFeeds does what is to be done to subscriptions.
func (a *applier) applyFeeds(ctx context.Context, actions []action) error {
	if len(actions) == 0 {
		return nil
	}
	w, err := a.r.d.NewWriter(lektordir.WriterOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	var bad error
	var added []*feeddir.Subscription
	for _, act := range actions {
		if context.Cause(ctx) != nil || errors.As(bad, new(*errStop)) {
			return bad
		}
		if act.kind == subscribe {
			a.step()
			_, err = feeddir.Add(w, a.r.d, act.sub, feeddir.Options{Unsynced: true})
			if err == nil {
				added = append(added, act.sub)
			}
		} else {
			err = a.change(w, act)
		}
		bad = errors.Join(bad, a.unlessBusy(err))
	}
	if len(added) == 0 {
		return bad
	}
	err = feeddir.FinishEach(w, a.r.d, added, func(sub *feeddir.Subscription, finish func() error) error {
		f := &baseFeed{subscribed: true, alias: sub.Alias, categories: sub.Categories}
		err := a.acting(feeddir.PendingPath(sub.Hash), f.appendFeed(nil, sub.Hash), finish)
		if err == nil {
			a.local.subs[sub.Hash] = sub
			a.changed(sub.Hash)
			a.done[subscribe]++
		}
		return err
	})
	for _, e := range joined.Errors(err) {
		bad = errors.Join(bad, a.unlessBusy(e))
	}
	return bad
}

// unlessBusy returns an error, but for a feed that a fetcher has: the next sync finds the
// difference again.
func (a *applier) unlessBusy(err error) error {
	if errors.As(err, new(*lektordir.BusyError)) {
		a.waiting++
		return nil
	}
	return err
}

// changed brings the baseline of a feed to what the lektor-dir was made.
func (a *applier) changed(hash string) {
	f := a.base.feed(hash)
	sub := a.local.subs[hash]
	if f.subscribed = sub != nil; sub == nil {
		f.alias, f.categories = "", nil
		return
	}
	f.alias, f.categories = sub.Alias, sub.Categories
}

// change unsubscribes from a feed, or sets its alias or its categories.
func (a *applier) change(w *lektordir.Writer, act action) error {
	before := a.local.subs[act.feed]
	path, key, value := feeddir.URLPath(act.feed), "", ""
	after := *a.base.feed(act.feed)
	now := *before
	switch act.kind {
	case unsubscribe:
		after.subscribed, after.alias, after.categories = false, "", nil
	case setAlias:
		path, key, value = "src/"+feeddir.AliasPath(act.feed), "alias", act.alias
		after.alias, now.Alias = act.alias, act.alias
	default:
		path, key, value = feeddir.CategoriesPath(act.feed), "categories", strings.Join(act.categories, "\n")
		after.categories, now.Categories = act.categories, act.categories
	}
	if key != "" {
		a.r.subscription(a.local, act.feed)
		read := a.local.subs[act.feed]
		a.local.subs[act.feed] = before
		if read == nil || a.local.unread[act.feed] || read.Alias != before.Alias || !slices.Equal(read.Categories, before.Categories) {
			return &lektordir.BusyError{Feed: act.feed} // by the user, who has changed it just now
		}
	}
	if key != "" {
		if err := a.standIn(act.feed, path); err != nil {
			return err
		}
	}
	err := a.acting(path, after.appendFeed(nil, act.feed), func() error {
		switch {
		case act.kind == unsubscribe:
			return feeddir.Remove(w, a.r.d, act.feed)
		case value == "" && key == "alias":
			return feeddir.Unset(w, a.r.d, act.feed, key)
		}
		return feeddir.Set(w, a.r.d, act.feed, key, value)
	})
	if err != nil {
		return err
	}
	// What was set, not what is read now: an edit of the user's that came meanwhile is
	// one for the next run.
	a.local.subs[act.feed] = &now
	if act.kind == unsubscribe {
		delete(a.local.subs, act.feed)
	}
	a.changed(act.feed)
	a.done[act.kind]++
	return nil
}

// standIn makes an empty file, which means what none means, for a setting that is not there:
// so that the store can tell that it was replaced, even if it is gone again.
func (a *applier) standIn(feed, rel string) error {
	area, _, nested := strings.Cut(strings.TrimPrefix(rel, "src/"+feed+"/etc/"), "/")
	if !nested {
		area = ""
	}
	if err := a.r.d.InsideSrc(feed, area); err != nil {
		return err
	}
	path := a.r.d.Join(rel)
	a.step()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// summary says what was done, "" for nothing.
func (a *applier) summary() string {
	var said []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{a.done[setFlags], "marked " + units.Group(int64(a.done[setFlags]))},
		{a.done[subscribe], fmt.Sprintf("subscribed to %d", a.done[subscribe])},
		{a.done[unsubscribe], fmt.Sprintf("unsubscribed from %d", a.done[unsubscribe])},
		{a.done[setAlias] + a.done[setCategories], fmt.Sprintf("changed alias or folder of %d", a.done[setAlias]+a.done[setCategories])},
	} {
		if part.n > 0 {
			said = append(said, part.text)
		}
	}
	return strings.Join(said, ", ")
}

// describeActions says what a dry run would do.
func describeActions(actions []action, l *local) (lines []string) {
	marks := 0
	for _, act := range actions {
		name := act.feed
		if s := l.subs[act.feed]; s != nil {
			name = fetch.Public(s.URL)
		}
		switch act.kind {
		case subscribe:
			lines = append(lines, "would subscribe to "+fetch.Public(act.sub.URL))
		case unsubscribe:
			lines = append(lines, "would unsubscribe from "+name)
		case setFlags:
			marks++
		default:
			lines = append(lines, "would change the alias or the categories of "+name)
		}
	}
	if marks > 0 {
		lines = append(lines, fmt.Sprintf("would mark %d entries", marks))
	}
	return slices.Compact(lines)
}
