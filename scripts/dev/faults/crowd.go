//go:build linux && (amd64 || arm64)

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// hang is the time after which a process counts as one that never ends.
const hang = 90 * time.Second

// crowd is a lektor-dir and the processes that work on it.
type crowd struct {
	env                *env
	dir, self, scripts string

	// second is the lektor-dir in the mount of another machine, for processes of another host.
	// third makes a further mount and returns the lektor-dir in it. On a local disk they are ""
	// and nil.
	second string
	third  func() string

	feeds *feeds
	// isolationErr is the reason why processes cannot have their own host name and process
	// numbers; nil if they can.
	isolationErr error

	account account
	put     int             // number of entries put by the lane of puts
	wanted  []string        // kinds that must run, however long this takes
	tried   map[string]bool // entries that rm -r removed partly and that another process moved meanwhile
}

// account holds the record of processes, and the findings.
type account struct {
	mu       sync.Mutex // also guards put and tried
	kinds    []string
	stats    map[string]*stat
	findings map[string]int
	ev       evidence
}

// stat counts the runs of a kind of process, and how they ended.
type stat struct {
	runs, killed int
	statuses     map[int]int
}

// newCrowd prepares a lektor-dir, on one file system or on a volume that several hosts mount.
func newCrowd(ctx context.Context, e *env) *crowd {
	work := filepath.Join(e.work, fmt.Sprintf("crowd-%d", e.serial.Add(1)))
	must.Do(os.Mkdir(work, 0o777))
	module := must.Get(exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output())
	c := &crowd{
		env: e, dir: filepath.Join(work, "lektor"), self: must.Get(os.Executable()),
		scripts: filepath.Join(strings.TrimSpace(string(module)), "scripts"),
		tried:   map[string]bool{},
		account: account{stats: map[string]*stat{}, findings: map[string]int{}, ev: evidence{
			removed: map[string]int{}, hidden: map[string]bool{}, printed: map[string]int{}, denied: map[string]bool{},
			broken: map[string]bool{},
			clock:  newFeed("", "tag:example.org,2026:lektor-clock", "", false).hash,
		}},
	}
	if e.volume != nil {
		mount := func(name string) string {
			at := filepath.Join(work, name)
			must.Do(e.volume.Mount(ctx, at))
			return filepath.Join(at, filepath.Base(work))
		}
		c.third = func() string { return mount("three") }
		c.dir, c.second = mount("one"), mount("two")
	}
	c.isolationErr = namespaces()
	c.feeds = serveFeeds()
	c.account.ev.feeds = c.feeds.all
	c.subscribe()
	return c
}

// subscribe makes the lektor-dir, with its subscriptions.
func (c *crowd) subscribe() {
	run := func(args ...string) {
		if o := c.run(process{kind: "add, set", argv: append([]string{c.env.fetch}, args...),
			silent: regexp.MustCompile(`: subscribed \(`)}); o.status != 0 {
			must.Fail("lektor-fetch %q: status %d: %s", args, o.status, o.stderr)
		}
	}
	for _, f := range c.feeds.all {
		if !f.pulled {
			etc := filepath.Join(c.dir, "src", f.hash, "etc/fetch")
			must.Do(os.MkdirAll(etc, 0o777))
			must.Do(os.WriteFile(filepath.Join(etc, "on-update"), []byte(f.policy+"\n"), 0o666))
			continue
		}
		run("add", "--no-fetch", "--as-is", f.id)
		run("set", f.id, "on-update", f.policy)
		// The command refuses intervals this short.
		must.Do(os.WriteFile(filepath.Join(c.dir, "src", f.hash, "etc/fetch/interval"), []byte("1s\n"), 0o666))
	}
}

// namespaces returns an error if processes cannot have their own host name and process numbers.
func namespaces() error {
	if runtime.GOOS != "linux" {
		return errors.New("there are no namespaces")
	}
	if os.Getuid() != 0 {
		return errors.New("namespaces need root")
	}
	argv := apart([]string{"uname", "-n"})
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil || string(out) != otherHost+"\n" {
		return fmt.Errorf("unshare: %v: %s", err, out)
	}
	return nil
}

// otherHost is the host name of isolated processes.
const otherHost = "crowd-apart"

// apart returns a command that runs with another host name, and with process number 1, which all
// such processes have.
func apart(argv []string) []string {
	return append([]string{"unshare", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c",
		`echo ` + otherHost + ` >/proc/sys/kernel/hostname && exec "$@"`, "sh"}, argv...)
}

