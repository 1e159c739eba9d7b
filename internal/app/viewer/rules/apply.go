package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Apply].
type Options struct {
	session.Common
	Check bool // only check the rules: report invalid ones, and commands that do not exist
	// Again is the words of a query: rules are applied to all entries that match, also if they
	// were applied before. nil means entries that arrived.
	Again  []string
	DryRun bool
	// Undo records changes of flags, so that undo can take them back.
	Undo  bool
	Print cmdline.PrinterOptions
}

// tempFail is EX_TEMPFAIL of sysexits(3): the command asks to be run again later.
const tempFail = 75

// Apply applies the user's rules to entries that have arrived, once to each, and prints the entries
// that a rule matched. If a line of the file is invalid, no rule is applied.
//
// A command that fails is reported. It is run again the next time only if its exit status is 75. A
// command that may have been running when the process was killed is reported and not run again.
func Apply(ctx context.Context, o Options, s *cmdline.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.Open(o.Again, o.Print, s)
	if err != nil {
		return err
	}
	if o.Check {
		return check(v)
	}
	a := &Applier{Session: v, o: o, mover: undo.Unrecorded(v.Store), missing: map[string]bool{}}
	if o.Undo {
		a.mover = undo.Moving(v.Store, "rules apply")
	}
	defer a.mover.Close()
	if a.rules, err = read(v.Dir); err != nil {
		return err
	}
	if len(a.rules) == 0 {
		s.Report.Info("there are no rules; they are lines of %s", v.Dir.Join(entrystore.RulesFile))
		return nil
	}
	return a.all(ctx)
}

// Applier applies rules to entries.
type Applier struct {
	*session.Session
	o     Options
	mover *undo.Mover
	rules []*ruleLine
	file  *ruled
	quiet bool // do not print entries
	// missing has the commands that were reported because they do not exist.
	missing map[string]bool
}

// matched is an entry and the rules that match it.
type matched struct {
	r     *entrystore.Record
	rules []*ruleLine
	from  progress // where to continue
}

// all applies the rules to the entries of o.Again, or to those that arrived.
func (a *Applier) all(ctx context.Context) (err error) {
	if a.file, err = openRuled(ctx, a.Store, a.o.DryRun); err != nil {
		return err
	}
	defer func() {
		if !a.quiet {
			err = errors.Join(err, a.Printer.Flush())
		}
		err = errors.Join(err, a.file.close())
	}()
	var list []*matched
	if a.o.Again != nil {
		list, err = a.again(ctx)
	} else {
		list, err = a.arrivals(ctx)
	}
	if err != nil {
		return err
	}
	a.bind()
	err = workers.ForEach(ctx, len(list), func(i int) { list[i].rules = a.match(list[i].r) })
	if err != nil {
		return err
	}
	for _, m := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := a.apply(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// again returns the entries of the query, oldest delivery first.
func (a *Applier) again(ctx context.Context) ([]*matched, error) {
	found, err := a.Select(ctx, entrystore.Selection{Query: a.Query})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, byDelivery)
	list := make([]*matched, len(found))
	for i, r := range found {
		list[i] = &matched{r: r}
	}
	return list, nil
}

// arrivals returns the new entries that rules have not seen, oldest delivery first, and then the
// entries that they have not finished. It drops other entries from the file.
func (a *Applier) arrivals(ctx context.Context) ([]*matched, error) {
	isNew, err := query.Parse("is:new")
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{} // keys of entries that keep their lines
	var list []*matched
	found, err := a.Select(ctx, entrystore.Selection{Query: isNew})
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		listed[r.Key()] = true
		if p := a.file.progress[r.Key()]; p.word != "seen" {
			list = append(list, &matched{r: r, from: p})
		}
	}
	slices.SortFunc(list, func(a, b *matched) int { return byDelivery(a.r, b.r) })
	// Unfinished entries may be in cur/ by now.
	for key, p := range a.file.progress {
		if p.word == "seen" || p.word == "done" || listed[key] {
			continue
		}
		feed, unique, _ := strings.Cut(key, "/")
		ref, err := a.Dir.Resolve((lektordir.Ref{Feed: feed, Unique: unique, Place: lektordir.New}).Path())
		if err == nil {
			listed[key] = true
			list = append(list, &matched{r: a.Record(ref), from: p})
		} else if none := (*lektordir.NotFoundError)(nil); !errors.As(err, &none) && !errors.Is(err, fs.ErrNotExist) {
			listed[key] = true // the entry may exist: keep its line
			a.S.Report.Print(err)
		}
	}
	return list, a.file.compact(func(key string, _ progress) bool { return listed[key] })
}

// byDelivery compares by time of delivery, oldest first.
func byDelivery(a, b *entrystore.Record) int {
	return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Feed, b.Ref.Feed),
		cmp.Compare(a.Ref.Unique, b.Ref.Unique))
}

// bind binds the queries of the rules to the current time.
func (a *Applier) bind() {
	for _, r := range a.rules {
		r.matcher = r.query.Bind(a.Now)
	}
}

// match returns the rules that match an entry. It returns nil if the entry cannot be read, so that
// it is tried again the next time.
func (a *Applier) match(r *entrystore.Record) []*ruleLine {
	if !a.Usable(r.Check()) {
		return nil
	}
	rules := []*ruleLine{}
	for _, rule := range a.rules {
		yes, err := r.Decide(rule.matcher, rule.query.Fields())
		if !a.Usable(err) {
			return nil
		}
		if !yes {
			continue
		}
		rules = append(rules, rule)
		if rule.stop {
			break
		}
	}
	r.Forget()
	return rules
}

