package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// Who is elsewhere: fetchers and viewers whose clocks are wrong, and whose
// process numbers are the same.
var (
	ahead  = surroundings{shift: time.Hour, host: "crowd-ahead", pid: 1}
	behind = surroundings{shift: -time.Hour, pid: 1} // on this host
)

// lane is one who is at work all the time.
type lane func(ctx context.Context, rnd *rand.Rand)

// fetchers are eight.
func (c *crowd) fetchers() []lane {
	return []lane{
		c.updates, c.updatesApart, c.watches, c.delivers, c.puts, c.clocks,
		func(ctx context.Context, rnd *rand.Rand) { c.updatesElsewhere(ctx, rnd, "update, clock ahead", ahead) },
		func(ctx context.Context, rnd *rand.Rand) {
			c.updatesElsewhere(ctx, rnd, "update, clock behind", behind)
		},
	}
}

// viewers are eight.
func (c *crowd) viewers() []lane {
	return []lane{c.marks, c.removes, c.nexts, c.digests, c.follows, c.sampleDigests, c.shells, c.viewersElsewhere}
}

func (c *crowd) update(args ...string) []string {
	return append([]string{c.fetch, "update", "-o", "path", "--gap", "0", "--per-host", "8"}, args...)
}

// sometimesKilled kills a process now and then.
func sometimesKilled(rnd *rand.Rand, p process) process {
	if rnd.IntN(6) == 0 {
		p.signal, p.after = syscall.SIGKILL, time.Duration(rnd.IntN(150))*time.Millisecond
	}
	return p
}

func (c *crowd) updates(ctx context.Context, rnd *rand.Rand) {
	const kind = "update -a"
	at(ctx, rnd, 100*time.Millisecond, func() {
		c.printed(kind, c.run(sometimesKilled(rnd, process{kind: kind, argv: c.update("-a")})))
	})
}

// updatesApart are those of another host.
func (c *crowd) updatesApart(ctx context.Context, rnd *rand.Rand) {
	kind := "update -a, other host"
	argv := c.update("-a")
	if c.alone == nil {
		argv = apart(argv)
	} else {
		kind, argv = "update", c.update()
	}
	at(ctx, rnd, 100*time.Millisecond, func() { c.printed(kind, c.run(process{kind: kind, argv: argv})) })
}

func (c *crowd) updatesElsewhere(ctx context.Context, rnd *rand.Rand, kind string, s surroundings) {
	at(ctx, rnd, 150*time.Millisecond, func() {
		does := "update -a"
		if rnd.IntN(2) == 0 {
			does = "update"
		}
		c.printed(kind, c.run(sometimesKilled(rnd, c.child(kind, s, does))))
	})
}

// watches are stopped and started again. Somebody leaves due markers meanwhile.
func (c *crowd) watches(ctx context.Context, rnd *rand.Rand) {
	const kind = "watch"
	var wg sync.WaitGroup
	defer wg.Wait()
	markers := rand.New(rand.NewPCG(rnd.Uint64(), 0))
	wg.Go(func() {
		due := filepath.Join(c.dir, "etc/fetch/due")
		at(ctx, markers, 200*time.Millisecond, func() {
			f := c.feeds.all[markers.IntN(len(c.feeds.all))]
			if !f.pulled {
				return
			}
			err := os.MkdirAll(due, 0o777)
			if err == nil {
				err = os.WriteFile(filepath.Join(due, f.hash), nil, 0o666)
			}
			if err != nil {
				c.find("due marker: %v", err)
			}
		})
	})
	at(ctx, rnd, 50*time.Millisecond, func() {
		c.printed(kind, c.run(process{
			kind: kind, argv: []string{c.fetch, "watch", "-o", "path", "--gap", "0", "--per-host", "8"},
			signal: syscall.SIGTERM, after: 200*time.Millisecond + time.Duration(rnd.IntN(4000))*time.Millisecond, ctx: ctx,
		}))
	})
}

