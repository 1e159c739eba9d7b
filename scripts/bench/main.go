// Bench measures lektor's programs against others that do the same where they
// are installed, and against the file system's floor. README.md says how each
// figure is taken.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

func main() { must.Main("bench", run) }

func run() {
	if len(os.Args) > 1 && os.Args[1] == deliverArg {
		deliverChild(os.Args[2:])
		return
	}
	var o options
	flag.IntVar(&o.feeds, "feeds", 500, "`feeds` that are fetched for the first time and once more")
	flag.IntVar(&o.large, "large", 2000, "`feeds` that are fetched once, by every program; 0 leaves this out")
	flag.IntVar(&o.unchanged, "unchanged", 10000, "`feeds` without news for lektor-fetch; 0 leaves this out")
	flag.IntVar(&o.listed, "listed", 100000, "`entries` of which the newest are listed; 0 leaves this out")
	flag.IntVar(&o.indexed, "indexed", 100000, "`entries` that are indexed and asked for; 0 leaves this out")
	flag.IntVar(&o.mailed, "mailed", 20000, "`messages` that notmuch indexes, of the newest of these; it takes minutes for each ten thousand")
	flag.IntVar(&o.archives, "archives", 100, "`archives` of a hundred entries that are gone through; 0 leaves this out")
	flag.IntVar(&o.starts, "starts", 50, "`times` that each command is started; 0 leaves this out")
	flag.IntVar(&o.entries, "entries", 20, "`entries` of a feed")
	flag.IntVar(&o.size, "size", 2500, "`bytes` of content of an entry")
	flag.IntVar(&o.rounds, "rounds", 3, "`rounds`, of which the best counts")
	flag.IntVar(&o.jobs, "jobs", 16, "parallel `fetches` of the programs that are told a number")
	flag.StringVar(&o.bin, "bin", "bin", "`directory` of lektor's programs")
	flag.StringVar(&o.dir, "dir", "", "measure in a temporary directory in this `directory`, not in $TMPDIR")
	flag.BoolVar(&o.keep, "keep", false, "leave what was made, and say where it is")
	flag.StringVar(&o.only, "only", "", "measure only the `program` of that name; tui for the full-screen reader alone")
	flag.StringVar(&o.reader, "reader", "", "let the reader read the `lektor-dir` of an earlier run, to which entries are added")
	flag.IntVar(&o.notifications, "notifications", 100, "`updates` that go all the way by way of lektor-cloudd; 0 leaves this out")
	flag.IntVar(&o.subscribers, "subscribers", 10000, "`subscribers` of one feed that a hub notifies; 0 leaves this out")
	flag.IntVar(&o.registrations, "registrations", 5000, "`feeds` that lektor-cloudd registers; 0 leaves this out")
	flag.Parse()
	if flag.NArg() > 0 || o.feeds < 1 || o.entries < 1 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.all(os.Stdout)
}

type options struct {
	feeds, large, unchanged, listed, starts int
	entries, size, rounds, jobs             int
	bin, dir, only, reader                  string
	notifications, registrations, archives  int
	subscribers, indexed, mailed            int
	keep                                    bool
}

