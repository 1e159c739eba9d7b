//go:build linux && (amd64 || arm64)

// Command faults lets faults befall the programs, and looks at what comes of
// it: see the README beside it.
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
	kinds := flag.String("faults", "kill,fail,read,view", "`KINDS` of faults: kill, fail, read, and a viewer in the middle, view; may be empty")
	cuts := flag.Int("cuts", 0, "cut the power of each disk `N` times")
	unsynced := flag.Bool("unsynced", false, "of power cuts and orders: syncs do nothing, to see that this is found")
	states := flag.Int("orders", 0, "try `N` states that a disk may be in after a power cut, of each scenario")
	seed := flag.Uint64("seed", rand.Uint64(), "begin the random choices of -orders with `N`")
	step := flag.Int("step", 1, "try every `N`-th fault")
	jobs := flag.Int("j", runtime.NumCPU(), "try `N` at once")
	crowded := flag.Duration("crowd", time.Minute, "let the crowd work for `TIME`; 0 leaves it out")
	grows := flag.Duration("grow", 40*time.Millisecond, "of the crowd: add or change an entry every `TIME`")
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
		bad += e.everything(ctx, *only, *kinds, *cuts, *unsynced, *step, *jobs, o)
		if bad > 0 {
			must.Fail("%d faults did not go well", bad)
		}
	})
}

// everything tries faults, and returns how many did not go well.
func (e *env) everything(ctx context.Context, only, kinds string, cuts int, unsynced bool, step, jobs int, o orderOptions) (bad int) {
	if err := supported(ctx); err != nil {
		fmt.Println("skipped:", err)
		return 0
	}
	total := 0
	for _, s := range scenarios(e) {
		if kinds == "" || !strings.Contains(s.name, only) {
			continue
		}
		t := must.Get(newTrial(ctx, e, s))
		for kind := range strings.SplitSeq(kinds, ",") {
			var faults []fault
			switch kind {
			case "kill":
				faults = t.kills()
			case "fail":
				faults = t.failures()
			case "read":
				faults = t.readFailures()
			case "view":
				faults = t.views()
			}
			var some []fault
			for each := range slices.Chunk(faults, step) {
				some = append(some, each[0])
			}
			if len(some) == 0 {
				continue
			}
			start := time.Now()
			r := t.all(ctx, some, jobs, time.Time{})
			n := 0
			var by []string
			for _, k := range slices.Sorted(maps.Keys(r.kinds)) {
				n += r.kinds[k]
				by = append(by, fmt.Sprintf("%s %d", k, r.kinds[k]))
			}
			total += n
			fmt.Printf("%-14s %-5s %5d well, %d badly, %.0f s: %s\n", s.name, kind, n, len(r.errors), time.Since(start).Seconds(), strings.Join(by, ", "))
			tell(r.errors)
			bad += len(r.errors)
			must.Do(ctx.Err())
		}
	}
	if o.states > 0 {
		well, badly := e.orders(ctx, only, o)
		total, bad = total+well, bad+badly
		if strings.Contains("hub", only) {
			well, badly = tryHub(ctx, e.work, o.model)
			total, bad = total+well, bad+badly
		}
	}
	for _, fs := range slices.Sorted(maps.Keys(disks)) {
		if cuts == 0 {
			break
		}
		tried, findings, err := e.cuts(ctx, fs, only, cuts, unsynced)
		switch {
		case errors.Is(err, errNoDisk):
			fmt.Printf("skipped: %s: %v\n", fs, err)
		case err != nil:
			must.Do(err)
		default:
			fmt.Printf("%d power cuts on %s: %d well, %d badly\n", tried, fs, tried-len(findings), len(findings))
			total += tried - len(findings)
		}
		tell(findings)
		bad += len(findings)
	}
	fmt.Printf("%d faults that went well, %d that did not\n", total, bad)
	return bad
}

// tell prints the first ten findings.
func tell(findings []error) {
	for _, err := range findings[:min(10, len(findings))] {
		fmt.Printf("\n%v\n", err)
	}
}

// onVolume makes a volume of GlusterFS for the programs to work on, and gives what ends
// that.
func (e *env) onVolume(ctx context.Context) (end func()) {
	dir := filepath.Join(e.work, "volume")
	must.Do(os.Mkdir(dir, 0o700))
	e.volume = must.Get(gluster.New(ctx, dir))
	e.place = filepath.Join(e.work, "mount")
	must.Do(e.volume.Mount(ctx, e.place))
	return e.volume.Close
}
