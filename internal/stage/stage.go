package stage

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/journal"
)

// Txn is a transaction that documents are staged in.
type Txn struct {
	*commit.Txn
	// dated reads the date of an entry on the disk, by its path relative to the lektor-dir.
	dated  func(path string) (time.Time, error)
	onDisk map[string]entryname.Name // by unique name, once it was asked for
	staged stagedKeys
}

// New returns a transaction as one that documents are staged in. dated reads the date of an
// entry, by its path relative to the lektor-dir: the one by which the newer of two versions is
// known. The error is fs.ErrNotExist if the entry is not there. dated may be nil if the dates
// of documents mean nothing ([AnyDate]).
func New(t *commit.Txn, dated func(path string) (time.Time, error)) *Txn {
	return &Txn{Txn: t, dated: dated}
}

// Next is [commit.Txn.Next].
func (t *Txn) Next() *Txn { return New(t.Txn.Next(), t.dated) }

// ErrOverlap is the error for a document that must wait for the commit of those
// staged before, see [Document].Apart.
var ErrOverlap = errors.New("an entry of the document may be one that is staged already")

// stagedKeys holds the identities and keys of the staged entries.
type stagedKeys struct {
	identities map[journal.Digest]bool // every identity that may record one of them
	keys       map[journal.Key]bool
}

// covers reports whether the item may equal a staged entry.
func (s *stagedKeys) covers(it *item) bool {
	for id := range it.identities() {
		if s.identities[id] {
			return true
		}
	}
	return it.Link != "" && s.keys[it.key]
}

func (s *stagedKeys) add(items []*item) {
	if s.identities == nil {
		s.identities, s.keys = map[journal.Digest]bool{}, map[journal.Key]bool{}
	}
	for _, it := range items {
		for id := range it.identities() {
			s.identities[id] = true
		}
		s.keys[it.key] = true
	}
}

// Stage stages what is new or changed in a document. An error leaves the
// transaction to be closed, not committed. The time is linear in the size of the
// document.
func (t *Txn) Stage(ctx context.Context, doc Document) (Result, error) {
	var res Result
	j, err := t.Journal()
	if err != nil {
		return res, err
	}
	items, known, before := compare(j, doc)
	res.Repeated = len(doc.Items) - len(items)
	if doc.Apart {
		if slices.ContainsFunc(items, t.staged.covers) {
			return Result{}, ErrOverlap
		}
		t.staged.add(items)
	}
	res.Ranked = make([]string, len(items))
	for i, it := range slices.Backward(items) {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		if doc.Keep != nil && !doc.Keep(it.identity.String()) {
			continue
		}
		lineage := it.identity.String()
		if known[i] != nil {
			lineage = known[i].Lineage()
			updated := len(res.Updated)
			err = t.again(ctx, it, j.LineageOf(*known[i]), &doc, &res)
			if err == nil && len(res.Updated) == updated && it.byForeignLink(known[i]) {
				err = t.Alias(it.identity, it.key, it.content, *known[i])
			}
		} else {
			old := before(i)
			if old != nil {
				lineage = old.Lineage()
			}
			err = t.first(ctx, it, old, &res)
		}
		if err != nil {
			return res, err
		}
		res.Ranked[i] = lineage
	}
	return res, nil
}

// first stages an entry that was not delivered yet, unless it is an old one under
// another identity.
func (t *Txn) first(ctx context.Context, it *item, old *journal.Record, res *Result) error {
	if old != nil {
		res.Unchanged++
		return t.Alias(it.identity, it.key, it.content, *old)
	}
	unique, err := t.Add(ctx, it.version("", ""))
	if err != nil {
		return err
	}
	res.New = append(res.New, unique)
	return nil
}

