package viewer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// FollowOptions are the options of [Follow].
type FollowOptions struct {
	Common
	Query []string
	Past  int    // so many of the newest first
	Exec  string // shell command for each entry; then nothing is printed unless Print says how
	Print command.PrinterOptions
	Width int // columns to fit lines to; 0 does not fit them
	Poll  time.Duration
	Ready func() // called when arrivals from now on will be seen; for tests
}

// Follow prints entries as they arrive, until ctx ends, which is no error.
func Follow(ctx context.Context, o FollowOptions, s *command.Streams) error {
	q, err := parseQuery(o.Query)
	if err != nil {
		return err
	}
	v, err := o.open(s)
	if err != nil {
		return err
	}
	f := &follower{viewer: v, o: o, query: q, seen: map[string]bool{}}
	if o.Print.Format != "" {
		if f.printer, err = command.NewPrinter(s.Out, o.Print, columns()); err != nil {
			return err
		}
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var stop error // why it cannot go on
	ready := func() {
		// The past is read after the watch has begun: what arrives meanwhile
		// is in both, and printed once.
		if o.Past > 0 {
			if stop = f.past(ctx); stop != nil {
				cancel()
			}
		}
		if o.Ready != nil {
			o.Ready()
		}
	}
	w := lektordir.WatchOptions{Poll: o.Poll, Ready: ready, Notice: func(text string) { s.Report.Warn("%s", text) }}
	for ref, err := range v.dir.Arrivals(watching, w) {
		if watching.Err() != nil {
			break
		}
		if err != nil {
			if _, gone := os.Stat(v.dir.Join("new")); gone != nil {
				stop = gone
				break
			}
			v.report(err)
			continue
		}
		if stop = f.arrived(ctx, ref); stop != nil {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case stop == nil:
		return errors.New("new/ cannot be watched any more")
	}
	return stop
}

// follower prints arrivals.
type follower struct {
	*viewer
	o       FollowOptions
	query   *query.Query
	printer *command.Printer[*record]
	seen    map[string]bool // printed as past
}

// past prints the newest entries that are there already, oldest first.
func (f *follower) past(ctx context.Context) error {
	found, err := f.find(ctx, selection{query: f.query, newest: f.o.Past, dated: true})
	if err != nil {
		return err
	}
	slices.SortFunc(found, byDate)
	for _, r := range found {
		if !f.usable(r.check()) {
			continue
		}
		f.seen[key(r.ref.Path())] = true
		if err := f.emit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// arrived prints an entry that arrived, if it is wanted.
func (f *follower) arrived(ctx context.Context, ref lektordir.Ref) error {
	if f.seen[key(ref.Path())] {
		delete(f.seen, key(ref.Path()))
		return nil
	}
	f.now = f.Now()
	// Its feed's name may have come or changed since.
	f.feeds.Delete(ref.Feed)
	r := &record{v: f.viewer, ref: ref}
	m := f.query.Bind(f.now)
	verdict := r.match(m)
	if verdict == query.No {
		return nil
	}
	err := r.check()
	if err == nil && verdict == query.Maybe {
		if err = r.read(f.query.Fields()); err == nil && r.match(m) != query.Yes {
			return nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another viewer was faster
	}
	if !f.usable(err) {
		return nil
	}
	return f.emit(ctx, r)
}

// emit prints an entry, or runs the command for it.
func (f *follower) emit(ctx context.Context, r *record) error {
	if f.printer != nil {
		if err := f.printer.Print(r); err != nil {
			return err
		}
		if err := f.printer.Flush(); err != nil {
			return err
		}
	}
	if f.o.Exec != "" {
		f.exec(ctx, r)
		return nil
	}
	if f.printer != nil {
		return nil
	}
	l := layout{width: f.o.Width, zone: f.now.Location(), raw: f.o.Print.Raw, flags: 1, feed: maxFeed}
	var b bytes.Buffer
	l.row(&b, r, r.title())
	_, err := f.s.Out.Write(b.Bytes())
	return err
}

// exec runs the user's command. What strangers wrote reaches it only as an
// argument and in the environment, never as a part of the command's text.
func (f *follower) exec(ctx context.Context, r *record) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", f.o.Exec, "sh", r.path())
	cmd.Env = append(os.Environ(),
		"LEKTORDIR="+f.dir.Path(),
		"LEKTOR_ENTRY="+r.path(),
		"LEKTOR_TITLE="+env(r.title()),
		"LEKTOR_URL="+env(r.get(lektordir.FieldLink|lektordir.FieldID).URL()),
		"LEKTOR_FEED="+env(r.feed().Title()))
	cmd.Stdout, cmd.Stderr = f.s.Out, f.s.Err
	if out := f.s.OutFile(); out != nil {
		cmd.Stdout = out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		f.s.Report.Error("%v", fmt.Errorf("--exec for %s: %w", r.ref.Path(), err))
	}
}

// env makes text fit for an environment variable: clean, on one line.
func env(s string) string { return termsafe.Line(s) }
