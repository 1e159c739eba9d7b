package lektordir

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/dirfs"
)

// Policy says what becomes of an entry that changed after it was delivered. It
// has changed when its title, its link or the text of its content differs.
type Policy string

// The policies, as src/$feed/etc/fetch/on-update has them. Any other is taken for
// Unread.
const (
	// Unread replaces a version that is still in new/, and ignores the change
	// otherwise.
	Unread Policy = "unread"
	// Deliver delivers the new version beside the old one. A version that was
	// delivered before is not delivered again, so that a feed which wavers
	// between two does not go on for ever.
	Deliver Policy = "deliver"
	// Ignore ignores the change.
	Ignore Policy = "ignore"
)

// Document is what a feed says at one time.
type Document struct {
	Items  []Item // the newest first, as feeds have them; the last is delivered first
	Policy Policy
	// OneID tells that entries with one GUID are versions of one entry, as in Atom
	// (RFC 4287, section 4.1.1). RSS does not say so of guids.
	OneID bool
	// Own tells that the GUIDs are the caller's own: entries are known by them
	// alone, and none is taken for one whose GUID was changed.
	Own bool
	// Dates says what the dates of a changed entry have to do with it.
	Dates Dates
	// Keep, if not nil, tells by its identity whether an entry is delivered; others
	// are passed over, and stand in no count. See [Document.Versions].
	Keep func(identity string) bool
	// Rank asks for [Result].Ranked.
	Rank bool
	// Apart is for several documents in one transaction: an entry of this one may be
	// none that another staged, as it would not be known. [Txn.Stage] stages nothing
	// and returns [ErrOverlap] otherwise.
	Apart bool
}

// ErrOverlap is the error for a document that must wait for the commit of those
// staged before, see [Document].Apart.
var ErrOverlap = errors.New("an entry of the document may be one that is staged already")

// shadow is what tells the entries that were staged apart from others.
type shadow struct {
	identities map[digest]bool // those under which one may be recorded
	keys       map[key]bool
}

// covers tells whether an entry may be one of them.
func (s *shadow) covers(it *item) bool {
	for id := range it.identities() {
		if s.identities[id] {
			return true
		}
	}
	return it.Entry.Link != "" && s.keys[it.key]
}

func (s *shadow) add(items []*item) {
	if s.identities == nil {
		s.identities, s.keys = map[digest]bool{}, map[key]bool{}
	}
	for _, it := range items {
		for id := range it.identities() {
			s.identities[id] = true
		}
		s.keys[it.key] = true
	}
}

// Dates says what the date of a version (Updated, or where there is none PubDate)
// has to do with whether it may take the place of another one.
type Dates int

// The rules for dates. A version without one is older than any with one. The policy
// decides what a rule lets through.
const (
	// AnyDate is for documents that are newer than what was delivered before,
	// whatever they say.
	AnyDate Dates = iota
	// NotOlder passes over a version that is older than the one on the disk.
	NotOlder
	// OnlyNewer passes over a version that is not newer than the one on the disk,
	// and one of an entry of which nothing is on the disk: it is for old documents
	// of a feed, which change nothing that is known.
	OnlyNewer
)

// Result says what became of a document's entries. New and Updated will be in
// new/ once the transaction is committed.
type Result struct {
	New, Updated []Ref
	// Unchanged counts entries delivered before as they are now, Ignored those
	// whose change the policy passes over, and Repeated those that stand in
	// the document more than once.
	Unchanged, Ignored, Repeated int
	// Ranked are, where Document.Rank asks for them, the entries of the document in
	// its order, whether they are delivered or not: of each the 16 digits that all
	// versions of it have in their unique names, see [Ref.Identity].
	Ranked []string
}

// Put delivers entries of a feed, in this order, and returns when they are in
// new/ and on the disk. An entry is known by its ID: what was put before is not
// delivered again, whatever became of it, and a changed one as the policy says.
// After an error, or when the program is killed, call it again with the same
// entries. It waits some seconds for another fetcher that has the feed, and
// returns a [*BusyError] then.
//
// It waits for the disk several times; many feeds are delivered faster by
// transactions of [Writer.Begin], committed at the same time.
func (w *Writer) Put(ctx context.Context, f *Feed, p Policy, entries ...Entry) (Result, error) {
	t, err := w.BeginWait(ctx, FeedHash(f.ID))
	if err != nil {
		return Result{}, err
	}
	defer t.Close()
	if err := t.PutFeed(f); err != nil {
		return Result{}, err
	}
	res, err := t.Put(ctx, p, entries...)
	if err != nil {
		return Result{}, err
	}
	done := make(chan error, 1)
	t.Commit(func(err error) { done <- err })
	w.Flush()
	if err := <-done; err != nil {
		return Result{}, err
	}
	return t.Outcome(res), nil
}