// somewhere returns the result of apart for every other command, if isolation is possible.
func (c *crowd) somewhere(rnd *rand.Rand, argv ...string) []string {
	if c.isolationErr != nil || rnd.IntN(2) == 0 {
		return argv
	}
	return apart(argv)
}

// find counts a finding: something that must not happen.
func (c *crowd) find(format string, args ...any) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	c.account.findings[fmt.Sprintf(format, args...)]++
}

// process is a command of the crowd.
type process struct {
	kind  string
	argv  []string
	stdin string
	env   []string
	// After this time, or when ctx ends, the signal is sent.
	signal syscall.Signal
	after  time.Duration
	ctx    context.Context
	fails  bool           // status 1 is allowed, with a message
	silent *regexp.Regexp // other messages that are allowed
}

// elsewhere reports whether the process runs on another host.
func (p process) elsewhere() bool {
	return p.argv[0] == "unshare" || slices.ContainsFunc(p.env, func(v string) bool {
		host, ok := strings.CutPrefix(v, "CROWD_HOST=")
		return ok && host != ""
	})
}

// ended is the end of a process. The status is -1 if a signal killed it.
type ended struct {
	status         int
	stdout, stderr string
}

// lines returns the lines of standard output, without an unfinished one.
func (o ended) lines() []string {
	whole := o.stdout[:strings.LastIndexByte(o.stdout, '\n')+1]
	return strings.FieldsFunc(whole, func(r rune) bool { return r == '\n' })
}

// run runs a process, and checks its status and messages.
func (c *crowd) run(p process) ended {
	at := c.dir
	if c.second != "" && p.elsewhere() {
		at = c.second
		for i, arg := range p.argv {
			p.argv[i] = strings.Replace(arg, c.dir, c.second, 1)
		}
	}
	ctx, after := p.ctx, p.after
	if ctx == nil {
		ctx = context.Background()
	}
	if p.signal == 0 {
		after = hang
	}
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+at, "GORACE=atexit_sleep_ms=0", "LC_ALL=C", "no_proxy=*")
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Stdin = strings.NewReader(p.stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(cmp.Or(p.signal, syscall.SIGKILL)) }
	cmd.WaitDelay = hang // after this it is killed
	err := cmd.Run()
	if cmd.ProcessState == nil && ctx.Err() != nil {
		return ended{status: -1} // ctx ended before the process began
	}
	o := ended{stdout: stdout.String(), stderr: stderr.String()}
	if cmd.ProcessState == nil || errors.Is(err, exec.ErrWaitDelay) {
		c.find("%s: %v", p.kind, err)
		o.status = -2
		return o
	}
	how := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ctx.Err() != nil && how.Signaled() && how.Signal() == syscall.SIGKILL && p.signal != syscall.SIGKILL {
		c.find("%s: it does not end", p.kind)
	}
	o.status = cmd.ProcessState.ExitCode()
	c.judge(p, o)
	return o
}

// harmlessMessages match messages that are not findings. The function records them as evidence.
var harmlessMessages = []struct {
	form  *regexp.Regexp
	claim func(e *evidence, m []string)
}{
	{regexp.MustCompile(`^lektor-fetch: \d+ feeds?: .*; .* (entry|entries)(, .* updated)?$`), nil},
	{regexp.MustCompile(`^lektor-fetch: \S+: skipped, another process is fetching it$`), nil},
	{regexp.MustCompile(`^lektor-fetch: feed [0-9a-f]{40} is being fetched by another process$`), nil},
	{regexp.MustCompile(`^lektor-fetch: hint: try again in a moment$`), nil},
	{regexp.MustCompile(`^lektor-view: there is no unread entry`), nil},
	// Other programs on this machine watch files, too.
	{regexp.MustCompile(`^lektor-\w+: warning: cannot watch for changes, looking every \S+ instead: the kernel's limit `), nil},
	{regexp.MustCompile(`^lektor-view: no entry (\S+)$`), deny},
	{regexp.MustCompile(`^lektor-view: (\S+) was replaced by a newer version, \S+$`), deny},
	{regexp.MustCompile(`^lektor-view: hint: (it was removed, or never existed|use that one, or run lektor-view ls.*)$`), nil},
	{regexp.MustCompile(`^lektor-view: warning: (\S+): it has no (?:file )?(?:title|id|content|feed); skipped$`),
		mangle},
	{regexp.MustCompile(`^lektor-view: (\S+): it has no (?:file )?(?:title|id|content|feed)$`), mangle}, // by next
	// A fetcher of another host may remove an entry in tmp/ at the same time.
	{regexp.MustCompile(`^rm: cannot remove 'tmp/\S+;gone(/\w+)?': Stale file handle$`), nil},
	// For a second, a mount may still show an entry that another host has moved.
	{regexp.MustCompile(`^mv: cannot move 'new/\S+' to '(?:cur|tmp)/\S+': Stale file handle$`), nil},
	{regexp.MustCompile(`^lektor-digest: \./(\S+) is not a whole entry$`), mangle},
}

