package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/servertime"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// ExpireOptions are the options of [Expire]. Times are as in a query ("90d").
type ExpireOptions struct {
	session.Common
	Query []string // what may expire; none for everything
	// What was read stays for as long as Read says, and the Keep of each feed that were
	// read last stay; without either everything does. A feed may have its own setting,
	// see [feeddir.Keep], which stands in the place of both.
	Read    string
	Keep    int // -1 for none
	Trashed string
	Unread  string // time since the delivery; "" for ever
	Flagged bool   // those with the flag F too
	Yes     bool   // the clock is right, however far it has gone on
	DryRun  bool
	Print   command.PrinterOptions // of a dry run
}

// DefaultTrashed is how long what was trashed stays.
const DefaultTrashed = "7d"

// Never is the time after which nothing expires.
const Never = "never"

// Expire deletes entries that were read, or trashed, long ago: by the time at which
// they were moved last, whatever their own date is. What is flagged or unread stays,
// unless the options say otherwise. Each goes with the older versions that it hides,
// which go first, so that none comes to light if it is interrupted.
//
// A clock that is far ahead makes everything old, so one that has gone on by more than a
// month since the last run, and since the last Date of a server, is refused.
//
// What a viewer moves meanwhile stays. A fetcher delivers nothing of it again. Undo
// does not know of it.
func Expire(ctx context.Context, o ExpireOptions, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.Open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	x := &expiry{viewer: viewer{v, undo.Unrecorded(v.Store)}, o: o}
	for _, l := range []struct {
		flag, text string
		at         *time.Time
	}{{"read", o.Read, &x.read}, {"trashed", o.Trashed, &x.trashed}, {"unread", o.Unread, &x.unread}} {
		if l.text == "" || l.text == Never {
			continue
		}
		at, ok := query.Time(l.text, v.Now)
		if !ok {
			return &command.UsageError{Message: fmt.Sprintf("--%s %s: it is no time", l.flag, l.text), Hint: "write 2h, 3d, 2w, 6m (months), 1y, or never"}
		}
		*l.at = at
	}
	if err := x.checkClock(); err != nil {
		return err
	}
	list, err := v.Select(ctx, entries.Selection{Query: v.Query, All: true, Hidden: true})
	if err != nil {
		return err
	}
	// Names tell of which entries the time matters.
	keeps, asked := map[string]feeddir.Keep{}, map[string][]lektordir.Ref{}
	for _, r := range list {
		feed := r.Ref.Feed
		if _, known := keeps[feed]; !known {
			keeps[feed] = x.keep(feed)
		}
		if x.may(r.Ref, keeps[feed]) {
			asked[feed] = append(asked[feed], r.Ref)
		}
	}
	doomed, total := map[string][]lektordir.Ref{}, 0
	for feed, refs := range asked {
		if refs, err = x.choose(ctx, refs, keeps[feed]); err != nil {
			return err
		}
		if total += len(refs); len(refs) > 0 {
			doomed[feed] = refs
		}
	}
	if err := x.expire(ctx, doomed, total); err != nil || o.DryRun {
		return err
	}
	return x.noteRun()
}

// expiredFile has the time of the last run, one line.
const expiredFile = "etc/view/expired"

// checkClock refuses a clock that may be far ahead: what expired is gone for good.
func (x *expiry) checkClock() error {
	seen := servertime.Last(x.Dir.Path())
	if line, err := atomicfile.Line(x.Dir.Join(expiredFile)); err == nil {
		if last, err := time.Parse(time.RFC3339, line); err == nil && last.After(seen) {
			seen = last
		}
	}
	if x.o.Yes || seen.IsZero() || !x.Now.After(seen.Add(servertime.MaxGap)) {
		return nil
	}
	return command.Hint(
		fmt.Errorf("the clock says %s, which is %d days after the last expire and the last answer of a server; nothing was deleted",
			x.Now.Format(time.DateTime), int(x.Now.Sub(seen)/(24*time.Hour))),
		"run lektor-fetch update with the right clock; or if the clock is right, expire --yes")
}