// contestant is a program that fetches feeds.
type contestant struct {
	name string
	path string // of the program; empty if it is not installed
	// setup subscribes to urls in dir, and is not measured. The command that it
	// returns fetches everything; count says how many entries dir then holds.
	setup func(c *contestant, dir string, urls []string) (command func() *exec.Cmd, count func() int)
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

func (o options) all(w io.Writer) {
	tmp := must.Get(os.MkdirTemp(o.dir, "lektor-bench."))
	tmp = must.Get(filepath.Abs(tmp))
	if o.keep {
		defer fmt.Fprintf(w, "left in %s\n", tmp)
	} else {
		defer os.RemoveAll(tmp)
	}
	o.bin = must.Get(filepath.Abs(o.bin))
	t := &table{}
	fmt.Fprintf(w, "on %s\n", describe(tmp))
	// What was measured before something failed took long, and is shown.
	must.Do(errors.Join(must.Run(func() { o.measure(tmp, t) }), t.print(w)))
	if o.only == "" || o.only == "lektor-cloudd" {
		push(o, o.bin, tmp, w)
	}
}

// measure measures all that goes into the table.
func (o options) measure(tmp string, t *table) {
	switch o.only {
	case "", "lektor-fetch", "sfeed_update", "newsboat":
		o.fetches(tmp, t)
	}
	if o.only == "" || o.only == "lektor-fetch" {
		o.history(filepath.Join(tmp, "history"), t)
	}
	if o.only == "" || o.only == "lektor-view" {
		o.listing(filepath.Join(tmp, "list"), t)
		o.indexing(filepath.Join(tmp, "index"), t)
	}
	if o.only == "" || o.only == "lektor-view" || o.only == "tui" {
		o.reading(filepath.Join(tmp, "list"), t)
	}
	if o.only == "" {
		o.start(filepath.Join(tmp, "start"), t)
	}
}

// built gives the path of a program of ours.
func (o options) built(name string) string {
	path := filepath.Join(o.bin, name)
	if _, err := os.Stat(path); err != nil {
		must.Fail("%w (run make first)", err)
	}
	return path
}

// contestants are the fetchers that are there, ours first.
func (o options) contestants() []*contestant {
	all := []*contestant{
		{name: "lektor-fetch", setup: setupLektor},
		{name: "sfeed_update", path: installed("sfeed_update"), setup: setupSfeed(o.jobs), family: true},
		{name: "newsboat", path: installed("newsboat"), setup: setupNewsboat(o.jobs), slow: true, uncounted: 5000},
	}
	if o.only == "" || o.only == "lektor-fetch" {
		all[0].path = o.built("lektor-fetch")
	}
	var out []*contestant
	for _, c := range all {
		switch {
		case o.only != "" && o.only != c.name:
		case c.path == "":
			fmt.Fprintf(os.Stderr, "bench: %s is not installed, and left out\n", c.name)
		default:
			out = append(out, c)
		}
	}
	return out
}

// fetches measures what fetchers do.
func (o options) fetches(tmp string, t *table) {
	contestants := o.contestants()
	first, second := o.contest(contestants, o.feeds, o.rounds, true, filepath.Join(tmp, "some"))
	o.fetched(t, o.feeds, contestants, first)
	nothing := t.group(fmt.Sprintf("nothing new, %d feeds", o.feeds), "feeds")
	for _, c := range contestants {
		nothing.add(c, float64(o.feeds), *second[c])
	}
	if o.large > 0 {
		dir := filepath.Join(tmp, "many")
		first, _ := o.contest(contestants, o.large, 1, false, dir)
		g := o.fetched(t, o.large, contestants, first)
		if us := contestants[0]; us.name == "lektor-fetch" {
			n := float64(o.large * o.entries)
			times := o.deliveries(filepath.Join(dir, "0-"+us.name, "feeds"), dir)
			g.add(&contestant{name: "floor"}, n, measurement{time: times["floor"]})
			alone := t.group(fmt.Sprintf("delivery alone, %d × %d", o.large, o.entries), "entries")
			for _, way := range []string{"lektordir", "floor"} {
				alone.add(&contestant{name: way}, n, measurement{time: times[way]})
			}
		}
	}
	if o.unchanged > 0 && contestants[0].name == "lektor-fetch" {
		m := o.nothingNew(contestants[0], filepath.Join(tmp, "unchanged"))
		g := t.group(fmt.Sprintf("nothing new, %d feeds (others %d)", o.unchanged, o.feeds), "feeds")
		g.add(contestants[0], float64(o.unchanged), m)
		for _, c := range contestants[1:] {
			g.add(c, float64(o.feeds), *second[c])
		}
	}
}

func (o options) fetched(t *table, feeds int, contestants []*contestant, first map[*contestant]*measurement) *group {
	g := t.group(fmt.Sprintf("first fetch, %d × %d × %.1f kB", feeds, o.entries, float64(o.size)/1000), "entries")
	for _, c := range contestants {
		g.add(c, float64(feeds*o.entries), *first[c])
	}
	return g
}

// contest lets the contestants fetch feeds, and once more when nothing is new.
func (o options) contest(contestants []*contestant, feeds, rounds int, twice bool, tmp string) (first, second map[*contestant]*measurement) {
	s := serve(feeds, o.entries, o.size)
	defer s.close()
	// Warm-up: every program and the server's code are in memory once before
	// anything counts.
	for _, c := range contestants {
		few := s.urls[:min(len(s.urls), 25)]
		measure(c, filepath.Join(tmp, "warm-"+c.name), few, o.entries, twice, s)
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
			a, b := measure(c, filepath.Join(tmp, fmt.Sprintf("%d-%s", round, c.name)), s.urls, o.entries, twice, s)
			first[c].keep(a)
			second[c].keep(b)
			// Nothing is removed before the end: ext4 gives no inode that was
			// freed in the last minutes away again, and looks at each of them
			// whenever it makes a file.
		}
	}
	return first, second
}

