//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// A fault is injected at the n-th call, counted over all threads.
type fault struct {
	n int
	verdict
	full  bool // from the n-th call on, errno is returned for all calls that take space
	reads bool // n also counts reading calls
	// viewer is an action with all new entries: before the command runs again or, if watched is
	// set, before the call.
	viewer action
	// watched means that the viewer runs before the call. The command then continues, unless it
	// is killed.
	watched bool
}

// action is what a viewer does with an entry.
type action int

const (
	toLeave action = iota
	toMove         // to cur/, as read
	toDelete
)

func (f fault) String() string {
	what := "killed before"
	switch {
	case f.watched && !f.kill:
		what = "held before"
	case f.short:
		what = "short write at"
	case f.full:
		what = f.errno.Error() + " from"
	case f.errno != 0:
		what = f.errno.Error() + " at"
	}
	s := fmt.Sprintf("%s call %d", what, f.n)
	if f.reads {
		s += " (reading calls too)"
	}
	switch f.viewer {
	case toMove:
		s += ", then all that is new marked as read"
	case toDelete:
		s += ", then all that is new deleted"
	}
	return s
}

// takesSpace holds the calls that fail on a full disk.
var takesSpace = map[string]bool{"mkdir": true, "create": true, "write": true, "pwrite": true, "symlink": true,
	"link": true, "fallocate": true}

// trial is a prepared scenario.
type trial struct {
	e        *env
	s        scenario
	template string
	ops      []op // without faults
	reads    []op
	before   map[string]bool // entries before it, by feed and files
	there    map[string]bool // entries before it, by feed and id
	entries  map[string]int  // entries after it and after the commands that always follow
	done     map[string]int  // entries right after it
	state    map[string]string
	journal  map[string]int
}

// syncsSkipped lets calls to sync succeed without effect. A kill leaves the same state, since the
// cache survives.
func syncsSkipped(o op) verdict {
	return verdict{done: o.Kind == "fsync" || o.Kind == "syncfs" || o.Kind == "sync"}
}

func newTrial(ctx context.Context, e *env, s scenario) (t *trial, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
		}
	}()
	defer must.Catch(&err)
	t = &trial{e: e, s: s, template: filepath.Join(e.work, "template "+s.name)}
	e.prepare(ctx, s, t.template)
	t.before, t.there = map[string]bool{}, map[string]bool{}
	for _, x := range read(t.template) {
		t.before[content(x.key())] = true
		t.there[x.id()] = true
	}
	for _, reads := range []bool{true, false} {
		dir := t.dir()
		copyTree(t.template, dir)
		var hidden error // an entry that no version shows, before the first such call
		o := must.Get(supervise(ctx, dir, reads, s.stdin, func(n int, o op) verdict {
			// Try again, since another thread's call may just be ending.
			for try := 0; hidden == nil && try < 3; try++ {
				err := must.Run(func() { must.Do(t.hidden(dir, nil)) })
				if err == nil {
					break
				}
				if try == 2 {
					hidden = fmt.Errorf("before call %d, %s: %w", n, o, err)
				}
			}
			return syncsSkipped(o)
		}, s.command(e, dir)...))
		must.That(hidden, "without a fault")
		if o.status != 0 {
			must.Fail("without a fault: status %d: %s", o.status, o.stderr)
		}
		all := read(dir)
		t.done = counted(all)
		if s.purge {
			must.Do(e.run(ctx, dir, "", e.add(e, dir)...))
			all = read(dir)
		}
		if !reads {
			t.ops = o.ops
		} else {
			t.reads = o.ops
		}
		if t.entries != nil {
			must.That(differ(counted(all), t.entries), "two runs without faults differ")
		}
		t.entries = counted(all)
		// State and journals are compared after the next run, which makes conditional requests.
		if !s.viewer && !s.once && !s.purge {
			must.Do(e.run(ctx, dir, s.stdin, s.command(e, dir)...))
		}
		t.state = state(dir)
		t.journal = journals(dir)
		os.RemoveAll(dir)
	}
	return t, nil
}

