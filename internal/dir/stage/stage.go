package stage

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// Stager is a transaction in which documents are staged.
type Stager struct {
	*commit.Txn
	dated  func(path string) (time.Time, error) // see New
	home   func() string                        // the host of the feed's id, "" if it has none
	onDisk map[string]entryname.Name            // the feed's entries by unique name; nil until datesAllow
	staged stagedKeys

	last, next map[string]properties // see follow; nil until then
	amended    map[string]bool       // unique names of versions with other properties alone
}

// New returns a transaction in which documents are staged. dated reads the date of an entry (see
// [Dates]), given its path relative to the lektor-dir. If the entry is not there, its error is
// fs.ErrNotExist. dated may be nil if all documents have the rule [AnyDate].
func New(t *commit.Txn, dated func(path string) (time.Time, error)) *Stager {
	home := sync.OnceValue(func() string {
		id, _ := dirfs.ReadFile(t.Dir().Join("src", t.Feed(), "id")) // without it, no entry has moved
		return hostOf(textfile.Line(id))
	})
	return &Stager{Txn: t, dated: dated, home: home, amended: map[string]bool{}}
}

// Next is [commit.Txn.Next].
func (t *Stager) Next() *Stager { return New(t.Txn.Next(), t.dated) }

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
	is := func(x *item) bool {
		return slices.ContainsFunc(x.identities(), func(id journal.Digest) bool { return s.identities[id] })
	}
	return is(it) || slices.ContainsFunc(it.inOtherScheme(), is) ||
		it.distinct() && slices.ContainsFunc(it.keys(), func(k journal.Key) bool { return s.keys[k] })
}

func (s *stagedKeys) add(items []*item) {
	if s.identities == nil {
		s.identities, s.keys = map[journal.Digest]bool{}, map[journal.Key]bool{}
	}
	for _, it := range items {
		for _, id := range it.identities() {
			s.identities[id] = true
		}
		s.keys[it.key] = true
	}
}

// Stage stages the entries of a document that are new or have changed. After an error, the transaction
// cannot be committed; close it. The time is linear in the size of the document.
func (t *Stager) Stage(ctx context.Context, doc Document) (Result, error) {
	var res Result
	j, err := t.Journal()
	if err != nil {
		return res, err
	}
	items, known, old := t.compare(j, doc)
	res.Repeated = len(doc.Items) - len(items)
	if doc.NoOverlap {
		if slices.ContainsFunc(items, t.staged.covers) {
			return Result{}, ErrOverlap
		}
		t.staged.add(items)
	}
	if doc.Dates != OnlyNewer {
		t.follow(items, known)
	}
	res.Ranked = make([]string, len(items))
	for i, it := range slices.Backward(items) {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		if doc.Keep != nil && !doc.Keep(it.identity.String()) {
			continue
		}
		record := cmp.Or(known[i], old[i])
		switch {
		case known[i] != nil:
			err = t.again(ctx, it, j.LineageOf(*record), &doc, &res)
		case record != nil:
			res.Unchanged++
			err = t.Alias(it.identity, it.key, it.content, *record)
		default:
			var unique string
			unique, err = t.Add(ctx, it.version("", ""))
			res.New = append(res.New, unique)
		}
		if err != nil {
			return res, err
		}
		res.Ranked[i] = it.lineage(record)
	}
	return res, nil
}

// lineage returns the 16 digits of the item, whose record is r; nil for a new entry.
func (it *item) lineage(r *journal.Record) string {
	if r == nil {
		return it.identity.String()
	}
	return r.Lineage()
}

