//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	helper()
	childOfCrowd()
	os.Exit(m.Run())
}

// testEnv prepares the programs and the server. It skips the test if faults cannot be made.
func testEnv(t *testing.T) *env {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("it builds the programs: ", err)
	}
	if err := supported(t.Context()); err != nil {
		t.Skip(err)
	}
	e, err := newEnv(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.server.Close)
	return e
}

// TestSelection runs a part of make faults: random faults of each kind on each kind of call, in
// every scenario, for two seconds.
func TestSelection(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	e := testEnv(t)
	for _, s := range scenarios(e) {
		t.Run(s.name, func(t *testing.T) {
			tr, err := newTrial(t.Context(), e, s)
			if err != nil {
				t.Fatal(err)
			}
			var faults []fault
			faults = append(faults, selection(tr.kills(), tr.ops)...)
			faults = append(faults, selection(tr.failures(), tr.ops)...)
			faults = append(faults, selection(tr.readFailures(), tr.reads)...)
			faults = append(faults, selection(tr.views(), tr.reads)...)
			rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
			r := tr.all(t.Context(), faults, runtime.NumCPU(), time.Now().Add(time.Second))
			if len(r.kinds) == 0 {
				t.Error("no fault was tried")
			}
			for _, err := range r.errors {
				t.Error(err)
			}
		})
	}
}

// selection returns one fault of each kind on each kind of call.
func selection(faults []fault, ops []op) []fault {
	type kind struct {
		call                       string
		kill, short, full, watched bool
		viewer                     action
	}
	of := func(f fault) kind { return kind{ops[f.n-1].Kind, f.kill, f.short, f.full, f.watched, f.viewer} }
	var some []fault
	seen := map[kind]bool{}
	for _, i := range rand.Perm(len(faults)) {
		if k := of(faults[i]); !seen[k] {
			seen[k] = true
			some = append(some, faults[i])
		}
	}
	return some
}

// testTrial prepares a fetch of a few feeds.
func testTrial(t *testing.T) (*env, *trial) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	e := testEnv(t)
	tr, err := newTrial(t.Context(), e, scenarios(e)[0])
	if err != nil {
		t.Fatal(err)
	}
	return e, tr
}

// TestFinds: the harness detects a fault: without its journal, the entries of a feed are
// delivered again.
func TestFinds(t *testing.T) {
	e, tr := testTrial(t)
	if err := os.Remove(tr.template + "/src/" + feedHash(e.url(0)) + "/etc/fetch/seen"); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.try(t.Context(), fault{n: len(tr.ops) / 2, verdict: verdict{kill: true}}); err == nil || errors.Is(err, errPassed) {
		t.Errorf("found nothing: %v", err)
	}
}