// measure lets c fetch urls in a new directory, twice if so asked, and makes
// sure that it has all of the entries after each.
func measure(c *contestant, dir string, urls []string, entries int, twice bool, s *origin) (first, second measurement) {
	must.Do(os.MkdirAll(dir, 0o700))
	command, count := c.setup(c, dir, urls)
	fetch := func(m *measurement) {
		s.reset()
		said := m.run(c.name, command())
		m.requests = s.requests()
		want := len(urls) * entries
		if c.uncounted > 0 && want > c.uncounted {
			return
		}
		if n := count(); n != want {
			must.Fail("%s has %d entries, not %d; requests: %s\n%s", c.name, n, want, m.requests, said)
		}
	}
	fetch(&first)
	if !twice {
		return first, second
	}
	if c.slow {
		fetch(new(measurement))
	}
	fetch(&second)
	return first, second
}

// command is one of a program which must not see the user's own feeds.
func command(home, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb", "TMPDIR=" + home}
	return cmd
}

// longest is how long a command may take.
const longest = 3 * time.Hour

// run measures a command from its start to its end, and gives what it said.
func (m *measurement) run(name string, cmd *exec.Cmd) (said string) {
	// What others have left to be written must not be written now.
	exec.Command("sync").Run()
	var b strings.Builder
	cmd.Stdout, cmd.Stderr = &b, &b
	m.take(name, cmd, &b)
	return b.String()
}

// take measures a command; in said is what it tells of failures.
func (m *measurement) take(name string, cmd *exec.Cmd, said fmt.Stringer) {
	begin := time.Now()
	must.Do(cmd.Start())
	memory := watchMemory(cmd.Process.Pid)
	end := time.AfterFunc(longest, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	end.Stop()
	m.time = time.Since(begin)
	m.memory = memory()
	if err != nil {
		must.Fail("%s: %w\n%s", name, err, said)
	}
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
func (o options) nothingNew(c *contestant, dir string) (best measurement) {
	s := serve(o.unchanged, 1, 200)
	defer s.close()
	must.Do(os.MkdirAll(dir, 0o700))
	command, _ := c.setup(c, dir, s.urls)
	fetch := func() {
		s.reset()
		var m measurement
		m.run(c.name, command())
		m.requests = s.requests()
		best.keep(m)
	}
	fetch()
	best = measurement{}
	before := snapshot(filepath.Join(dir, "feeds"))
	for range o.rounds {
		fetch()
	}
	if want := fmt.Sprintf("%d × 304", o.unchanged); best.requests != want {
		must.Fail("%s: answers %s, not %s", c.name, best.requests, want)
	}
	after := snapshot(filepath.Join(dir, "feeds"))
	for path, state := range after {
		if name := filepath.Base(path); name != "checked" && name != "next" && before[path] != state {
			must.Fail("%s: %s was written though nothing is new", c.name, path)
		}
	}
	if len(before) != len(after) {
		must.Fail("%s: %d files became %d though nothing is new", c.name, len(before), len(after))
	}
	return best
}

// snapshot tells of all files and directories below dir when they were written.
func snapshot(dir string) map[string]string {
	all := map[string]string{}
	must.Do(filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			all[path] = fmt.Sprint(fi.Mode(), fi.Size(), fi.ModTime().UnixNano())
		}
		return err
	}))
	return all
}

