package viewer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/rules"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// FollowOptions are the options of [Follow].
type FollowOptions struct {
	session.Common
	Query []string
	Past  int    // print this many of the newest entries first
	Exec  string // shell command for each entry; entries are then printed only if Print has a format
	// Run is a command for each entry, run without a shell, see [external.Argv].
	Run   []string
	Rules bool // apply the user's rules, first to new entries, then to those that arrive
	Print cmdline.PrinterOptions
	// Screen is the terminal that lines are printed for, see [ListOptions].
	Screen cmdline.Screen
	// Number prints numbers, which other commands accept as names.
	Number bool
	Poll   time.Duration
	Ready  func() // called when the watch has begun; for tests
}

// Follow prints entries as they arrive. It returns nil when ctx ends.
func Follow(ctx context.Context, o FollowOptions, s *cmdline.Streams) error {
	v, err := o.Open(o.Query, o.Print, s)
	if err != nil {
		return err
	}
	f := &follower{Session: v, o: o, printed: map[string]bool{}}
	if o.Run != nil {
		if f.command, err = external.New(o.Run); err == nil {
			_, err = exec.LookPath(o.Run[0])
		}
		if err != nil {
			return err
		}
	}
	if o.Rules {
		f.rules = rules.ForArrivals(v)
	}
	f.names = catalog.Open(v.Dir, catalog.Options{Poll: cmp.Or(o.Poll, poll),
		Notice: func(text string) { s.Report.Warn("%s", text) }})
	defer f.names.Close()
	if err = f.begin(ctx); err == nil {
		err = f.follow(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// poll is how often arrivals are looked for if the kernel does not report changes.
const poll = 2 * time.Second

// begin looks at the lektor-dir for the first time.
func (f *follower) begin(ctx context.Context) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	// Existing entries are read after the watch has begun, so that no entry is missed. An entry
	// that the watch reports too is printed once, see printed.
	if f.rules != nil {
		if err := f.rules.Begin(ctx); err != nil {
			return err
		}
	}
	if f.o.Past > 0 {
		if err := f.past(ctx); err != nil {
			return err
		}
	}
	if f.o.Ready != nil {
		f.o.Ready()
	}
	return nil
}

// look looks at the lektor-dir as it is now. It reports what cannot be read, once, and fails if that is new/.
func (f *follower) look(ctx context.Context) error {
	now, err := f.names.Now(ctx)
	if ctx.Err() != nil {
		return err
	}
	if _, err := os.Stat(f.Dir.Join("new")); err != nil {
		return err
	}
	if text := fmt.Sprint(err); text != f.trouble && err != nil {
		f.Report(err)
		f.trouble = text
	}
	f.seen = now
	return nil
}

// follow prints arrivals until ctx ends.
func (f *follower) follow(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.names.Changed():
		}
		before := f.seen
		if err := f.look(ctx); err != nil {
			return err
		}
		for was, is := range f.seen.Since(before) {
			for _, ref := range is.Came(was) {
				if ref.Place != lektordir.New {
					continue
				}
				if err := f.arrived(ctx, ref); err != nil || ctx.Err() != nil {
					return err
				}
			}
		}
	}
}

// follower prints arrivals.
type follower struct {
	*session.Session
	o       FollowOptions
	shown   []*entrystore.Record // the numbered list, if o.Number is set
	printed map[string]bool      // keys of entries printed by past
	// command is o.Run, nil if that is empty.
	command *external.Argv
	rules   *rules.Applier // nil unless o.Rules is set
	names   *catalog.Catalog
	seen    *catalog.Snapshot // as it was last looked at
	trouble string            // the error of that, which was reported
}

// past prints the newest o.Past entries that exist already, oldest first.
func (f *follower) past(ctx context.Context) error {
	found, err := f.Select(ctx, entrystore.Selection{Query: f.Query, Newest: f.o.Past, Want: lektordir.FieldPubDate})
	if err != nil {
		return err
	}
	slices.SortFunc(found, entrystore.ByDate)
	for _, r := range found {
		if !f.Usable(r.Check()) {
			continue
		}
		f.printed[r.Key()] = true
		if err := f.emit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// arrived applies the rules to an entry that arrived, and prints it if it matches the query.
func (f *follower) arrived(ctx context.Context, ref lektordir.Ref) error {
	if f.printed[entrystore.Key(ref.Path())] {
		delete(f.printed, entrystore.Key(ref.Path()))
		return nil
	}
	f.Now = f.Clock()
	r := f.Record(ref)
	if f.rules != nil {
		trashed, err := f.rules.Arrived(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			f.S.Report.Print(err)
		}
		if trashed {
			return nil
		}
	}
	yes, err := r.Decide(f.Query.Bind(f.Now), f.Query.Fields())
	if yes {
		err = r.Check()
	}
	// Without the entry, another viewer has moved or removed it.
	if errors.Is(err, fs.ErrNotExist) || !f.Usable(err) || !yes {
		return nil
	}
	return f.emit(ctx, r)
}

// silent reports whether a command runs for each entry instead of printing it.
func (f *follower) silent() bool { return f.o.Exec != "" || f.command != nil }

// emit prints an entry, or runs the command for it.
func (f *follower) emit(ctx context.Context, r *entrystore.Record) error {
	if f.o.Number && (f.Printer != nil || !f.silent()) {
		defer r.Forget() // free memory: shown grows without end
		f.shown = append(f.shown, r)
		r.Number = len(f.shown)
		f.SaveList(f.shown)
	}
	if f.Printer != nil {
		if err := cmp.Or(f.Printer.Print(r), f.Printer.Flush()); err != nil {
			return err
		}
	}
	if f.silent() {
		f.exec(ctx, r)
		return nil
	}
	if f.Printer != nil {
		return nil
	}
	l := layout{screen: f.o.Screen, now: f.Now, raw: f.o.Print.Raw, flags: 1, feed: maxFeed}
	if f.o.Number {
		l.number = max(3, len(strconv.Itoa(r.Number)))
	}
	var b bytes.Buffer
	l.row(&b, r, r.Title())
	_, err := f.S.Out.Write(b.Bytes())
	return err
}

// exec runs the user's command. Untrusted text reaches it only in arguments and the
// environment, never in the text that a shell parses.
func (f *follower) exec(ctx context.Context, r *entrystore.Record) {
	var err error
	if f.command != nil {
		err = f.command.Run(ctx, f.Store, r, nil)
	} else if err = external.Command(ctx, f.Store, r, "/bin/sh", "-c", f.o.Exec, "sh", r.Path()).Run(); err != nil {
		err = fmt.Errorf("--exec for %s: %w", r.Ref.Path(), err)
	}
	if err != nil && ctx.Err() == nil {
		f.S.Report.Error("%v", err)
	}
}
