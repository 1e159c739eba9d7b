package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/feeds/feedstate"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
)

// replica is the set and the baseline of a lektor-dir, with their store.
type replica struct {
	set         *set
	base        *baseline
	store       *store
	lost        bool      // the store is missing, but there was one
	lastOwnEdit time.Time // time of the last edit by this endpoint before this run
	before      untils    // dates of the documents before this run
}

// load reads the replica.
func (r *run) load() error {
	p := &replica{set: newSet(r.me, r.now), base: &baseline{feeds: map[string]*baseFeed{}}}
	p.store = &store{path: r.path(storeFile), d: r.d, step: r.c.step,
		boot: cmp.Or(atomicfile.BootID(), "-")}
	r.rep = p
	there, err := p.store.load(p.set, p.base)
	if errors.As(err, new(*damagedError)) {
		return cmdline.Hint(err, "remove it, and the next sync restores it from the other machines")
	}
	if err == nil && !there {
		var published []byte // without this file, nobody can know whether there was a set
		if published, err = atomicfile.Read(r.path(publishedFile), maxDocument); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		put := values.Parse(published, ' ')
		p.lost = slices.ContainsFunc(documents, func(name string) bool { return put.Get(name) != "" })
	}
	if err != nil {
		return err
	}
	p.lastOwnEdit, p.before = p.set.lastOwnEdit, p.set.until
	if there {
		r.readListed()
	}
	return nil
}

// listedHead is the first line of the file of listed feeds: the commit to which the other lines
// belong, and the endpoint. After a backup was restored, two commits may have one number, so the
// line also has the size of the store.
func (r *run) listedHead() string {
	return fmt.Sprintf("%d %d %s\n", r.rep.store.commits, r.rep.store.size, r.me)
}

// readListed reads which feeds agreed with the set after the last commit. If the file is
// missing or of another commit, all feeds are listed.
func (r *run) readListed() {
	r.listed = map[string]string{}
	data, _ := atomicfile.Read(r.path(listedFile), maxDocument)
	lines, ok := strings.CutPrefix(string(data), r.listedHead())
	for line := range strings.Lines(lines) {
		if feed, state, _ := strings.Cut(line, " "); ok {
			r.listed[feed] = strings.TrimSuffix(state, "\n")
		}
	}
}

// writeListed writes the file of [run.readListed].
func (r *run) writeListed(l *local) error {
	text := []byte(r.listedHead())
	for _, feed := range slices.Sorted(maps.Keys(l.unchanged)) {
		text = fmt.Appendf(text, "%s %s\n", feed, l.unchanged[feed])
	}
	if old, err := atomicfile.Read(r.path(listedFile), maxDocument); err == nil && string(old) == string(text) {
		return nil
	}
	r.c.step()
	return atomicfile.WriteUnsynced(r.path(listedFile), text)
}

// listAgain reads the lektor-dir again if marks of feeds have changed that were not listed.
// It adds edits that the user made in between.
func (r *run) listAgain(ctx context.Context, l *local) (*local, error) {
	again := false
	for feed := range r.rep.set.marks.touched {
		again = again || l.unchanged[feed] != ""
		delete(r.listed, feed)
	}
	if !again {
		return l, nil
	}
	r.trouble = nil // it is found again
	return r.note(ctx)
}

// agree adds the listed feeds without actions to the unchanged ones.
func (l *local) agree(actions []action, waiting map[string]int) {
	for _, a := range actions {
		delete(l.stamps, a.feed)
	}
	for id := range l.unknown {
		delete(l.stamps, id.feed)
	}
	for feed, stamp := range l.stamps {
		l.unchanged[feed] = fmt.Sprintf("%s %d", stamp, waiting[feed])
	}
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
		if f := p.base.sub(hash); f.subscribed && !f.unshared && p.set.subs.Item(hash) == nil {
			edits = append(edits, edit{kind: editFeed, feed: hash, sub: sub})
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
		absent, err := r.absent(ctx, w, feed, identities)
		if err != nil {
			return nil, err
		}
		for _, identity := range absent {
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

// commit saves set and baseline. If this machine withholds other feeds than before, all
// documents are dated anew.
func (r *run) commit(l *local) error {
	p, s, st := r.rep, r.rep.set, r.rep.store
	withdrawn := s.withdraw(l.withheld)
	complete := s.date(withdrawn)
	acted := len(p.base.changes) > 0 || st.acted
	if acted {
		if err := r.syncMoves(); err != nil {
			return err
		}
	}
	if len(s.marks.touched) > 0 || s.subsTouched || withdrawn || acted || st.rewrite {
		if err := p.save(complete); err != nil {
			return err
		}
	}
	return r.writeListed(l)
}

// save writes the changes to the store, or the whole store if the changes are large.
func (p *replica) save(complete bool) error {
	s, st := p.set, p.store
	st.commits++
	var lines []byte
	if room := st.room(); !st.rewrite {
		for _, m := range s.marks.sorted(mark.isTouched) {
			if lines = m.append(lines); len(lines) > room {
				break
			}
		}
		if s.subsTouched {
			lines = appendSubs(lines, s)
		}
		if complete {
			lines = appendDate(lines, "complete", s.until.complete)
		}
		lines = append(st.appendMeta(lines, s), p.base.changes...)
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
	st.acted, p.base.changes, p.base.lineFeed, s.subsTouched = false, nil, "", false
	s.marks.saved()
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
		for _, file := range []string{feedstate.URLPath(hash), feedstate.CategoriesPath(hash), "src/" +
			feedstate.AliasPath(hash)} {
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
