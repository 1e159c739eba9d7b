//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// history is an event in a lektor-dir, besides the run of a command, before the power is cut.
type history string

const (
	alone history = "" // nothing
	// before it, the same command was killed, with none of its changes durable
	killed  history = ", after a killed one"
	cutOff  history = ", after another power cut" // before it, the same command and a power cut
	marked  history = ", then mark"               // after it, a viewer marks all new entries
	removed history = ", then rm"                 // after it, a viewer deletes all new entries
)

// histories returns the histories to test for a scenario.
func (s scenario) histories() []history {
	switch {
	case s.undo, s.shares, s.saves != nil:
		return nil // they also write outside of the directory that is recorded
	case s.viewer || s.once || s.pages || s.purge:
		return []history{alone}
	case s.list:
		return []history{alone, killed, cutOff}
	}
	return []history{alone, killed, cutOff, marked, removed}
}

// orderOptions select the states to test.
type orderOptions struct {
	states int
	model  model
	seed   uint64
	jobs   int
	until  time.Time // if not zero, only the first state is tested after this time
}

// ordered counts the tested states.
type ordered struct {
	tried    int
	all      bool // all possible states were tested
	findings []error
}

// perRecording is the number of states that are tested for a recording, if recordings differ from
// each other.
const perRecording = 100