// Put stages those of the entries that are new or changed, in this order. Each is
// known by its ID alone. An error leaves the transaction to be closed, not
// committed.
func (t *Txn) Put(ctx context.Context, p Policy, entries ...Entry) (Result, error) {
	items := make([]Item, len(entries))
	for i, e := range entries {
		items[len(items)-1-i] = Item{Entry: e, GUID: e.ID}
	}
	return t.Stage(ctx, Document{Items: items, Policy: p, OneID: true, Own: true})
}

// Stage stages what is new or changed in a document. An error leaves the
// transaction to be closed, not committed. The time is linear in the size of the
// document.
func (t *Txn) Stage(ctx context.Context, doc Document) (Result, error) {
	var res Result
	j, err := t.readJournal()
	if err != nil {
		return res, err
	}
	items, known, before := compare(j, doc)
	res.Repeated = len(doc.Items) - len(items)
	if doc.Apart {
		if slices.ContainsFunc(items, t.shadow.covers) {
			return Result{}, ErrOverlap
		}
		t.shadow.add(items)
	}
	if doc.Rank {
		res.Ranked = make([]string, len(items))
	}
	for i, it := range slices.Backward(items) {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		if doc.Keep != nil && !doc.Keep(it.identity.String()) {
			continue
		}
		lineage := it.identity.String()
		if known[i] != nil {
			lineage = known[i].lineage()
			updated := len(res.Updated)
			err = t.again(ctx, it, j.lineageOf(*known[i]), &doc, &res)
			if err == nil && len(res.Updated) == updated && it.byForeignLink(known[i]) {
				err = t.alias(it.identity, it.key, it.content, *known[i])
			}
		} else {
			old := before(i)
			if old != nil {
				lineage = old.lineage()
			}
			err = t.first(ctx, it, old, &res)
		}
		if err != nil {
			return res, err
		}
		if doc.Rank {
			res.Ranked[i] = lineage
		}
	}
	return res, nil
}

// first stages an entry that was not delivered yet, unless it is an old one under
// another identity.
func (t *Txn) first(ctx context.Context, it *item, old *record, res *Result) error {
	if old != nil {
		res.Unchanged++
		return t.alias(it.identity, it.key, it.content, *old)
	}
	ref, err := t.add(ctx, it.version(""))
	if err != nil {
		return err
	}
	res.New = append(res.New, ref)
	return nil
}