// noteRun records when this run was. A refusal does not, so that the next run with the
// same clock is refused as well.
func (x *expiry) noteRun() error {
	if err := atomicfile.NoLinks(x.Dir.Path(), "etc", "etc/view"); err != nil {
		return err
	}
	path := x.Dir.Join(expiredFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(path, []byte(x.Now.UTC().Format(time.RFC3339)+"\n"))
}

// expiry is one run of expire.
type expiry struct {
	viewer
	o                     ExpireOptions
	read, trashed, unread time.Time // what was moved before; zero for never
	entries, feeds        int       // that were removed, and of how many feeds
}

// aged is an entry, and when it was moved.
type aged struct {
	ref   lektordir.Ref
	moved time.Time
}

// keep gives what of a feed's read entries is kept; all of it where what its user said
// makes no sense.
func (x *expiry) keep(hash string) feeddir.Keep {
	own, ok, err := feeddir.KeepOf(x.Dir, hash)
	switch {
	case err != nil:
		x.S.Report.Print(command.Hint(err, "nothing that was read of this feed expires until that is mended"))
		return feeddir.Keep{All: true}
	case ok:
		return own
	case x.o.Read == Never || x.o.Read == "" && x.o.Keep < 0:
		return feeddir.Keep{All: true}
	}
	return feeddir.Keep{Newest: max(x.o.Keep, 0), Age: x.o.Read}
}

// may reports whether an entry goes if it was moved long enough ago.
func (x *expiry) may(r lektordir.Ref, keep feeddir.Keep) bool {
	switch {
	case r.HasFlag('T'):
		return !x.trashed.IsZero()
	case r.HasFlag('F') && !x.o.Flagged:
		return false
	case r.Unread():
		return !x.unread.IsZero()
	}
	return !keep.All
}

// choose gives of a feed's entries those that are to go.
func (x *expiry) choose(ctx context.Context, asked []lektordir.Ref, keep feeddir.Keep) (doomed []lektordir.Ref, err error) {
	times := make([]time.Time, len(asked))
	if err := workers.ForEach(ctx, len(asked), func(i int) { times[i] = x.Record(asked[i]).Moved() }); err != nil {
		return nil, err
	}
	var read []aged
	for i, r := range asked {
		before := x.unread
		switch {
		case times[i].IsZero():
			continue // it is gone
		case r.HasFlag('T'):
			before = x.trashed
		case !r.Unread():
			read = append(read, aged{r, times[i]})
			continue
		}
		if times[i].Before(before) {
			doomed = append(doomed, r)
		}
	}
	slices.SortFunc(read, func(a, b aged) int {
		return cmp.Or(b.moved.Compare(a.moved), b.ref.Delivered().Compare(a.ref.Delivered()), cmp.Compare(b.ref.Unique, a.ref.Unique))
	})
	since, ok := query.Time(keep.Age, x.Now)
	for _, e := range read[min(keep.Newest, len(read)):] {
		if keep.Age == "" || ok && e.moved.Before(since) {
			doomed = append(doomed, e.ref)
		}
	}
	return doomed, nil
}

// expire deletes entries, or prints them.
func (x *expiry) expire(ctx context.Context, doomed map[string][]lektordir.Ref, total int) error {
	bar := x.S.Report.Progress(total, "expiring")
	defer bar.Done()
	defer x.mover.Close()
	for _, feed := range slices.Sorted(maps.Keys(doomed)) {
		versions, err := x.mover.Versions(ctx, feed)
		if err != nil {
			return err
		}
		refs := doomed[feed]
		slices.SortFunc(refs, func(a, b lektordir.Ref) int { return cmp.Compare(a.Unique, b.Unique) })
		before := x.entries
		for _, ref := range refs {
			if ctx.Err() != nil {
				return errors.Join(x.Printer.Flush(), context.Cause(ctx))
			}
			if err := x.one(ref, versions[ref.Identity()]); err != nil {
				return err
			}
			bar.Add(1)
		}
		if x.entries > before {
			x.feeds++
		}
	}
	if err := x.Printer.Flush(); err != nil {
		return err
	}
	bar.Done()
	if x.entries > 0 && !x.o.DryRun {
		x.S.Report.Info("%s of %s expired", units.Count(x.entries, "entry"), units.Count(x.feeds, "feed"))
	}
	return nil
}

// one deletes an entry with its older versions, or prints their paths. versions are
// all of it, oldest first; none for one that has no others.
func (x *expiry) one(ref lektordir.Ref, versions []lektordir.Ref) error {
	doomed := []lektordir.Ref{ref}
	if at := slices.IndexFunc(versions, func(r lektordir.Ref) bool { return r.Unique == ref.Unique }); at >= 0 {
		// A newer version that came meanwhile hides it: it is not what was looked at.
		if doomed = versions[:at+1]; at+1 < len(versions) {
			return nil
		}
		// What was moved since is looked at another time.
		if doomed[at] != ref {
			return nil
		}
		kept := func(r lektordir.Ref) bool { return r.HasFlag('F') && !x.o.Flagged && !ref.HasFlag('T') }
		if slices.ContainsFunc(doomed, kept) {
			return nil
		}
	}
	for _, r := range doomed {
		if x.o.DryRun {
			if err := x.Printer.Print(x.Record(r)); err != nil {
				return err
			}
			continue
		}
		switch err := x.mover.RemoveHere(r); {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a viewer moved it, and the newer ones stay with it
		case err != nil:
			x.mover.Failed(err)
			return nil
		}
	}
	x.entries++
	return nil
}