func (t *trial) dir() string {
	return filepath.Join(t.e.place, fmt.Sprintf("dir-%d", t.e.serial.Add(1)))
}

// errPassed means that the command ended before the fault.
var errPassed = errors.New("the command made fewer calls")

// struck is the result of a fault.
type struck struct {
	*outcome
	hit    op                // the call with the fault
	taken  map[string]*entry // entries that a viewer took before the call
	viewer error             // why the viewer failed
}

// strike runs the command with a fault. If the command ends before the fault, the error is
// errPassed.
func (t *trial) strike(ctx context.Context, dir string, f fault, argv []string) (s struck, err error) {
	happened := false
	s.outcome, err = supervise(ctx, dir, f.reads, t.s.stdin, func(n int, o op) verdict {
		if n < f.n || n > f.n && (!f.full || !takesSpace[o.Kind]) {
			return syncsSkipped(o)
		}
		if n == f.n {
			s.hit = o
			if f.full && !takesSpace[o.Kind] || f.short && o.Len < 2 {
				return syncsSkipped(o)
			}
		}
		happened = true
		if f.watched {
			s.taken, s.viewer = take(dir, f.viewer)
			if !f.kill {
				return syncsSkipped(o)
			}
		}
		return f.verdict
	}, argv...)
	if err == nil && !happened {
		err = errPassed
	}
	return s, err
}

// try runs the command with a fault, and checks the result.
func (t *trial) try(ctx context.Context, f fault) (hit op, err error) {
	defer must.Catch(&err)
	dir := t.dir()
	copyTree(t.template, dir)
	defer os.RemoveAll(dir)
	argv := t.s.command(t.e, dir)
	s, err := t.strike(ctx, dir, f, argv)
	if err != nil {
		return s.hit, err
	}
	bad := []error{s.viewer, t.ended(dir, f, s), t.whole(ctx, dir), t.hidden(dir, s.taken)}
	if f.viewer != toLeave && !f.watched {
		s.taken, err = take(dir, f.viewer)
		bad = append(bad, err)
	}
	if f.viewer != toLeave {
		bad = append(bad, t.goOnWithout(ctx, dir, argv, s.taken, f.viewer))
	} else {
		bad = append(bad, t.goOn(ctx, dir, argv, false))
	}
	if err := errors.Join(bad...); err != nil {
		return s.hit, fmt.Errorf("%s: %v, %s:\n%w\nstatus %d, stderr: %s", t.s.name, f, s.hit, err, s.status, s.stderr)
	}
	return s.hit, nil
}

// ended checks the end of a command.
func (t *trial) ended(dir string, f fault, s struck) (err error) {
	switch {
	case f.kill:
		if s.status != -1 {
			err = fmt.Errorf("it was not killed, but ended with %d", s.status)
		}
	case f.short, f.watched:
		// After a short write, a further call writes the rest. A viewer causes no error.
		if s.status != 0 {
			err = fmt.Errorf("status %d: %s", s.status, s.stderr)
		}
	default:
		err = t.reported(dir, f, s.hit, s.outcome, read(dir))
	}
	if strings.Contains(s.stderr, "goroutine ") {
		err = errors.Join(err, fmt.Errorf("it panicked: %s", s.stderr))
	}
	return err
}

