// Bench measures lektor's programs against others that do the same where they
// are installed, and against the file system's floor. README.md says how each
// figure is taken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	if len(os.Args) > 1 && os.Args[1] == deliverArg {
		if err := deliverChild(os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	var o options
	flag.IntVar(&o.feeds, "feeds", 500, "`feeds` that are fetched for the first time and once more")
	flag.IntVar(&o.large, "large", 2000, "`feeds` that are fetched once, by every program; 0 leaves this out")
	flag.IntVar(&o.unchanged, "unchanged", 10000, "`feeds` without news for lektor-fetch; 0 leaves this out")
	flag.IntVar(&o.listed, "listed", 100000, "`entries` of which the newest are listed; 0 leaves this out")
	flag.IntVar(&o.archives, "archives", 100, "`archives` of a hundred entries that are gone through; 0 leaves this out")
	flag.IntVar(&o.starts, "starts", 50, "`times` that each command is started; 0 leaves this out")
	flag.IntVar(&o.entries, "entries", 20, "`entries` of a feed")
	flag.IntVar(&o.size, "size", 2500, "`bytes` of content of an entry")
	flag.IntVar(&o.rounds, "rounds", 3, "`rounds`, of which the best counts")
	flag.IntVar(&o.jobs, "jobs", 16, "parallel `fetches` of the programs that are told a number")
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of lektor's programs")
	flag.StringVar(&o.dir, "dir", "", "measure in a temporary directory in this `directory`, not in $TMPDIR")
	flag.StringVar(&o.only, "only", "", "measure only the `program` of that name")
	flag.IntVar(&o.notifications, "notifications", 100, "`updates` that go all the way by way of lektor-cloudd; 0 leaves this out")
	flag.IntVar(&o.subscribers, "subscribers", 10000, "`subscribers` of one feed that a hub notifies; 0 leaves this out")
	flag.IntVar(&o.registrations, "registrations", 5000, "`feeds` that lektor-cloudd registers; 0 leaves this out")
	flag.Parse()
	if flag.NArg() > 0 || o.feeds < 1 || o.entries < 1 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(o, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	feeds, large, unchanged, listed, starts int
	entries, size, rounds, jobs             int
	bin, dir, only                          string
	notifications, registrations, archives  int
	subscribers                             int
}

// contestant is a program that fetches feeds.
type contestant struct {
	name string
	path string // of the program; empty if it is not installed
	// setup subscribes to urls in dir, and is not measured. The command that it
	// returns fetches everything; count says how many entries dir then holds.
	setup func(c *contestant, dir string, urls []string) (command func(context.Context) *exec.Cmd, count func() (int, error), err error)
	// slow programs remember validators only from the second fetch on; it is
	// made, and not measured, before the one that finds nothing new.
	slow bool
	// uncounted programs take minutes to say how many entries they have, where
	// those are more than this.
	uncounted int
	// family tells that what is fetched is done by other processes, so that its
	// own memory says nothing.
	family bool
}

// measurement is what a run took.
type measurement struct {
	time     time.Duration
	memory   int64 // the most that it had, in bytes
	requests string
}

// keep keeps the faster of two runs.
func (m *measurement) keep(other measurement) {
	if m.time == 0 || other.time < m.time {
		*m = other
	}
}

func run(o options, w io.Writer) error {
	tmp, err := os.MkdirTemp(o.dir, "lektor-bench.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if tmp, err = filepath.Abs(tmp); err != nil {
		return err
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	t := &table{}
	fmt.Fprintf(w, "on %s\n", describe(tmp))
	// What was measured before something failed took long, and is shown.
	if err := errors.Join(o.measure(tmp, t), t.print(w)); err != nil {
		return err
	}
	if o.only == "" || o.only == "lektor-cloudd" {
		return push(o, o.bin, tmp, w)
	}
	return nil
}

// measure measures all that goes into the table.
func (o options) measure(tmp string, t *table) error {
	switch o.only {
	case "", "lektor-fetch", "sfeed_update", "newsboat":
		if err := o.fetches(tmp, t); err != nil {
			return err
		}
	}
	if o.only == "" || o.only == "lektor-fetch" {
		if err := o.history(filepath.Join(tmp, "history"), t); err != nil {
			return err
		}
	}
	if o.only == "" || o.only == "lektor-view" {
		if err := o.listing(filepath.Join(tmp, "list"), t); err != nil {
			return err
		}
	}
	if o.only == "" {
		return o.start(filepath.Join(tmp, "start"), t)
	}
	return nil
}

// contestants are the fetchers that are there, ours first.
func (o options) contestants() ([]*contestant, error) {
	all := []*contestant{
		{name: "lektor-fetch", path: filepath.Join(o.bin, "lektor-fetch"), setup: setupLektor},
		{name: "sfeed_update", path: installed("sfeed_update"), setup: setupSfeed(o.jobs), family: true},
		{name: "newsboat", path: installed("newsboat"), setup: setupNewsboat(o.jobs), slow: true, uncounted: 5000},
	}
	var out []*contestant
	for _, c := range all {
		switch {
		case o.only != "" && o.only != c.name:
		case c.path == "":
			log.Printf("%s is not installed, and left out", c.name)
		default:
			out = append(out, c)
		}
	}
	for _, c := range out {
		if _, err := os.Stat(c.path); err != nil {
			return nil, fmt.Errorf("%w (run make first)", err)
		}
	}
	return out, nil
}

// fetches measures what fetchers do.
func (o options) fetches(tmp string, t *table) error {
	contestants, err := o.contestants()
	if err != nil {
		return err
	}
	first, second, err := o.contest(contestants, o.feeds, o.rounds, true, filepath.Join(tmp, "some"))
	if err != nil {
		return err
	}
	o.fetched(t, o.feeds, contestants, first)
	nothing := t.group(fmt.Sprintf("nothing new, %d feeds", o.feeds), "feeds")
	for _, c := range contestants {
		nothing.add(c, float64(o.feeds), *second[c])
	}
	if o.large > 0 {
		dir := filepath.Join(tmp, "many")
		first, _, err := o.contest(contestants, o.large, 1, false, dir)
		if err != nil {
			return err
		}
		g := o.fetched(t, o.large, contestants, first)
		if us := contestants[0]; us.name == "lektor-fetch" {
			n := float64(o.large * o.entries)
			times, err := o.deliveries(filepath.Join(dir, "0-"+us.name, "feeds"), dir)
			if err != nil {
				return err
			}
			g.add(&contestant{name: "floor"}, n, measurement{time: times["floor"]})
			alone := t.group(fmt.Sprintf("delivery alone, %d × %d", o.large, o.entries), "entries")
			for _, way := range []string{"lektordir", "floor"} {
				alone.add(&contestant{name: way}, n, measurement{time: times[way]})
			}
		}
	}
	if o.unchanged > 0 && contestants[0].name == "lektor-fetch" {
		m, err := o.nothingNew(contestants[0], filepath.Join(tmp, "unchanged"))
		if err != nil {
			return err
		}
		g := t.group(fmt.Sprintf("nothing new, %d feeds (others %d)", o.unchanged, o.feeds), "feeds")
		g.add(contestants[0], float64(o.unchanged), m)
		for _, c := range contestants[1:] {
			g.add(c, float64(o.feeds), *second[c])
		}
	}
	return nil
}

func (o options) fetched(t *table, feeds int, contestants []*contestant, first map[*contestant]*measurement) *group {
	g := t.group(fmt.Sprintf("first fetch, %d × %d × %.1f kB", feeds, o.entries, float64(o.size)/1000), "entries")
	for _, c := range contestants {
		g.add(c, float64(feeds*o.entries), *first[c])
	}
	return g
}

// contest lets the contestants fetch feeds, and once more when nothing is new.
func (o options) contest(contestants []*contestant, feeds, rounds int, twice bool, tmp string) (first, second map[*contestant]*measurement, err error) {
	s, err := serve(feeds, o.entries, o.size)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	// Warm-up: every program and the server's code are in memory once before
	// anything counts.
	for _, c := range contestants {
		few := s.urls[:min(len(s.urls), 25)]
		if _, _, err := measure(c, filepath.Join(tmp, "warm-"+c.name), few, o.entries, twice, s); err != nil {
			return nil, nil, err
		}
	}
	first, second = map[*contestant]*measurement{}, map[*contestant]*measurement{}
	for _, c := range contestants {
		first[c], second[c] = new(measurement), new(measurement)
	}
	for round := range rounds {
		// Another program begins each round, so that none always runs on the
		// heels of the same other.
		for i := range contestants {
			c := contestants[(i+round)%len(contestants)]
			a, b, err := measure(c, filepath.Join(tmp, fmt.Sprintf("%d-%s", round, c.name)), s.urls, o.entries, twice, s)
			if err != nil {
				return nil, nil, err
			}
			first[c].keep(a)
			second[c].keep(b)
			// Nothing is removed before the end: ext4 gives no inode that was
			// freed in the last minutes away again, and looks at each of them
			// whenever it makes a file.
		}
	}
	return first, second, nil
}

// measure lets c fetch urls in a new directory, twice if so asked, and makes
// sure that it has all of the entries after each.
func measure(c *contestant, dir string, urls []string, entries int, twice bool, s *origin) (first, second measurement, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return first, second, err
	}
	command, count, err := c.setup(c, dir, urls)
	if err != nil {
		return first, second, fmt.Errorf("%s: %w", c.name, err)
	}
	fetch := func(m *measurement) error {
		s.reset()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		said, err := m.run(command(ctx))
		m.requests = s.requests()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", c.name, err, said)
		}
		want := len(urls) * entries
		if c.uncounted > 0 && want > c.uncounted {
			return nil
		}
		n, err := count()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if n != want {
			return fmt.Errorf("%s has %d entries, not %d; requests: %s\n%s", c.name, n, want, m.requests, said)
		}
		return nil
	}
	if err := fetch(&first); err != nil || !twice {
		return first, second, err
	}
	if c.slow {
		if err := fetch(new(measurement)); err != nil {
			return first, second, err
		}
	}
	return first, second, fetch(&second)
}

