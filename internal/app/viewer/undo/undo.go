// Package undo moves entries for commands, writes down what was moved, and takes it back.
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
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Undo].
type Options struct {
	session.Common
	DryRun bool
	Print  command.PrinterOptions
}

// Undo takes back what the last command of this user moved that is not taken back
// yet, and prints the entries where they are now. An entry that somebody has moved
// since is left alone. One that was in new/ goes to cur/ without flags: it is
// unread, and nothing comes back into new/.
func Undo(ctx context.Context, o Options, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.Open(nil, o.Print, s)
	if err != nil {
		return err
	}
	if err := atomicfile.NoLinks(v.Dir.Path(), "etc/view", undoDir); err != nil {
		return err
	}
	records, err := commands(v.Dir)
	if err != nil {
		return err
	}
	for _, r := range records {
		f, err := r.lock()
		switch {
		case errors.Is(err, fs.ErrNotExist): // another undo was faster
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			s.Report.Info("%s is still at work, and is left alone", r.name(v.Now.Location()))
			continue
		case err != nil && !refused(err):
			s.Report.Warn("%v; skipped", err)
			continue
		case err != nil:
			return err
		}
		u := &undoing{Session: v, now: map[string]map[string]lektordir.Ref{}}
		found, err := u.takeBack(ctx, r, o.DryRun)
		f.Close()
		if found || err != nil {
			return err
		}
	}
	return errors.New("there is nothing to take back")
}

