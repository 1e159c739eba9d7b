package viewer

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// MarkOptions are the options of [Mark].
type MarkOptions struct {
	session.Common
	session.Names
	Set, Clear string // flags
	DryRun     bool
	Print      cmdline.PrinterOptions
}

// Mark sets and clears flags by one rename for each entry, and prints the entries with their
// new names.
func Mark(ctx context.Context, o MarkOptions, s *cmdline.Streams) error {
	if o.Set == "" && o.Clear == "" {
		return &cmdline.UsageError{Message: "mark: no flag to set or clear",
			Hint: "--set S marks entries as read, --clear S as unread"}
	}
	// A wrong flag is an error of the command line, reported once and not for each entry.
	for _, f := range []struct {
		name string
		text *string
	}{{"--set", &o.Set}, {"--clear", &o.Clear}} {
		flags, err := query.ParseFlags(*f.text)
		if refused, ok := errors.AsType[*query.FlagError](err); ok {
			return &cmdline.UsageError{Message: f.name + ": " + refused.Message, Hint: refused.Hint}
		}
		*f.text = flags
	}
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := openUndoable("mark", o.Common, nil, o.Print, s)
	if err != nil {
		return err
	}
	defer v.mover.Close()
	stream := slices.Contains(o.Args, "-")
	setFlags := v.mover.SetFlags
	if o.DryRun {
		setFlags = lektordir.Ref.WithFlags
	}
	for r := range v.Named(ctx, o.Names, v.mover.Failed) {
		ref, err := setFlags(r.Ref, o.Set, o.Clear)
		if err != nil {
			v.mover.Failed(err)
			continue
		}
		if err := v.Printer.Print(v.Record(ref)); err != nil {
			return err
		}
		// Names from a pipe may come slowly, so print the result of each at once.
		if stream {
			if err := v.Printer.Flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(v.Printer.Flush(), context.Cause(ctx))
}

// RemoveOptions are the options of [Remove].
type RemoveOptions struct {
	session.Common
	session.Names
	Now    bool // delete instead of marking as trashed
	DryRun bool
	Print  cmdline.PrinterOptions // for a dry run
}

// Remove marks entries as trashed, so that no list shows them, or deletes them. The older
// versions that an entry hides are removed too. A dry run prints the entries instead.
func Remove(ctx context.Context, o RemoveOptions, s *cmdline.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	name, remove := "rm", (*undo.Mover).Trash
	if o.Now {
		name, remove = "rm --now", (*undo.Mover).Remove
	}
	v, err := openUndoable(name, o.Common, nil, o.Print, s)
	if err != nil {
		return err
	}
	defer v.mover.Close()
	for r := range v.Named(ctx, o.Names, v.mover.Failed) {
		doomed, err := v.mover.WithOlder(ctx, r.Ref)
		if err != nil {
			return err
		}
		if !o.DryRun {
			v.mover.RemoveAll(doomed, remove)
			continue
		}
		for _, r := range doomed {
			if err := v.Printer.Print(v.Record(r)); err != nil {
				return err
			}
		}
	}
	return errors.Join(v.Printer.Flush(), context.Cause(ctx))
}
