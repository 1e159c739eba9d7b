// Bench measures how long it takes to fetch many feeds for the first time and
// once more when nothing has changed, for lektor-fetch and, where they are
// installed, sfeed_update and newsboat. README.md says how each figure is taken.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var o options
	flag.IntVar(&o.feeds, "feeds", 500, "number of feeds")
	flag.IntVar(&o.entries, "entries", 20, "entries in each")
	flag.IntVar(&o.size, "size", 2500, "bytes of content of an entry")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the best counts")
	flag.IntVar(&o.jobs, "jobs", 16, "parallel fetches of the programs that are told a number")
	flag.StringVar(&o.bin, "bin", "bin", "directory of lektor-fetch")
	flag.StringVar(&o.dir, "dir", "", "measure in a temporary directory in here, not in $TMPDIR")
	flag.StringVar(&o.only, "only", "", "only the program of that name")
	flag.IntVar(&o.notifications, "notifications", 100, "notifications to lektor-cloudd; 0 leaves this out")
	flag.IntVar(&o.registrations, "registrations", 5000, "feeds that lektor-cloudd registers; 0 leaves this out")
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
	feeds, entries, size, rounds, jobs int
	bin, dir, only                     string
	notifications, registrations       int
}

// contestant is a program that is measured.
type contestant struct {
	name string
	path string // of the program; empty if it is not installed
	// setup subscribes to urls in dir, and is not measured. The command that it
	// returns fetches everything; count says how many entries dir then holds.
	setup func(c *contestant, dir string, urls []string) (command func(context.Context) *exec.Cmd, count func() (int, error), err error)
	// slow programs remember validators only from the second fetch on; it is
	// made, and not measured, before the one that finds nothing new.
	slow bool

	first, second measurement
}

// measurement is the best of several runs.
type measurement struct {
	time     time.Duration
	requests string
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
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}

	if o.only == "lektor-cloudd" {
		return push(o, bin, tmp, w)
	}
	s, err := serve(o.feeds, o.entries, o.size)
	if err != nil {
		return err
	}
	defer s.close()

	all := []*contestant{
		{name: "lektor-fetch", path: filepath.Join(bin, "lektor-fetch"), setup: setupLektor},
		{name: "sfeed_update", path: installed("sfeed_update"), setup: setupSfeed(o.jobs)},
		{name: "newsboat", path: installed("newsboat"), setup: setupNewsboat(o.jobs), slow: true},
	}
	var contestants []*contestant
	for _, c := range all {
		if c.path != "" && (o.only == "" || o.only == c.name) {
			contestants = append(contestants, c)
		}
	}
	if _, err := os.Stat(all[0].path); err != nil && (o.only == "" || o.only == all[0].name) {
		return fmt.Errorf("%w (run make first)", err)
	}

	fmt.Fprintf(w, "%d feeds × %d entries, %.1f MB, on %s; best of %d\n", o.feeds, o.entries, float64(s.bytes)/1e6, describe(tmp), o.rounds)
	// Warm-up: every program and the server's code are in memory once before
	// anything counts.
	for _, c := range contestants {
		few := s.urls[:min(len(s.urls), 25)]
		if _, _, err := measure(c, filepath.Join(tmp, "warm-"+c.name), few, o.entries, s); err != nil {
			return err
		}
	}
	for round := range o.rounds {
		// Another program begins each round, so that none always runs on the
		// heels of the same other.
		for i := range contestants {
			c := contestants[(i+round)%len(contestants)]
			dir := filepath.Join(tmp, fmt.Sprintf("%d-%s", round, c.name))
			first, second, err := measure(c, dir, s.urls, o.entries, s)
			if err != nil {
				return err
			}
			c.first.keep(first)
			c.second.keep(second)
			// Nothing is removed before the end: ext4 gives no inode that was
			// freed in the last minutes away again, and looks at each of them
			// whenever it makes a file.
		}
	}

	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\tfirst fetch\tentries/s\tratio\trequests\tnothing new\tratio\trequests")
	us := all[0]
	for _, c := range all {
		if c.path == "" {
			fmt.Fprintf(t, "%s\tnot installed\n", c.name)
			continue
		}
		if c.first.time == 0 {
			continue
		}
		fmt.Fprintf(t, "%s\t%.2f s\t%.0f\t%s\t%s\t%.2f s\t%s\t%s\n", c.name,
			c.first.time.Seconds(), float64(o.feeds*o.entries)/c.first.time.Seconds(), ratio(c.first, us.first), c.first.requests,
			c.second.time.Seconds(), ratio(c.second, us.second), c.second.requests)
	}
	if err := t.Flush(); err != nil || o.only != "" {
		return err
	}
	return push(o, bin, tmp, w)
}

func (m *measurement) keep(other measurement) {
	if m.time == 0 || other.time < m.time {
		*m = other
	}
}

// ratio says how many times longer than us it took.
func ratio(m, us measurement) string {
	if us.time == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f×", m.time.Seconds()/us.time.Seconds())
}

// measure lets c fetch urls twice in a new directory, and makes sure that it
// has all of the entries after each.
func measure(c *contestant, dir string, urls []string, entries int, s *server) (first, second measurement, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return first, second, err
	}
	command, count, err := c.setup(c, dir, urls)
	if err != nil {
		return first, second, fmt.Errorf("%s: %w", c.name, err)
	}
	fetch := func(m *measurement) error {
		// What others have left to be written must not be written now.
		exec.Command("sync").Run()
		s.reset()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		cmd := command(ctx)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		start := time.Now()
		err := cmd.Run()
		m.time = time.Since(start)
		m.requests = s.requests()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", c.name, err, said.String())
		}
		n, err := count()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if want := len(urls) * entries; n != want {
			return fmt.Errorf("%s has %d entries, not %d; requests: %s\n%s", c.name, n, want, m.requests, said.String())
		}
		return nil
	}
	if err := fetch(&first); err != nil {
		return first, second, err
	}
	if c.slow {
		if err := fetch(new(measurement)); err != nil {
			return first, second, err
		}
	}
	return first, second, fetch(&second)
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