// lock opens the file of a command and locks it. The error is unix.EWOULDBLOCK while
// the command runs, or another undo does.
func (r record) lock() (*os.File, error) {
	f, err := os.OpenFile(r.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// A file system without locks does without.
	if err = atomicfile.Hold(f, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		var there bool
		if there, err = atomicfile.InPlace(f); err == nil && !there {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// refused tells an error of the system from what is wrong with a file: of a command
// that cannot be read now, the one before it is not the last.
func refused(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && errno != unix.ELOOP && errno != unix.ENXIO
}

// name names the command of a file as far as it is known.
func (r record) name(zone *time.Location) string {
	if d, err := r.read(); err == nil && d.command != "" {
		return d.name(zone)
	}
	return "a command"
}

// name names a command.
func (d *done) name(zone *time.Location) string {
	return termsafe.Line(d.command) + " of " + d.began.In(zone).Format("2006-01-02 15:04")
}

// undoing is a command that is being taken back.
type undoing struct {
	*session.Session
	done *done
	now  map[string]map[string]lektordir.Ref // by feed and unique name, as they were first asked for

	back    int   // entries that were taken back
	gone    int   // that were removed
	left    int   // that were left alone
	stuck   int   // that the system did not let be moved
	refused error // why it did not let the first be
}

// maxLeft is how many entries that are left alone are told one by one.
const maxLeft = 20

// takeBack takes back one command. It reports whether there was anything to take
// back; if not, the one before is the last.
func (u *undoing) takeBack(ctx context.Context, r record, dryRun bool) (found bool, err error) {
	d, err := r.read()
	switch {
	case refused(err):
		return false, err
	case errors.As(err, new(*fs.PathError)): // too large, or no file
		u.S.Report.Warn("%v; skipped", err)
		return false, nil
	case err != nil:
		u.S.Report.Warn("%v; removed", err)
		return false, r.forget(dryRun)
	case d.odd > 0:
		u.S.Report.Warn("%s: %s of it are no moves of entries; skipped", r.path, units.Count(d.odd, "line"))
	}
	u.done = d
	// What was moved twice is moved back twice.
	for _, m := range slices.Backward(d.moves) {
		if ctx.Err() != nil {
			return true, errors.Join(u.Printer.Flush(), context.Cause(ctx))
		}
		to, moved, err := u.move(ctx, m, dryRun)
		if err != nil {
			return true, errors.Join(u.Printer.Flush(), err)
		}
		if !moved {
			continue
		}
		u.back++
		if err := u.Printer.Print(u.Record(to)); err != nil {
			return true, err
		}
	}
	if err := u.Printer.Flush(); err != nil {
		return true, err
	}
	if u.refused == nil {
		if err := r.forget(dryRun); err != nil {
			return true, err
		}
	}
	if len(d.moves) == 0 {
		return false, nil // killed before it moved anything
	}
	u.tell(dryRun)
	return true, nil
}

// forget removes the file of a command.
func (r record) forget(dryRun bool) error {
	if dryRun {
		return nil
	}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tell tells what was done, and what could not be.
func (u *undoing) tell(dryRun bool) {
	what := u.done.name(u.Now.Location())
	if u.gone > 0 {
		err := fmt.Errorf("%s removed %s, which cannot be brought back", what, units.Count(u.gone, "entry"))
		u.S.Report.Print(command.Hint(err, "undo once more takes back the command before it"))
	}
	if u.refused != nil {
		u.S.Report.Print(command.Hint(u.refused, "undo again when that is mended: it goes on where it stopped"))
	}
	var said []string
	if u.back > 0 {
		how := "taken back"
		if dryRun {
			how = "to be taken back"
		}
		said = append(said, units.Count(u.back, "entry")+" "+how)
	}
	if u.left > 0 {
		said = append(said, units.Count(u.left, "entry")+" left as it is")
		if u.left > 1 {
			said[len(said)-1] = units.Count(u.left, "entry") + " left as they are"
		}
	}
	if u.stuck > 0 {
		said = append(said, units.Count(u.stuck, "entry")+" not taken back")
	}
	if len(said) == 0 && u.gone == 0 {
		// Or an undo was killed when it had done everything: to go on with the
		// command before would be one too many.
		said = append(said, "nothing of it is left to take back")
	}
	if len(said) > 0 {
		u.S.Report.Info("%s: %s", what, strings.Join(said, ", "))
	}
}

// move takes back one rename. moved tells whether there was anything to do, and
// where the entry is then; the error is the context's.
func (u *undoing) move(ctx context.Context, m renamed, dryRun bool) (to lektordir.Ref, moved bool, err error) {
	if m.to == (lektordir.Ref{}) {
		if _, there, err := u.where(ctx, m.from); !there || err != nil {
			u.gone++
			return m.from, false, err
		}
		return m.from, false, nil // killed before it was removed
	}
	set, unset := without(m.from.Flags(), m.to.Flags()), without(m.to.Flags(), m.from.Flags())
	if to, err = m.to.WithFlags(set, unset); err != nil {
		u.leave("%s: %v", m.to.Path(), err)
		return m.to, false, nil
	}
	switch {
	case to == m.to, dryRun: // the former was taken out of new/, and that is all
		_, err = os.Lstat(u.Dir.Join(m.to.Path()))
	default:
		to, err = u.Dir.SetFlags(m.to, set, unset)
	}
	switch {
	case err == nil:
		return to, true, nil
	case errors.Is(err, fs.ErrExist):
		u.leave("%s: there is one with the flags that it had", m.to.Path())
	case errors.Is(err, fs.ErrNotExist):
		now, there, err := u.where(ctx, m.to)
		switch {
		case err != nil:
			return to, false, err
		case !there:
			u.leave("%s: it was removed since", m.to.Path())
		case now.Flags() != m.from.Flags():
			u.leave("%s: it was marked since", now.Path())
		} // else it is as it was before
	default:
		u.stuck++
		u.refused = cmp.Or(u.refused, err)
	}
	return to, false, nil
}

// leave tells of an entry that is left alone.
func (u *undoing) leave(format string, args ...any) {
	if u.left++; u.left <= maxLeft {
		u.S.Report.Error("%s; it is left alone", fmt.Sprintf(format, args...))
	}
}

// where tells where an entry is now.
func (u *undoing) where(ctx context.Context, ref lektordir.Ref) (now lektordir.Ref, there bool, err error) {
	feed, known := u.now[ref.Feed]
	if !known {
		feed = map[string]lektordir.Ref{}
		refs, err := u.List(ctx, lektordir.ListOptions{Feeds: []string{ref.Feed}, AllVersions: true, Withdrawn: true})
		if err != nil {
			return now, false, err
		}
		for _, r := range refs {
			feed[r.Unique] = r
		}
		u.now[ref.Feed] = feed
	}
	now, there = feed[ref.Unique]
	return now, there, nil
}

// without gives the letters of a that are not among those of b.
func without(a, b string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(b, c) {
			return -1
		}
		return c
	}, a)
}
