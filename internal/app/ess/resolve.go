package ess

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// ResolveOptions are the options of [Resolve].
type ResolveOptions struct {
	Common
	Documents []string // paths and URLs; "-" reads the document from stdin
	// Subscribe subscribes to missing feeds.
	Subscribe bool
	DryRun    bool
	Print     cmdline.PrinterOptions
}

// States of an entry of an NNO:
const (
	stateHeld    = "held"
	stateUpdated = "updated" // the same entry with a new time or title
	stateMissing = "missing"
)

// resolved is an entry of an NNO, with the matching entry of the lektor-dir.
type resolved struct {
	want  ess.FeedEntry
	item  *entrystore.Record // nil when it is missing
	state string
	copy  int // number of the match, from 1, if several match
}

// itemURLFields are the fields that the columns of Resolve need.
const itemURLFields = itemFields | lektordir.FieldLink | lektordir.FieldID

var resolveColumns = []cmdline.Column[resolved]{
	{Name: "path", Verbatim: true, Get: held(func(r resolved) string { return r.item.Path() })},
	{Name: "state", Get: func(r resolved) any { return r.state }},
	{Name: "date", Get: func(r resolved) any { return ess.Time(r.want.Minute) }},
	{Name: "feed", Get: func(r resolved) any {
		if r.item == nil {
			return r.want.Feed
		}
		return r.item.Feed().Title()
	}},
	{Name: "title", Get: held(func(r resolved) string { return r.item.Get(lektordir.FieldTitle).Title })},
	{Name: "url", Get: held(func(r resolved) string {
		url := r.item.URL()
		if r.copy > 1 && url != "" {
			url += fmt.Sprintf("#%d", r.copy)
		}
		return url
	})},
	{Name: "updated", Extra: true, Get: func(r resolved) any { return r.state == stateUpdated }},
	{Name: "feedurl", Extra: true, Get: func(r resolved) any { return r.want.Feed }},
	{Name: "checksum", Extra: true, Get: func(r resolved) any { return int(r.want.Sum) }},
}

// held returns a column that is empty for a missing entry.
func held(get func(resolved) string) func(resolved) any {
	return func(r resolved) any {
		if r.item == nil {
			return ""
		}
		return get(r)
	}
}

