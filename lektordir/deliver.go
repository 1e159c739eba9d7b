package lektordir

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/stage"
)

// Policy is how an entry that changed after it was delivered is handled. An entry
// has changed if its title, its link or the text of its content differs.
type Policy string

// The policies. Their values are those of the file src/$feed/etc/fetch/on-update; any other
// value means UpdateNew. They decide about versions alone: a new entry is delivered under each.
const (
	// UpdateNew replaces a version that is still in new/, and ignores the change
	// otherwise.
	UpdateNew Policy = "unread"
	// UpdateAlways delivers the new version beside the old one. A version that was
	// delivered before is not delivered again, so that a feed that alternates
	// between two versions adds no more entries.
	UpdateAlways Policy = "deliver"
	// UpdateNever ignores the change.
	UpdateNever Policy = "ignore"
)

// Result is the result of [Dir.Deliver] for its entries. New and Updated are in new/ now.
type Result struct {
	New     []Ref // entries that were never delivered before
	Updated []Ref // versions of entries that were delivered before, and have changed

	Unchanged int // entries delivered before that have not changed
	Ignored   int // entries that have changed, and whose change the policy ignores
	Repeated  int // entries that come again later in the same call
}

// Deliver delivers entries of a feed, in this order, and returns when they are in
// new/ and on the disk. Feed documents have the newest entry first, so reverse them.
//
// An entry is known by its ID, or without one by its link or its text: if it was delivered
// before, it is not delivered again, even if it was deleted, and if it has changed, the policy
// decides. Set Entry.ID to the document's own guid, byte for byte, and leave it empty if the
// document has none. (From package feedconv take Entry.GUID, not Entry.ID, which is never empty:
// otherwise lektor-fetch delivers entries without a guid to the same feed a second time.) If two
// entries of one call have the same ID, the later one is delivered and the earlier one counts as
// Repeated.
//
// The feed is known by f.ID, which must not be empty. It is used as it is: pass what
// [NormalizeID] returns for a URL. Deliver writes the other fields of f to src/$feed, and
// removes the files of those that are empty: to keep them, begin with what [Dir.ReadFeed]
// returns. f.Name must not be empty; f.Hash and f.Alias are ignored.
//
// An entry is delivered unread. To deliver one with flags, call [Dir.SetFlags] with its Ref in
// Result.New afterwards.
//
// Each call waits for the disk several times even for one entry, so pass all entries of a
// document at once, and very many in chunks, as memory holds all those of a call. If Deliver
// fails before it commits, none of the entries is delivered. If it fails while it commits, any of
// them may be; the next [Dir.Recover] delivers those that are recorded.
//
// Deliver keeps this promise: SIGKILL at any instruction, a full disk or a power cut at any
// moment; then call [Dir.Recover] and Deliver again, with the same entries, and every entry is
// there exactly once and whole. Entries that the killed run delivered count as Unchanged then. An
// entry that a viewer deleted stays deleted. The promise holds on file systems where renames are
// atomic and ordered, as on ext4, xfs, btrfs and zfs.
//
// If another fetcher has the feed, Deliver waits for ten seconds; then the error is, to
// [errors.Is], [os.ErrDeadlineExceeded].
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
	// A document has the newest first.
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

func delivered(feed string, uniques []string) []Ref {
	var refs []Ref
	for _, unique := range uniques {
		refs = append(refs, Ref{Feed: feed, Unique: unique})
	}
	return refs
}

// item is an entry on its way into a lektor-dir.
func item(e Entry) stage.Item {
	return stage.Item{
		GUID: e.ID, Title: e.Title, Link: e.Link, PubDate: e.PubDate, PubDateRaw: e.PubDateRaw, Updated: e.Updated,
		Text: stage.PlainText(e.Content, e.Type), Type: e.Type,
		Files: func(replaces string) iter.Seq2[string, []byte] {
			e.ID = stage.ID(e.ID, "", e.Link, e.Title, e.PubDate, e.PubDateRaw, e.Content)
			e.Replaces = replaces
			return e.Files()
		},
	}
}

// Recover finishes what earlier runs of fetchers left in tmp/: entries that count as delivered
// are moved to new/, interrupted replacements and removals are finished, other entries of this
// machine's are removed, and those of others 36 hours after their last change. A fetcher calls
// it when it starts. Feeds that another fetcher has locked are passed over without an error, so
// nil does not mean that every feed was recovered. The error joins what went wrong, feed by feed;
// the others are recovered all the same.
func (d *Dir) Recover(ctx context.Context) error {
	w, err := commit.NewWriter(d.fs, commit.Options{})
	if err != nil {
		return err
	}
	return errors.Join(w.Recover(ctx), w.Close())
}
