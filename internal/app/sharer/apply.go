package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// applier does actions one after the other. Each is recorded in the baseline as soon as it
// is done. If it were recorded earlier, an action that a kill prevented would look like an
// edit. If it were recorded at the end, the next run would repeat the actions of a killed
// run over newer edits of the user.
type applier struct {
	*plan
	r     *reader
	base  *baseline
	store *store
}

// apply does the actions, those on feeds first. It continues after an action that fails.
func (a *applier) apply(ctx context.Context) error {
	feeds := slices.IndexFunc(a.actions, func(act action) bool { return act.kind == setFlags })
	if feeds < 0 {
		feeds = len(a.actions)
	}
	bad := a.applyFeeds(ctx, a.actions[:feeds])
	for _, act := range a.actions[feeds:] {
		if errors.As(bad, new(*errStop)) || context.Cause(ctx) != nil {
			break
		}
		bad = errors.Join(bad, a.mark(act))
	}
	return errors.Join(bad, a.store.write(nil), context.Cause(ctx))
}

// mark sets and clears flags of an entry.
func (a *applier) mark(act action) error {
	ref := a.local.entries[act.feed][act.identity]
	to, err := ref.WithFlags(act.set, act.clear)
	if err != nil {
		return err
	}
	// If the user has changed the entry meanwhile, the difference is an edit.
	after := a.base.entries(act.feed)[act.identity].at(to)
	lines := after.appendTo(fmt.Appendf(nil, "of %s\n", act.feed), act.identity)
	err = a.store.do(ref.Path(), lines, func() error {
		_, err := a.r.d.SetFlags(ref, act.set, act.clear)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		a.waiting++ // another program moved the entry; the next sync marks it
		return nil
	}
	if err == nil {
		a.local.entries[act.feed][act.identity] = to
		a.base.setEntry(act.feed, act.identity, after)
		a.done[setFlags]++
	}
	return err
}

// applyFeeds does the actions on subscriptions.
func (a *applier) applyFeeds(ctx context.Context, actions []action) error {
	if len(actions) == 0 {
		return nil
	}
	w, err := feedfiles.NewWriter(a.r.d, commit.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	var bad error
	var added []*subscriptions.Subscription
	for _, act := range actions {
		if context.Cause(ctx) != nil || errors.As(bad, new(*errStop)) {
			return bad
		}
		if act.kind != subscribe {
			bad = errors.Join(bad, a.unlessBusy(a.change(w, act)))
			continue
		}
		a.store.step()
		_, err := subscriptions.Add(w, a.r.d, act.sub, subscriptions.AddOptions{Unsynced: true})
		if err == nil && act.sub.Alias == "" {
			// An alias of an earlier subscription would be an edit of this machine.
			err = atomicfile.Remove(a.r.d.Join("src", feedfiles.AliasPath(act.feed)))
		}
		if bad = errors.Join(bad, a.unlessBusy(err)); err == nil {
			added = append(added, act.sub)
		}
	}
	if len(added) == 0 {
		return bad
	}
	err = subscriptions.FinishEach(w, a.r.d, added, func(sub *subscriptions.Subscription, finish func() error) error {
		return a.changeFile(subscribe, sub.Hash, subscriptions.PendingPath(sub.Hash), sub, finish)
	})
	for _, e := range humanize.Errors(err) {
		bad = errors.Join(bad, a.unlessBusy(e))
	}
	return bad
}

// unlessBusy returns err, or nil if a fetcher has locked the feed: then the next sync finds
// the difference again.
func (a *applier) unlessBusy(err error) error {
	if errors.As(err, new(*commit.BusyError)) {
		a.waiting++
		return nil
	}
	return err
}

// changeFile changes the file rel of a feed in the lektor-dir. after is the subscription after
// the change, nil if there is none. The baseline records after and not the content of the
// file, so that the next run finds a concurrent edit of the user.
func (a *applier) changeFile(kind actionKind, feed, rel string, after *subscriptions.Subscription,
	do func() error) error {
	s := a.base.sub(feed)
	if s.subscribed, s.alias, s.categories = after != nil, "", nil; after != nil {
		s.alias, s.categories = after.Alias, after.Categories
	}
	if err := a.store.do(rel, s.appendTo(nil, feed), do); err != nil {
		return err
	}
	if a.local.subs[feed] = after; after == nil {
		delete(a.local.subs, feed)
	}
	a.base.setSub(feed, s)
	a.done[kind]++
	return nil
}

// change unsubscribes from a feed, or sets its alias or its categories.
func (a *applier) change(w *commit.Writer, act action) error {
	before := a.local.subs[act.feed]
	if act.kind == unsubscribe {
		return a.changeFile(act.kind, act.feed, feedfiles.URLPath(act.feed), nil,
			func() error { return subscriptions.Remove(w, a.r.d, act.feed, nil) })
	}
	after := *before
	path, area, key := feedfiles.CategoriesPath(act.feed), "", "categories"
	value := strings.Join(act.categories, "\n")
	if act.kind == setAlias {
		path, area, key, value = "src/"+feedfiles.AliasPath(act.feed), "view", "alias", act.alias
		after.Alias = act.alias
	} else {
		after.Categories = act.categories
	}
	a.r.subscription(a.local, act.feed)
	read := a.local.subs[act.feed]
	a.local.subs[act.feed] = before
	if read == nil || a.local.unread[act.feed] || read.Alias != before.Alias ||
		!slices.Equal(read.Categories, before.Categories) {
		return &commit.BusyError{Feed: act.feed} // the user has just changed the subscription
	}
	if err := feedfiles.Guard(a.r.d, act.feed, area); err != nil {
		return err
	}
	// An empty file means the same as none. With its stamp, the store sees that the setting was changed,
	// even if it is missing again.
	a.store.step()
	file := a.r.d.Join(path)
	err := atomicfile.InDir(file, func() error {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		_ = f.Close()
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return a.changeFile(act.kind, act.feed, path, &after, func() error {
		if value == "" && act.kind == setAlias {
			return subscriptions.Unset(w, a.r.d, act.feed, key, nil)
		}
		return subscriptions.Set(w, a.r.d, act.feed, key, value, nil)
	})
}

// describePlan prints the actions of a dry run.
func (r *run) describePlan(p *plan) {
	marks := 0
	var lines []string
	change := "would change the alias or the categories of "
	words := [...]string{subscribe: "would subscribe to ", unsubscribe: "would unsubscribe from ", setAlias: change,
		setCategories: change}
	for _, act := range p.actions {
		if act.kind == setFlags {
			marks++
			continue
		}
		sub := cmp.Or(act.sub, p.local.subs[act.feed], &subscriptions.Subscription{URL: act.feed})
		lines = append(lines, words[act.kind]+feedurl.Public(sub.URL))
	}
	if marks > 0 {
		lines = append(lines, fmt.Sprintf("would mark %d entries", marks))
	}
	for _, line := range slices.Compact(lines) {
		r.s.Report.Info("%s", line)
	}
}