// reported checks how a command reported a failing call.
func (t *trial) reported(dir string, f fault, hit op, o *outcome, after []*entry) (err error) {
	defer must.Catch(&err)
	switch o.status {
	case 0:
		// The command did not need the call. Then nothing may be missing.
		must.That(differ(counted(after), t.done), "it ended with 0, but")
		if !t.s.viewer && !t.s.purge {
			must.That(t.sameState(dir), "it ended with 0, but")
		}
		return nil
	case 1:
	case 75:
		if !t.s.shares {
			return fmt.Errorf("it ended with %d", o.status)
		}
	default:
		return fmt.Errorf("it ended with %d", o.status)
	}
	if !strings.Contains(o.stderr, f.errno.Error()) {
		return fmt.Errorf("the message does not tell of %q", f.errno.Error())
	}
	named := hit.Path != "." && strings.Contains(o.stderr, hit.Path) || hit.From != "" &&
		strings.Contains(o.stderr, hit.From)
	for part := range strings.SplitSeq(hit.Path, "/") {
		named = named || len(part) == 40 && strings.Contains(o.stderr, part)
	}
	for i := range t.s.feeds {
		named = named || strings.Contains(o.stderr, t.e.url(i))
	}
	if !named && !strings.Contains(o.stderr, dir) {
		return fmt.Errorf("the message names neither file nor feed")
	}
	return nil
}

// goOn runs the command again. Then everything must be as without a fault. torn means that
// unsynced files may be torn.
func (t *trial) goOn(ctx context.Context, dir string, argv []string, torn bool) (err error) {
	defer must.Catch(&err)
	switch {
	case t.s.viewer:
		return t.goOnViewing(ctx, dir, argv)
	case t.s.purge:
		return t.goOnAdding(ctx, dir, argv)
	}
	for _, nth := range []string{"again", "a third time"} {
		must.That(t.again(ctx, dir, argv), "%s", nth)
		must.That(differ(counted(read(dir)), t.entries), "after the command was run %s", nth)
	}
	for _, i := range t.s.due {
		// A later fetch delivers entries that could not be saved, whether the feed is due or not.
		must.Do(t.e.run(ctx, dir, "", t.e.fetch, "update", "--gap", "1ms", t.e.url(i)))
	}
	got := state(dir)
	if t.s.once || t.s.shares {
		// An interrupted command leaves files of a feed that is not subscribed to.
		ended := t.e.url(0)
		if t.s.shares {
			ended = t.e.url(1)
		}
		maps.DeleteFunc(got, func(name, _ string) bool {
			return strings.HasPrefix(name, "src/"+feedHash(ended)+"/etc/fetch/") && t.state[name] == ""
		})
		if left := "src/" + feedHash(ended) + "/etc/view/left"; got[left] != "" {
			got[left] = "" // the next subscription removes them
		}
	}
	want := t.state
	if torn {
		// A torn digest matches no document, so the next fetch reads the document.
		digest := func(name, _ string) bool { return strings.HasSuffix(name, "/etc/fetch/body") }
		want = maps.Clone(want)
		maps.DeleteFunc(want, digest)
		maps.DeleteFunc(got, digest)
	}
	must.Do(differState(got, want))
	lines := journals(dir)
	// If compaction was postponed, some lines are repeated.
	for k, n := range t.journal {
		if lines[k] != n && (!t.s.repeated || lines[k] == 0) {
			err = errors.Join(err, fmt.Errorf("journal: %s %d times, not %d", k, lines[k], n))
		}
	}
	for k, n := range lines {
		if t.journal[k] == 0 {
			err = errors.Join(err, fmt.Errorf("journal: %s %d times, not at all", k, n))
		}
	}
	must.Do(err)
	return t.consistent(ctx, dir)
}

