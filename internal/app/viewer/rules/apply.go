package rules

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Apply] and [Check].
type Options struct {
	session.Common
	// Again are the words of a query whose entries rules are applied to, whether they
	// have been or not; nil for arrivals.
	Again  []string
	DryRun bool
	// Undo lets undo take back what is marked.
	Undo  bool
	Print command.PrinterOptions
}

// tempFail is the status by which a command asks to be run again another time: that of
// sysexits(3).
const tempFail = 75

// Apply applies the user's rules to what has arrived, once to each, and prints
// what a rule was applied to. Of a rule that makes no sense nothing is applied.
//
// A command that fails is reported. It is not run again, unless it ended with status
// 75: then it is at the next time. One that may have been running when the process was
// killed is not run again either, and that is told.
func Apply(ctx context.Context, o Options, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "path")
	v, err := o.Open(o.Again, o.Print, s)
	if err != nil {
		return err
	}
	a := &Applier{Session: v, o: o, mover: undo.Unrecorded(v.Store)}
	if o.Undo {
		a.mover = undo.Moving(v.Store, "rules apply")
	}
	defer a.mover.Close()
	if a.rules, err = read(v.Dir); err != nil {
		return err
	}
	if len(a.rules) == 0 {
		s.Report.Info("there are no rules; they are lines of %s", v.Dir.Join(entries.RulesFile))
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
	seen  *ruled
	quiet bool // nothing is printed
}

// matched are the rules for an entry.
type matched struct {
	r     *entries.Record
	rules []*ruleLine
	from  progress // where to go on
}

