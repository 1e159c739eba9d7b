package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// Delivery alone is measured by two programs that are this one run again: both
// have the entries of a lektor-dir in memory and write them to a new one, one
// through the package lektordir, the other by the system calls that cannot be
// saved: the floor.

// deliverArg is the first argument of such a run; the others are the way, the
// lektor-dir to copy and the one to make.
const deliverArg = "-deliver"

// deliveries are the two ways.
var deliveries = map[string]func(from *lektordir.Dir, to string) func(){
	"lektordir": throughLektordir,
	"floor":     throughFloor,
}

// deliverChild is main of such a run.
func deliverChild(args []string) {
	if len(args) != 3 || deliveries[args[0]] == nil {
		must.Fail("usage: %s WAY FROM TO", deliverArg)
	}
	from := must.Get(lektordir.Open(args[1], nil))
	run := deliveries[args[0]](from, args[2])
	runtime.GC()
	unix.Sync()
	start := time.Now()
	run()
	must.Get(fmt.Println(time.Since(start)))
}

// deliver runs one of the ways in a process of its own.
func deliver(way, from, to string) time.Duration {
	cmd := exec.Command(must.Get(os.Executable()), deliverArg, way, from, to)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must.That(err, "delivery by %s", way)
	return must.Get(time.ParseDuration(strings.TrimSpace(string(out))))
}

// deliveries measures both ways, by turns, with what is in from, and gives the
// best time of each.
func (o options) deliveries(from, tmp string) map[string]time.Duration {
	best := map[string]time.Duration{}
	for round := range min(o.rounds, 2) { // each makes a third of a million files
		for _, way := range []string{"floor", "lektordir"} {
			d := deliver(way, from, filepath.Join(tmp, fmt.Sprintf("%d-%s", round, way)))
			if best[way] == 0 || d < best[way] {
				best[way] = d
			}
		}
	}
	return best
}

// parallel calls f for each of n things, on all processors.
func parallel(n int, f func(i int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return must.Run(func() { f(i) }) })
	}
	must.Do(g.Wait())
}

// throughLektordir delivers as a fetcher does.
func throughLektordir(from *lektordir.Dir, to string) func() {
	type feed struct {
		about *lektordir.Feed
		items []lektordir.Item
	}
	hashes := must.Get(from.FeedHashes())
	feeds := make([]feed, len(hashes))
	byHash := map[string]*feed{}
	for i, h := range hashes {
		feeds[i].about = must.Get(from.ReadFeed(h))
		byHash[h] = &feeds[i]
	}
	for _, r := range must.Get(from.List(context.Background(), lektordir.ListOptions{})) {
		e := must.Get(from.ReadEntry(r, lektordir.AllFields))
		f := byHash[r.Feed]
		f.items = append(f.items, lektordir.Item{Entry: *e, GUID: e.ID, Text: string(e.Content)})
	}
	return func() {
		library(to, len(feeds), func(i int) (*lektordir.Feed, []lektordir.Item) { return feeds[i].about, feeds[i].items })
	}
}

// library makes a lektor-dir of n feeds, as a fetcher does that fetches them all
// for the first time.
func library(dir string, n int, feed func(i int) (*lektordir.Feed, []lektordir.Item)) {
	d := must.Get(lektordir.Create(dir, nil))
	w := must.Get(d.NewWriter(lektordir.WriterOptions{Delay: 250 * time.Millisecond}))
	var pending sync.WaitGroup
	failed := make(chan error, n)
	parallel(n, func(i int) {
		about, items := feed(i)
		t := must.Get(w.Begin(lektordir.FeedHash(about.ID)))
		must.Do(t.PutFeed(about))
		must.Get(t.Stage(context.Background(), lektordir.Document{Items: items}))
		pending.Add(1)
		t.Commit(func(err error) {
			defer pending.Done()
			t.Close()
			if err != nil {
				failed <- err
			}
		})
	})
	w.Flush()
	pending.Wait()
	must.Do(w.Close())
	close(failed)
	must.Do(<-failed)
}