// goOnViewing is goOn for a viewer.
func (t *trial) goOnViewing(ctx context.Context, dir string, argv []string) error {
	// Arguments that are done are omitted.
	remaining := slices.Clone(argv)
	all := read(dir)
	there := map[string]int{}
	for _, x := range all {
		if there[x.Unique]++; there[x.Unique] > 1 {
			return fmt.Errorf("in two places: %s", x)
		}
	}
	if t.s.undo {
		// If the journal of the command still exists, the command was not taken back.
		was := must.Get(filepath.Glob(filepath.Join(t.template, "etc/view/undo/*")))
		is := must.Get(filepath.Glob(filepath.Join(dir, "etc/view/undo/*")))
		if len(was) == len(is) {
			must.That(t.e.run(ctx, dir, t.s.stdin, argv...), "again")
		}
	}
	remaining = slices.DeleteFunc(remaining, func(a string) bool { return strings.Contains(a, ".M") && there[a] == 0 })
	if t.s.finds || slices.ContainsFunc(remaining, func(a string) bool { return strings.Contains(a, ".M") }) {
		must.That(t.e.run(ctx, dir, t.s.stdin, remaining...), "again")
	}
	all = read(dir)
	must.That(differ(counted(all), t.entries), "after the command was run again")
	if err := t.saved(dir); err != nil {
		return err
	}
	// A viewer leaves the recovery to the fetcher. No entry comes back.
	before := keyed(all)
	must.Do(t.e.run(ctx, dir, "", t.e.update(t.e, dir)...))
	for id := range keyed(read(dir)) {
		if _, ok := before[id]; !ok && argv[1] == "rm" && strings.Contains(id, "Third") {
			return fmt.Errorf("it came back: %s", id)
		}
	}
	return t.consistent(ctx, dir)
}

// goOnAdding is goOn for the removal of a feed. If the feed was removed, it is new after it is
// added again, else it is as before. After it is removed and added once more, it is new in any
// case.
func (t *trial) goOnAdding(ctx context.Context, dir string, argv []string) error {
	for _, removed := range []bool{false, true} {
		if removed {
			must.Do(t.e.run(ctx, dir, "", argv...))
		}
		must.Do(t.e.run(ctx, dir, "", t.e.add(t.e, dir)...))
		all := read(dir)
		bad := differ(counted(all), t.entries)
		if bad != nil && !removed && differ(counted(all), counted(read(t.template))) == nil {
			bad = nil
		}
		must.That(bad, "added again (removed first: %v)", removed)
		must.Do(t.consistent(ctx, dir))
	}
	return t.sameState(dir)
}

// hidden returns an error for entries that existed before a fetcher ran, and of which no version
// exists while it runs or after it was killed, except entries that a viewer took.
func (t *trial) hidden(dir string, taken map[string]*entry) error {
	if t.s.viewer || t.s.purge || t.s.shares {
		return nil
	}
	now := map[string]bool{}
	for _, x := range read(dir) {
		now[x.id()] = true
	}
	for _, x := range taken {
		now[x.id()] = true
	}
	var bad []error
	for id := range t.there {
		if !now[id] {
			bad = append(bad, fmt.Errorf("no version is in sight of %s", id))
		}
	}
	return errors.Join(bad...)
}

// sameState returns an error if the state differs from that after a run without faults.
func (t *trial) sameState(dir string) error {
	return differState(state(dir), t.state)
}

// again runs the command without faults.
func (t *trial) again(ctx context.Context, dir string, argv []string) error {
	if _, err := os.Stat(filepath.Join(dir, "src", feedHash(t.e.url(0)), "etc/fetch/url")); err != nil && t.s.once {
		return nil
	}
	err := t.e.run(ctx, dir, t.s.stdin, argv...)
	if err == nil && t.s.due != nil {
		err = t.e.run(ctx, dir, "", t.e.fetch, "update", "--gap", "1ms", "--per-host", "4")
	}
	return err
}

// twice runs the command twice without faults, and returns the entries afterwards.
func (t *trial) twice(ctx context.Context, dir string, argv []string) []*entry {
	for range 2 {
		must.That(t.again(ctx, dir, argv), "again")
	}
	return read(dir)
}

// keyed returns the existing versions of entries, by identity and title.
func keyed(all []*entry) map[string]*entry {
	m := map[string]*entry{}
	for _, x := range all {
		m[x.Feed+" "+lektordir.Ref{Unique: x.Unique}.Identity()+" "+x.Files["title"]] = x
	}
	return m
}

