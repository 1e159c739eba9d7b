package commit

import (
	"context"
	"errors"
	"os"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/files/workers"
)

// Recover finishes the deliveries and removals that were interrupted and left files in tmp/. It
// moves entries that a journal names to new/, and finishes replacements and removals. It deletes
// other entries that lektor wrote on this machine at once, and those of other programs or machines
// 36 hours after their last change (see lektor-dir(5) about clocks that are ahead). Call it at the
// start of every run. It skips feeds that another fetcher has locked. If some feeds fail, it
// recovers the others and returns the joined errors.
func (w *Writer) Recover(ctx context.Context) error {
	feeds, err := w.d.Feeds("tmp")
	if err != nil {
		return err
	}
	// Most feeds have nothing in tmp/. Listing their directories takes the most time.
	bad := make([]error, len(feeds)+1)
	bad[len(feeds)] = workers.ForEach(ctx, len(feeds), func(i int) {
		names, err := dirfs.Names(w.d.Join("tmp", feeds[i]))
		if len(names) > 0 {
			err = w.recoverFeed(feeds[i])
		}
		if !isNotExist(err) {
			bad[i] = err
		}
	})
	return errors.Join(bad...)
}

// recoverFeed recovers one feed under its lock.
func (w *Writer) recoverFeed(feed string) error {
	t, err := w.Begin(feed)
	if IsBusy(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	return recoverLocked(w.d, feed)
}

// Purge removes a feed with its entries and its journal. If it returns nil, the removal is durable.
// If it is interrupted, the next recovery, delivery to the feed or check with repair finishes it.
// If another fetcher holds the feed's lock for more than ten seconds, the error is a [*BusyError].
func (w *Writer) Purge(ctx context.Context, feed string) error {
	t, err := w.BeginWait(ctx, feed)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := w.d.MkTmp(feed); err != nil {
		return err
	}
	if err := w.d.Inside("tmp/" + feed); err != nil {
		return err
	}
	f, err := os.OpenFile(w.d.Join("tmp", feed, Purging), os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return finishPurge(w.d, feed)
}