// again stages an entry that was delivered before, in the versions of lineage,
// if it changed and dates and policy let it through.
func (t *Txn) again(ctx context.Context, it *item, lineage []record, doc *Document, res *Result) error {
	newest := lineage[len(lineage)-1]
	if it.is(newest.Content) {
		res.Unchanged++
		if it.earlier == nil {
			return nil
		}
		// From now on it is known by what it is read as now.
		j, err := t.readJournal()
		if err == nil && (newest.Content != it.content || len(j.versions(it.identity)) == 0) {
			err = t.alias(it.identity, it.key, it.content, newest)
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
	v := it.version(newest.lineage())
	v.Replaces, v.Entry.Replaces = replaces, newest.Unique
	ref, err := t.add(ctx, v)
	if err != nil {
		return err
	}
	res.Updated = append(res.Updated, ref)
	return nil
}

// wanted tells whether dates and policy let a changed entry through, and which version
// it takes out of new/.
func (t *Txn) wanted(it *item, lineage []record, doc *Document) (replaces string, wanted bool, err error) {
	newest := lineage[len(lineage)-1]
	before := func(r record) bool { return it.is(r.Content) }
	dated, err := t.dated(it, newest, doc.Dates)
	if err != nil {
		return "", false, err
	}
	switch p := doc.Policy; {
	case !dated, p == Ignore:
	case p == Deliver:
		wanted = !slices.ContainsFunc(lineage, before)
	default:
		_, err := dirfs.Lstat(t.d.Join("new", t.feed, newest.Unique))
		replaces, wanted = newest.Unique, err == nil
	}
	return replaces, wanted, nil
}

// dated tells whether the dates let a version take the place of the newest that was
// delivered.
func (t *Txn) dated(it *item, newest record, rule Dates) (bool, error) {
	if rule == AnyDate {
		return true, nil
	}
	if t.onDisk == nil {
		refs, err := t.d.listFeed(context.Background(), t.feed, true)
		if err := unlessNames(err); err != nil {
			return false, err
		}
		t.onDisk = make(map[string]Ref, len(refs))
		for _, r := range refs {
			t.onDisk[r.Unique] = r
		}
	}
	ref, there := t.onDisk[newest.Unique]
	if !there {
		return rule == NotOlder, nil
	}
	// A viewer may be taking it just now.
	for range 3 {
		old, err := t.d.ReadEntry(ref, FieldUpdated|FieldPubDate)
		if err == nil {
			// The disk has whole seconds.
			was, is := updated(old).Truncate(time.Second), it.updated().Truncate(time.Second)
			return is.After(was) || rule == NotOlder && is.Equal(was), nil
		}
		if isNotExist(err) {
			ref, err = t.d.Resolve(ref.Path())
		}
		if none := (*NoEntryError)(nil); errors.As(err, &none) {
			break
		}
		if err != nil {
			return false, err
		}
	}
	return rule == NotOlder, nil
}

// Versions gives the entries of a document, each by its identity, which is the same
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
	j, err := t.readJournal()
	if err != nil {
		return nil, err
	}
	items, _, before := compare(j, doc)
	arrived := map[string]time.Time{}
	for i, it := range slices.Backward(items) {
		if old := before(i); old != nil {
			first := Ref{Unique: old.Unique}.Delivered()
			for _, r := range j.lineageOf(*old) {
				if at := (Ref{Unique: r.Unique}).Delivered(); at.Before(first) {
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
func compare(j *journal, doc Document) (items []*item, known []*record, before func(i int) *record) {
	items, _ = identify(doc)
	known, split := origins(j, items)
	renumbered := newRenumberings(j, items)
	return items, known, func(i int) *record {
		if known[i] != nil || doc.Own || split[i] {
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

// Wanted gives those of the items of a document that [Txn.Stage] would stage now: for
// who has to complete them by what takes long, before others wait for this
// transaction. Dates and Policy count, Keep does not.
func (t *Txn) Wanted(doc Document) ([]Wanted, error) {
	j, err := t.readJournal()
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
		} else if lineage := j.lineageOf(*known[i]); !it.is(lineage[len(lineage)-1].Content) {
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

// Revise stages a version of an entry that is in new/, by its unique name, in which
// change has altered what entries are not known by, and takes the place of it: for the
// journal it is the same, and a viewer that takes the old version meanwhile keeps that.
// Extras that we do not know are lost. ok is false where the entry is not in new/ any
// more, or was not delivered by this fetcher.
func (t *Txn) Revise(ctx context.Context, unique string, change func(*Entry)) (ref Ref, ok bool, err error) {
	j, err := t.readJournal()
	if err != nil {
		return Ref{}, false, err
	}
	old, ok := j.named(unique)
	if !ok {
		return Ref{}, false, nil
	}
	e, err := t.d.ReadEntry(Ref{Feed: t.feed, Unique: unique, Place: New}, AllFields)
	switch {
	case isNotExist(err), errors.As(err, new(*MalformedError)), errors.As(err, new(*OptionalError)):
		return Ref{}, false, nil
	case err != nil:
		return Ref{}, false, err
	}
	change(e)
	e.Replaces = unique
	ref, err = t.add(ctx, version{Entry: *e, Identity: old.Identity, Key: old.Key, Content: old.Content, Lineage: old.lineage(), Replaces: unique})
	return ref, err == nil, err
}

// version is the entry, ready for delivery.
func (it *item) version(lineage string) version {
	v := version{Entry: it.Entry, Identity: it.identity, Key: it.key, Content: it.content, Lineage: lineage}
	e := &v.Entry
	e.Replaces = ""
	if it.Fill != nil {
		it.Fill(e)
	}
	if e.ID = cmp.Or(e.ID, it.GUID, e.Link); e.ID == "" {
		date := e.PubDateRaw
		if !e.PubDate.IsZero() {
			date = e.PubDate.UTC().Format(time.RFC3339Nano)
		}
		sum := hashOf(e.Title, date, string(e.Content))
		e.ID = "urn:sha256:" + hex.EncodeToString(sum[:])
	}
	return v
}

// Find gives the newest version of an entry that was put with an ID, if it is in
// new/ or cur/.
func (t *Txn) Find(ctx context.Context, id string) (Ref, bool) {
	var found Ref
	j, err := t.readJournal()
	if err != nil {
		return found, false
	}
	known := map[string]bool{}
	for _, r := range j.versions(digestOf("guid", id)) {
		known[r.lineage()] = true
	}
	// What cannot be listed is not found.
	refs, _ := t.d.List(ctx, ListOptions{Feeds: []string{t.feed}, Withdrawn: true, Strict: true})
	for _, r := range refs {
		if known[r.Identity()] {
			found = r
		}
	}
	return found, found.Unique != ""
}

// A busy feed is waited for as long as this, in all.
const (
	busyPause = 100 * time.Millisecond
	busyTries = 100
)

// BeginWait is [Writer.Begin] for what cannot be done later: it waits up to ten
// seconds for another fetcher that has the feed.
func (w *Writer) BeginWait(ctx context.Context, feed string) (*Txn, error) {
	for try := 0; ; try++ {
		t, err := w.Begin(feed)
		if busy := (*BusyError)(nil); !errors.As(err, &busy) || try == busyTries {
			return t, err
		}
		if err := w.d.fs.Sleep(ctx, busyPause); err != nil {
			return nil, err
		}
	}
}
