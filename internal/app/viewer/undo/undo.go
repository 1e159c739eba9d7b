// Package undo is the command that takes back what other commands marked and removed.
package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Undo].
type Options struct {
	session.Common
	DryRun bool
	Print  cmdline.PrinterOptions
}

// ErrNothing reports that there is no command to take back.
var ErrNothing = errors.New("there is nothing to take back")

// Undo takes back this user's last command that is not taken back yet, and prints the entries with
// their new names. An entry that was moved since is not changed. An entry that was in new/ stays in
// cur/ without flags: it is unread, but does not return to new/.
func Undo(ctx context.Context, o Options, s *cmdline.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.Open(nil, o.Print, s)
	if err != nil {
		return err
	}
	if err := atomicfile.NoLinks(v.Dir.Path(), "etc/view", undo.Dir); err != nil {
		return err
	}
	records, err := undo.Records(v.Dir)
	if err != nil {
		return err
	}
	running := false
	for _, earlier := range records {
		r := record{earlier}
		f, err := r.lock()
		switch {
		case errors.Is(err, fs.ErrNotExist): // another undo has taken back the command
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			s.Report.Info("%s is still running; it is not taken back", r.name(v.Now.Location()))
			running = true
			continue
		case err != nil && !refused(err):
			s.Report.Warn("%v; skipped", err)
			continue
		case err != nil:
			return err
		}
		u := &undoing{Session: v}
		found, err := u.takeBack(ctx, r, o.DryRun)
		f.Close()
		if found || err != nil {
			return err
		}
	}
	if running {
		return errors.New("there is nothing to take back but what is still running")
	}
	return ErrNothing
}

// record is the journal of an earlier command.
type record struct{ undo.Record }