// apply applies the matched rules to an entry: flags first, then commands.
func (a *Applier) apply(ctx context.Context, m *matched) error {
	if m.rules == nil {
		return nil
	}
	if a.o.DryRun {
		if len(m.rules) > 0 {
			return a.Printer.Print(m.r)
		}
		return nil
	}
	key, flags, commands := m.r.Key(), "", []*external.Argv(nil)
	for _, r := range m.rules {
		flags += r.flags
		if r.run != nil {
			commands = append(commands, r.run)
		}
	}
	if len(commands) > 0 && m.from.word == "" {
		if err := a.file.note(key, "todo", 0); err != nil {
			return err
		}
	}
	if !a.mark(m, flags) {
		return nil
	}
	unfinished, err := a.runAll(ctx, m, commands)
	if err != nil || unfinished {
		return err
	}
	switch {
	case flags == "":
		a.file.add(key, "seen", 0)
	case len(commands) > 0:
		a.file.add(key, "done", 0)
	} // else the entry has left new/, which records that the rules are done
	if len(m.rules) == 0 || a.quiet {
		return nil
	}
	if err := a.Printer.Print(m.r); err != nil || len(commands) == 0 {
		return err
	}
	return a.Printer.Flush() // before the next command prints
}

// mark sets the flags of an entry, unless an earlier run has done that. It reports whether to
// continue with the commands.
func (a *Applier) mark(m *matched, flags string) bool {
	flagged := m.from.word == "run" || m.from.word == "later" || m.from.word == "done"
	// An entry with flags set is no longer in new/, unless a power failure undid the move.
	if flags == "" || flagged && m.r.Ref.Place != lektordir.New {
		return true
	}
	ref, err := a.mover.SetFlags(m.r.Ref, flags, "")
	switch {
	case err == nil:
		m.r.Ref = ref
	case undo.Removed(err), errors.Is(err, fs.ErrNotExist): // a viewer has moved or removed it
	default:
		a.mover.Failed(err)
	}
	return err == nil
}

// runAll runs the commands of an entry, beginning where the last run stopped. It reports unfinished
// if the next run has to continue.
func (a *Applier) runAll(ctx context.Context, m *matched, commands []*external.Argv) (unfinished bool, err error) {
	first := 0
	switch m.from.word {
	case "done":
		first = len(commands)
	case "later":
		first = m.from.n
	case "run":
		first = m.from.n + 1
		a.S.Report.Warn("%s: the command for it may have been interrupted; it is not run again", m.r.Ref.Path())
	}
	for i := first; i < len(commands); i++ {
		if ctx.Err() != nil {
			return true, errors.Join(a.file.note(m.r.Key(), "later", i), context.Cause(ctx))
		}
		if err := a.file.note(m.r.Key(), "run", i); err != nil {
			return true, err
		}
		err := commands[i].Run(ctx, a.Store, m.r, a.S.Err)
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return true, context.Cause(ctx)
		case errors.As(err, &exit) && exit.ExitCode() == tempFail:
			a.S.Report.Warn("%v; it will be run again the next time", err)
			return true, a.file.note(m.r.Key(), "later", i)
		case err != nil:
			a.report(commands[i].Words()[0], err)
		}
	}
	return false, nil
}

// report reports the error of a command. A command that does not exist fails for every entry alike, so
// it is reported once.
func (a *Applier) report(name string, err error) {
	if _, lost := exec.LookPath(name); lost == nil {
		a.S.Report.Print(err)
	} else if !a.missing[name] {
		a.missing[name] = true
		a.S.Report.Print(cmdline.Hint(fmt.Errorf("%s: %w; no rule runs it for any entry", entrystore.RulesFile, lost),
			"once it is installed: lektor-view rules apply --again QUERY"))
	}
}

// ForArrivals returns an Applier for entries as they arrive. It does not print entries.
func ForArrivals(v *session.Session) *Applier {
	return &Applier{Session: v, mover: undo.Unrecorded(v.Store), quiet: true, missing: map[string]bool{}}
}

// Begin applies the rules to the new entries that exist already. It reports invalid rules and
// returns nil, as the user may correct them while the program waits for entries.
func (a *Applier) Begin(ctx context.Context) (err error) {
	if a.rules, err = read(a.Dir); err != nil {
		a.S.Report.Print(err)
		return nil
	}
	if len(a.rules) == 0 {
		return nil
	}
	if err = a.all(ctx); ctx.Err() != nil {
		return nil
	}
	return err
}

// Arrived applies the rules to an entry that has just arrived. It reports whether the entry is
// trashed now.
func (a *Applier) Arrived(ctx context.Context, r *entrystore.Record) (trashed bool, err error) {
	if a.rules, err = read(a.Dir); err != nil || len(a.rules) == 0 {
		return false, err
	}
	if a.file, err = openRuled(ctx, a.Store, a.o.DryRun); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, a.file.close()) }()
	p := a.file.progress[r.Key()]
	if p.word == "seen" {
		return r.Ref.HasFlag('T'), nil
	}
	a.bind()
	err = a.apply(ctx, &matched{r: r, from: p, rules: a.match(r)})
	return r.Ref.HasFlag('T'), err
}
