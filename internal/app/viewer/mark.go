package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// MarkOptions are the options of [Mark].
type MarkOptions struct {
	Common
	Names
	Set, Clear string // flags
	DryRun     bool
	Print      command.PrinterOptions
}

// Mark sets and clears flags, by one rename for each entry, and prints the
// entries where they are now.
func Mark(ctx context.Context, o MarkOptions, s *command.Streams) error {
	if o.Set == "" && o.Clear == "" {
		return &command.UsageError{Message: "mark: no flag is given", Hint: "--set S marks entries as read, --clear S as unread"}
	}
	// A wrong word is the fault of the command line, not of any entry.
	for _, f := range []struct {
		name string
		text *string
	}{{"--set", &o.Set}, {"--clear", &o.Clear}} {
		flags, err := query.ParseFlags(*f.text)
		if refused, ok := errors.AsType[*query.FlagError](err); ok {
			return &command.UsageError{Message: f.name + ": " + refused.Message, Hint: refused.Hint}
		}
		*f.text = flags
	}
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.open(nil, o.Print, s)
	if err != nil {
		return err
	}
	defer v.moves("mark").close()
	stream := slices.Contains(o.Args, "-")
	for ref, err := range v.named(o.Names) {
		if ctx.Err() != nil {
			return errors.Join(v.printer.Flush(), context.Cause(ctx))
		}
		if err == nil {
			if o.DryRun {
				ref, err = ref.WithFlags(o.Set, o.Clear)
			} else {
				ref, err = v.setFlags(ref, o.Set, o.Clear)
			}
		}
		if err != nil {
			v.failed(err)
			continue
		}
		if err := v.printer.Print(v.Record(ref)); err != nil {
			return err
		}
		// Names that come from a pipe may come slowly, and somebody waits for
		// each.
		if stream {
			if err := v.printer.Flush(); err != nil {
				return err
			}
		}
	}
	return v.printer.Flush()
}

// setFlags is [lektordir.Dir.SetFlags] for an entry that another viewer may
// move in the same moment.
func (v *viewer) setFlags(ref lektordir.Ref, set, unset string) (lektordir.Ref, error) {
	for try := 0; ; try++ {
		to, err := ref.WithFlags(set, unset)
		if err != nil {
			return ref, err
		}
		moves := to != ref
		if moves {
			v.journal.note(ref.Path(), to.Path())
		}
		to, err = v.Dir.SetFlags(ref, set, unset)
		switch {
		case err != nil && moves:
			v.journal.cancel()
		case moves:
			v.journal.made()
		}
		switch {
		case err == nil:
			return to, nil
		case errors.Is(err, fs.ErrExist):
			return ref, fmt.Errorf("%s: it is in cur/ already with these flags, a second time", ref.Path())
		case !errors.Is(err, fs.ErrNotExist) || try >= 3:
			return ref, err
		}
		now, err := v.Resolve(ref.Path(), 0)
		if err != nil {
			return ref, err
		}
		ref = now
	}
}

// removed reports whether an entry could not be marked because somebody has
// removed or replaced it. To one who has just read it that is no failure.
func removed(err error) bool {
	return errors.As(err, new(*lektordir.NoEntryError))
}

// RemoveOptions are the options of [Remove].
type RemoveOptions struct {
	Common
	Names
	Now    bool // delete rather than mark as trashed
	DryRun bool
	Print  command.PrinterOptions // of a dry run
}

// Remove marks entries as trashed, which no listing shows any more, or deletes
// them: each with the older versions of it that it hides. A dry run prints of which
// entries that would be done.
func Remove(ctx context.Context, o RemoveOptions, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.open(nil, o.Print, s)
	if err != nil {
		return err
	}
	name, remove := "rm", v.trash
	if o.Now {
		name, remove = "rm --now", v.remove
	}
	defer v.moves(name).close()
	old := versionsOf{viewer: v}
	for ref, err := range v.named(o.Names) {
		if ctx.Err() != nil {
			return errors.Join(v.printer.Flush(), context.Cause(ctx))
		}
		if err != nil {
			v.failed(err)
			continue
		}
		doomed, err := old.with(ctx, ref)
		if err != nil {
			return err
		}
		if !o.DryRun {
			v.removeAll(doomed, remove)
			continue
		}
		for _, r := range doomed {
			if err := v.printer.Print(v.Record(r)); err != nil {
				return err
			}
		}
	}
	return v.printer.Flush()
}

// trash marks an entry as trashed.
func (v *viewer) trash(ref lektordir.Ref) error {
	_, err := v.setFlags(ref, "T", "")
	return err
}

// removeAll removes an entry, the first, and the older versions of it.
func (v *viewer) removeAll(doomed []lektordir.Ref, remove func(lektordir.Ref) error) {
	for i, r := range doomed {
		// An older version that another viewer removed needs no removing.
		if err := remove(r); err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist) && !removed(err)) {
			v.failed(err)
		}
	}
}

// versionsOf knows the older versions of entries. Each feed is listed once.
type versionsOf struct {
	*viewer
	feeds map[string]map[string][]lektordir.Ref // by feed and identity
}

// with gives an entry and the older versions that it hides. The error is the context's.
func (o *versionsOf) with(ctx context.Context, ref lektordir.Ref) ([]lektordir.Ref, error) {
	all := []lektordir.Ref{ref}
	id := ref.Identity()
	if id == "" {
		return all, nil
	}
	if o.feeds == nil {
		o.feeds = map[string]map[string][]lektordir.Ref{}
	}
	if o.feeds[ref.Feed] == nil {
		m, err := o.versions(ctx, ref.Feed)
		if err != nil {
			return nil, err
		}
		o.feeds[ref.Feed] = m
	}
	for _, old := range o.feeds[ref.Feed][id] {
		if old.Unique == ref.Unique {
			break // what follows is newer
		}
		all = append(all, old)
	}
	return all, nil
}

// versions gives a feed's entries by identity, each version, oldest first.
func (v *viewer) versions(ctx context.Context, feed string) (map[string][]lektordir.Ref, error) {
	refs, err := v.List(ctx, lektordir.ListOptions{Feeds: []string{feed}, AllVersions: true, Withdrawn: true})
	if err != nil {
		return nil, err
	}
	m := map[string][]lektordir.Ref{}
	for _, r := range refs {
		if id := r.Identity(); id != "" {
			m[id] = append(m[id], r)
		}
	}
	return m, nil
}

// remove deletes one entry, also if another viewer moves it in the same moment.
func (v *viewer) remove(ref lektordir.Ref) error {
	for try := 0; ; try++ {
		v.journal.note(ref.Path(), removedPath(ref))
		err := v.removeBoth(ref)
		if err != nil {
			v.journal.cancel()
		} else {
			v.journal.made()
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) || try >= 3 {
			return err
		}
		now, rerr := v.Resolve(ref.Path(), 0)
		if rerr != nil {
			return rerr
		}
		ref = now
	}
}

// removeBoth deletes an entry of cur/ also from new/: the same name may be there, when a
// machine's failure undid half of a move. It is the same entry, and would be unread again.
func (v *viewer) removeBoth(ref lektordir.Ref) error {
	if ref.Place == lektordir.Cur {
		twin := lektordir.Ref{Feed: ref.Feed, Unique: ref.Unique, Place: lektordir.New}
		if err := v.Dir.Remove(twin); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return v.Dir.Remove(ref)
}
