package lektordir

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/stage"
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
	Deliver Policy = stage.Deliver
	// Ignore ignores the change.
	Ignore Policy = stage.Ignore
)

// Result says what became of entries. New and Updated are in new/ now.
type Result struct {
	New, Updated []Ref
	// Unchanged counts entries delivered before as they are now, Ignored those
	// whose change the policy passes over, and Repeated those that were given more than once.
	Unchanged, Ignored, Repeated int
}

// Deliver delivers entries of a feed, in this order, and returns when they are in
// new/ and on the disk. An entry is known by its ID, or without one by its link or its text:
// if it was delivered before, it is not delivered again, whatever became of it, and if it has
// changed, the policy decides. It writes what f says of the feed to src/$feed.
//
// Deliver keeps this promise: SIGKILL at any instruction, a full disk or a power cut at any
// moment; then call [Dir.Recover] and Deliver again, with the same entries, and every entry is
// there exactly once and whole. An entry that a viewer deleted stays deleted. It holds on file systems where renames are atomic and ordered,
// as on ext4, xfs, btrfs and zfs.
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
// it when it starts. Feeds that another fetcher has locked are left to it. The error joins what
// went wrong, feed by feed; the others are recovered all the same.
func (d *Dir) Recover(ctx context.Context) error {
	w, err := commit.NewWriter(d.fs, commit.Options{})
	if err != nil {
		return err
	}
	return errors.Join(w.Recover(ctx), w.Close())
}
