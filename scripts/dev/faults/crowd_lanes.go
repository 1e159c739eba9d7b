//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// These are the surroundings of fetchers and viewers with a wrong clock and equal process
// numbers.
var (
	ahead  = surroundings{shift: time.Hour, host: "crowd-ahead", pid: 1}
	behind = surroundings{shift: -time.Hour, pid: 1} // on this host
)

// lane is a user or program that works repeatedly, with pauses of this average length.
type lane struct {
	pause time.Duration
	do    func(ctx context.Context, rnd *rand.Rand)
}

// lanes are eight fetchers, the user's due markers, and eight viewers.
func (c *crowd) lanes() []lane {
	const ms = time.Millisecond
	view := func(kind string, fails bool, argv ...string) func(context.Context, *rand.Rand) {
		return func(_ context.Context, rnd *rand.Rand) {
			p := process{kind: kind, argv: argv, fails: fails}
			if kind == "digest" {
				p.argv = append(slices.Clone(argv), c.query(rnd)...)
			}
			c.run(p)
		}
	}
	return []lane{
		{100 * ms, c.updates}, {100 * ms, c.updatesApart},
		{150 * ms, func(_ context.Context, rnd *rand.Rand) { c.updatesElsewhere(rnd, "update, clock ahead", ahead) }},
		{150 * ms, func(_ context.Context, rnd *rand.Rand) { c.updatesElsewhere(rnd, "update, clock behind", behind) }},
		{50 * ms, c.watches}, {50 * ms, c.delivers}, {50 * ms, c.puts}, {400 * ms, c.clocks},
		{200 * ms, c.marksDue},
		{100 * ms, c.marks}, {300 * ms, c.removes}, {50 * ms, c.follows}, {300 * ms, c.shells},
		{300 * ms, c.viewersElsewhere},
		{200 * ms, view("next", true, c.env.view, "next")}, {500 * ms, view("digest", false, c.env.view, "digest")},
		{3000 * ms, view("lektor-digest", false, "sh", filepath.Join(c.scripts, "lektor-digest"))},
	}
}

func (c *crowd) update(args ...string) []string {
	return append([]string{c.env.fetch, "update", "-o", "path", "--gap", "0", "--per-host", "8"}, args...)
}

// sometimesKilled returns the process, sometimes with a signal that kills it.
func sometimesKilled(rnd *rand.Rand, p process) process {
	if rnd.IntN(6) == 0 {
		p.signal, p.after = syscall.SIGKILL, time.Duration(rnd.IntN(150))*time.Millisecond
	}
	return p
}

func (c *crowd) updates(_ context.Context, rnd *rand.Rand) {
	c.printed(c.run(sometimesKilled(rnd, process{kind: "update -a", argv: c.update("-a")})))
}

// updatesApart runs updates on another host.
func (c *crowd) updatesApart(context.Context, *rand.Rand) {
	p := process{kind: "update", argv: c.update()}
	if c.isolationErr == nil {
		p = process{kind: "update -a, other host", argv: apart(c.update("-a"))}
	}
	c.printed(c.run(p))
}

func (c *crowd) updatesElsewhere(rnd *rand.Rand, kind string, s surroundings) {
	does := "update -a"
	if rnd.IntN(2) == 0 {
		does = "update"
	}
	c.printed(c.run(sometimesKilled(rnd, c.child(kind, s, does))))
}

// watches starts watches and stops them.
func (c *crowd) watches(ctx context.Context, rnd *rand.Rand) {
	c.printed(c.run(process{
		kind: "watch", argv: []string{c.env.fetch, "watch", "-o", "path", "--gap", "0", "--per-host", "8"},
		signal: syscall.SIGTERM, after: 200*time.Millisecond + time.Duration(rnd.IntN(4000))*time.Millisecond, ctx: ctx,
	}))
}

