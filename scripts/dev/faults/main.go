//go:build linux && (amd64 || arm64)

// Command faults injects faults into the programs, and checks the result: see the README
// beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

func main() {
	helper()
	childOfCrowd()
	only := flag.String("only", "", "only scenarios whose name contains `TEXT`")
	kinds := flag.String("faults", "kill,fail,read,view",
		"`KINDS` of faults: kill, fail, read, and a viewer in the middle, view; may be empty")
	cuts := flag.Int("cuts", 0, "cut the power of each disk `N` times")
	unsynced := flag.Bool("unsynced", false,
		"in power cuts and orders, make syncs do nothing, to see that this is found")
	states := flag.Int("orders", 0, "try `N` states that a disk may be in after a power cut, of each scenario")
	seed := flag.Uint64("seed", rand.Uint64(), "begin the random choices of -orders with `N`")
	step := flag.Int("step", 1, "try every `N`-th fault")
	jobs := flag.Int("j", runtime.NumCPU(), "try `N` at once")
	crowded := flag.Duration("crowd", time.Minute, "let the crowd work for `TIME`; 0 leaves it out")
	grows := flag.Duration("grow", 40*time.Millisecond, "in the crowd, add or change an entry every `TIME`")
	volume := flag.Bool("gluster", false, "let the programs work on a volume of GlusterFS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := orderOptions{states: *states, model: model{unsynced: *unsynced}, seed: *seed, jobs: *jobs}
	must.Main("faults", func() {
		if *volume && !gluster.Inside() {
			os.Exit(gluster.Main(ctx))
		}
		work := must.Get(os.MkdirTemp("", "lektor-faults-"))
		defer os.RemoveAll(work)
		e := must.Get(newEnv(work))
		defer e.server.Close()
		if gluster.Inside() {
			defer e.onVolume(ctx)()
		}
		bad := 0
		if *crowded > 0 && strings.Contains("crowd", *only) {
			bad += e.crowd(ctx, *seed, *crowded, *grows)
		}
		bad += e.everything(ctx, choice{only: *only, kinds: *kinds, cuts: *cuts, step: *step, orders: o})
		if bad > 0 {
			must.Fail("%d faults did not go well", bad)
		}
	})
}

// faultKinds are the functions that return the faults of each kind for a scenario.
var faultKinds = map[string]func(t *trial) []fault{
	"kill": (*trial).kills, "fail": (*trial).failures, "read": (*trial).readFailures, "view": (*trial).views,
}

// choice is the choice of faults.
type choice struct {
	only, kinds string
	cuts        int // power cuts of each disk
	step        int // test only every step-th fault
	orders      orderOptions
}

// everything tests faults, and returns the number of failures.
func (e *env) everything(ctx context.Context, c choice) (bad int) {
	if err := supported(ctx); err != nil {
		fmt.Println("skipped:", err)
		return 0
	}
	total := 0
	count := func(well, badly int) { total, bad = total+well, bad+badly }
	for _, s := range scenarios(e) {
		if c.kinds == "" || !strings.Contains(s.name, c.only) {
			continue
		}
		t := must.Get(newTrial(ctx, e, s))
		for kind := range strings.SplitSeq(c.kinds, ",") {
			count(t.everyFault(ctx, kind, c))
		}
	}
	if c.kinds != "" && strings.Contains("serve", c.only) {
		count(tryServe(ctx, e, c))
	}
	if c.orders.states > 0 {
		count(e.orders(ctx, c.only, c.orders))
		if strings.Contains("hub", c.only) {
			count(tryHub(ctx, e.work, c.orders.model))
		}
	}
	if c.cuts > 0 {
		for _, fs := range slices.Sorted(maps.Keys(disks)) {
			count(e.everyCut(ctx, fs, c))
		}
	}
	fmt.Printf("%d faults that went well, %d that did not\n", total, bad)
	return bad
}

// everyFault tests the faults of a kind.
func (t *trial) everyFault(ctx context.Context, kind string, c choice) (well, bad int) {
	all, ok := faultKinds[kind]
	if !ok {
		must.Fail("no faults are of the kind %q", kind)
	}
	var some []fault
	for each := range slices.Chunk(all(t), c.step) {
		some = append(some, each[0])
	}
	if len(some) == 0 {
		return 0, 0
	}
	start := time.Now()
	r := t.all(ctx, some, c.orders.jobs, time.Time{})
	var by []string
	for _, k := range slices.Sorted(maps.Keys(r.kinds)) {
		well += r.kinds[k]
		by = append(by, fmt.Sprintf("%s %d", k, r.kinds[k]))
	}
	fmt.Printf("%-14s %-5s %5d well, %d badly, %.0f s: %s\n", t.s.name, kind, well, len(r.errors),
		time.Since(start).Seconds(), strings.Join(by, ", "))
	printFindings(r.errors)
	must.Do(ctx.Err())
	return well, len(r.errors)
}

// everyCut cuts the power of a disk.
func (e *env) everyCut(ctx context.Context, fs string, c choice) (well, bad int) {
	tried, findings, err := e.cuts(ctx, fs, c.only, c.cuts, c.orders.model.unsynced)
	if errors.Is(err, errNoDisk) {
		fmt.Printf("skipped: %s: %v\n", fs, err)
		return 0, 0
	}
	must.Do(err)
	fmt.Printf("%d power cuts on %s: %d well, %d badly\n", tried, fs, tried-len(findings), len(findings))
	printFindings(findings)
	return tried - len(findings), len(findings)
}

// printFindings prints the first ten findings.
func printFindings(findings []error) {
	for _, err := range findings[:min(10, len(findings))] {
		fmt.Printf("\n%v\n", err)
	}
}

// onVolume makes a volume of GlusterFS for the programs to work on, and returns a
// function that removes it.
func (e *env) onVolume(ctx context.Context) (end func()) {
	dir := filepath.Join(e.work, "volume")
	must.Do(os.Mkdir(dir, 0o700))
	e.volume = must.Get(gluster.New(ctx, dir))
	e.place = filepath.Join(e.work, "mount")
	must.Do(e.volume.Mount(ctx, e.place))
	return e.volume.Close
}