// run measures a command from its start to its end, and gives what it said.
func (m *measurement) run(cmd *exec.Cmd) (said string, err error) {
	// What others have left to be written must not be written now.
	exec.Command("sync").Run()
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, &b
	err = m.take(cmd)
	return b.String(), err
}

// take measures a command.
func (m *measurement) take(cmd *exec.Cmd) error {
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	memory := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	m.time = time.Since(begin)
	m.memory = memory()
	return err
}

// watchMemory looks at the most memory that a process has had, in bytes, until the
// function that it returns asks for it; 0 where that is unknown. What wait4
// tells would do, were it not for Linux, which counts what the parent had too.
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

// nothingNew measures lektor-fetch with many feeds that have not changed, and
// makes sure that it wrote nothing but time stamps.
func (o options) nothingNew(c *contestant, dir string) (best measurement, err error) {
	s, err := serve(o.unchanged, 1, 200)
	if err != nil {
		return best, err
	}
	defer s.close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return best, err
	}
	command, _, err := c.setup(c, dir, s.urls)
	if err != nil {
		return best, err
	}
	fetch := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		s.reset()
		var m measurement
		said, err := m.run(command(ctx))
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", c.name, err, said)
		}
		m.requests = s.requests()
		best.keep(m)
		return nil
	}
	if err := fetch(); err != nil {
		return best, err
	}
	best = measurement{}
	before, err := snapshot(filepath.Join(dir, "feeds"))
	if err != nil {
		return best, err
	}
	for range o.rounds {
		if err := fetch(); err != nil {
			return best, err
		}
	}
	if want := fmt.Sprintf("%d × 304", o.unchanged); best.requests != want {
		return best, fmt.Errorf("%s: answers %s, not %s", c.name, best.requests, want)
	}
	after, err := snapshot(filepath.Join(dir, "feeds"))
	if err != nil {
		return best, err
	}
	for path, state := range after {
		if name := filepath.Base(path); name != "checked" && name != "next" && before[path] != state {
			return best, fmt.Errorf("%s: %s was written though nothing is new", c.name, path)
		}
	}
	if len(before) != len(after) {
		return best, fmt.Errorf("%s: %d files became %d though nothing is new", c.name, len(before), len(after))
	}
	return best, nil
}

