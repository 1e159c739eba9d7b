package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// ExpireOptions are the options of [Expire]. Times are as in a query ("90d").
type ExpireOptions struct {
	Common
	Query []string // what may expire; none for everything
	// What was read stays for as long as Read says, and the Keep of each feed that were
	// read last stay; without either everything does. A feed may have its own setting,
	// see [feeddir.Keep], which stands in the place of both.
	Read    string
	Keep    int // -1 for none
	Trashed string
	Unread  string // time since the delivery; "" for ever
	Flagged bool   // those with the flag F too
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
// What a viewer moves meanwhile stays. A fetcher delivers nothing of it again. Undo
// does not know of it.
func Expire(ctx context.Context, o ExpireOptions, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	defer v.index.Work(ctx)
	x := &expiry{viewer: v, o: o}
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
	found, err := v.Select(ctx, entries.Selection{Query: v.query, All: true, Hidden: true})
	if err != nil {
		return err
	}
	doomed, err := x.choose(ctx, found)
	if err != nil {
		return err
	}
	return x.expire(ctx, doomed)
}

// expiry is one run of expire.
type expiry struct {
	*viewer
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

// choose gives the entries that are to go, by feed.
func (x *expiry) choose(ctx context.Context, found []*entries.Record) (map[string][]lektordir.Ref, error) {
	// Names tell of which the time matters; that is looked at on all cores.
	keeps := map[string]feeddir.Keep{}
	asked := slices.DeleteFunc(found, func(r *entries.Record) bool {
		if _, known := keeps[r.Ref.Feed]; !known {
			keeps[r.Ref.Feed] = x.keep(r.Ref.Feed)
		}
		switch {
		case r.Ref.HasFlag('T'):
			return x.trashed.IsZero()
		case r.Ref.HasFlag('F') && !x.o.Flagged:
			return true
		case r.Ref.Unread():
			return x.unread.IsZero()
		}
		return keeps[r.Ref.Feed].All
	})
	times := make([]time.Time, len(asked))
	if err := entries.Parallel(ctx, len(asked), func(i int) { times[i] = asked[i].Moved() }); err != nil {
		return nil, err
	}
	doomed, read := map[string][]lektordir.Ref{}, map[string][]aged{}
	for i, r := range asked {
		before := x.unread
		switch {
		case times[i].IsZero():
			continue // it is gone
		case r.Ref.HasFlag('T'):
			before = x.trashed
		case !r.Ref.Unread():
			read[r.Ref.Feed] = append(read[r.Ref.Feed], aged{r.Ref, times[i]})
			continue
		}
		if times[i].Before(before) {
			doomed[r.Ref.Feed] = append(doomed[r.Ref.Feed], r.Ref)
		}
	}
	for feed, list := range read {
		keep := keeps[feed]
		slices.SortFunc(list, func(a, b aged) int {
			return cmp.Or(b.moved.Compare(a.moved), b.ref.Delivered().Compare(a.ref.Delivered()), cmp.Compare(b.ref.Unique, a.ref.Unique))
		})
		for _, e := range list[min(keep.Newest, len(list)):] {
			if since, ok := query.Time(keep.Age, x.Now); keep.Age == "" || ok && e.moved.Before(since) {
				doomed[feed] = append(doomed[feed], e.ref)
			}
		}
	}
	return doomed, nil
}

// expire deletes entries, or prints them.
func (x *expiry) expire(ctx context.Context, doomed map[string][]lektordir.Ref) error {
	total := 0
	for _, refs := range doomed {
		total += len(refs)
	}
	bar := x.S.Report.Progress(total, "expiring")
	defer bar.Done()
	defer x.tellFailed()
	for _, feed := range slices.Sorted(maps.Keys(doomed)) {
		versions, err := x.versions(ctx, feed)
		if err != nil {
			return err
		}
		refs := doomed[feed]
		slices.SortFunc(refs, func(a, b lektordir.Ref) int { return cmp.Compare(a.Unique, b.Unique) })
		before := x.entries
		for _, ref := range refs {
			if ctx.Err() != nil {
				return errors.Join(x.printer.Flush(), context.Cause(ctx))
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
	if err := x.printer.Flush(); err != nil {
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
			if err := x.printer.Print(x.Record(r)); err != nil {
				return err
			}
			continue
		}
		switch err := x.removeBoth(r); {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a viewer moved it, and the newer ones stay with it
		case err != nil:
			x.failed(err)
			return nil
		}
	}
	x.entries++
	return nil
}