// take moves or deletes all entries of new/, like a viewer that is a shell script, and returns
// them.
func take(dir string, a action) (taken map[string]*entry, err error) {
	defer must.Catch(&err)
	all := slices.DeleteFunc(read(dir), func(x *entry) bool { return x.Place != "new" })
	taken = keyed(all)
	if len(taken) != len(all) {
		return nil, fmt.Errorf("some are in new/ twice: %v", all)
	}
	for _, x := range all {
		path := filepath.Join(dir, x.Place, x.Feed, x.Unique)
		if a == toDelete {
			err = os.RemoveAll(path)
		} else if err = os.MkdirAll(filepath.Join(dir, "cur", x.Feed), 0o777); err == nil {
			err = os.Rename(path, filepath.Join(dir, "cur", x.Feed, x.Unique+";2,S"))
		}
		if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// goOnWithout runs the command again after a viewer has taken the new entries. Deleted entries do
// not come back, moved ones are complete and in their places, and all others are delivered.
func (t *trial) goOnWithout(ctx context.Context, dir string, argv []string, taken map[string]*entry,
	a action) (err error) {
	defer must.Catch(&err)
	all := t.twice(ctx, dir, argv)
	now := keyed(all)
	if len(now) != len(all) {
		return fmt.Errorf("some are there twice: %v", all)
	}
	must.Do(t.checkTaken(now, taken, a))
	must.Do(t.complete(now, taken, a))
	must.Do(t.surplus(now, taken))
	return t.consistent(ctx, dir)
}

// checkTaken checks the entries that a viewer took: each was complete, and is gone if it was
// deleted, or in the place to which it was moved.
func (t *trial) checkTaken(now, taken map[string]*entry, a action) error {
	whole := maps.Clone(t.before)
	for key := range t.entries {
		whole[content(key)] = true
	}
	for id, x := range taken {
		there := now[id]
		switch {
		case !whole[content(x.key())]:
			return fmt.Errorf("it was new, and is no version of an entry: %s %q", x, x.Files)
		case a == toDelete && there != nil:
			return fmt.Errorf("it came back after it was deleted: %s", id)
		case a == toMove && (there == nil || there.Place != "cur" || there.Flags != "2,S" ||
			!maps.Equal(there.Files, x.Files)):
			return fmt.Errorf("it was moved to cur/, and there is %v: %s", there, id)
		}
	}
	return nil
}

// complete checks each entry that exists without a fault. It exists, or a viewer took it, or took
// a version that newer ones do not replace.
func (t *trial) complete(now, taken map[string]*entry, a action) error {
	for key := range t.entries {
		found := false
		for id, x := range now {
			found = found || versionless(x.key()) == versionless(key) || taken[id] != nil &&
				content(x.key()) == content(key)
		}
		for _, x := range taken {
			found = found || a == toDelete && content(x.key()) == content(key) || sameEntry(key, x) &&
				!t.delivers(x.Feed)
		}
		if !found {
			return fmt.Errorf("missing, and was not deleted: %.300s", key)
		}
	}
	return nil
}

// surplus returns an error for entries that do not exist without a fault.
func (t *trial) surplus(now, taken map[string]*entry) error {
	want := map[string]bool{} // by place
	for key := range t.entries {
		want[versionless(key)] = true
	}
	for id, x := range now {
		if taken[id] != nil {
			continue
		}
		if !want[versionless(x.key())] {
			return fmt.Errorf("it is there, and is not to be: %s", x)
		}
		for _, y := range taken {
			if y.Feed == x.Feed && y.Files["id"] == x.Files["id"] && !t.delivers(x.Feed) {
				return fmt.Errorf("it came, though an older version was taken: %s", x)
			}
		}
	}
	return nil
}

// delivers reports whether every version of an entry of the feed is delivered.
func (t *trial) delivers(hash string) bool {
	for i := range t.s.feeds {
		if i%3 == 1 && feedHash(t.e.url(i)) == hash {
			return true
		}
	}
	return false
}

// versionless returns the key of an entry without the version that it replaces.
func versionless(key string) string { return replaces.ReplaceAllString(key, "") }

// placeless returns the key of an entry without its place.
func placeless(key string) string {
	head, files, _ := strings.Cut(key, " ")
	return strings.Split(head, "/")[1] + " " + files
}

// content returns the key of an entry without either.
func content(key string) string { return placeless(versionless(key)) }

var replaces = regexp.MustCompile(` replaces="[^"]*"`)

// sameEntry reports whether an entry has the feed and the id of the one with a key.
func sameEntry(key string, x *entry) bool {
	return strings.Contains(key, "/"+x.Feed+"/") && strings.Contains(key, fmt.Sprintf(" id=%q", x.Files["id"]))
}

// consistent checks the lektor-dir.
func (t *trial) consistent(ctx context.Context, dir string) (err error) {
	defer must.Catch(&err)
	must.Do(t.e.run(ctx, dir, "", t.e.fetch, "check"))
	if left := must.Get(filepath.Glob(filepath.Join(dir, "tmp/*/*"))); len(left) > 0 {
		err = fmt.Errorf("left in tmp/: %q", left)
	}
	return err
}

// tally counts the results of faults.
type tally struct {
	mu     sync.Mutex
	kinds  map[string]int
	errors []error
}

// all tests faults, several at once. If until is not zero, none begins after it.
func (t *trial) all(ctx context.Context, faults []fault, workers int, until time.Time) *tally {
	r := &tally{kinds: map[string]int{}}
	var jobs errgroup.Group
	jobs.SetLimit(workers)
	for _, f := range faults {
		if ctx.Err() != nil || !until.IsZero() && time.Now().After(until) && r.some() {
			break
		}
		jobs.Go(func() error {
			hit, err := t.try(ctx, f)
			r.mu.Lock()
			defer r.mu.Unlock()
			if err == nil {
				r.kinds[hit.Kind]++
			} else if !errors.Is(err, errPassed) {
				r.errors = append(r.errors, err)
			}
			return nil
		})
	}
	jobs.Wait()
	return r
}

// some reports whether any fault was tested.
func (r *tally) some() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.kinds)+len(r.errors) > 0
}