// start measures how long the commands take to do nothing.
func (o options) start(dir string, t *table) {
	if o.starts < 1 {
		return
	}
	programs := must.Get(filepath.Glob(filepath.Join(o.bin, "lektor-*")))
	must.Do(os.MkdirAll(dir, 0o700))
	for _, p := range programs {
		var times []time.Duration
		for range o.starts {
			cmd := command(dir, p, "--version")
			begin := time.Now()
			must.That(cmd.Run(), "%s", p)
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		g := t.group("start, median of "+fmt.Sprint(o.starts), "starts")
		g.add(&contestant{name: filepath.Base(p)}, 1, measurement{time: times[len(times)/2]})
	}
}

// installed gives the path of a program, "" if there is none.
func installed(name string) string {
	path, _ := exec.LookPath(name)
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

func setupLektor(c *contestant, dir string, urls []string) (func() *exec.Cmd, func() int) {
	var opml strings.Builder
	opml.WriteString("<?xml version=\"1.0\"?>\n<opml version=\"2.0\"><head><title>bench</title></head><body>\n")
	for i, u := range urls {
		fmt.Fprintf(&opml, "<outline type=\"rss\" text=\"Feed %d\" xmlUrl=\"%s\"/>\n", i, u)
	}
	opml.WriteString("</body></opml>\n")
	list := filepath.Join(dir, "feeds.opml")
	must.Do(os.WriteFile(list, []byte(opml.String()), 0o600))
	feeds := filepath.Join(dir, "feeds")
	args := []string{"--dir", feeds}
	if out, err := command(dir, c.path, append(args, "import", "--no-fetch", list)...).CombinedOutput(); err != nil {
		must.Fail("import: %w\n%s", err, out)
	}
	args = append(args, "update", "--all")
	if !manyAddresses {
		// All of the feeds are on one host here; politeness towards it is not
		// what is to be measured.
		args = append(args, "--per-host", "16", "--gap", "0s")
	}
	update := func() *exec.Cmd { return command(dir, c.path, args...) }
	count := func() int { return len(must.Get(filepath.Glob(filepath.Join(feeds, "new", "*", "*", "content")))) }
	return update, count
}

func setupSfeed(jobs int) func(*contestant, string, []string) (func() *exec.Cmd, func() int) {
	return func(c *contestant, dir string, urls []string) (func() *exec.Cmd, func() int) {
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
		must.Do(os.WriteFile(path, []byte(rc.String()), 0o600))
		for _, name := range []string{"feeds", "etags"} {
			must.Do(os.Mkdir(filepath.Join(dir, name), 0o700))
		}
		count := func() (n int) {
			for _, f := range must.Get(filepath.Glob(filepath.Join(dir, "feeds", "*"))) {
				n += strings.Count(string(must.Get(os.ReadFile(f))), "\n")
			}
			return n
		}
		return func() *exec.Cmd { return command(dir, c.path, path) }, count
	}
}

func setupNewsboat(jobs int) func(*contestant, string, []string) (func() *exec.Cmd, func() int) {
	return func(c *contestant, dir string, urls []string) (func() *exec.Cmd, func() int) {
		files := map[string]string{
			"urls":   strings.Join(urls, "\n") + "\n",
			"config": fmt.Sprintf("reload-threads %d\nmax-items 0\n", jobs),
		}
		for name, text := range files {
			must.Do(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		newsboat := func(action string) *exec.Cmd {
			return command(dir, c.path, "-q", "-u", filepath.Join(dir, "urls"), "-C", filepath.Join(dir, "config"),
				"-c", filepath.Join(dir, "cache.db"), "-x", action)
		}
		count := func() (n int) {
			must.Get(fmt.Sscan(string(must.Get(newsboat("print-unread").Output())), &n))
			return n
		}
		return func() *exec.Cmd { return newsboat("reload") }, count
	}
}

// manyAddresses is true where all of 127.0.0.0/8 is this machine.
const manyAddresses = runtime.GOOS == "linux"
