package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/feedstate"
)

// replica is the set and the baseline of a lektor-dir, with their store.
type replica struct {
	set    *set
	base   *baseline
	store  *store
	lost   bool      // the store is missing, but there was one
	made   time.Time // time of the last edit by this endpoint before this run
	before untils    // dates of the documents before this run
	gone   []string  // files of the previous version, which the store replaces
}

// load reads the replica.
func (r *run) load() error {
	p := &replica{set: newSet(r.me, r.now), base: &baseline{feeds: map[string]*baseFeed{}}}
	p.store = &store{path: r.path(storeFile), root: r.d.Path(), step: r.c.step, boot: cmp.Or(atomicfile.BootID(), "-")}
	r.rep = p
	there, err := p.store.load(p.set, p.base)
	if errors.As(err, new(*damagedError)) {
		return cmdline.Hint(err, "remove it, and the next sync restores it from the other machines")
	}
	if err == nil && !there {
		err = p.migrate(r)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{subsFile, completeFile, partialFile, oldIndexFile, oldLastFile} {
		if atomicfile.Exists(r.path(name)) {
			p.gone = append(p.gone, r.path(name))
		}
	}
	p.made, p.before = p.set.made, p.set.until
	return nil
}

// note reads the lektor-dir, and adds the edits of the user to the set.
func (r *run) note(ctx context.Context) (*local, error) {
	p := r.rep
	l, err := r.local(ctx)
	if err != nil {
		return nil, err
	}
	edits := diff(p.base, l)
	for hash, sub := range l.subs {
		// A subscription that the set has lost is only in the baseline.
		if f := p.base.sub(hash); f.subscribed && !f.kept && p.set.subs.Item(hash) == nil {
			edits = append(edits, edit{kind: editFeed, feed: hash, sub: sub})
		}
	}
	if edits, err = r.confirm(ctx, l, edits); err != nil {
		return nil, err
	}
	edits = slices.DeleteFunc(edits, func(d edit) bool {
		m := p.set.flagOf(d.feed, d.key, d.flag)
		return d.kind == editFlag && (m != nil && !m.Deleted) == d.set
	})
	if edits, err = r.describe(ctx, l, edits); err != nil {
		return nil, err
	}
	p.base.follow(l)
	warned, err := p.set.note(edits, p.base, r.c.Rand)
	warnings := cmdline.Warnings{Report: r.s.Report}
	for _, w := range warned {
		warnings.Warn("%s", w)
	}
	return l, err
}

// confirm removes the edits for entries that are not gone, and marks these as uncertain.
func (r *run) confirm(ctx context.Context, l *local, edits []edit) ([]edit, error) {
	missing := map[string][]string{}
	for _, d := range edits {
		if d.kind == editGone {
			missing[d.feed] = append(missing[d.feed], d.identity)
		}
	}
	if len(missing) == 0 {
		return edits, nil
	}
	w, err := feedstate.NewWriter(r.d, commit.Options{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	gone := map[entryID]bool{}
	for feed, identities := range missing {
		sure, err := r.absent(ctx, w, feed, identities)
		if err != nil {
			return nil, err
		}
		for _, identity := range sure {
			gone[entryID{feed, identity}] = true
		}
	}
	return slices.DeleteFunc(edits, func(d edit) bool {
		id := entryID{d.feed, d.identity}
		if d.kind != editGone || gone[id] {
			return false
		}
		l.unknown[id] = true
		return true
	}), nil
}

// commit saves set and baseline. own are the feeds that this machine withholds: if other
// feeds are withheld than before, all documents are dated anew.
func (r *run) commit(own map[string]string) error {
	p, s, st := r.rep, r.rep.set, r.rep.store
	withdrawn := s.withdraw(own)
	complete := s.date(withdrawn)
	acted := len(p.base.lines) > 0 || st.acted
	if acted {
		if err := r.syncMoves(); err != nil {
			return err
		}
	}
	if len(s.touched) > 0 || s.subsTouched || withdrawn || acted || st.rewrite {
		if err := p.save(complete); err != nil {
			return err
		}
	}
	for _, path := range p.gone {
		st.step()
		if err := atomicfile.Remove(path); err != nil {
			return err
		}
	}
	p.gone = nil
	return nil
}

// save writes the changes to the store, or the whole store if the changes are large.
func (p *replica) save(complete bool) error {
	s, st := p.set, p.store
	st.commits++
	var lines []byte
	if room := st.room(); !st.rewrite {
		for _, id := range slices.Sorted(maps.Keys(s.touched)) {
			if lines = appendMark(lines, s.mark(id)); len(lines) > room {
				break
			}
		}
		if s.subsTouched {
			lines = appendSubs(lines, s)
		}
		if complete {
			lines = appendDate(lines, "complete", s.until.complete)
		}
		lines = append(st.appendMeta(lines, s), p.base.lines...)
		st.rewrite = len(lines) > room
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
	st.acted, p.base.lines, p.base.of, s.subsTouched = false, nil, "", false
	clear(s.touched)
	st.step()
	return atomicfile.WriteUnsynced(st.path+commitsSuffix, fmt.Appendf(nil, "%d\n", st.commits))
}

// syncMoves syncs the directories in which files of the lektor-dir were renamed.
func (r *run) syncMoves() error {
	hashes, err := r.d.FeedHashes()
	if err != nil {
		return err
	}
	rels := []string{"new", "cur", "src"}
	for _, hash := range hashes {
		rels = append(rels, "new/"+hash, "cur/"+hash)
		for _, file := range []string{feedstate.URLPath(hash), feedstate.CategoriesPath(hash), "src/" + feedstate.AliasPath(hash)} {
			rels = append(rels, filepath.Dir(file))
		}
	}
	return dirfs.SyncMoves(r.d.Path(), rels...)
}

// sweep removes temporary files of killed runs. In a replicated directory, no other program
// would remove them on any machine.
func (r *run) sweep() {
	dirs := []string{r.path()}
	if r.target != "" && !isURL(r.target) {
		dirs = append(dirs, filepath.Join(r.target, r.me))
	}
	for _, dir := range dirs {
		sweepDir(dir, r.c.step)
	}
}
