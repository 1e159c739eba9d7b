package commit

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/lektordir/lektor/internal/dirfs"
)

// Recover finishes what earlier runs left in tmp/, for every feed that has
// something there: what a journal names is delivered, interrupted replacements
// and removals are finished, other entries of this machine's are removed, and
// those of others 36 hours after their last change, by the clock and by the last
// Date of a server that a fetcher noted. Call it at the start of every run. Feeds that another fetcher has locked are left to it. The error
// joins what went wrong, feed by feed; the others are recovered all the same.
func (w *Writer) Recover(ctx context.Context) error {
	feeds, err := w.d.Feeds("tmp")
	if err != nil {
		return err
	}
	// Each feed has its own lock, and most have nothing in tmp/: what takes time is
	// to look.
	parts := slices.Collect(slices.Chunk(feeds, len(feeds)/runtime.GOMAXPROCS(0)+1))
	bad := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { bad[i] = w.recoverFeeds(ctx, part) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		bad = append(bad, context.Cause(ctx))
	}
	return errors.Join(bad...)
}

func (w *Writer) recoverFeeds(ctx context.Context, feeds []string) error {
	var bad []error
	for _, feed := range feeds {
		if ctx.Err() != nil {
			break
		}
		names, err := dirfs.Names(w.d.Join("tmp", feed))
		if err != nil {
			if !isNotExist(err) {
				bad = append(bad, err)
			}
			continue
		}
		if len(names) > 0 {
			bad = append(bad, w.recoverFeed(feed))
		}
	}
	return errors.Join(bad...)
}

// recoverFeed recovers one feed under its lock.
func (w *Writer) recoverFeed(feed string) error {
	t, err := w.Begin(feed)
	if _, ok := errors.AsType[*BusyError](err); ok {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	return recoverLocked(w.d, feed)
}

// Purge removes a feed with all its entries, and forgets what was delivered of
// it. Once begun, it will be finished: after an interruption by the next run of a
// fetcher that recovers, delivers to the feed or checks with repair. When it
// returns without an error, it is done and on the disk. It waits some seconds for
// another fetcher that has the feed; the error is a [*BusyError] then.
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
	return finishPurge(w.d, w.slow, feed)
}