// again stages an entry that was delivered before, if it has changed, and dates and policy accept the
// change. Otherwise it records the name by which the entry was recognised, if that is new. lineage
// holds the records of the entry.
func (t *Stager) again(ctx context.Context, it *item, lineage []journal.Record, doc *Document, res *Result) error {
	newest := lineage[len(lineage)-1]
	var replaces string
	var staged bool
	var err error
	unchanged := it.is(newest.Content)
	if unchanged {
		res.Unchanged++
		staged, err = t.amend(ctx, it, newest, doc)
	} else if replaces, staged, err = t.wanted(it, lineage, doc); err == nil && !staged {
		res.Ignored++
	}
	switch {
	case err != nil:
		return err
	case !staged && (it.renamed || it.moved || newest.Content == unknown):
		return t.Alias(it.identity, it.key, it.content, newest)
	case !staged || unchanged:
		return nil
	}
	v := it.version(newest.Lineage(), newest.Unique)
	v.Replaces = replaces
	unique, err := t.Add(ctx, v)
	if err != nil {
		return err
	}
	res.Updated = append(res.Updated, unique)
	if t.next != nil {
		t.next[newest.Lineage()] = it.now // this version has all changes
	}
	return nil
}

// wanted reports whether dates and policy accept a changed entry, and returns the unique name of the
// version in new/ that it replaces, or "".
func (t *Stager) wanted(it *item, lineage []journal.Record, doc *Document) (replaces string, wanted bool, err error) {
	newest := lineage[len(lineage)-1]
	before := func(r journal.Record) bool { return r.Content != unknown && it.is(r.Content) }
	late, err := t.datesAllow(it, newest, doc.Dates)
	if err != nil {
		return "", false, err
	}
	if !late || doc.Policy == Ignore {
		return "", false, nil
	}
	if doc.Policy != Deliver {
		if _, err := dirfs.Lstat(t.Dir().Join("new", t.Feed(), newest.Unique)); err == nil {
			return newest.Unique, true, nil
		}
	}
	// The status of a broadcast is news for a reader of the announcement, too.
	if doc.Policy == Deliver || it.entry.Status != "" {
		wanted = !it.moved && !slices.ContainsFunc(lineage, before)
	}
	return replaces, wanted, nil
}