// lock opens and locks a journal. The error is unix.EWOULDBLOCK while the command, or another undo
// of it, is running.
func (r record) lock() (*os.File, error) {
	for {
		f, err := os.OpenFile(r.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		// If the file system has no locks, continue without one.
		inPlace := true
		if err = atomicfile.Hold(f, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			inPlace, err = atomicfile.InPlace(f)
		}
		if err == nil && inPlace {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		// Another program has removed secrets from the journal, see [undo.ForgetSecrets].
	}
}

// refused reports whether err is an I/O error, as opposed to a wrong kind of file. Undo stops at
// an I/O error: it must not skip the last command because its journal cannot be read now.
func refused(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && errno != unix.ELOOP && errno != unix.ENXIO
}

// name returns the name and the time of the command of a journal, "a command" if it is unreadable.
func (r record) name(zone *time.Location) string {
	if d, err := r.Read(); err == nil && d.Command != "" {
		return nameOf(d, zone)
	}
	return "a command"
}

// nameOf returns the name and the time of a command.
func nameOf(d *undo.Contents, zone *time.Location) string {
	return termsafe.Line(d.Command) + " of " + d.Began.In(zone).Format("2006-01-02 15:04")
}

// undoing is one run of [Undo] for one command.
type undoing struct {
	*session.Session
	done *undo.Contents

	undone   int   // number of entries taken back
	deleted  int   // number of entries that the command deleted
	skipped  int   // number of entries that changed since
	failed   int   // number of entries that could not be renamed
	firstErr error // why the first of these could not be renamed

	changes changes
}

// maxSkipped is the number of skipped entries that are reported one by one.
const maxSkipped = 20

// takeBack takes back one command. If it reports false, the journal was empty or unusable, and undo
// continues with the command before.
func (u *undoing) takeBack(ctx context.Context, r record, dryRun bool) (found bool, err error) {
	d, err := r.Read()
	switch {
	case refused(err):
		return false, err
	case errors.As(err, new(*fs.PathError)): // too large, or not a regular file
		u.S.Report.Warn("%v; skipped", err)
		return false, nil
	case err != nil:
		u.S.Report.Warn("%v; removed", err)
		return false, r.forget(dryRun)
	case d.Invalid > 0:
		u.S.Report.Warn("%s: %s ignored: not a move of an entry, nor a change of a setting", r.Path,
			humanize.Count(d.Invalid, "line"))
	}
	u.done = d
	if err := u.takeBackChanges(ctx, r, dryRun); err != nil {
		return true, err
	}
	// In reverse order, as an entry may have been moved twice.
	for _, m := range slices.Backward(d.Moves) {
		if ctx.Err() != nil {
			return true, errors.Join(u.Printer.Flush(), context.Cause(ctx))
		}
		to, moved := u.move(m, dryRun)
		if !moved {
			continue
		}
		u.undone++
		if err := u.Printer.Print(u.Record(to)); err != nil {
			return true, err
		}
	}
	if err := u.Printer.Flush(); err != nil {
		return true, err
	}
	if u.firstErr == nil {
		if err := r.forget(dryRun); err != nil {
			return true, err
		}
	}
	if len(d.Moves)+len(d.Changes) == 0 {
		return false, nil // the command was killed before it moved an entry
	}
	u.summarize(dryRun)
	return true, nil
}

// forget removes a journal, unless dryRun is set.
func (r record) forget(dryRun bool) error {
	if dryRun {
		return nil
	}
	return atomicfile.RemoveUnsynced(r.Path)
}

// summarize prints what was taken back, and what was not.
func (u *undoing) summarize(dryRun bool) {
	what := nameOf(u.done, u.Now.Location())
	if u.deleted > 0 {
		err := fmt.Errorf("%s removed %s, which cannot be brought back", what, humanize.Count(u.deleted, "entry"))
		u.S.Report.Print(cmdline.Hint(err, "run undo again to take back the command before it"))
	}
	if u.firstErr != nil {
		u.S.Report.Print(cmdline.Hint(u.firstErr, "fix the cause and run undo again: it continues where it stopped"))
	}
	var counts []string
	add := func(n int, noun, one, several string) {
		if n > 1 {
			one = several
		}
		if n > 0 {
			counts = append(counts, humanize.Count(n, noun)+" "+one)
		}
	}
	how := "taken back"
	if dryRun {
		how = "to be taken back"
	}
	add(u.changes.subscriptions, "subscription", how, how)
	add(u.changes.settings, "setting", how, how)
	add(u.undone, "entry", how, how)
	add(u.changes.left, "setting", "left as it is", "left as they are")
	add(u.skipped, "entry", "left as it is", "left as they are")
	add(u.failed, "entry", "not taken back", "not taken back")
	if len(counts) == 0 && u.deleted == 0 && u.firstErr == nil {
		// An earlier undo was killed after it had taken back the command. Do not take back the
		// command before it as well.
		counts = append(counts, "nothing is left to take back")
	}
	if len(counts) > 0 {
		u.S.Report.Info("%s: %s", what, strings.Join(counts, ", "))
	}
}

// move takes back one rename. It returns the new name of the entry, and whether it was moved.
func (u *undoing) move(m undo.Move, dryRun bool) (to lektordir.Ref, moved bool) {
	if m.To == (lektordir.Ref{}) {
		if _, found := u.Where(m.From); !found { // else the command was killed before it removed the entry
			u.deleted++
		}
		return m.From, false
	}
	set, unset := m.Back()
	to, err := m.To.WithFlags(set, unset)
	if err != nil {
		u.skip("%s: %v", m.To.Path(), err)
		return m.To, false
	}
	switch {
	case to == m.To, dryRun: // to == m.To: the command moved the entry out of new/ without flags
		_, err = os.Lstat(u.Dir.Join(m.To.Path()))
	default:
		to, err = u.Dir.SetFlags(m.To, set, unset)
	}
	switch {
	case err == nil:
		return to, true
	case errors.Is(err, fs.ErrExist):
		u.skip("%s: another copy has the old flags", m.To.Path())
	case errors.Is(err, fs.ErrNotExist):
		switch now, found := u.Where(m.To); {
		case !found:
			u.skip("%s: it was removed since", m.To.Path())
		case now.Flags() != m.From.Flags():
			u.skip("%s: it was marked since", now.Path())
		} // else the entry has its old flags already
	default:
		u.failed++
		u.firstErr = cmp.Or(u.firstErr, err)
	}
	return to, false
}

// skip reports an entry that is not taken back.
func (u *undoing) skip(format string, args ...any) {
	if u.skipped++; u.skipped <= maxSkipped {
		u.S.Report.Error("%s; it is not changed", fmt.Sprintf(format, args...))
	}
}
