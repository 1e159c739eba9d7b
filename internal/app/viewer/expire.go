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

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// ExpireOptions are the options of [Expire]. Times are as in a query ("90d").
type ExpireOptions struct {
	session.Common
	Query []string // only entries that match may expire; empty means all
	// Read entries expire after the time Read, except the Keep entries of each feed that were
	// read last. If neither is set, read entries do not expire. The setting of a feed, see
	// [settings.Keep], replaces both.
	Read    string
	Keep    int // -1 for none
	Trashed string
	Unread  string // time since unread entries were moved last; "" means never
	Flagged bool   // entries with the flag F expire too
	Yes     bool   // skip the check of the clock
	DryRun  bool
	Print   cmdline.PrinterOptions // for a dry run
}

// DefaultTrashed is the default time after which trashed entries expire.
const DefaultTrashed = "7d"

// Never as a time means that entries do not expire.
const Never = "never"

// Expire deletes entries that were read or trashed long ago. The time at which they were moved
// last counts, not their date. Flagged and unread entries stay by default. The older versions
// that an entry hides are deleted before it, so that an interruption never uncovers one.
//
// A clock that is far ahead would expire everything. So Expire refuses a clock that is more than
// [feedfiles.MaxClockGap] after the last run and after the last Date of a server.
//
// Entries that a viewer moves meanwhile stay. A fetcher does not deliver expired entries again.
// Undo cannot bring them back.
func Expire(ctx context.Context, o ExpireOptions, s *cmdline.Streams) error {
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
			return &cmdline.UsageError{Message: fmt.Sprintf("--%s %s: not a time", l.flag, l.text),
				Hint: "write 2h, 3d, 2w, 6m (months), 1y, or never"}
		}
		*l.at = at
	}
	if err := x.checkClock(); err != nil {
		return err
	}
	list, err := v.Select(ctx, entrystore.Selection{Query: v.Query, All: true, Hidden: true})
	if err != nil {
		return err
	}
	// Reading the time of the last move is slow, so it is read only for entries that may expire by
	// their flags.
	keeps, candidates := map[string]settings.Keep{}, map[string][]lektordir.Ref{}
	for _, r := range list {
		feed := r.Ref.Feed
		if _, ok := keeps[feed]; !ok {
			keeps[feed] = x.keep(feed)
		}
		if x.may(r.Ref, keeps[feed]) {
			candidates[feed] = append(candidates[feed], r.Ref)
		}
	}
	doomed, total := map[string][]lektordir.Ref{}, 0
	for feed, refs := range candidates {
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

// expiredFile holds the time of the last run, in one line.
const expiredFile = "etc/view/expired"

// checkClock returns an error if the clock may be far ahead, as expiring cannot be undone.
func (x *expiry) checkClock() error {
	last := feedfiles.ServerTime(x.Dir)
	if line, err := atomicfile.Line(x.Dir.Join(expiredFile)); err == nil {
		if run, err := time.Parse(time.RFC3339, line); err == nil && run.After(last) {
			last = run
		}
	}
	if x.o.Yes || last.IsZero() || !x.Now.After(last.Add(feedfiles.MaxClockGap)) {
		return nil
	}
	return cmdline.Hint(
		fmt.Errorf("the clock says %s, which is %d days after the last expire and the last answer of a server; no entry was deleted",
			x.Now.Format(time.DateTime), int(x.Now.Sub(last)/(24*time.Hour))),
		"run lektor-fetch update with the right clock; or if the clock is right, expire --yes")
}

// noteRun records the time of this run. It is not called after a refusal, so that the next run
// with the same clock is refused too.
func (x *expiry) noteRun() error {
	if err := atomicfile.NoLinks(x.Dir.Path(), "etc", "etc/view"); err != nil {
		return err
	}
	path := x.Dir.Join(expiredFile)
	return atomicfile.InDir(path,
		func() error { return atomicfile.Write(path, []byte(x.Now.UTC().Format(time.RFC3339)+"\n")) })
}

// expiry is one run of [Expire].
type expiry struct {
	viewer
	o                     ExpireOptions
	read, trashed, unread time.Time // entries moved before these expire; zero means never
	entries, feeds        int       // numbers of removed entries and of their feeds
}

// aged is an entry and the time at which it was moved last.
type aged struct {
	ref   lektordir.Ref
	moved time.Time
}

// keep returns the rule for read entries of a feed. If the feed's setting is invalid, it reports
// that and keeps all.
func (x *expiry) keep(hash string) settings.Keep {
	own, ok, err := settings.KeepOf(x.Dir, hash)
	switch {
	case err != nil:
		x.S.Report.Print(cmdline.Hint(err, "correct the setting; until then read entries of this feed do not expire"))
		return settings.Keep{All: true}
	case ok:
		return own
	case x.o.Read == Never || x.o.Read == "" && x.o.Keep < 0:
		return settings.Keep{All: true}
	}
	return settings.Keep{Newest: max(x.o.Keep, 0), Age: x.o.Read}
}

// may reports whether an entry expires if it was moved long enough ago.
func (x *expiry) may(r lektordir.Ref, keep settings.Keep) bool {
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

// choose returns the entries of one feed that expire.
func (x *expiry) choose(ctx context.Context, candidates []lektordir.Ref, keep settings.Keep) (doomed []lektordir.Ref,
	err error) {
	times := make([]time.Time, len(candidates))
	if err := workers.ForEach(ctx, len(candidates),
		func(i int) { times[i] = x.Record(candidates[i]).Moved() }); err != nil {
		return nil, err
	}
	var read []aged
	for i, r := range candidates {
		before := x.unread
		switch {
		case times[i].IsZero():
			continue // the entry vanished
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
		return cmp.Or(b.moved.Compare(a.moved), b.ref.Delivered().Compare(a.ref.Delivered()),
			cmp.Compare(b.ref.Unique, a.ref.Unique))
	})
	since, ok := query.Time(keep.Age, x.Now)
	for _, e := range read[min(keep.Newest, len(read)):] {
		if keep.Age == "" || ok && e.moved.Before(since) {
			doomed = append(doomed, e.ref)
		}
	}
	return doomed, nil
}

// expire deletes entries, or prints them in a dry run.
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
		x.S.Report.Info("%s of %s expired", humanize.Count(x.entries, "entry"), humanize.Count(x.feeds, "feed"))
	}
	return nil
}

// one deletes an entry with its older versions, or prints them in a dry run. versions holds all
// versions, oldest first; it is empty if there is only one.
func (x *expiry) one(ref lektordir.Ref, versions []lektordir.Ref) error {
	doomed := []lektordir.Ref{ref}
	if at := slices.IndexFunc(versions, func(r lektordir.Ref) bool { return r.Unique == ref.Unique }); at >= 0 {
		// If a newer version has arrived meanwhile, it hides this one, so leave both.
		if doomed = versions[:at+1]; at+1 < len(versions) {
			return nil
		}
		// The entry was moved since it was chosen: leave it for the next run.
		if doomed[at] != ref {
			return nil
		}
		protected := func(r lektordir.Ref) bool { return r.HasFlag('F') && !x.o.Flagged && !ref.HasFlag('T') }
		if slices.ContainsFunc(doomed, protected) {
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
			return nil // a viewer moved it; keep the newer versions too
		case err != nil:
			x.mover.Failed(err)
			return nil
		}
	}
	x.entries++
	return nil
}