// marksDue leaves due markers.
func (c *crowd) marksDue(_ context.Context, rnd *rand.Rand) {
	f := c.feeds.all[rnd.IntN(len(c.feeds.all))]
	if !f.pulled {
		return
	}
	due := filepath.Join(c.dir, "etc/fetch/due")
	err := os.MkdirAll(due, 0o777)
	if err == nil {
		err = os.WriteFile(filepath.Join(due, f.hash), nil, 0o666)
	}
	if err != nil {
		c.find("due marker: %v", err)
	}
}

// delivers pipes in documents of feeds that no other process fetches, and of some that others
// fetch at the same time, for which the order of documents is open.
func (c *crowd) delivers(_ context.Context, rnd *rand.Rand) {
	f := c.feeds.all[rnd.IntN(len(c.feeds.all))]
	if f != c.feeds.put && (!f.pulled || f.policy != unread) {
		c.deliver(f)
	}
}

func (c *crowd) deliver(f *feed) {
	text, change := f.document()
	o := c.run(process{kind: "deliver", argv: []string{c.env.fetch, "deliver", "--id", f.id, "-o", "path"}, stdin: text,
		fails: true})
	c.printed(o)
	if o.status == 0 {
		f.delivered(change)
	}
}

// puts puts entries, changes some of them, and sometimes puts one by two processes at once.
func (c *crowd) puts(_ context.Context, rnd *rand.Rand) {
	f := c.feeds.put
	v := version{c.put + 1, 1}
	if c.put > 0 && rnd.IntN(3) == 0 {
		v.entry = c.put - rnd.IntN(min(c.put, 5))
		f.mu.Lock()
		v.number = f.latest[v.entry] + 1
		f.mu.Unlock()
	}
	c.put = max(c.put, v.entry)
	c.onceOrTwice(rnd, func(program []string) { c.putOne(program, v) }, c.env.fetch)
}

// onceOrTwice runs a command, or two copies at once, on this host or another.
func (c *crowd) onceOrTwice(rnd *rand.Rand, run func(argv []string), argv ...string) {
	var wg sync.WaitGroup
	for range 1 + rnd.IntN(2) {
		argv := c.somewhere(rnd, argv...)
		wg.Go(func() { run(argv) })
	}
	wg.Wait()
}

// putOne puts a version of an entry.
func (c *crowd) putOne(program []string, v version) bool {
	f := c.feeds.put
	f.offer(v)
	o := c.run(process{kind: "put", stdin: f.content(v), fails: true, argv: append(slices.Clone(program),
		"put", "--feed-id", f.id, "--feed-name", "Feed put", "--id", f.guid(v), "--title", f.title(v), "--link",
		f.link(v),
		"--author", "Ann <ann@example.com>", "--date", date(v).Format(time.RFC3339), "--type", "text/html",
		"--category", "crowd", "--category", "naïve",
		"--enclosure", fmt.Sprintf("%s audio/mpeg %d", f.enclosure(v), v.number))})
	if o.status == 0 {
		f.take(v)
	}
	return o.status == 0
}

// clocks runs the sample fetcher, sometimes several at once, on two hosts. On one of them, all
// its processes have the same number.
func (c *crowd) clocks(_ context.Context, rnd *rand.Rand) {
	c.onceOrTwice(rnd, func(argv []string) {
		if o := c.run(process{kind: "lektor-clock", argv: argv}); o.status == 0 {
			c.account.mu.Lock()
			c.account.ev.clockRuns++
			c.account.mu.Unlock()
		}
	}, "sh", filepath.Join(c.scripts, "lektor-clock"), "-1")
}

// some returns up to n of the lines, chosen at random.
func some(rnd *rand.Rand, lines []string, n int) []string {
	rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines[:min(len(lines), 1+rnd.IntN(n))]
}

// listed returns entries to choose from.
func (c *crowd) listed(args ...string) []string {
	return c.run(process{kind: "ls", argv: append([]string{c.env.view, "ls", "-o", "path"}, args...)}).lines()
}