// kills returns all kills.
func (t *trial) kills() []fault {
	var fs []fault
	for i := range t.ops {
		fs = append(fs, fault{n: i + 1, verdict: verdict{kill: true}})
		if !t.s.viewer && !t.s.purge && !t.s.shares {
			fs = append(fs, fault{n: i + 1, verdict: verdict{kill: true}, viewer: toDelete})
		}
	}
	return fs
}

// views returns all calls before which a viewer can run.
func (t *trial) views() []fault {
	var fs []fault
	if t.s.viewer || t.s.purge || t.s.shares {
		return nil
	}
	for i := range t.reads {
		for _, a := range []action{toMove, toDelete} {
			f := fault{n: i + 1, reads: true, viewer: a, watched: true}
			fs = append(fs, f)
			if f.kill = true; t.reads[i].Write {
				fs = append(fs, f)
			}
		}
	}
	return fs
}

// failures returns all failing calls and short writes.
func (t *trial) failures() []fault {
	var fs []fault
	for i, o := range t.ops {
		if o.Kind == "sync" {
			continue // its errors are not printed
		}
		for _, e := range errnos {
			fs = append(fs, fault{n: i + 1, verdict: verdict{errno: e}})
		}
		if takesSpace[o.Kind] {
			fs = append(fs,
				fault{n: i + 1, verdict: verdict{errno: unix.ENOSPC}, full: true},
				fault{n: i + 1, verdict: verdict{errno: unix.EDQUOT}, full: true},
			)
		}
		if o.Len > 1 {
			fs = append(fs, fault{n: i + 1, verdict: verdict{short: true}})
		}
	}
	return fs
}

// readFailures returns all failing calls that read.
func (t *trial) readFailures() []fault {
	var fs []fault
	for i, o := range t.reads {
		if !o.Write {
			for _, e := range []unix.Errno{unix.EIO, unix.EACCES, unix.EMFILE} {
				fs = append(fs, fault{n: i + 1, verdict: verdict{errno: e}, reads: true})
			}
		}
	}
	return fs
}