// all applies the rules to everything that they are for.
func (a *Applier) all(ctx context.Context) (err error) {
	if a.seen, err = openRuled(ctx, a.Store, a.o.DryRun); err != nil {
		return err
	}
	defer func() {
		if !a.quiet {
			err = errors.Join(err, a.Printer.Flush())
		}
		err = errors.Join(err, a.seen.close())
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
	bindings := a.bind()
	err = workers.ForEach(ctx, len(list), func(i int) { list[i].rules = a.match(list[i].r, bindings) })
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

// again gives the entries of the query.
func (a *Applier) again(ctx context.Context) ([]*matched, error) {
	found, err := a.Select(ctx, entries.Selection{Query: a.Query})
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

// arrivals gives what rules have not seen, or not done with, in the order in which it
// came.
func (a *Applier) arrivals(ctx context.Context) ([]*matched, error) {
	isNew, err := query.Parse("is:new")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	var list []*matched
	found, err := a.Select(ctx, entries.Selection{Query: isNew})
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		there[r.Key()] = true
		if p := a.seen.known[r.Key()]; p.word != "seen" {
			list = append(list, &matched{r: r, from: p})
		}
	}
	slices.SortFunc(list, func(a, b *matched) int { return byDelivery(a.r, b.r) })
	// What rules have begun with may be in cur/ by now.
	for key, p := range a.seen.known {
		if p.word == "seen" || p.word == "done" || there[key] {
			continue
		}
		feed, unique, _ := strings.Cut(key, "/")
		ref, err := a.Dir.Resolve((lektordir.Ref{Feed: feed, Unique: unique, Place: lektordir.New}).Path())
		if err == nil {
			there[key] = true
			list = append(list, &matched{r: a.Record(ref), from: p})
		} else if none := (*lektordir.NotFoundError)(nil); !errors.As(err, &none) && !errors.Is(err, fs.ErrNotExist) {
			there[key] = true // it cannot be looked for
			a.S.Report.Print(err)
		}
	}
	return list, a.seen.compact(func(key string, _ progress) bool { return there[key] })
}

// byDelivery orders from old to new.
func byDelivery(a, b *entries.Record) int {
	return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()), cmp.Compare(a.Ref.Feed, b.Ref.Feed), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
}

// bind fixes the moment for the queries of the rules.
func (a *Applier) bind() []*query.Matcher {
	bindings := make([]*query.Matcher, len(a.rules))
	for i, r := range a.rules {
		bindings[i] = r.query.Bind(a.Now)
	}
	return bindings
}

// match gives the rules for an entry. One that cannot be read has none now, and is
// looked at again.
func (a *Applier) match(r *entries.Record, bindings []*query.Matcher) []*ruleLine {
	if !a.Usable(r.Check()) {
		return nil
	}
	rules := []*ruleLine{}
	for i, rule := range a.rules {
		yes, err := r.Decide(bindings[i], rule.query.Fields())
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

// apply applies the rules of an entry.
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
		if err := a.seen.note(key, "todo", 0); err != nil {
			return err
		}
	}
	if !a.mark(m, flags) {
		return nil
	}
	later, err := a.runAll(ctx, m, commands)
	if err != nil || later {
		return err
	}
	switch {
	case flags == "":
		a.seen.add(key, "seen", 0)
	case len(commands) > 0:
		a.seen.add(key, "done", 0)
	} // else it is not in new/ any more, which says enough
	if len(m.rules) == 0 || a.quiet {
		return nil
	}
	if err := a.Printer.Print(m.r); err != nil || len(commands) == 0 {
		return err
	}
	return a.Printer.Flush() // before the next command prints
}

// mark sets the flags of an entry, if that was not done before a kill. It reports false if
// nothing is left to do with the entry now.
func (a *Applier) mark(m *matched, flags string) bool {
	begun := m.from.word == "run" || m.from.word == "later" || m.from.word == "done"
	// Flags that were set took it out of new/, unless a power cut undid that.
	if flags == "" || begun && m.r.Ref.Place != lektordir.New {
		return true
	}
	ref, err := a.mover.SetFlags(m.r.Ref, flags, "")
	switch {
	case err == nil:
		m.r.Ref = ref
	case undo.Removed(err), errors.Is(err, fs.ErrNotExist): // a viewer was faster
	default:
		a.mover.Failed(err)
	}
	return err == nil
}

// runAll runs the commands of an entry from where the last time ended. later tells
// that they are to go on another time.
func (a *Applier) runAll(ctx context.Context, m *matched, commands []*external.Argv) (later bool, err error) {
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
			return true, errors.Join(a.seen.note(m.r.Key(), "later", i), context.Cause(ctx))
		}
		if err := a.seen.note(m.r.Key(), "run", i); err != nil {
			return true, err
		}
		err := commands[i].Run(ctx, a.Store, m.r, a.S.Err)
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return true, context.Cause(ctx)
		case errors.As(err, &exit) && exit.ExitCode() == tempFail:
			a.S.Report.Warn("%v; it is run again the next time", err)
			return true, a.seen.note(m.r.Key(), "later", i)
		case err != nil:
			a.S.Report.Print(err)
		}
	}
	return false, nil
}

// ForArrivals returns what applies rules to entries as they arrive, and prints nothing.
func ForArrivals(v *session.Session) *Applier {
	return &Applier{Session: v, mover: undo.Unrecorded(v.Store), quiet: true}
}

// Begin applies the rules to what is new when one begins to wait for arrivals. Rules
// that make no sense are reported, as they may be mended meanwhile.
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

// Arrived applies the rules to an entry as it arrives, as [Apply] does to all.
// trashed tells that nobody's list has it any more.
func (a *Applier) Arrived(ctx context.Context, r *entries.Record) (trashed bool, err error) {
	if a.rules, err = read(a.Dir); err != nil || len(a.rules) == 0 {
		return false, err
	}
	if a.seen, err = openRuled(ctx, a.Store, a.o.DryRun); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, a.seen.close()) }()
	p := a.seen.known[r.Key()]
	if p.word == "seen" {
		return r.Ref.HasFlag('T'), nil
	}
	m := &matched{r: r, from: p, rules: a.match(r, a.bind())}
	err = a.apply(ctx, m)
	return r.Ref.HasFlag('T'), err
}