// marks pipes the output of ls into mark.
func (c *crowd) marks(_ context.Context, rnd *rand.Rand) {
	flags := [][]string{{"--set", "S"}, {"--set", "FS"}, {"--set", "F"}, {"--set", "ab", "--clear", "S"},
		{"--clear", "FS"}, {"--set", "S", "--clear", "a"}}
	if paths := c.listed([][]string{nil, {"-a"}}[rnd.IntN(2)]...); len(paths) > 0 {
		c.run(process{
			kind: "mark", argv: c.somewhere(rnd, append(append([]string{c.env.view, "mark"},
				flags[rnd.IntN(len(flags))]...), "-")...),
			stdin: strings.Join(some(rnd, paths, 10), "\n") + "\n", fails: true,
		})
	}
}

// remove runs a process that removes entries.
func (c *crowd) remove(p process, paths []string) {
	p.fails = true
	o := c.run(p)
	c.removed(true, slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, unique, _ := strings.Cut(keyOf(path), "/")
		return strings.Contains(o.stderr, unique)
	})...)
}

func (c *crowd) removes(_ context.Context, rnd *rand.Rand) {
	if paths := some(rnd, c.listed("-a"), 3); len(paths) > 0 {
		c.remove(process{kind: "rm", argv: append([]string{c.env.view, "rm", "--now"}, paths...)}, paths)
	}
}

// query returns a query, mostly of one feed, since otherwise a digest would leave nothing unread.
func (c *crowd) query(rnd *rand.Rand) []string {
	if rnd.IntN(8) == 0 {
		return nil
	}
	return []string{"feed:" + c.feeds.all[rnd.IntN(len(c.feeds.all))].name}
}

func (c *crowd) follows(ctx context.Context, rnd *rand.Rand) {
	o := c.run(process{
		kind: "follow", argv: []string{c.env.view, "follow", "-o", "path"},
		signal: syscall.SIGTERM, after: 300*time.Millisecond + time.Duration(rnd.IntN(8000))*time.Millisecond, ctx: ctx,
	})
	seen := map[string]bool{}
	for _, l := range o.lines() {
		if seen[keyOf(l)] {
			c.find("follow: it printed %s twice", l)
		}
		seen[keyOf(l)] = true
	}
}

// byHand is a user's script, written by the specification alone. It moves or removes every $1-th
// entry in new/ from the $2-th on. If others took an entry, that is not an error.
const byHand = `
cd "$LEKTORDIR" || exit 1
n=0
for entry in new/*/*; do
	[ -d "$entry" ] || continue
	n=$((n + 1))
	key=${entry#new/}
	feed=${key%%/*}
	case $((n % $1)) in
	"$2")
		mkdir -p "cur/$feed"
		if why=$(mv "$entry" "cur/$key" 2>&1); then
			echo "took $key"
		elif [ -d "$entry" ]; then
			echo "$why" >&2
		fi
		;;
	"$3")
		if why=$(rm -r "$entry" 2>&1); then
			echo "removed $key"
		else
			echo "tried $key"
			! [ -d "$entry" ] || echo "$why" >&2
		fi
		;;
	"$4")
		mkdir -p "tmp/$feed"
		if why=$(mv "$entry" "tmp/$key;gone" 2>&1); then
			rm -rf "tmp/$key;gone"
			echo "removed $key"
		elif [ -d "$entry" ]; then
			echo "$why" >&2
		fi
		;;
	esac
done
`

// shells runs users' scripts that move and remove entries.
func (c *crowd) shells(_ context.Context, rnd *rand.Rand) {
	n := 6 + rnd.IntN(10)
	three := rnd.Perm(n)
	o := c.run(process{kind: "mv, rm -r", argv: []string{"sh", "-c", byHand, "sh", fmt.Sprint(n), fmt.Sprint(three[0]),
		fmt.Sprint(three[1]), fmt.Sprint(three[2])}})
	for _, l := range o.lines() {
		switch what, key, _ := strings.Cut(l, " "); what {
		case "removed":
			c.removed(false, key)
		case "tried":
			c.account.mu.Lock()
			c.tried[key] = true
			c.account.mu.Unlock()
		}
	}
}

