package sharer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/lektordir"
)

// replica is the set and the baseline of a lektor-dir, with their store.
type replica struct {
	set   *set
	base  baseline
	store *store
	lost  bool      // there is no store, and there was one
	made  time.Time // of the last edit of this endpoint before this run
	// untils are those of the documents before this run.
	untils map[string]time.Time
	gone   []string // files of the version before, which the store replaces
}

// load reads the replica.
func (r *run) load() (*replica, error) {
	p := &replica{set: newSet(r.me, r.now)}
	p.store = &store{path: r.path(storeFile), root: r.d.Path(), step: r.c.step, boot: bootID(), sync: func() error { return r.syncMoves(p) }}
	var there bool
	var err error
	p.base, there, err = p.store.load(p.set)
	if damaged := (*damagedError)(nil); errors.As(err, &damaged) {
		return nil, command.Hint(err, "remove it, and the next sync has of it what the other machines have")
	}
	if err != nil {
		return nil, err
	}
	if !there {
		if err := p.migrate(r); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{subsFile, completeFile, partialFile, oldIndexFile, oldLastFile} {
		if atomicfile.Exists(r.path(name)) {
			p.gone = append(p.gone, r.path(name))
		}
	}
	p.made = p.set.made
	u := &p.set.until
	p.untils = map[string]time.Time{subsFile: u.subs, completeFile: u.marks, partialFile: u.marks}
	return p, nil
}

// syncMoves writes to the disk what was moved in the lektor-dir.
func (r *run) syncMoves(p *replica) error {
	var rels []string
	for _, hash := range union(p.base, p.store.saved) {
		rels = append(rels, "new/"+hash, "cur/"+hash)
		for _, file := range []string{feeddir.URLPath(hash), feeddir.CategoriesPath(hash), "src/" + feeddir.AliasPath(hash)} {
			rels = append(rels, filepath.Dir(file))
		}
	}
	return r.d.SyncMoves(append(rels, "new", "cur", "src")...)
}

// note looks at the lektor-dir, and notes in the set what the user did since.
func (r *run) note(ctx context.Context, p *replica) (*local, error) {
	l, err := r.subscriptions()
	if err != nil {
		return nil, err
	}
	if err := r.list(ctx, l, p.base); err != nil {
		return nil, err
	}
	edits := diff(p.base, l)
	for hash, sub := range l.subs {
		// One that the set lost is known to the baseline alone.
		if f := p.base[hash]; f != nil && f.subscribed && !f.kept && p.set.subs.Item(hash) == nil {
			edits = append(edits, edit{kind: editFeed, feed: hash, sub: sub})
		}
	}
	kept, err := r.confirm(ctx, p.base, edits)
	if err != nil {
		return nil, err
	}
	known := func(d edit) bool {
		m := p.set.flagOf(d.feed, d.key, d.flag)
		return d.kind == editFlag && (m != nil && !m.Deleted) == d.set
	}
	edits = slices.DeleteFunc(kept, known)
	needs(markWeight * len(edits))
	if err := r.describe(ctx, l, edits); err != nil {
		return nil, err
	}
	var bad error
	for _, d := range edits {
		if d.err != nil {
			// It is an edit, of which nothing could be told now.
			bad, d.entry.late = d.err, true
		}
	}
	r.fails(bad) // one of many will do
	edits = slices.DeleteFunc(edits, func(d edit) bool { return d.err != nil })
	old := p.base
	p.base = rebase(old, l)
	r.unconfirmed(old, p.base, l, edits)
	warned, err := p.set.note(edits, p.base, r.c.Rand)
	warnings := command.Warnings{Report: r.s.Report}
	for _, w := range warned {
		warnings.Warn("%s", w)
	}
	return l, err
}

// confirm takes out of the edits the entries that are not gone after all.
func (r *run) confirm(ctx context.Context, base baseline, edits []edit) ([]edit, error) {
	gone := map[string][]string{}
	for _, d := range edits {
		if d.kind == editGone {
			gone[d.feed] = append(gone[d.feed], d.identity)
		}
	}
	if len(gone) == 0 {
		return edits, nil
	}
	w, err := r.d.NewWriter(lektordir.WriterOptions{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for feed, identities := range gone {
		if gone[feed], err = r.absent(ctx, w, feed, identities); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(edits, func(d edit) bool {
		return d.kind == editGone && !slices.Contains(gone[d.feed], d.identity)
	}), nil
}

// unconfirmed keeps in the baseline the entries that are missing in one listing and are
// not known to be gone.
func (r *run) unconfirmed(old, now baseline, l *local, edits []edit) {
	gone := map[string]bool{}
	for _, d := range edits {
		if d.kind == editGone {
			gone[d.feed+d.identity] = true
		}
	}
	for feed, f := range old {
		if l.subs[feed] == nil || !f.subscribed {
			continue
		}
		for identity, e := range f.entries {
			if e.unread && l.entries[feed][identity] == nil && !gone[feed+identity] {
				now.feed(feed).entries[identity] = e
			}
		}
	}
}

// commit saves set and baseline. own are the feeds that this machine withholds: if others
// are withdrawn than before, all documents are written anew.
func (p *replica) commit(own map[string]string) error {
	s := p.set
	withdrawn := s.withdraw(own)
	if p.store.subsDiffer(s) || withdrawn && !s.until.subs.IsZero() {
		s.until.subs = s.next(s.until.subs)
	}
	complete := false
	if len(s.touched) > 0 || withdrawn && !s.until.complete.IsZero() {
		v := view{set: s, hide: s.withheld()}
		newer := v.size(true)
		complete = withdrawn || s.until.complete.IsZero() || newer+frameSize > max((v.size(false)-newer)/4, minPartial)
		if s.until.marks = s.next(s.until.marks); complete {
			s.until.complete = s.until.marks
		}
	}
	if err := p.store.commit(s, p.base, complete); err != nil {
		return err
	}
	for _, path := range p.gone {
		p.store.step()
		if err := atomicfile.Remove(path); err != nil {
			return err
		}
	}
	p.gone = nil
	return nil
}

// minPartial is how large the document with the newer marks may be whatever the one with
// all is, in bytes.
const minPartial = 4 << 10

// frameSize is about how long a document without items is, in bytes.
const frameSize = 1 << 10

// follow makes the lektor-dir what the set says.
func (r *run) follow(ctx context.Context, p *replica, l *local, actions []action) (*applier, error) {
	a := &applier{r: &r.reader, local: l, base: p.base, store: p.store, step: r.c.step}
	if len(actions) == 0 {
		return a, nil
	}
	bad := a.apply(ctx, actions)
	if errors.As(bad, new(*errStop)) {
		return a, bad
	}
	return a, errors.Join(bad, p.commit(l.own))
}

// Files of the version before.
const (
	oldIndexFile = "index"
	oldLastFile  = "last"
)

// migrate reads the set and the baseline of the version before, which kept the set as the
// documents and the baseline in a file of its own.
func (p *replica) migrate(r *run) error {
	put := r.record("../" + publishedFile)
	for _, name := range documents {
		p.lost = p.lost || put[name] != "" && !atomicfile.Exists(r.path(name))
	}
	subs, err := r.ownDocument(subsFile, feedsync.OPML)
	if err != nil {
		return err
	}
	p.set.subs.Append(subs.Items()...)
	p.set.subs.Arrange()
	if subs.Sharing != nil {
		p.set.until.subs = subs.Sharing.Until
	}
	for _, name := range []string{completeFile, partialFile} {
		doc, err := r.ownDocument(name, feedsync.RSS)
		if err != nil {
			return err
		}
		u := &p.set.until
		if doc.Sharing != nil {
			if name == partialFile && doc.Sharing.Until.Before(u.marks) {
				continue // the complete one was written after it, and has all of it
			}
			if u.marks = doc.Sharing.Until; name == completeFile {
				u.complete = u.marks
			}
		}
		for _, it := range doc.Items() {
			p.set.put(it)
			p.set.mark(it.ID).newer = name == partialFile
		}
	}
	clear(p.set.touched)
	// What is stored so far is nothing: but these documents are no news.
	p.store.savedSubs = appendSubs(nil, p.set)
	return p.migrateBaseline(r)
}

// ownDocument reads a document of the set; a missing one is empty.
func (r *run) ownDocument(name string, kind feedsync.Kind) (*feedsync.Document, error) {
	data, err := atomicfile.Read(r.path(name), maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return feedsync.New(kind, "", "", ""), nil
	}
	if err != nil {
		return nil, err
	}
	needs(int(parsedWeight * float64(len(data))))
	doc, err := parse(data, kind)
	if err != nil {
		return nil, command.Hint(fmt.Errorf("%s: %w", r.path(name), err), "it was written by hand or damaged; remove it, and the next sync has of it what the other machines have")
	}
	return doc, nil
}

// parse reads a document that is to be of a kind. With the error for one that is broken
// comes what was read of it.
func parse(data []byte, kind feedsync.Kind) (*feedsync.Document, error) {
	doc, err := feedsync.Parse(data)
	if doc != nil && doc.Kind != kind {
		if err == nil {
			err = errors.New("it is a document of another kind")
		}
		return nil, err
	}
	return doc, err
}

// migrateBaseline reads what the lektor-dir had, etc/share/last.
func (p *replica) migrateBaseline(r *run) error {
	path := r.path(oldLastFile)
	data, err := atomicfile.Read(path, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		p.set.made = p.set.lastEdit(r.me)
		return nil
	}
	if err != nil {
		return err
	}
	var f *baseFeed
	for n, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		word, rest, _ := strings.Cut(text, " ")
		switch {
		case n == 0 && text == "lektor-share 1":
		case n > 0 && word == "made":
			p.set.made = parseDate([]byte(rest))
		case n > 0 && (word == "feed" || word == "subscribed"):
			f = p.base.feed(rest)
			f.subscribed = word == "subscribed"
		case n == 0 || f == nil:
			return fmt.Errorf("%s: %q makes no sense; remove the file, and what differs between this machine and the set counts as an edit", path, text)
		case word == "alias":
			f.alias = rest
		case word == "in":
			f.categories = append(f.categories, rest)
		default:
			had, as, _ := strings.Cut(rest, " ")
			e := baseEntry{flags: strings.TrimPrefix(had, "-"), as: as}
			if e.unread = had == "new"; e.unread {
				e.flags = ""
			}
			f.entries[word] = e
		}
	}
	return nil
}

// sweep removes what runs that were killed left of files, which nobody else writes: in a
// directory that is replicated it would be on all machines for ever.
func (r *run) sweep() {
	dirs := []string{r.path()}
	if r.target != "" && !isURL(r.target) {
		dirs = append(dirs, filepath.Join(r.target, r.me))
	}
	for _, dir := range dirs {
		sweepDir(dir, r.c.step)
	}
}