// datesAllow reports whether the rule for dates accepts a change of the newest delivered version.
func (t *Stager) datesAllow(it *item, newest journal.Record, rule Dates) (bool, error) {
	if rule == AnyDate {
		return true, nil
	}
	// A viewer may move the entry in the meantime, so it is looked for up to three times.
	for range 3 {
		if t.onDisk == nil {
			l, err := t.Dir().List(context.Background(), t.Feed(), true)
			if err != nil {
				return false, err
			}
			t.onDisk = l.ByUnique()
		}
		name, exists := t.onDisk[newest.Unique]
		if !exists {
			break
		}
		oldDate, err := t.dated(name.Path(t.Feed()))
		if err == nil {
			// The files have whole seconds.
			oldDate, newDate := oldDate.Truncate(time.Second), it.entry.updated().Truncate(time.Second)
			return newDate.After(oldDate) || rule == NotOlder && newDate.Equal(oldDate), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		t.onDisk = nil
	}
	return rule == NotOlder, nil
}

// Versions maps the identity of each entry of a document to its date, or to zero if it has none. The
// identity is a digest of the guid. It is also one of link or text if entries of the document share
// the guid, or have none.
func (doc Document) Versions() map[string]time.Time {
	items, _ := identify(doc)
	all := make(map[string]time.Time, len(items))
	for _, it := range items {
		all[it.identity.String()] = it.entry.updated()
	}
	return all
}

// Arrived maps the identities of those entries of a document that were delivered before to the time
// of the first delivery. The identities are those of [Document.Versions].
func (t *Stager) Arrived(doc Document) (map[string]time.Time, error) {
	j, err := t.Journal()
	if err != nil {
		return nil, err
	}
	items, known, renamed := t.compare(j, doc)
	arrived := map[string]time.Time{}
	for i, it := range items {
		if old := cmp.Or(known[i], renamed[i]); old != nil {
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
// record that it matches by its identities, or nil. old holds records of other entries whose guid
// has changed, see renumbered.
func (t *Stager) compare(j *journal.Journal, doc Document) (items []*item, known, old []*journal.Record) {
	items, _ = identify(doc)
	known, split := origins(j, items, doc.GUIDs, t.home)
	if doc.GUIDs == Own {
		return items, known, make([]*journal.Record, len(items))
	}
	markMoved(items, known)
	return items, known, renumbered(j, items, known, split)
}

// Wanted is an item of a document that is a new entry or a new version.
type Wanted struct {
	Index int // in Document.Items
	New   bool
}

// Wanted returns the items of a document that [Stager.Stage] would stage now. With it, a caller can do
// slow work for these items before [commit.Txn.PutFeed], after which other transactions wait. It
// ignores Document.Keep.
func (t *Stager) Wanted(doc Document) ([]Wanted, error) {
	j, err := t.Journal()
	if err != nil {
		return nil, err
	}
	items, known, old := t.compare(j, doc)
	at := make(map[*Item]int, len(doc.Items))
	for i := range doc.Items {
		at[&doc.Items[i]] = i
	}
	var wanted []Wanted
	for i, it := range slices.Backward(items) {
		var want bool
		if known[i] == nil {
			want = old[i] == nil
		} else if lineage := j.LineageOf(*known[i]); !it.is(lineage[len(lineage)-1].Content) {
			if _, want, err = t.wanted(it, lineage, &doc); err != nil {
				return nil, err
			}
		}
		if want {
			wanted = append(wanted, Wanted{Index: at[it.entry], New: known[i] == nil})
		}
	}
	return wanted, nil
}

// version returns the item as a version for [commit.Txn.Add]. replaces is the unique name of the
// older version, which becomes a value of the entry.
func (it *item) version(lineage, replaces string) commit.Version {
	return commit.Version{Files: it.entry.Files(replaces), Identity: it.identity, Key: it.key, Content: it.content,
		Lineage: lineage}
}

// Revise stages other files for an entry in new/, given by its unique name. The new version replaces
// the old one and has the same digests in the journal, so the feed's entry still counts as unchanged.
// If a viewer takes the old version first, that stays. ok is false if the journal does not have the
// entry.
func (t *Stager) Revise(ctx context.Context, old string, files iter.Seq2[string, []byte]) (unique string, ok bool,
	err error) {
	j, err := t.Journal()
	if err != nil {
		return "", false, err
	}
	r, ok := j.Named(old)
	if !ok {
		return "", false, nil
	}
	unique, err = t.Add(ctx, commit.Version{Files: files, Identity: r.Identity, Key: r.Key, Content: r.Content,
		Lineage: r.Lineage(), Replaces: old})
	return unique, err == nil, err
}

// Find returns the path of the newest version in new/ or cur/ of an entry that was staged with an [Own] GUID, or "".
func (t *Stager) Find(ctx context.Context, id string) (path string) {
	j, err := t.Journal()
	if err != nil {
		return ""
	}
	known := map[string]bool{}
	for _, r := range j.Versions(journal.DigestOf("guid", id)) {
		known[r.Lineage()] = true
	}
	// Entries that cannot be listed are not found.
	l, _ := t.Dir().List(ctx, t.Feed(), true)
	for _, n := range l.Names {
		if known[entryname.Identity(n.Unique)] {
			path = n.Path(t.Feed())
		}
	}
	return path
}

// Outcome returns a result of [Stager.Stage] without the versions that were not delivered because a viewer
// had taken the version that they replace. Call it after a commit without error. It records the
// properties of the entries that were staged.
func (t *Stager) Outcome(staged Result) Result {
	t.saveProperties()
	staged.Updated = slices.DeleteFunc(slices.Clone(staged.Updated), t.Dropped)
	return staged
}

// Delivered is [commit.Txn.Delivered] without versions that have other properties alone.
func (t *Stager) Delivered() []string {
	return slices.DeleteFunc(t.Txn.Delivered(), func(unique string) bool { return t.amended[unique] })
}