// Resolve prints the entries of NNO documents as they are in the lektor-dir (section "NNO
// Specifications"), newest first. It makes no requests. A feed with a missing entry gets a
// due marker.
//
// All entries of the feed with the same minute and checksum match. If there are none, a
// single entry with the same checksum and another time, or with the same time and another
// checksum, counts as updated. Because checksums can be equal by chance, its feed gets a
// due marker, too, unless it was fetched since. If the feed was requested since, a missing
// entry causes no marker: the feed is fetched again on its schedule.
func Resolve(ctx context.Context, o ResolveOptions, s *cmdline.Streams) error {
	missingToo := o.Print.Format != "" && o.Print.Format != "path" && o.Print.Format != "url"
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	printer, err := cmdline.NewPrinter(s.Out, o.Print, resolveColumns)
	if err != nil {
		return err
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	want, origins, err := o.wanted(ctx, s)
	if err != nil {
		return err
	}
	feeds := map[string]*resolver{}
	for _, w := range want {
		if feeds[w.Feed] == nil {
			if feeds[w.Feed], err = st.resolver(ctx, w.Feed); err != nil {
				return err
			}
		}
	}
	// Find exact matches first, so that they do not count as updated entries.
	out := make([][]resolved, len(want))
	for i, w := range want {
		out[i] = feeds[w.Feed].exact(w)
	}
	missing := 0
	printed := map[lektordir.Ref]bool{}
	for i, w := range want {
		if out[i] == nil {
			out[i] = feeds[w.Feed].updated(w)
		}
		for _, r := range out[i] {
			if r.item == nil {
				missing++
				if !missingToo {
					continue
				}
			} else if printed[r.item.Ref] || r.item.Ref.Trashed() {
				continue // a trashed entry is held but not printed
			} else {
				printed[r.item.Ref] = true
			}
			if err := printer.Print(r); err != nil {
				return err
			}
		}
	}
	if err := printer.Flush(); err != nil {
		return err
	}
	return st.fetchMissing(ctx, o, feeds, origins, missing)
}

// wanted returns the entries of the documents, newest first. origins maps the URL of each feed to the
// origin of the first document that names it.
func (o ResolveOptions) wanted(ctx context.Context, s *cmdline.Streams) (want []ess.FeedEntry,
	origins map[string]string, err error) {
	origins = map[string]string{}
	documents := DocumentOptions{Common: o.Common, Documents: o.Documents}
	err = documents.decoded(ctx, s, func(doc *ess.Document, origin string) error {
		want = append(want, doc.Entries...)
		for _, e := range doc.Entries {
			origins[e.Feed] = cmp.Or(origins[e.Feed], origin)
		}
		return nil
	})
	slices.SortStableFunc(want, ess.FeedEntry.Compare)
	return want, origins, err
}

// resolver finds the entries of one feed.
type resolver struct {
	st    *store
	hash  string // "" if there is no such feed
	items []*entrystore.Record
	// newest maps an identity to the version of the entry that viewers show.
	newest map[string]*entrystore.Record
	taken  map[*entrystore.Record]bool
	due    bool // an entry is missing
}

func (st *store) resolver(ctx context.Context, url string) (*resolver, error) {
	r := &resolver{st: st, hash: st.feedAt(url), newest: map[string]*entrystore.Record{},
		taken: map[*entrystore.Record]bool{}}
	if r.hash == "" {
		r.due = true
		return r, nil
	}
	var err error
	if r.items, err = st.list(ctx, lektordir.ListOptions{Feeds: []string{r.hash}, AllVersions: true, Withdrawn: true,
		Strict: true}, itemURLFields); err != nil {
		return nil, err
	}
	for _, it := range r.items {
		if id := it.Ref.Identity(); id != "" {
			r.newest[id] = it // entries are listed in order of delivery
		}
	}
	return r, nil
}

// shown returns the version of an entry that viewers show.
func (r *resolver) shown(it *entrystore.Record) *entrystore.Record {
	if n := r.newest[it.Ref.Identity()]; n != nil {
		return n
	}
	return it
}

// exact returns the entries with the same minute and checksum; nil if there are none.
func (r *resolver) exact(w ess.FeedEntry) []resolved {
	var out []resolved
	for _, it := range r.items {
		if minuteOf(it) != w.Minute || !ess.Matches(it.Get(lektordir.FieldTitle).Title, int(w.Sum)) {
			continue
		}
		now := r.shown(it)
		if slices.ContainsFunc(out, func(o resolved) bool { return o.item == now }) {
			continue
		}
		r.taken[it], r.taken[now] = true, true
		state := stateHeld
		if now != it {
			state = stateUpdated
		}
		out = append(out, resolved{want: w, item: now, state: state, copy: len(out) + 1})
	}
	return out
}

// updated returns the entry with a new time or title, or a missing entry. All exact matches
// must be found before.
func (r *resolver) updated(w ess.FeedEntry) []resolved {
	var sameTitle, sameMinute []*entrystore.Record
	for _, it := range r.items {
		switch {
		case r.taken[it] || r.shown(it) != it:
		case minuteOf(it) == w.Minute:
			sameMinute = append(sameMinute, it)
		case ess.Matches(it.Get(lektordir.FieldTitle).Title, int(w.Sum)):
			sameTitle = append(sameTitle, it)
		}
	}
	asked, fetched := false, false
	if r.hash != "" {
		asked, fetched = r.st.askedSince(r.hash, ess.Time(w.Minute))
	}
	found := sameTitle
	if len(found) == 0 && fetched {
		// The feed was fetched since, so its title must have changed.
		found = sameMinute
	}
	if len(found) != 1 {
		// If the feed was requested since, the entry is gone, or a later scheduled fetch
		// brings it.
		r.due = r.due || !asked
		return []resolved{{want: w, state: stateMissing}}
	}
	if !fetched {
		r.due = true
	}
	r.taken[found[0]] = true
	return []resolved{{want: w, item: found[0], state: stateUpdated, copy: 1}}
}

// fetchMissing leaves due markers for feeds with missing entries. With Subscribe, it subscribes to them first.
func (st *store) fetchMissing(ctx context.Context, o ResolveOptions, feeds map[string]*resolver,
	origins map[string]string, missing int) error {
	var marked []string
	var add []*subscriptions.Subscription
	unsubscribed := 0
	for _, url := range slices.Sorted(maps.Keys(feeds)) {
		switch r := feeds[url]; {
		case !r.due:
		case r.hash != "" && feedfiles.Subscribed(st.Dir, r.hash):
			marked = append(marked, r.hash)
		case !o.Subscribe:
			unsubscribed++
		case !feedurl.IsHTTP(url):
			st.S.Report.Error("%s: cannot subscribe: not an http URL", url)
		default:
			sub := &subscriptions.Subscription{ID: url, Origin: feedfiles.OneField(origins[url])}
			if r.hash != "" {
				f, err := st.Dir.ReadFeed(r.hash)
				if err != nil {
					st.S.Report.Print(err)
					continue
				}
				sub.ID = f.ID
			}
			add = append(add, sub)
		}
	}
	if len(add) > 0 {
		w, err := feedfiles.NewWriter(st.Dir, commit.Options{})
		if err != nil {
			return err
		}
		defer w.Close()
		list, err := subscriptions.AddAll(w, st.Dir, add, subscriptions.AddAllOptions{DryRun: o.DryRun})
		if err != nil {
			st.S.Report.Print(err)
		}
		for _, sub := range append(list.Added, list.Already...) {
			marked = append(marked, sub.Hash)
		}
	}
	for _, hash := range marked {
		if !o.DryRun {
			if err := schedule.AddMarker(st.Dir, hash); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if missing > 0 || len(marked) > 0 {
		st.S.Report.Info("%s missing, %s due", humanize.Count(missing, "entry"), humanize.Count(len(marked), "feed"))
	}
	if unsubscribed > 0 {
		st.S.Report.Warn("not subscribed to %s; --subscribe adds them", humanize.Count(unsubscribed, "feed"))
	}
	return nil
}
