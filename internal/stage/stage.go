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

// Txn is a transaction in which documents are staged.
type Txn struct {
	*commit.Txn
	dated  func(path string) (time.Time, error) // see New
	onDisk map[string]entryname.Name            // the feed's entries by unique name; nil until list
	staged stagedKeys
}

// New returns a transaction in which documents are staged. dated reads the date of an entry (see
// [Dates]), given its path relative to the lektor-dir. If the entry is not there, its error is
// fs.ErrNotExist. dated may be nil if all documents have the rule [AnyDate].
func New(t *commit.Txn, dated func(path string) (time.Time, error)) *Txn {
	return &Txn{Txn: t, dated: dated}
}

// Next is [commit.Txn.Next].
func (t *Txn) Next() *Txn { return New(t.Txn.Next(), t.dated) }

// ErrOverlap is the error for a document that can be staged only after the commit of the previous
// ones; see [Document].NoOverlap.
var ErrOverlap = errors.New("an entry of the document may equal one that is staged already")

// stagedKeys holds the identities and keys of the staged entries.
type stagedKeys struct {
	identities map[journal.Digest]bool // with the other identities of each item
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

// Stage stages the entries of a document that are new or have changed. After an error, the transaction
// cannot be committed; close it. The time is linear in the size of the document.
func (t *Txn) Stage(ctx context.Context, doc Document) (Result, error) {
	var res Result
	j, err := t.Journal()
	if err != nil {
		return res, err
	}
	items, known, before := compare(j, doc)
	res.Repeated = len(doc.Items) - len(items)
	if doc.NoOverlap {
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
			if err == nil && len(res.Updated) == updated && it.byImportedLink(known[i]) {
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

// first stages a new entry. If old is not nil, the entry was delivered under another identity, and
// first only records the new one.
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

// again stages an entry that was delivered before, if it has changed, and dates and policy accept the
// change. lineage holds the records of the entry.
func (t *Txn) again(ctx context.Context, it *item, lineage []journal.Record, doc *Document, res *Result) error {
	newest := lineage[len(lineage)-1]
	if newest.Content == it.content {
		res.Unchanged++
		return nil
	}
	if newest.Content == unknown {
		res.Unchanged++
		return t.Alias(it.identity, it.key, it.content, newest) // now the content is known
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

// wanted reports whether dates and policy accept a changed entry, and returns the unique name of the
// version in new/ that it replaces, or "".
func (t *Txn) wanted(it *item, lineage []journal.Record, doc *Document) (replaces string, wanted bool, err error) {
	newest := lineage[len(lineage)-1]
	before := func(r journal.Record) bool { return r.Content == it.content }
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

// late reports whether the rule for dates accepts a change of the newest delivered version.
func (t *Txn) late(it *item, newest journal.Record, rule Dates) (bool, error) {
	if rule == AnyDate {
		return true, nil
	}
	if t.onDisk == nil {
		if err := t.list(); err != nil {
			return false, err
		}
	}
	// A viewer may move the entry in the meantime, so it is looked for up to three times.
	for range 3 {
		name, exists := t.onDisk[newest.Unique]
		if !exists {
			break
		}
		place := "new/"
		if name.Cur {
			place = "cur/"
		}
		oldDate, err := t.dated(place + t.Feed() + "/" + name.Base())
		if err == nil {
			// The files have whole seconds.
			oldDate, newDate := oldDate.Truncate(time.Second), it.updated().Truncate(time.Second)
			return newDate.After(oldDate) || rule == NotOlder && newDate.Equal(oldDate), nil
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

// list sets onDisk.
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

// Versions maps the identity of each entry of a document to its date, or to zero if it has none. The
// identity is a digest of the guid. It is also one of link or text if entries of the document share
// the guid, or have none.
func (doc *Document) Versions() map[string]time.Time {
	items, _ := identify(*doc)
	all := make(map[string]time.Time, len(items))
	for _, it := range items {
		all[it.identity.String()] = it.updated()
	}
	return all
}

// Arrived maps the identities of those entries of a document that were delivered before to the time
// of the first delivery. The identities are those of [Document.Versions].
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

// compare finds the entries of a document that were delivered. known holds, for each item, the last
// record that it matches by its identities, or nil. before also finds entries whose guid has changed.
// Call it once for each item, from the last to the first, because such a record matches only once.
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

// Wanted is an item of a document that is a new entry or a new version.
type Wanted struct {
	Index int // in Document.Items
	New   bool
}

// Wanted returns the items of a document that [Txn.Stage] would stage now. With it, a caller can do
// slow work for these items before [commit.Txn.PutFeed], after which other transactions wait. It
// ignores Document.Keep.
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
		} else if lineage := j.LineageOf(*known[i]); lineage[len(lineage)-1].Content != it.content && lineage[len(lineage)-1].Content != unknown {
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

// version returns the item as a version for [commit.Txn.Add]. replaces is the unique name of the
// older version, which becomes a value of the entry.
func (it *item) version(lineage, replaces string) commit.Version {
	return commit.Version{Files: it.Files(replaces), Identity: it.identity, Key: it.key, Content: it.content, Lineage: lineage}
}

// Revise stages other files for an entry in new/, given by its unique name. The new version replaces
// the old one and has the same digests in the journal, so the feed's entry still counts as unchanged.
// If a viewer takes the old version first, that stays. ok is false if the journal does not have the
// entry.
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

// Find returns the newest version in new/ or cur/ of an entry that was staged with an [Own] GUID.
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

// Outcome returns a result of [Txn.Stage] without the versions that were not delivered because a viewer
// had taken the version that they replace. Call it after a commit without error.
func (t *Txn) Outcome(staged Result) Result {
	staged.Updated = slices.DeleteFunc(slices.Clone(staged.Updated), t.Dropped)
	return staged
}
