package sharer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// replica is the set and the baseline of a lektor-dir, with their store.
type replica struct {
	set         *itemSet
	base        *baseline
	store       *store
	lost        bool          // the store is missing, but there was one
	lastOwnEdit time.Time     // time of the last edit by this endpoint before this run
	before      documentDates // dates of the documents before this run
}

// load reads the replica.
func (r *run) load() error {
	p := &replica{set: newSet(r.me, r.now), base: &baseline{feeds: map[string]*baseFeed{}}}
	p.store = &store{path: r.path(storeFile), d: r.d, step: r.step,
		boot: cmp.Or(atomicfile.BootID(), "-")}
	r.rep = p
	there, err := p.store.load(p.set, p.base)
	if err == nil && !there {
		var published []byte // without this file, nobody can know whether there was a set
		published, err = atomicfile.Optional(atomicfile.Read(r.path(publishedFile), maxDocument))
		put := values.Parse(published, ' ')
		p.lost = slices.ContainsFunc(documents, func(name string) bool { return put.Get(name) != "" })
	}
	if err != nil {
		return err
	}
	p.lastOwnEdit, p.before = p.set.lastOwnEdit, p.set.dates
	return nil
}

// relist lists the feeds that were not listed, but whose marks have changed. An entry that was
// changed here since the last run is left out, since its edit is not in the set yet.
func (r *run) relist(ctx context.Context, l *local) error {
	for feed := range r.rep.set.marks.touched {
		if l.unchanged[feed] == "" {
			continue
		}
		delete(l.unchanged, feed)
		if err := r.listFeed(ctx, l, feed); err != nil {
			return err
		}
		entries := r.rep.base.entries(feed)
		maps.DeleteFunc(l.entries[feed], func(identity string, ref lektordir.Ref) bool {
			e, ok := entries[identity]
			if ok && e.at(ref) == e {
				return false
			}
			delete(l.stamps, feed)
			return true
		})
	}
	return nil
}

// agree records the listed feeds without actions as unchanged.
func (l *local) agree(base *baseline, actions []action, waiting map[string]int) {
	for _, a := range actions {
		delete(l.stamps, a.feed)
	}
	for id := range l.unknown {
		delete(l.stamps, id.feed)
	}
	for feed, stamp := range l.stamps {
		l.unchanged[feed] = fmt.Sprintf("%s %d", stamp, waiting[feed])
	}
	for _, feed := range slices.Sorted(maps.Keys(base.feeds)) {
		base.setListed(feed, l.unchanged[feed])
	}
}

// note reads the lektor-dir, and adds the edits of the user to the set.
func (r *run) note(ctx context.Context) (*local, error) {
	p := r.rep
	l, err := r.local(ctx, p.base)
	if err != nil {
		return nil, err
	}
	edits := diff(p.base, l)
	for hash, sub := range l.subs {
		// A subscription that the set has lost is only in the baseline.
		if f := p.base.sub(hash); f.subscribed && !f.unshared && p.set.subs.Item(hash) == nil {
			edits = append(edits, edit{kind: editFeed, feed: hash, sub: &subEdit{now: sub}})
		}
	}
	if edits, err = r.confirm(ctx, l, edits); err != nil {
		return nil, err
	}
	edits = slices.DeleteFunc(edits, func(d edit) bool {
		return d.kind == editFlag && p.set.marks.isSet(d.feed, d.key, d.flag) == d.set
	})
	if err := guardEdits(edits, p.base, l, r.deletes()); err != nil && !r.yes {
		return nil, err
	}
	if edits, err = r.describe(ctx, l, edits); err != nil {
		return nil, err
	}
	p.base.follow(l)
	warned, err := p.set.note(edits, p.base, r.c.Rand)
	r.warn(warned)
	return l, err
}

// confirm removes the edits for entries that are not gone, and marks these as uncertain. It lists their
// feeds again, each under its lock.
func (r *reader) confirm(ctx context.Context, l *local, edits []edit) ([]edit, error) {
	if !slices.ContainsFunc(edits, func(d edit) bool { return d.kind == editGone }) {
		return edits, nil
	}
	w, err := feedfiles.NewWriter(r.d, commit.Options{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	feeds := map[string]map[string]bool{}
	for _, d := range edits {
		if d.kind != editGone {
			continue
		}
		if _, listed := feeds[d.feed]; !listed {
			if feeds[d.feed], err = r.identities(ctx, w, d.feed); err != nil {
				return nil, err
			}
		}
		if here := feeds[d.feed]; here == nil || here[d.identity] {
			l.unknown[entryID{d.feed, d.identity}] = true
		}
	}
	return slices.DeleteFunc(edits, func(d edit) bool {
		return d.kind == editGone && l.unknown[entryID{d.feed, d.identity}]
	}), nil
}

// commit saves set and baseline. If this machine withholds other feeds than before, all
// documents are dated anew.
func (r *run) commit(l *local) error {
	p, s, st := r.rep, r.rep.set, r.rep.store
	withdrawn := s.withdraw(l.withheld)
	complete := s.date(withdrawn)
	if p.base.moved || st.acted {
		if err := st.syncMoves(); err != nil {
			return err
		}
	}
	if len(s.marks.touched) == 0 && !s.subsTouched && !withdrawn && !p.base.moved && !st.acted && !st.rewrite {
		return nil // feeds that need no more listing are recorded with the next change
	}
	return p.save(complete)
}

// save writes the changes to the store, or the whole store if the changes are large.
func (p *replica) save(complete bool) error {
	s, st := p.set, p.store
	st.commits++
	lines := s.marks.changes
	if !st.rewrite {
		if s.subsTouched {
			lines = appendSubs(lines, s)
		}
		if complete {
			lines = appendDate(lines, "complete", s.dates.complete)
		}
		lines = append(st.appendMeta(lines, s), p.base.changes...)
		st.rewrite = len(lines) > min(int(st.whole+max(st.whole/4, minRoom)-st.size), maxTorn/8)
	}
	var err error
	if st.rewrite {
		err = st.writeAll(s, p.base)
	} else if err = st.write(lines); err == nil {
		err = st.log.Sync()
	}
	if err != nil {
		return err
	}
	p.base.saved()
	st.acted, s.subsTouched = false, false
	s.marks.saved()
	st.step()
	return atomicfile.WriteUnsynced(st.path+commitsSuffix, fmt.Appendf(nil, "%d\n", st.commits))
}