// deny records that a viewer did not find an entry. For a second, a mount of GlusterFS may not
// see that another host has moved one: lektor(7), "On many machines".
func deny(e *evidence, m []string) {
	if !gluster.Inside() {
		e.denied[keyOf(m[1])] = true
	}
}

func mangle(e *evidence, m []string) { e.broken[keyOf(m[1])] = true }

// keyOf returns the feed and the unique name in a path, as feed/unique.
func keyOf(path string) string {
	unique, _, _ := strings.Cut(filepath.Base(path), ";")
	return filepath.Base(filepath.Dir(path)) + "/" + unique
}

// judge checks the status and the messages of a process.
func (c *crowd) judge(p process, o ended) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	s := c.account.stats[p.kind]
	if s == nil {
		s = &stat{statuses: map[int]int{}}
		c.account.stats[p.kind] = s
		c.account.kinds = append(c.account.kinds, p.kind)
	}
	s.runs++
	if o.status == -1 && p.signal != 0 {
		// SIGTERM may come before the program handles it.
		s.killed++
	} else {
		s.statuses[o.status]++
		if o.status != 0 && !(o.status == 1 && p.fails && o.stderr != "") {
			c.account.findings[fmt.Sprintf("%s: status %d: %.400s", p.kind, o.status, o.stderr)]++
		}
	}
lines:
	for l := range strings.Lines(o.stderr) {
		l = strings.TrimSuffix(l, "\n")
		for _, m := range harmlessMessages {
			if f := m.form.FindStringSubmatch(l); f != nil {
				if m.claim != nil {
					m.claim(&c.account.ev, f)
				}
				continue lines
			}
		}
		if p.silent == nil || !p.silent.MatchString(l) {
			c.account.findings[p.kind+": it said: "+l]++
		}
	}
}

// printed records the entries that a fetcher printed as delivered.
func (c *crowd) printed(o ended) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	for _, l := range o.lines() {
		c.account.ev.printed[keyOf(l)]++
	}
}

// removed records entries that a viewer printed as removed.
func (c *crowd) removed(hides bool, paths ...string) {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	for _, p := range paths {
		c.account.ev.removed[keyOf(p)]++
		if hides {
			c.account.ev.hidden[keyOf(p)] = true
		}
	}
}

// at calls f repeatedly until ctx ends, with pauses of this average length.
func at(ctx context.Context, rnd *rand.Rand, pause time.Duration, f func()) {
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rnd.Int64N(int64(2*pause) + 1))):
		}
	}
}

// report prints the runs and the findings, and returns the number of findings.
func (c *crowd) report() int {
	for _, kind := range c.account.kinds {
		s := c.account.stats[kind]
		var by []string
		for _, n := range slices.Sorted(maps.Keys(s.statuses)) {
			by = append(by, fmt.Sprintf("%d with status %d", s.statuses[n], n))
		}
		if s.killed > 0 {
			by = append(by, fmt.Sprintf("%d killed", s.killed))
		}
		fmt.Printf("%-28s %5d runs: %s\n", kind, s.runs, strings.Join(by, ", "))
	}
	for _, text := range slices.Sorted(maps.Keys(c.account.findings)) {
		fmt.Printf("\nFOUND (%d times): %s\n", c.account.findings[text], text)
	}
	return len(c.account.findings)
}

// crowd lets a crowd work for a time, and returns the number of findings.
func (e *env) crowd(ctx context.Context, seed uint64, long, grows time.Duration) int {
	c := newCrowd(ctx, e)
	defer c.feeds.server.Close()
	fmt.Println("crowd: seed", seed)
	if c.second != "" {
		// Run this before the crowd, which uses all processors.
		must.Do(oneAsks(ctx, c.env.fetch, c.self, [2]string{c.dir + "-hosts", c.second + "-hosts"}, 40, 5))
	}
	if c.isolationErr != nil {
		fmt.Println("skipped, other hosts and repeated process numbers of the programs themselves:", c.isolationErr)
	}
	must.Do(c.rush(ctx, seed, long, grows))
	found := c.report()
	fmt.Printf("crowd: %d entries there, %d removed, %d delivered as fetchers say; %d findings\n", len(c.account.ev.entries),
		len(c.account.ev.removed), len(c.account.ev.printed), found)
	return found
}