// viewersElsewhere runs viewers with a wrong clock.
func (c *crowd) viewersElsewhere(_ context.Context, rnd *rand.Rand) {
	s := ahead
	if rnd.IntN(2) == 0 {
		s = behind
	}
	does := []string{"mark", "mark", "rm", "digest", "next"}[rnd.IntN(5)]
	p := c.child(does+", clock wrong", s, does)
	p.fails = does != "digest"
	if does != "mark" && does != "rm" {
		p.argv = append(p.argv, c.query(rnd)...)
		c.run(p)
		return
	}
	paths := some(rnd, c.listed(), 3)
	p.argv = append(p.argv, paths...)
	switch {
	case len(paths) == 0:
	case does == "rm":
		c.remove(p, paths)
	default:
		c.run(p)
	}
}

// rush lets all lanes work for a while, and accounts for all entries at the end.
func (c *crowd) rush(ctx context.Context, seed uint64, long, grows time.Duration) (err error) {
	defer must.Catch(&err)
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		for after := long; ; after = time.Second / 10 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(after):
			}
			if c.ran() {
				return
			}
		}
	}()
	var wg sync.WaitGroup
	for i, l := range c.lanes() {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { at(ctx, rnd, l.pause, func() { l.do(ctx, rnd) }) })
	}
	rnd := rand.New(rand.NewPCG(seed, 1000))
	wg.Go(func() {
		at(ctx, rnd, grows, func() {
			if f := c.feeds.all[rnd.IntN(len(c.feeds.all))]; f != c.feeds.put {
				f.grow(rnd)
			}
		})
	})
	wg.Wait()
	must.Do(outer.Err())
	return c.lastRound()
}

// ran reports whether all required kinds ran.
func (c *crowd) ran() bool {
	c.account.mu.Lock()
	defer c.account.mu.Unlock()
	for _, kind := range c.wanted {
		if s := c.account.stats[kind]; s == nil || s.runs == 0 {
			return false
		}
	}
	return true
}

// settle runs the fetchers of all hosts a last time, when nothing else runs, and accounts for all
// entries.
func (c *crowd) lastRound() (err error) {
	defer must.Catch(&err)
	// Entries that were moved while rm -r removed them are removed now, as a user would do.
	for key := range c.tried {
		feed, unique, _ := strings.Cut(key, "/")
		for _, path := range must.Get(filepath.Glob(filepath.Join(c.dir, "*", feed, unique+"*"))) {
			must.Do(os.RemoveAll(path))
			c.account.ev.removed[key]++
		}
	}
	const kind = "at the end"
	last := []process{{argv: c.update("-a")}, c.child("", ahead, "update -a"), c.child("", behind, "update -a")}
	if c.isolationErr == nil {
		last = append(last, process{argv: apart(c.update("-a"))})
	}
	for _, p := range last {
		p.kind = kind
		c.printed(c.run(p))
	}
	for _, f := range c.feeds.all {
		if !f.pulled && f != c.feeds.put {
			c.deliver(f)
		}
	}
	for _, f := range c.feeds.all {
		f.delivered(f.changed())
	}
	if o := c.run(process{kind: kind, argv: c.update("-a")}); o.stdout != "" {
		c.find("delivered though nothing was new: %s", o.stdout)
	}
	if o := c.run(process{kind: "check", argv: []string{c.env.fetch, "check"}, fails: true}); o.stdout != "" {
		c.find("lektor-fetch check: %s", o.stdout)
	}
	if c.third != nil {
		c.dir = c.third()
	}
	for _, dir := range []string{"tmp/*/*", "etc/fetch/due/*", "etc/fetch/taken/*"} {
		for _, path := range must.Get(filepath.Glob(filepath.Join(c.dir, dir))) {
			c.find("left: %s", strings.TrimPrefix(path, c.dir+"/"))
		}
	}
	if err := must.Run(func() { c.account.ev.gather(c.dir) }); err != nil {
		c.find("%v", err)
	}
	for _, err := range c.account.ev.check() {
		c.find("%v", err)
	}
	return nil
}
