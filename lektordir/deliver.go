package lektordir

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
)

// Policy is how an entry that changed after it was delivered is handled. An entry has changed if
// its title, its link, the text of its content or the URL of an enclosure differs. The query of an
// enclosure and the scheme of any URL do not count. If only other properties differ, such as the
// author or a date, the new version replaces an old one in new/, and the entry counts as unchanged.
// A date counts only if it moved in at most half of the entries that were in the last call, too.
type Policy string

// The policies. Their values are those of the file src/$feed/etc/fetch/on-update; any other
// value means UpdateNew. Under each of them, an entry that was never delivered is delivered.
const (
	// UpdateNew replaces the old version if it is still in new/. Otherwise it ignores the
	// change.
	UpdateNew Policy = "unread"
	// UpdateAlways delivers the new version beside the old one. A version is delivered only
	// once, so a feed that alternates between two versions does not add entries forever.
	UpdateAlways Policy = "deliver"
	// UpdateNever ignores the change, also of other properties.
	UpdateNever Policy = "ignore"
)

// Result is the result of [Dir.Deliver]. The entries of New and Updated are in new/.
type Result struct {
	New     []Ref // entries that were never delivered before
	Updated []Ref // new versions of entries that were delivered before

	Unchanged int // entries that were delivered before and have not changed
	Ignored   int // entries that have changed, but whose change the policy ignores
	Repeated  int // entries left out because another one of the call is the same entry
}

// Deliver delivers entries to a feed, in the order of the arguments, and returns when they are
// in new/ and durable. Most feed documents have the newest entry first, so reverse their order.
//
// Deliver identifies an entry by its ID. An entry without an ID is identified by its link or,
// if it has none, by its title, text and date. An entry that was delivered before is not
// delivered again, even if it was deleted. If it has changed, the policy decides. Set Entry.ID
// to the guid in the document, byte for byte, or leave it empty if the document has none. If
// the entries come from package feedconv, use its Entry.GUID, not its Entry.ID, which is never
// empty: otherwise lektor-fetch delivers entries without a guid to the same feed again.
//
// If several entries of one call have the same ID, only one is delivered: the one with the
// greatest Updated (or PubDate if that is zero), and among equal ones the last. The others
// count as Repeated.
//
// f.ID identifies the feed and must not be empty. It is used without changes: for a URL, pass
// the result of [NormalizeID]. f.Name must not be empty; f.Hash and f.Alias are ignored. Deliver
// writes the other fields of f to src/$feed, and removes the files of empty fields. To keep
// their values, start from the result of [Dir.ReadFeed].
//
// Entries are delivered unread. To set flags of one, pass its Ref in Result.New to
// [Dir.SetFlags].
//
// A call waits for the disk several times, even for one entry, and holds all of its entries in
// memory. So pass all entries of a document in one call, but split a very long list. If Deliver
// fails before it commits, it delivers none of the entries. If it fails while it commits, it may
// have delivered some; the next [Dir.Recover] delivers the others that are in the journal.
//
// If Deliver is interrupted at any point, by SIGKILL, a full disk or a power cut, call
// [Dir.Recover] and then Deliver with the same entries. Every entry then exists exactly once and
// whole; those that the interrupted call delivered count as Unchanged, and those that a viewer
// deleted stay deleted. This holds on file systems with atomic and ordered renames, such as ext4,
// xfs, btrfs and zfs.
//
// If another fetcher holds the lock of the feed, Deliver waits for up to ten seconds. Then it
// returns an error for which errors.Is(err, os.ErrDeadlineExceeded) is true.
func (d *Dir) Deliver(ctx context.Context, f *Feed, p Policy, entries ...Entry) (Result, error) {
	switch {
	case f == nil:
		return Result{}, errors.New("the feed is nil")
	case f.ID == "":
		return Result{}, fmt.Errorf("feed %q has no id", f.Name)
	}
	w, err := commit.NewWriter(d.fs, commit.Options{})
	if err != nil {
		return Result{}, err
	}
	defer w.Close()
	hash := FeedHash(f.ID)
	t, err := w.BeginWait(ctx, hash)
	if err != nil {
		return Result{}, err
	}
	defer t.Close()
	if err := t.PutFeed(f.Files()); err != nil {
		return Result{}, err
	}
	// stage.Document has the newest entry first.
	doc := stage.Document{Items: make([]stage.Item, len(entries)), Policy: string(p), GUIDs: stage.Own}
	for i := range entries {
		doc.Items[len(entries)-1-i] = item(entries[i])
	}
	txn := stage.New(t, nil)
	staged, err := txn.Stage(ctx, doc)
	if err != nil {
		return Result{}, err
	}
	done := make(chan error, 1)
	t.Commit(func(err error) { done <- err })
	w.Flush()
	if err := <-done; err != nil {
		return Result{}, err
	}
	staged = txn.Outcome(staged)
	return Result{
		New: delivered(hash, staged.New), Updated: delivered(hash, staged.Updated),
		Unchanged: staged.Unchanged, Ignored: staged.Ignored, Repeated: staged.Repeated,
	}, nil
}

// delivered returns the Refs of entries in new/.
func delivered(feed string, uniques []string) []Ref {
	var refs []Ref
	for _, unique := range uniques {
		refs = append(refs, Ref{Feed: feed, Unique: unique})
	}
	return refs
}

// item returns an entry in the form of package stage.
func item(e Entry) stage.Item {
	var enclosures []string
	for _, enc := range e.Enclosures {
		enclosures = append(enclosures, enc.URL)
	}
	return stage.Item{
		GUID: e.ID, Title: e.Title, Link: e.Link, PubDate: e.PubDate, PubDateRaw: e.PubDateRaw, Updated: e.Updated,
		Text: stage.PlainText(string(e.Content), e.Type), Enclosures: enclosures,
		Status: e.Elements.Live().Get("status"),
		Files: func(replaces string) iter.Seq2[string, []byte] {
			e.ID = stage.ID(e.ID, "", e.Link, e.Title, e.PubDate, e.PubDateRaw, e.Content)
			e.Replaces = replaces
			return e.Files()
		},
	}
}

// Recover finishes the deliveries and removals that were interrupted and left files in tmp/. It
// moves entries that are in a journal to new/, and finishes replacements and removals. It
// deletes other entries that lektor wrote on this machine at once, and those of other programs
// or machines 36 hours after their last change. A fetcher calls Recover when it starts.
//
// Recover skips feeds that another fetcher has locked, without an error. If some feeds fail, it
// recovers the others and returns the joined errors.
func (d *Dir) Recover(ctx context.Context) error {
	w, err := commit.NewWriter(d.fs, commit.Options{})
	if err != nil {
		return err
	}
	return errors.Join(w.Recover(ctx), w.Close())
}