// TestFindsWhatAViewerLost: the harness detects entries that are lost after a viewer ran.
func TestFindsWhatAViewerLost(t *testing.T) {
	e, tr := testTrial(t)
	argv := tr.s.command(e, "")
	copyOf := func(from string) string {
		t.Helper()
		dir := tr.dir()
		copyTree(from, dir)
		return dir
	}
	sh := func(dir, script string, args ...string) {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-euc", script}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, c := range []struct {
		action action
		before string // shell commands before the viewer
		spoil  string // shell commands after it; $0 is the path of the entry in a copy, $1 the path before and $2 the path after the viewer
		want   string
	}{
		{toMove, "", "", ""},
		{toDelete, "", "", ""},
		{toMove, "", `rm -r "$2"`, "it was moved to cur/"},
		{toMove, "", `: >"$2/content"`, "it was moved to cur/"},
		{toMove, "", `cp -R "$2" "$1"`, "some are there twice"},
		{toMove, "", `mv "$2" "$1"`, "it was moved to cur/"},
		{toDelete, "", `cp -R "$0" "$1"`, "it came back"},
		{toDelete, "", `for x in cur/*/*; do y=${x%;*}; mv "$x" "new/${y#cur/}"; done`, "missing, and was not deleted: cur/"},
		{toMove, `for x in new/*/*; do : >"$x/content"; done`, "", "is no version of an entry"},
		{toDelete, `for x in new/*/*; do : >"$x/content"; done`, "", "is no version of an entry"},
		{toDelete, `for x in new/*/*; do cp -R "$x" "${x%.*}.other"; done`, "", "some are in new/ twice"},
	} {
		dir := copyOf(tr.template)
		if err := e.run(t.Context(), dir, "", argv...); err != nil {
			t.Fatal(err)
		}
		before := copyOf(dir)
		sh(dir, c.before)
		taken, err := take(dir, c.action)
		for _, x := range taken {
			from, to := "new/"+x.Feed+"/"+x.Unique, "cur/"+x.Feed+"/"+x.Unique+";2,S"
			sh(dir, c.spoil, before+"/"+from, from, to)
			break
		}
		if err == nil {
			err = tr.goOnWithout(t.Context(), dir, argv, taken, c.action)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, not %q", c.before, c.spoil, err, c.want)
		}
	}
	// The new version in the template is replaced, unless it was taken.
	dir := copyOf(tr.template)
	taken, err := take(dir, toDelete)
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	if err := tr.goOnWithout(t.Context(), dir, argv, taken, toDelete); err != nil {
		t.Error(err)
	}
	whole := copyOf(tr.template)
	if err := e.run(t.Context(), whole, "", argv...); err != nil {
		t.Fatal(err)
	}
	sh(dir, `cp -R "$(dirname "$(grep -l '^Second, changed' "$0"/new/*/*/title)")" new/*/`, whole)
	if err := tr.goOnWithout(t.Context(), dir, argv, taken, toDelete); err == nil || !strings.Contains(err.Error(), "though an older version was taken") {
		t.Errorf("a newer version came: %v", err)
	}
}

// TestOrders runs a part of make faults: random states after power cuts, of as many scenarios as
// fit into eight seconds.
func TestOrders(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	e, ram := ordersEnv(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := append(scenarios(e), listScenarios(e)...)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	end := time.Now().Add(8 * time.Second)
	for _, s := range all {
		if time.Now().After(end) {
			break
		}
		if len(s.histories()) == 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			tr, err := newTrial(t.Context(), e, s)
			if err != nil {
				t.Fatal(err)
			}
			o := orderOptions{states: 100, seed: seed, jobs: runtime.NumCPU(), until: time.Now().Add(time.Second / 2)}
			res, err := tr.orders(t.Context(), alone, ram, o)
			if err != nil {
				t.Fatal(err)
			}
			if res.tried == 0 {
				t.Error("no state was tried")
			}
			for _, err := range res.findings {
				t.Error(err)
			}
		})
	}
}

// TestPrintedIsDurable: after its path is printed, an entry survives a power cut at any time.
func TestPrintedIsDurable(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	e, ram := ordersEnv(t)
	for _, s := range scenarios(e) {
		if s.name != "put" && s.name != "deliver" && s.name != "fetch, a few" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			tr, err := newTrial(t.Context(), e, s)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
			r, err := tr.recorded(t.Context(), alone, ram, model{}, rng)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.printed) == 0 {
				t.Fatal("it printed no path")
			}
			// Test the worst state after each print, in which no unsynced name exists.
			for _, p := range r.printed {
				for k := p.call; k <= r.calls; k++ {
					names, others := r.loose(k, model{})
					c := cut{names: names, others: others}
					dir := filepath.Join(ram, fmt.Sprintf("printed-%d", e.serial.Add(1)))
					r.build(k, c.fates(0, func(int) fate { return fate{} })).volume.write(dir)
					if err := r.promised(k, dir); err != nil {
						t.Errorf("power cut after call %d of %d: %v", k, r.calls, err)
					}
					os.RemoveAll(dir)
				}
			}
		})
	}
}