// shared returns a directory on a file system in memory, if there is one, since it is faster for
// thousands of states.
func shared(work string) (dir string, remove func(), err error) {
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) == nil && int64(st.Type) == unix.TMPFS_MAGIC {
		if dir, err := os.MkdirTemp("/dev/shm", "lektor-faults-"); err == nil {
			return dir, func() { os.RemoveAll(dir) }, nil
		}
	}
	dir, err = os.MkdirTemp(work, "states-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// orders tests states of the disk after a power cut in the scenario.
func (t *trial) orders(ctx context.Context, h history, ram string, o orderOptions) (res *ordered, err error) {
	defer must.Catch(&err)
	sum := fnv.New64a()
	sum.Write([]byte(h))
	rng := rand.New(rand.NewPCG(o.seed, sum.Sum64()))
	res = &ordered{}
	recordings := 1
	if h != alone || t.s.feeds > 1 {
		recordings = max(1, o.states/perRecording)
	}
	var mu sync.Mutex
	var jobs errgroup.Group
	jobs.SetLimit(o.jobs)
	defer jobs.Wait()
	begun := 0
	for i := range recordings {
		r := must.Get(t.recorded(ctx, h, ram, o.model, rng))
		n := (o.states*(i+1))/recordings - (o.states*i)/recordings
		all := r.orders(n, o.model, rng, func(s *diskState) bool {
			if ctx.Err() != nil || begun > 0 && !o.until.IsZero() && time.Now().After(o.until) {
				return false
			}
			begun++
			deletes := !t.s.viewer && !t.s.list && !t.s.purge && rng.IntN(2) == 0
			jobs.Go(func() error {
				err := t.recovers(ctx, h, ram, r, s, deletes)
				mu.Lock()
				defer mu.Unlock()
				if res.tried++; err != nil && ctx.Err() == nil {
					res.findings = append(res.findings, err)
				}
				return nil
			})
			return true
		})
		res.all = all && recordings == 1
		must.Do(ctx.Err())
	}
	return res, nil
}

// recorded records the scenario's command.
func (t *trial) recorded(ctx context.Context, h history, ram string, m model, rng *rand.Rand) (*recording, error) {
	for try := 0; ; try++ {
		r, err := t.record(ctx, h, ram, m, rng)
		// Calls of two threads may be recorded in another order than they were made, and calls of
		// a killed thread may be missing.
		if err == nil || try == 5 || ctx.Err() != nil {
			return r, err
		}
	}
}

func (t *trial) record(ctx context.Context, h history, ram string, m model, rng *rand.Rand) (r *recording, err error) {
	defer must.Catch(&err)
	dir := t.dir()
	if t.s.feeds > 1 && rng.IntN(2) == 0 {
		// On this file system, files are always synced one by one.
		dir = filepath.Join(ram, filepath.Base(dir))
	}
	defer os.RemoveAll(dir)
	if h == cutOff {
		r := must.Get(t.record(ctx, alone, ram, m, rng))
		var some []*diskState
		r.orders(20, m, rng, func(s *diskState) bool { some = append(some, s); return true })
		some[rng.IntN(len(some))].volume.write(dir)
	} else {
		copyTree(t.template, dir)
	}
	r = newRecording(dir)
	argv := t.s.command(t.e, t.template)
	if h == killed {
		t.recordRun(ctx, r, dir, 1+rng.IntN(len(t.ops)), argv)
	}
	if t.recordRun(ctx, r, dir, 0, argv); h != marked && h != removed {
		return r, nil
	}
	argv = []string{t.e.view, "rm", "--now"}
	if h == marked {
		argv = []string{t.e.view, "mark", "--set", "S"}
	}
	for _, x := range read(dir) {
		if x.Place == "new" {
			argv = append(argv, x.Unique)
		}
	}
	t.recordRun(ctx, r, dir, 0, argv)
	return r, nil
}

// recordRun runs a command and records its calls. If kill is not 0, the command is killed
// before that call.
func (t *trial) recordRun(ctx context.Context, r *recording, dir string, kill int, argv []string) {
	before, text := r.calls, ""
	o := must.Get(supervision{dir: dir, prints: true, stdin: t.s.stdin, decide: func(n int, o op) verdict {
		if o.Kind == "print" {
			text += string(o.Data)
			for line, rest, ok := strings.Cut(text, "\n"); ok; line, rest, ok = strings.Cut(text, "\n") {
				text = rest
				// A viewer does not sync its renames.
				if unique, ok := printedUnique(line); ok && argv[0] == t.e.fetch {
					r.printed = append(r.printed, printed{unique, before + n})
				}
			}
			return verdict{}
		}
		if kill > 0 && n >= kill {
			return verdict{kill: true}
		}
		return syncsSkipped(o)
	}}.run(ctx, argv...))
	if kill > 0 && len(o.ops) >= kill {
		o.ops = o.ops[:kill-1]
	} else if o.status != 0 && argv[0] != t.e.view { // deleting a version deletes its older versions
		must.Fail("%s: status %d: %s", t.s.name, o.status, o.stderr)
	}
	for _, o := range o.ops {
		r.add(o)
	}
	r.matches(dir)
}

// recovers checks a state after the command ran again, or after a viewer deleted all new entries.
func (t *trial) recovers(ctx context.Context, h history, ram string, r *recording, s *diskState, deletes bool) error {
	dir := filepath.Join(ram, fmt.Sprintf("state-%d", t.e.serial.Add(1)))
	defer os.RemoveAll(dir)
	err := must.Run(func() {
		s.volume.write(dir)
		if h != removed && !t.s.viewer {
			must.Do(r.promised(s.call, dir))
		}
		if h == marked || h == removed {
			must.Do(t.afterViewer(ctx, dir, h))
		} else {
			must.Do(t.afterCut(ctx, dir, s.call == r.calls, deletes))
		}
	})
	if err != nil {
		err = fmt.Errorf("%s%s: %s:\n%w", t.s.name, h, r.describe(s), err)
	}
	return err
}

// promised returns an error for entries whose paths were printed before a power cut after a call,
// and that are not on the disk.
func (r *recording) promised(call int, dir string) error {
	var uniques []string
	for _, p := range r.printed {
		if p.call <= call {
			uniques = append(uniques, p.unique)
		}
	}
	return promised(uniques, dir)
}

// printedUnique returns the unique name in a line that is the path of an entry.
func printedUnique(line string) (unique string, ok bool) {
	unique, _, _ = strings.Cut(path.Base(line), ";")
	return unique, strings.Contains(line, "/new/") || strings.Contains(line, "/cur/")
}

// promised returns an error for the entries that a lektor-dir does not have.
func promised(uniques []string, dir string) error {
	there := map[string]bool{}
	for _, x := range read(dir) {
		there[x.Unique] = true
	}
	var bad []error
	for _, unique := range uniques {
		if !there[unique] {
			bad = append(bad, fmt.Errorf("its path was printed, and it is not there: %s", unique))
		}
	}
	return errors.Join(bad...)
}

// afterCut checks a lektor-dir after a power cut. ended means that the command had ended before.
func (t *trial) afterCut(ctx context.Context, dir string, ended, deletes bool) (err error) {
	defer must.Catch(&err)
	argv := t.s.command(t.e, t.template)
	bad := t.hidden(dir, nil)
	switch {
	case t.s.viewer:
		bad = t.viewed(dir)
	case t.s.list:
		bad = errors.Join(bad, t.listed(dir, ended))
	case t.s.purge && ended:
		if all := read(dir); len(all) > 0 {
			bad = fmt.Errorf("it was removed, and there is %v", all)
		}
	}
	if deletes {
		taken, err := take(dir, toDelete)
		return errors.Join(bad, err, t.goOnWithout(ctx, dir, argv, taken, toDelete))
	}
	return errors.Join(bad, t.goOn(ctx, dir, argv, true))
}

// afterViewer checks a lektor-dir after a power cut that followed a viewer's run, which may be
// undone. Each entry exists once and complete, or not at all if it was deleted. After it is
// deleted again, it does not come back.
func (t *trial) afterViewer(ctx context.Context, dir string, h history) (err error) {
	defer must.Catch(&err)
	argv := t.s.command(t.e, t.template)
	all := t.twice(ctx, dir, argv)
	// Compare the entries, without their places.
	got, want := map[string]int{}, map[string]int{}
	for key, n := range t.entries {
		want[placeless(key)] += n
	}
	for _, x := range all {
		got[placeless(x.key())]++
	}
	if h == removed {
		for key := range want {
			if got[key] == 0 {
				delete(want, key)
			}
		}
	}
	must.That(differ(got, want), "after the command was run again")
	for _, x := range all {
		must.Do(os.RemoveAll(filepath.Join(dir, x.Place, x.Feed)))
	}
	must.That(t.again(ctx, dir, argv), "again")
	if all = read(dir); len(all) > 0 {
		err = fmt.Errorf("they came back after they were deleted: %v", all)
	}
	return errors.Join(err, t.consistent(ctx, dir))
}

// viewed checks the result of a viewer's run and a power cut: each entry is complete, in its old
// or new place, or is deleted if the viewer deleted it.
func (t *trial) viewed(dir string) error {
	all := read(dir)
	var bad []error
	for _, x := range read(t.template) {
		var found []*entry
		for _, y := range all {
			if y.Feed == x.Feed && y.Unique == x.Unique {
				found = append(found, y)
			}
		}
		switch {
		case len(found) == 0 && len(t.entries) > 0:
			bad = append(bad, fmt.Errorf("lost: %s", x))
		case len(found) > 1:
			bad = append(bad, fmt.Errorf("in two places: %s and %s", found[0], found[1]))
		case len(found) == 1:
			if !maps.Equal(found[0].Files, x.Files) {
				bad = append(bad, fmt.Errorf("not whole: %s has %q", found[0], found[0].Files))
			}
			if y := found[0]; y.key() != x.key() && t.entries[y.key()] == 0 {
				bad = append(bad, fmt.Errorf("neither where it was nor where it was to be: %s, before %s", y, x))
			}
		}
	}
	return errors.Join(bad...)
}

// settings are the user's files of a feed.
var settings = []string{"etc/fetch/url", "etc/fetch/interval", "etc/fetch/on-update", "etc/fetch/headers",
	"etc/fetch/filter", "etc/view/alias", "etc/categories"}

// listed checks the result of a change of subscriptions and a power cut. Each setting has its old
// or new value, and the new one if the command had ended. Each subscribed feed has an id. Its
// name may be missing: the next fetch writes it from the document.
func (t *trial) listed(dir string, ended bool) (err error) {
	before := state(t.template)
	now := state(dir)
	names := []string{"etc/fetch/opml"}
	feeds := map[string]bool{}
	for name := range t.state {
		feeds[strings.Join(strings.SplitN(name, "/", 3)[:2], "/")] = strings.HasPrefix(name, "src/")
	}
	for feed, ok := range feeds {
		for _, name := range settings {
			if ok {
				names = append(names, path.Join(feed, name))
			}
		}
		if _, subscribed := now[feed+"/etc/fetch/url"]; subscribed {
			names = append(names, feed+"/id")
		}
	}
	slices.Sort(names)
	is := func(m map[string]string, name string) string {
		if v, ok := m[name]; ok {
			return fmt.Sprintf("%q", v)
		}
		return "not there"
	}
	for _, name := range names {
		was, got, want := is(before, name), is(now, name), is(t.state, name)
		if strings.HasSuffix(name, "/headers") && got == `""` && was == "not there" {
			continue // equal to the expected value
		}
		if got != want && (ended || got != was) {
			err = errors.Join(err, fmt.Errorf("%s is %s; before %s, and to be %s (ended: %v)", name, got, was, want,
				ended))
		}
	}
	return err
}

// orders tests all scenarios, and prints the results.
func (e *env) orders(ctx context.Context, only string, o orderOptions) (well, bad int) {
	ram, remove := must.Get2(shared(e.work))
	defer remove()
	fmt.Printf("states after power cuts: -seed %d\n", o.seed)
	for _, s := range append(scenarios(e), listScenarios(e)...) {
		histories := slices.DeleteFunc(s.histories(),
			func(h history) bool { return !strings.Contains(s.name+string(h), only) })
		if len(histories) == 0 {
			continue
		}
		name := s.name
		s.name += " (orders)"
		t := must.Get(newTrial(ctx, e, s))
		for _, h := range histories {
			start := time.Now()
			res, err := t.orders(ctx, h, ram, o)
			must.That(err, "%s%s", name, h)
			some := ""
			if res.all {
				some = ", all there are"
			}
			fmt.Printf("%-48s %5d well, %d badly%s, %.0f s\n", name+string(h), res.tried-len(res.findings),
				len(res.findings), some, time.Since(start).Seconds())
			printFindings(res.findings)
			well, bad = well+res.tried-len(res.findings), bad+len(res.findings)
		}
	}
	return well, bad
}