// delivers pipes documents in: of feeds that nobody else fetches, and of some
// that others fetch at the same time, where the order of documents is open.
func (c *crowd) delivers(ctx context.Context, rnd *rand.Rand) {
	var some []*feed
	for _, f := range c.feeds.all {
		if f != c.feeds.put && (!f.pulled || f.policy != unread) {
			some = append(some, f)
		}
	}
	at(ctx, rnd, 50*time.Millisecond, func() { c.deliver(some[rnd.IntN(len(some))]) })
}

func (c *crowd) deliver(f *feed) {
	const kind = "deliver"
	text, change := f.document()
	o := c.run(process{kind: kind, argv: []string{c.fetch, "deliver", "--id", f.id, "-o", "path"}, stdin: text, fails: true})
	c.printed(kind, o)
	if o.status == 0 {
		f.delivered(change)
	}
}

// puts puts entries, changes some of them, and at times puts one by two
// processes at once.
func (c *crowd) puts(ctx context.Context, rnd *rand.Rand) {
	const kind = "put"
	f := c.feeds.put
	last := 0
	at(ctx, rnd, 50*time.Millisecond, func() {
		v := version{last + 1, 1}
		if last > 0 && rnd.IntN(3) == 0 {
			v.entry = 1 + last - 1 - rnd.IntN(min(last, 5))
			f.mu.Lock()
			v.number = f.latest[v.entry] + 1
			f.mu.Unlock()
		}
		last = max(last, v.entry)
		var wg sync.WaitGroup
		for range 1 + rnd.IntN(2) {
			program := c.somewhere(rnd, c.fetch)
			wg.Go(func() { c.put(kind, program, v) })
		}
		wg.Wait()
	})
}

// put puts a version of an entry.
func (c *crowd) put(kind string, program []string, v version) bool {
	f := c.feeds.put
	f.offer(v)
	o := c.run(process{kind: kind, stdin: f.content(v), fails: true, argv: append(program,
		"put", "--feed-id", f.id, "--feed-name", "Feed put", "--id", f.guid(v), "--title", f.title(v), "--link", f.link(v),
		"--author", "Ann <ann@example.com>", "--date", date(v).Format(time.RFC3339), "--type", "text/html", "--category", "crowd", "--category", "naïve",
		"--enclosure", fmt.Sprintf("%s audio/mpeg %d", f.enclosure(v), v.number))})
	if o.status != 0 {
		return false
	}
	c.count(kind, 1)
	f.take(v)
	return true
}

