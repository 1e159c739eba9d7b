//go:build linux

// Bench measures lektor's programs. Each row of its table compares them with other programs that
// do the same, if these are installed, with the floor of the file system, or with -against with
// older programs of lektor. README.md describes the figures.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// rows are all measurements, in the order of the table. Each is in a separate file.
var rows = []struct {
	name    string
	measure func(b *bench)
}{
	{"fetch", (*bench).fetch},
	{"unchanged", (*bench).unchanged},
	{"convert", (*bench).convert},
	{"deliver", (*bench).deliver},
	{"history", (*bench).history},
	{"list", (*bench).list},
	{"index", (*bench).index},
	{"tui", (*bench).tui},
	{"push", (*bench).push},
	{"share", (*bench).share},
	{"serve", (*bench).serve},
	{"readers", (*bench).readers},
	{"page", (*bench).page},
	{"ess", (*bench).ess},
	{"gluster", (*bench).gluster},
	{"start", (*bench).start},
}

// sizes are the sizes of the measurements. -n changes them, and 0 omits a measurement.
var sizes = map[string]int{
	"few": 200, "feeds": 500, "large": 2000, "unchanged": 10000, "entries": 20, "bytes": 2500, "jobs": 16,
	"archives":  100,
	"converted": 1000, "listed": 100_000, "indexed": 100_000, "mailed": 20_000, "updates": 100, "subscribers": 10_000,
	"registrations": 5000,
	"marks":         200_000, "served": 100_000, "clients": 50, "documents": 100_000, "lines": 200_000, "gluster": 320,
	"starts": 50,
}

type bench struct {
	bin, against string // directories of programs
	dir          string // directory of all files
	rounds       int
	groups       []*group
}

func main() {
	main := run
	if len(os.Args) > 1 {
		if child := children[os.Args[1]]; child != nil {
			main = func() { child(os.Args[2:]) }
		}
	}
	must.Main("bench", main)
}

// children are the main functions of the runs that again makes, by their first argument.
var children = map[string]func(args []string){deliverArg: deliverChild, convertArg: convertChild,
	besideArg: besideChild, echoArg: echoChild}

// again returns a run of this program.
func again(args ...string) *exec.Cmd {
	cmd := exec.Command(must.Get(os.Executable()), args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// packages returns the ways of a package: one by this program, and with -against one by the program
// bench in that directory, which was built with the older package. There are none if that is missing.
func (b *bench) packages(name string) []*way {
	ways := []*way{{name: name, bin: b.bin}}
	if b.against == "" {
		return ways
	}
	if _, err := os.Stat(filepath.Join(b.against, "bench")); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s has no program bench (go build ./scripts/dev/bench), and %s is left out\n",
			b.against, name)
		return nil
	}
	return append(ways, &way{name: name + " (old)", bin: b.against, old: true})
}

// timed runs the way of a package, and reads the times that timeOf prints.
func (w *way) timed(args ...string) (m measurement) {
	cmd := again(args...)
	if w.old {
		cmd.Path = filepath.Join(w.bin, "bench")
	}
	out, err := cmd.Output()
	must.That(err, "%s", w.name)
	must.Get(fmt.Sscan(string(out), &m.time, &m.cpu))
	return m
}

// timeOf runs f, and prints the time and the processor time that it took, in nanoseconds.
func timeOf(f func()) {
	start, before := time.Now(), processorTime()
	f()
	must.Get(fmt.Println(int64(time.Since(start)), int64(processorTime()-before)))
}