// again stages an entry that was delivered before, in the versions of lineage,
// if it changed and dates and policy let it through.
func (t *Txn) again(ctx context.Context, it *item, lineage []journal.Record, doc *Document, res *Result) error {
	newest := lineage[len(lineage)-1]
	if it.is(newest.Content) {
		res.Unchanged++
		if it.earlier == nil {
			return nil
		}
		// From now on it is known by what it is read as now.
		j, err := t.Journal()
		if err == nil && (newest.Content != it.content || len(j.Versions(it.identity)) == 0) {
			err = t.Alias(it.identity, it.key, it.content, newest)
		}
		return err
	}
	replaces, wanted, err := t.wanted(it, lineage, doc)
	if err != nil {
		return err
	}
	if !wanted {
		res.Ignored++
		return nil
	}
	v := it.version(newest.Lineage(), newest.Unique)
	v.Replaces = replaces
	unique, err := t.Add(ctx, v)
	if err != nil {
		return err
	}
	res.Updated = append(res.Updated, unique)
	return nil
}

// wanted reports whether dates and policy let a changed entry through, and returns the version
// that it takes out of new/.
func (t *Txn) wanted(it *item, lineage []journal.Record, doc *Document) (replaces string, wanted bool, err error) {
	newest := lineage[len(lineage)-1]
	before := func(r journal.Record) bool { return it.is(r.Content) }
	late, err := t.late(it, newest, doc.Dates)
	if err != nil {
		return "", false, err
	}
	switch p := doc.Policy; {
	case !late, p == Ignore:
	case p == Deliver:
		wanted = !slices.ContainsFunc(lineage, before)
	default:
		_, err := dirfs.Lstat(t.Dir().Join("new", t.Feed(), newest.Unique))
		replaces, wanted = newest.Unique, err == nil
	}
	return replaces, wanted, nil
}