// clocks run the sample fetcher, several at once now and then, on two hosts, of
// which one gives all its processes the same number.
func (c *crowd) clocks(ctx context.Context, rnd *rand.Rand) {
	const kind = "lektor-clock"
	at(ctx, rnd, 400*time.Millisecond, func() {
		var wg sync.WaitGroup
		for range 1 + rnd.IntN(2) {
			argv := c.somewhere(rnd, "sh", filepath.Join(c.scripts, "lektor-clock"), "-1")
			wg.Go(func() {
				if o := c.run(process{kind: kind, argv: argv}); o.status == 0 {
					c.count(kind, 1)
					c.mu.Lock()
					c.ev.clockRuns++
					c.mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
}

// some picks up to n of the lines.
func some(rnd *rand.Rand, lines []string, n int) []string {
	rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines[:min(len(lines), 1+rnd.IntN(n))]
}

// marks pipes ls into mark.
func (c *crowd) marks(ctx context.Context, rnd *rand.Rand) {
	flags := [][]string{{"--set", "S"}, {"--set", "FS"}, {"--set", "F"}, {"--set", "ab", "--clear", "S"}, {"--clear", "FS"}, {"--set", "S", "--clear", "a"}}
	at(ctx, rnd, 100*time.Millisecond, func() {
		ls := process{kind: "ls", argv: []string{c.view, "ls", "-o", "path"}}
		if rnd.IntN(2) == 0 {
			ls.argv = append(ls.argv, "-a")
		}
		paths := c.run(ls).lines()
		c.count(ls.kind, len(paths))
		if len(paths) == 0 {
			return
		}
		const kind = "mark"
		o := c.run(process{
			kind: kind, argv: c.somewhere(rnd, append(append([]string{c.view, "mark"}, flags[rnd.IntN(len(flags))]...), "-")...),
			stdin: strings.Join(some(rnd, paths, 10), "\n") + "\n", fails: true,
		})
		c.count(kind, len(o.lines()))
	})
}

// remove runs a process that removes entries.
func (c *crowd) remove(p process, paths []string) {
	p.fails = true
	o := c.run(p)
	var gone []string
	for _, path := range paths {
		_, unique, _ := strings.Cut(keyOf(path), "/")
		if !strings.Contains(o.stderr, unique) {
			gone = append(gone, path)
		}
	}
	c.removed(p.kind, true, gone...)
}

// list lists entries to choose from.
func (c *crowd) list(args ...string) []string {
	return c.run(process{kind: "ls", argv: append([]string{c.view, "ls", "-o", "path"}, args...)}).lines()
}

func (c *crowd) removes(ctx context.Context, rnd *rand.Rand) {
	at(ctx, rnd, 300*time.Millisecond, func() {
		if paths := some(rnd, c.list("-a"), 3); len(paths) > 0 {
			c.remove(process{kind: "rm", argv: append([]string{c.view, "rm", "--now"}, paths...)}, paths)
		}
	})
}

func (c *crowd) nexts(ctx context.Context, rnd *rand.Rand) {
	const kind = "next"
	at(ctx, rnd, 200*time.Millisecond, func() {
		c.shown(kind, c.run(process{kind: kind, argv: []string{c.view, "next"}, fails: true}))
	})
}

var titles = regexp.MustCompile(`(?m)^(Title: )?(Entry \d+ of \S+, version \d+|Current Time)$`)

// shown counts the entries that a viewer showed.
func (c *crowd) shown(kind string, o outcome) { c.count(kind, len(titles.FindAllString(o.stdout, -1))) }

// query is of one feed most often, or a digest would leave nothing unread.
func (c *crowd) query(rnd *rand.Rand) []string {
	if rnd.IntN(8) == 0 {
		return nil
	}
	return []string{"feed:" + c.feeds.all[rnd.IntN(len(c.feeds.all))].name}
}

func (c *crowd) digests(ctx context.Context, rnd *rand.Rand) {
	const kind = "digest"
	at(ctx, rnd, 500*time.Millisecond, func() {
		c.shown(kind, c.run(process{kind: kind, argv: append([]string{c.view, "digest"}, c.query(rnd)...)}))
	})
}

func (c *crowd) follows(ctx context.Context, rnd *rand.Rand) {
	const kind = "follow"
	at(ctx, rnd, 50*time.Millisecond, func() {
		o := c.run(process{
			kind: kind, argv: []string{c.view, "follow", "-o", "path"},
			signal: syscall.SIGTERM, after: 300*time.Millisecond + time.Duration(rnd.IntN(8000))*time.Millisecond, ctx: ctx,
		})
		seen := map[string]bool{}
		for _, l := range o.lines() {
			if seen[keyOf(l)] {
				c.find("%s: it printed %s twice", kind, l)
			}
			seen[keyOf(l)] = true
		}
		c.count(kind, len(seen))
	})
}

func (c *crowd) sampleDigests(ctx context.Context, rnd *rand.Rand) {
	const kind = "lektor-digest"
	at(ctx, rnd, 3*time.Second, func() {
		c.shown(kind, c.run(process{kind: kind, argv: []string{"sh", filepath.Join(c.scripts, "lektor-digest")}}))
	})
}

// byHand is what a user does who has read the specification and no more: every
// $1-th entry in new/ from the $2-th is moved, as its sample viewer does, or
// removed. What others took is no error.
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

func (c *crowd) shells(ctx context.Context, rnd *rand.Rand) {
	const kind = "mv, rm -r"
	at(ctx, rnd, 300*time.Millisecond, func() {
		n := 6 + rnd.IntN(10)
		three := rnd.Perm(n)
		o := c.run(process{kind: kind, argv: []string{"sh", "-c", byHand, "sh", fmt.Sprint(n), fmt.Sprint(three[0]), fmt.Sprint(three[1]), fmt.Sprint(three[2])}})
		for _, l := range o.lines() {
			what, key, _ := strings.Cut(l, " ")
			switch what {
			case "took":
				c.count(kind, 1)
			case "removed":
				c.removed(kind, false, key)
			case "tried":
				c.mu.Lock()
				c.tried[key] = true
				c.mu.Unlock()
			}
		}
	})
}

// viewersElsewhere have clocks that are wrong.
func (c *crowd) viewersElsewhere(ctx context.Context, rnd *rand.Rand) {
	at(ctx, rnd, 300*time.Millisecond, func() {
		s := ahead
		if rnd.IntN(2) == 0 {
			s = behind
		}
		does := []string{"mark", "mark", "rm", "digest", "next"}[rnd.IntN(5)]
		p := c.child(does+", clock wrong", s, does)
		p.fails = does != "digest"
		switch does {
		case "mark", "rm":
			paths := some(rnd, c.list(), 3)
			if len(paths) == 0 {
				return
			}
			p.argv = append(p.argv, paths...)
			if does == "rm" {
				c.remove(p, paths)
				return
			}
			c.count(p.kind, len(c.run(p).lines()))
		default:
			p.argv = append(p.argv, c.query(rnd)...)
			c.shown(p.kind, c.run(p))
		}
	})
}

// rush lets everybody work for a while, and accounts for everything at the end.
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
	for i, l := range append(c.fetchers(), c.viewers()...) {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { l(ctx, rnd) })
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
	return c.settle()
}

// ran tells whether what is wanted was run.
func (c *crowd) ran() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range c.wanted {
		if s := c.stats[kind]; s == nil || s.runs == 0 {
			return false
		}
	}
	return true
}

// settle lets the fetchers of all hosts come a last time, when all is quiet, and
// accounts for everything.
func (c *crowd) settle() (err error) {
	defer must.Catch(&err)
	// What rm -r had begun when somebody moved it away is what its user would
	// remove now.
	for key := range c.tried {
		feed, unique, _ := strings.Cut(key, "/")
		for _, path := range must.Get(filepath.Glob(filepath.Join(c.dir, "*", feed, unique+"*"))) {
			must.Do(os.RemoveAll(path))
			c.ev.removed[key]++
		}
	}
	const kind = "at the end"
	last := []process{{argv: c.update("-a")}, c.child("", ahead, "update -a"), c.child("", behind, "update -a")}
	if c.alone == nil {
		last = append(last, process{argv: apart(c.update("-a"))})
	}
	for _, p := range last {
		p.kind = kind
		c.printed(kind, c.run(p))
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
	if o := c.run(process{kind: "check", argv: []string{c.fetch, "check"}, fails: true}); o.stdout != "" {
		c.find("lektor-fetch check: %s", o.stdout)
	}
	if c.third != nil {
		c.dir = must.Get(c.third())
	}
	for _, dir := range []string{"tmp/*/*", "etc/fetch/due/*", "etc/fetch/taken/*"} {
		for _, path := range must.Get(filepath.Glob(filepath.Join(c.dir, dir))) {
			c.find("left: %s", strings.TrimPrefix(path, c.dir+"/"))
		}
	}
	if err := c.ev.gather(c.dir); err != nil {
		c.find("%v", err)
	}
	for _, err := range c.ev.check() {
		c.find("%v", err)
	}
	return nil
}