func run() {
	var b bench
	var only, dir string
	flag.StringVar(&b.bin, "bin", "bin", "`directory` of lektor's programs")
	flag.StringVar(&b.against, "against", "",
		"compare with the programs in this `directory`, by turns, and with nothing else;\nthe rows of packages with its program bench")
	flag.IntVar(&b.rounds, "rounds", 0, "`rounds`, of which the median counts (default 3, with -against 5)")
	flag.StringVar(&only, "only", "", "measure only these `rows`, with commas between them")
	flag.StringVar(&dir, "dir", "", "measure in a temporary directory in this `directory`, not in $TMPDIR")
	flag.Func("n", fmt.Sprintf("`NAME=NUMBER` sets a size, and may be repeated; the names are %s",
		strings.Join(slices.Sorted(maps.Keys(sizes)), ", ")), setSize)
	flag.Parse()
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	chosen := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			must.Fail("no row %q; the rows are %s", name, strings.Join(names, ", "))
		}
	}
	if b.rounds == 0 {
		b.rounds = 3
		if b.against != "" {
			b.rounds = 5
			b.against = must.Get(filepath.Abs(b.against))
		}
	}
	b.bin = must.Get(filepath.Abs(b.bin))
	b.dir = must.Get(filepath.Abs(must.Get(os.MkdirTemp(dir, "lektor-bench."))))
	defer os.RemoveAll(b.dir)
	go b.interrupted()
	if gluster.Inside() { // the row gluster has started this program again
		b.onVolume()
		must.Do(b.print())
		return
	}
	fmt.Printf("on %s\n", describe(b.dir))
	for _, r := range rows {
		if only == "" || slices.Contains(chosen, r.name) {
			must.That(must.Run(func() { r.measure(&b) }), "%s", r.name)
		}
	}
	must.Do(b.print())
}

// interrupted waits for a signal, and then removes all files and ends the program. The
// measurements so far are on standard error.
func (b *bench) interrupted() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	s := <-signals
	fmt.Fprintf(os.Stderr, "bench: %v\n", s)
	os.RemoveAll(b.dir)
	os.Exit(1)
}

func setSize(text string) error {
	name, number, _ := strings.Cut(text, "=")
	if _, ok := sizes[name]; !ok {
		return errors.New("no such size")
	}
	n, err := strconv.Atoi(number)
	if err == nil && n < 0 {
		err = errors.New("a size is not negative")
	}
	sizes[name] = n
	return err
}

// describe returns the machine and the file system, which have the greatest effect.
func describe(dir string) string {
	fs, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	if err != nil {
		fs = []byte("an unknown file system")
	}
	return fmt.Sprintf("%s, %d × %s/%s", bytes.TrimSpace(fs), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// way is one of the ways that a group compares: programs of lektor, other programs, or a floor.
type way struct {
	name string
	bin  string // directory of lektor's programs
	dir  string // directory for its files
	old  bool   // the way of a package is that of the older program bench in bin
	n    int    // if not 0, used instead of the group's
	// once runs the way once, and returns the result.
	once func(w *way, round int) measurement
}

// measurement is the result of a round.
type measurement struct {
	time, cpu time.Duration
	slowest   time.Duration // of many of which time is the median; 0 if there was one
	memory    int64         // peak, in bytes; 0 if unknown
	note      string
}

// group is a comparison of ways.
type group struct {
	what, unit string
	n          int // number of units in a round
	rounds     int // 0 means the number that the user chose
	warm       bool
	before     func(round int) // called before each round
	ways       []*way
	rounded    [][]measurement // the rounds of each way
}

// ours returns the ways of lektor's own programs: one, or two with -against.
func (b *bench) ours(name string) []*way {
	var ways []*way
	for _, bin := range []string{b.bin, b.against} {
		if bin == "" {
			continue
		}
		program, _, _ := strings.Cut(name, " ")
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			must.Fail("%w (run make first)", err)
		}
		w := &way{name: name, bin: bin, dir: b.place()}
		if len(ways) > 0 {
			w.name += " (old)"
		}
		ways = append(ways, w)
	}
	return ways
}

// other returns the way of another program, or none if it is not installed or not compared.
func (b *bench) other(name string, programs ...string) []*way {
	if b.against != "" {
		return nil
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s is not installed, and %s left out\n", p, name)
			return nil
		}
	}
	return []*way{{name: name, dir: b.place()}}
}

// place makes a directory.
func (b *bench) place() string { return must.Get(os.MkdirTemp(b.dir, "")) }

// compare measures the ways in turns, in each round beginning with another one, and adds a group
// to the table.
func (b *bench) compare(g group, ways []*way, once func(w *way, round int) measurement) *group {
	g.ways, g.rounded = ways, make([][]measurement, len(ways))
	if g.rounds == 0 {
		g.rounds = b.rounds
	}
	first := 0
	if g.warm {
		first = -1
	}
	for round := first; round < g.rounds; round++ {
		if g.before != nil {
			g.before(round)
		}
		for i := range ways {
			i = (i + round + 1) % len(ways)
			do := once
			if ways[i].once != nil {
				do = ways[i].once
			}
			m := do(ways[i], round)
			if round >= 0 {
				g.rounded[i] = append(g.rounded[i], m)
			}
		}
	}
	b.groups = append(b.groups, &g)
	// Print this now, in case a later row fails or a signal ends the program.
	for i, w := range ways {
		fmt.Fprintf(os.Stderr, "bench: %s: %s: %s\n", g.what, w.name, show(middle(g.rounded[i]).time))
	}
	return &g
}

