package lektordir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/servertime"
)

// foreignAge is how long an entry that another program writes, or another
// machine, stays in tmp/ after its last change, as in maildir.
const foreignAge = 36 * time.Hour

// Recover finishes what earlier runs left in tmp/, for every feed that has
// something there: what a journal names is delivered, interrupted replacements
// and removals are finished, other entries of this machine's are removed, and
// those of others 36 hours after their last change, by the clock and by the last
// Date of a server that a fetcher noted. Call it at the start of every run. Feeds that another fetcher has locked are left to it. The error
// joins what went wrong, feed by feed; the others are recovered all the same.
func (w *Writer) Recover(ctx context.Context) error {
	feeds, err := w.d.fs.Feeds("tmp")
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
	return w.d.recoverLocked(feed)
}

// recoverLocked recovers a feed whose lock the caller has, and for which he has
// staged nothing yet.
func (d *Dir) recoverLocked(feed string) error {
	// Read again under the lock: another fetcher may just have finished.
	names, err := dirfs.Names(d.Join("tmp", feed))
	if isNotExist(err) {
		return nil
	}
	if err != nil || len(names) == 0 {
		return err
	}
	// What the journal says is acted on below, so it must not be undone.
	for _, p := range []string{d.journalPath(feed), filepath.Dir(d.journalPath(feed))} {
		if err := dirfs.SyncPath(p); err != nil && !isNotExist(err) {
			return err
		}
	}
	if err := d.fs.Inside("new/" + feed); err != nil && !isNotExist(err) {
		return err
	}
	j, err := d.freshJournal(feed)
	if err != nil {
		return err
	}
	// Strictly: an entry that is overlooked in cur/ would come to new/ once more.
	there, err := d.listFeed(context.Background(), feed, true)
	if err := unlessNames(err); err != nil {
		return err
	}
	at := make(map[string]Place, len(there))
	for _, r := range there {
		at[r.Unique] = r.Place
	}
	has := func(unique string) bool { _, ok := at[unique]; return ok }
	before := d.certainTime(feed).Add(-foreignAge)
	var bad error
	for _, name := range names {
		if strings.Contains(name, dirfs.Moving) {
			bad = errors.Join(bad, d.fs.FinishMove(feed, name, before))
		}
	}
	// Entries before removals: how far a replacement came is known by the old
	// version's having been put aside.
	staged := func(from string, names []string) {
		for _, name := range names {
			if strings.Contains(name, ";") {
				continue
			}
			path := d.Join(from, name)
			if rec, ok := j.named(name); ok {
				if at[name] == Cur {
					bad = errors.Join(bad, d.fs.Drop(feed, path))
					continue
				}
				_, err := d.settle(feed, from, rec)
				bad = errors.Join(bad, err)
				continue
			}
			if d.fs.Ours(name) {
				bad = errors.Join(bad, dirfs.RemoveAll(path))
				continue
			}
			bad = errors.Join(bad, d.fs.RemoveOld(path, before))
		}
	}
	if slices.Contains(names, dirfs.FirstEntries) {
		from := "tmp/" + feed + "/" + dirfs.FirstEntries
		first, err := dirfs.Names(d.Join(from))
		if err != nil && !isNotExist(err) {
			return errors.Join(bad, err)
		}
		staged(from, first)
		os.Remove(d.Join(from)) // if nothing is left in it
	}
	staged("tmp/"+feed, names)
	for _, name := range names {
		if unique, ok := strings.CutSuffix(name, replacing); ok {
			bad = errors.Join(bad, d.finishReplacing(feed, unique, j, has, before))
		}
	}
	for _, name := range names {
		unique, info, ok := strings.Cut(name, ";")
		switch {
		case !ok, name == dirfs.FirstEntries, info == replacing[1:], strings.HasPrefix(name, unique+dirfs.Moving):
		case strings.HasPrefix(name, unique+dirfs.Copying):
			if _, err := dirfs.Lstat(d.Join("tmp", feed, strings.Replace(name, dirfs.Copying, dirfs.Moving, 1))); isNotExist(err) {
				bad = errors.Join(bad, d.fs.RemoveOld(d.Join("tmp", feed, name), before))
			}
		case info == dirfs.Gone[1:] || info == dirfs.GoneReplaced[1:]:
			// An entry put aside for a version that could not be renamed just
			// now must stay.
			if bad == nil || unique == "" {
				bad = errors.Join(bad, dirfs.RemoveAll(d.Join("tmp", feed, name)))
			}
		default:
			bad = errors.Join(bad, d.fs.RemoveOld(d.Join("tmp", feed, name), before))
		}
	}
	return bad
}

// certainTime returns a time that has come, even if the clock is far ahead: no later than
// the last Date of a server, and without one no later than the last change that the clock
// is not far ahead of. What a program wrote a minute ago is not old by it.
func (d *Dir) certainTime(feed string) time.Time {
	now := d.fs.Now()
	if date := servertime.Last(d.fs.Path); !date.IsZero() {
		if date.Before(now) {
			return date
		}
		return now
	}
	var last time.Time
	for _, path := range []string{d.journalPath(feed), d.Join("new", feed), d.Join("cur", feed), d.Join("src", feed), d.Join("new"), d.Join("src")} {
		if fi, err := dirfs.Lstat(path); err == nil && fi.ModTime().After(last) {
			last = fi.ModTime()
		}
	}
	if now.Sub(last) > servertime.MaxGap {
		return last
	}
	return now
}