// TestOrdersFind: the model detects a fault: if syncs do nothing, entries are delivered in part,
// again or never.
func TestOrdersFind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	e, ram := ordersEnv(t)
	tr, err := newTrial(t.Context(), e, scenarios(e)[0])
	if err != nil {
		t.Fatal(err)
	}
	o := orderOptions{states: 40, model: model{unsynced: true}, seed: rand.Uint64(), jobs: runtime.NumCPU()}
	res, err := tr.orders(t.Context(), alone, ram, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.findings) == 0 {
		t.Errorf("found nothing in %d states (seed %d)", res.tried, o.seed)
	}
}

// ordersEnv prepares the environment for tests of states.
func ordersEnv(t *testing.T) (e *env, ram string) {
	t.Helper()
	e = testEnv(t)
	ram, remove, err := shared(e.work)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	return e, ram
}

// TestModel: after a few calls, the model has exactly the states listed here.
func TestModel(t *testing.T) {
	record := func(ops ...op) *recording {
		t.Helper()
		r := &recording{before: volume{{mode: fs.ModeDir, names: map[string]int{}}}}
		r.now = r.before.clone()
		for _, o := range ops {
			r.add(o)
		}
		return r
	}
	// look returns the states, as paths with data.
	look := func(r *recording, m model) []string {
		var all []string
		add := func(s *diskState) bool {
			var b strings.Builder
			for p, x := range s.volume.all() {
				fmt.Fprintf(&b, "%s=%q ", p, x.data)
			}
			all = append(all, strings.TrimSpace(b.String()))
			return true
		}
		rng := rand.New(rand.NewPCG(1, 2))
		r.orders(10000, m, rng, add)
		slices.Sort(all)
		return slices.Compact(all)
	}
	create := func(p string) op { return op{Kind: "create", Path: p, Flags: unix.O_CREAT | unix.O_EXCL} }
	write := func(p, data string) op { return op{Kind: "write", Path: p, Data: []byte(data), Len: len(data)} }
	rename := func(from, to string) op { return op{Kind: "rename", From: from, Path: to} }
	for name, c := range map[string]struct {
		ops  []op
		m    model
		want []string
	}{
		"a file replaced without a sync may be empty": {
			ops:  []op{create("t"), write("t", "ab"), rename("t", "f")},
			want: []string{"", `f=""`, `f="\x00\x00"`, `f="a"`, `f="ab"`, `t=""`, `t="\x00\x00"`, `t="a"`, `t="ab"`},
		},
		"synced, it is whole, and has one name or the other": {
			ops:  []op{create("t"), write("t", "a"), {Kind: "fsync", Path: "t"}, rename("t", "f")},
			want: []string{"", `f="a"`, `t=""`, `t="\x00"`, `t="a"`},
		},
		"two names are of one file": {
			ops: []op{create("t"), {Kind: "fsync", Path: "t"}, {Kind: "link", From: "t", Path: "u"}, {Kind: "sync", Path: "."}, write("u", "a"),
				{Kind: "unlink", Path: "t"}},
			want: []string{"", `t=""`, `t="" u=""`, `t="\x00" u="\x00"`, `t="a" u="a"`, `u=""`, `u="\x00"`, `u="a"`},
		},
		"names survive in order": {
			ops:  []op{{Kind: "mkdir", Path: "a"}, {Kind: "mkdir", Path: "b"}},
			want: []string{"", `a=""`, `a="" b=""`},
		},
		"a sync of a later name makes an earlier one durable": {
			ops:  []op{{Kind: "mkdir", Path: "a"}, {Kind: "mkdir", Path: "b"}, {Kind: "syncfs", Path: "."}, {Kind: "unlink", Path: "a", Flags: unix.AT_REMOVEDIR}},
			want: []string{"", `a=""`, `a="" b=""`, `b=""`},
		},
		"calls that failed change nothing": {
			ops: []op{
				{Kind: "mkdir", Path: "a"}, create("a/x"), {Kind: "mkdir", Path: "a"}, create("a/x"), rename("b", "c"),
				{Kind: "unlink", Path: "a"}, {Kind: "unlink", Path: "a", Flags: unix.AT_REMOVEDIR}, {Kind: "mkdir", Path: "b/c"},
			},
			want: []string{"", `a=""`, `a="" a/x=""`},
		},
	} {
		if got := look(record(c.ops...), c.m); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