// middle returns the round of a way with the median time, with the greatest memory and the slowest of
// all rounds.
func middle(all []measurement) measurement {
	all = slices.SortedFunc(slices.Values(all), func(a, b measurement) int { return int(a.time - b.time) })
	m := all[len(all)/2]
	for _, other := range all {
		m.memory, m.slowest = max(m.memory, other.memory), max(m.slowest, other.slowest)
	}
	return m
}

// print writes the table. The ratio of a line compares the first way of the group with it: how
// many times as fast the first way is. On a line of old programs it compares the new programs of
// the line above.
func (b *bench) print() error {
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "measured\tprogram\ttime\trate\tratio\tprocessor\tmemory\t")
	for _, g := range b.groups {
		var first float64
		for i, w := range g.ways {
			m := middle(g.rounded[i])
			rate := float64(cmp.Or(w.n, g.n)) / m.time.Seconds()
			if i == 0 || b.against != "" && w.bin == b.bin {
				first = rate
			}
			if i > 0 {
				g.what = ""
			}
			cpu, memory := "", ""
			if m.slowest > 0 {
				m.note = "slowest " + show(m.slowest)
			}
			if m.cpu > 0 {
				cpu = show(m.cpu)
			}
			if m.memory > 0 {
				memory = fmt.Sprintf("%d MiB", m.memory>>20)
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%.0f %s/s\t%.2f×\t%s\t%s\t%s\n", g.what, w.name, show(m.time), rate, g.unit,
				first/rate, cpu, memory, m.note)
		}
	}
	return out.Flush()
}

func show(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// command returns a command of a program that must not see the user's own feeds.
func command(home, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "TMPDIR=" + home,
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"), "NOTMUCH_CONFIG=" + filepath.Join(home, "notmuch-config"),
	}
	cmd.Dir = home
	return cmd
}

// lektor returns a command of lektor on a lektor-dir.
func (w *way) lektor(feeds, program string, args ...string) *exec.Cmd {
	return command(w.dir, filepath.Join(w.bin, program), append([]string{"--dir", feeds}, args...)...)
}

// longest is the maximum time of a command.
const longest = 3 * time.Hour

// take runs a command to its end and returns its measurement and its output.
func take(cmd *exec.Cmd) (m measurement, printed []byte) {
	// Write unwritten data of earlier commands before the measurement.
	exec.Command("sync").Run()
	var out, said bytes.Buffer
	if cmd.Stdout, cmd.Stderr = &out, &said; cmd.Env == nil {
		must.Fail("%s has no environment", cmd)
	}
	begin := time.Now()
	must.Do(cmd.Start())
	memory := watchMemory(cmd.Process.Pid)
	end := time.AfterFunc(longest, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	end.Stop()
	m.time = time.Since(begin)
	m.memory = memory()
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		must.Fail("%s: %w\n%s%s", cmd, err, &said, &out)
	}
	return m, out.Bytes()
}

// watchMemory polls the peak memory of a process, in bytes, until the function that it
// returns is called. The maximum that wait4 reports includes the parent's.
func watchMemory(pid int) func() int64 {
	stop, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, memory(pid))
			select {
			case <-tick.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-result }
}

func memory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kB int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
			return kB << 10
		}
	}
	return 0
}

// parallel calls f for 0 to n-1, on all processors.
func parallel(n int, f func(i int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return must.Run(func() { f(i) }) })
	}
	must.Do(g.Wait())
}

// start measures programs that do nothing.
func (b *bench) start() {
	for _, p := range must.Get(filepath.Glob(filepath.Join(b.bin, "lektor-*"))) {
		if sizes["starts"] > 0 {
			b.compare(group{what: "start", unit: "starts", n: 1, rounds: sizes["starts"], warm: true},
				b.ours(filepath.Base(p)), func(w *way, _ int) measurement {
					begin := time.Now()
					must.Do(command(w.dir, filepath.Join(w.bin, filepath.Base(p)), "--version").Run())
					return measurement{time: time.Since(begin)}
				})
		}
	}
}