// late reports whether the dates let a version take the place of the newest that was
// delivered.
func (t *Txn) late(it *item, newest journal.Record, rule Dates) (bool, error) {
	if rule == AnyDate {
		return true, nil
	}
	if t.onDisk == nil {
		if err := t.list(); err != nil {
			return false, err
		}
	}
	// A viewer may be taking it just now.
	for range 3 {
		name, there := t.onDisk[newest.Unique]
		if !there {
			break
		}
		place := "new/"
		if name.Cur {
			place = "cur/"
		}
		was, err := t.dated(place + t.Feed() + "/" + name.Base())
		if err == nil {
			// The disk has whole seconds.
			was, is := was.Truncate(time.Second), it.updated().Truncate(time.Second)
			return is.After(was) || rule == NotOlder && is.Equal(was), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err := t.list(); err != nil {
			return false, err
		}
	}
	return rule == NotOlder, nil
}

// list reads the names of the feed's entries on the disk.
func (t *Txn) list() error {
	l, err := t.Dir().List(context.Background(), t.Feed(), true)
	if err != nil {
		return err
	}
	t.onDisk = make(map[string]entryname.Name, len(l.Names))
	for _, n := range l.Names {
		t.onDisk[n.Unique] = n
	}
	return nil
}

// Versions returns the entries of a document, each by its identity, which is the same
// in all documents of the feed that have it under the same identifiers, and the time
// by which the newest of several versions is known, zero where there is none.
func (doc *Document) Versions() map[string]time.Time {
	items, _ := identify(*doc)
	all := make(map[string]time.Time, len(items))
	for _, it := range items {
		all[it.identity.String()] = it.updated()
	}
	return all
}

// Arrived returns, by identity as in [Document.Versions], when those entries of a document
// came that were delivered before, whatever became of them since.
func (t *Txn) Arrived(doc Document) (map[string]time.Time, error) {
	j, err := t.Journal()
	if err != nil {
		return nil, err
	}
	items, _, before := compare(j, doc)
	arrived := map[string]time.Time{}
	for i, it := range slices.Backward(items) {
		if old := before(i); old != nil {
			first := entryname.Delivered(old.Unique)
			for _, r := range j.LineageOf(*old) {
				if at := entryname.Delivered(r.Unique); at.Before(first) {
					first = at
				}
			}
			arrived[it.identity.String()] = first
		}
	}
	return arrived, nil
}

// compare finds the entries of a document that were delivered. before returns the record of
// the one that an item is, nil for none; it is called once for each item, from the last to
// the first, as each takes the number that an entry may have got instead of its old one.
func compare(j *journal.Journal, doc Document) (items []*item, known []*journal.Record, before func(i int) *journal.Record) {
	items, _ = identify(doc)
	known, split := origins(j, items)
	renumbered := newRenumberings(j, items)
	return items, known, func(i int) *journal.Record {
		if known[i] != nil || doc.GUIDs == Own || split[i] {
			return known[i]
		}
		return renumbered.take(items[i])
	}
}

// Wanted is an item of a document that is new or a new version.
type Wanted struct {
	Index int // in Document.Items
	New   bool
}

// Wanted returns those of the items of a document that [Txn.Stage] would stage now: for
// who has to complete them by what takes long, before others wait for this
// transaction. Dates and Policy count, Keep does not.
func (t *Txn) Wanted(doc Document) ([]Wanted, error) {
	j, err := t.Journal()
	if err != nil {
		return nil, err
	}
	items, known, before := compare(j, doc)
	at := make(map[*Item]int, len(doc.Items))
	for i := range doc.Items {
		at[&doc.Items[i]] = i
	}
	var wanted []Wanted
	for i, it := range slices.Backward(items) {
		var want bool
		if known[i] == nil {
			want = before(i) == nil
		} else if lineage := j.LineageOf(*known[i]); !it.is(lineage[len(lineage)-1].Content) {
			if _, want, err = t.wanted(it, lineage, &doc); err != nil {
				return nil, err
			}
		}
		if want {
			wanted = append(wanted, Wanted{Index: at[it.Item], New: known[i] == nil})
		}
	}
	return wanted, nil
}

// version is the entry, ready for delivery. replaces is the unique name of the older version,
// for the reader of the entry.
func (it *item) version(lineage, replaces string) commit.Version {
	return commit.Version{Files: it.Files(replaces), Identity: it.identity, Key: it.key, Content: it.content, Lineage: lineage}
}

// Revise stages a version of an entry that is in new/, by its unique name, in which only
// that has changed by which entries are not known, and takes the place of it: for the
// journal it is the same, and a viewer that takes the old version meanwhile keeps that.
// ok is false if the entry was not delivered by this fetcher.
func (t *Txn) Revise(ctx context.Context, old string, files iter.Seq2[string, []byte]) (unique string, ok bool, err error) {
	j, err := t.Journal()
	if err != nil {
		return "", false, err
	}
	r, ok := j.Named(old)
	if !ok {
		return "", false, nil
	}
	unique, err = t.Add(ctx, commit.Version{Files: files, Identity: r.Identity, Key: r.Key, Content: r.Content, Lineage: r.Lineage(), Replaces: old})
	return unique, err == nil, err
}

// Find returns the newest version of an entry that was put with an ID, if it is in
// new/ or cur/.
func (t *Txn) Find(ctx context.Context, id string) (found entryname.Name, ok bool) {
	j, err := t.Journal()
	if err != nil {
		return found, false
	}
	known := map[string]bool{}
	for _, r := range j.Versions(journal.DigestOf("guid", id)) {
		known[r.Lineage()] = true
	}
	// Entries that cannot be listed are not found.
	l, _ := t.Dir().List(ctx, t.Feed(), true)
	for _, n := range l.Names {
		if known[entryname.Identity(n.Unique)] {
			found, ok = n, true
		}
	}
	return found, ok
}

// Outcome returns a result of [Txn.Stage] after a commit without error: without the
// versions that were not delivered, because a viewer took the one that they replace.
func (t *Txn) Outcome(staged Result) Result {
	staged.Updated = slices.DeleteFunc(slices.Clone(staged.Updated), t.Dropped)
	return staged
}