// snapshot tells of all files and directories below dir when they were written.
func snapshot(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			all[path] = fmt.Sprint(fi.Mode(), fi.Size(), fi.ModTime().UnixNano())
		}
		return err
	})
	return all, err
}

// start measures how long the commands take to do nothing.
func (o options) start(dir string, t *table) error {
	if o.starts < 1 {
		return nil
	}
	programs, err := filepath.Glob(filepath.Join(o.bin, "lektor-*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, p := range programs {
		var times []time.Duration
		for range o.starts {
			cmd := exec.Command(p, "--version")
			cmd.Env = environment(dir)
			begin := time.Now()
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		g := t.group("start, median of "+fmt.Sprint(o.starts), "starts")
		g.add(&contestant{name: filepath.Base(p)}, 1, measurement{time: times[len(times)/2]})
	}
	return nil
}

func installed(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// describe names the machine and the file system, which matter most.
func describe(dir string) string {
	fs := "an unknown file system"
	if out, err := exec.Command("stat", "-f", "-c", "%T", dir).Output(); err == nil {
		fs = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%s, %d × %s/%s", fs, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// environment is that of a program which must not see the user's own feeds.
func environment(home string) []string {
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb", "TMPDIR=" + home}
}

func setupLektor(c *contestant, dir string, urls []string) (func(context.Context) *exec.Cmd, func() (int, error), error) {
	var opml strings.Builder
	opml.WriteString("<?xml version=\"1.0\"?>\n<opml version=\"2.0\"><head><title>bench</title></head><body>\n")
	for i, u := range urls {
		fmt.Fprintf(&opml, "<outline type=\"rss\" text=\"Feed %d\" xmlUrl=\"%s\"/>\n", i, u)
	}
	opml.WriteString("</body></opml>\n")
	list := filepath.Join(dir, "feeds.opml")
	if err := os.WriteFile(list, []byte(opml.String()), 0o600); err != nil {
		return nil, nil, err
	}
	feeds := filepath.Join(dir, "feeds")
	args := []string{"--dir", feeds}
	subscribe := exec.Command(c.path, append(args, "import", "--no-fetch", list)...)
	subscribe.Env = environment(dir)
	if out, err := subscribe.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("import: %w\n%s", err, out)
	}
	args = append(args, "update", "--all")
	if !manyAddresses {
		// All of the feeds are on one host here; politeness towards it is not
		// what is to be measured.
		args = append(args, "--per-host", "16", "--gap", "0s")
	}
	command := func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, c.path, args...)
		cmd.Env = environment(dir)
		return cmd
	}
	count := func() (int, error) {
		entries, err := filepath.Glob(filepath.Join(feeds, "new", "*", "*", "content"))
		return len(entries), err
	}
	return command, count, nil
}

func setupSfeed(jobs int) func(*contestant, string, []string) (func(context.Context) *exec.Cmd, func() (int, error), error) {
	return func(c *contestant, dir string, urls []string) (func(context.Context) *exec.Cmd, func() (int, error), error) {
		var rc strings.Builder
		// sfeed_update asks unconditionally by itself; this is the way to do
		// better that its own documentation shows.
		fmt.Fprintf(&rc, `sfeedpath="$HOME/feeds"
maxjobs=%d
fetch() {
	etag="$HOME/etags/$(basename "$3")"
	curl -L --max-redirs 0 -H "User-Agent:" -f -s -m 15 --compressed \
		--etag-save "${etag}" --etag-compare "${etag}" -z "${etag}" "$2" 2>/dev/null
}
feeds() {
`, jobs)
		for i, u := range urls {
			fmt.Fprintf(&rc, "\tfeed 'feed%d' '%s'\n", i, u)
		}
		rc.WriteString("}\n")
		path := filepath.Join(dir, "sfeedrc")
		if err := os.WriteFile(path, []byte(rc.String()), 0o600); err != nil {
			return nil, nil, err
		}
		for _, name := range []string{"feeds", "etags"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				return nil, nil, err
			}
		}
		command := func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, c.path, path)
			cmd.Env = environment(dir)
			return cmd
		}
		count := func() (int, error) {
			files, err := filepath.Glob(filepath.Join(dir, "feeds", "*"))
			n := 0
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					return 0, err
				}
				n += strings.Count(string(b), "\n")
			}
			return n, err
		}
		return command, count, nil
	}
}

func setupNewsboat(jobs int) func(*contestant, string, []string) (func(context.Context) *exec.Cmd, func() (int, error), error) {
	return func(c *contestant, dir string, urls []string) (func(context.Context) *exec.Cmd, func() (int, error), error) {
		files := map[string]string{
			"urls":   strings.Join(urls, "\n") + "\n",
			"config": fmt.Sprintf("reload-threads %d\nmax-items 0\n", jobs),
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return nil, nil, err
			}
		}
		newsboat := func(ctx context.Context, action string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, c.path, "-q", "-u", filepath.Join(dir, "urls"), "-C", filepath.Join(dir, "config"),
				"-c", filepath.Join(dir, "cache.db"), "-x", action)
			cmd.Env = environment(dir)
			return cmd
		}
		command := func(ctx context.Context) *exec.Cmd { return newsboat(ctx, "reload") }
		count := func() (int, error) {
			out, err := newsboat(context.Background(), "print-unread").Output()
			var n int
			if _, scanErr := fmt.Sscan(string(out), &n); err == nil {
				err = scanErr
			}
			return n, err
		}
		return command, count, nil
	}
}

// manyAddresses is true where all of 127.0.0.0/8 is this machine.
const manyAddresses = runtime.GOOS == "linux"
