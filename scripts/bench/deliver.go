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
var deliveries = map[string]func(from *lektordir.Dir, to string) (func() error, error){
	"lektordir": throughLektordir,
	"floor":     throughFloor,
}

// deliverChild is main of such a run.
func deliverChild(args []string) error {
	if len(args) != 3 || deliveries[args[0]] == nil {
		return fmt.Errorf("usage: %s WAY FROM TO", deliverArg)
	}
	from, err := lektordir.Open(args[1], nil)
	if err != nil {
		return err
	}
	run, err := deliveries[args[0]](from, args[2])
	if err != nil {
		return err
	}
	runtime.GC()
	unix.Sync()
	start := time.Now()
	if err := run(); err != nil {
		return err
	}
	_, err = fmt.Println(time.Since(start))
	return err
}

// deliver runs one of the ways in a process of its own.
func deliver(way, from, to string) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, deliverArg, way, from, to)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("delivery by %s: %w", way, err)
	}
	return time.ParseDuration(strings.TrimSpace(string(out)))
}

// deliveries measures both ways, by turns, with what is in from, and gives the
// best time of each.
func (o options) deliveries(from, tmp string) (map[string]time.Duration, error) {
	best := map[string]time.Duration{}
	for round := range min(o.rounds, 2) { // each makes a third of a million files
		for _, way := range []string{"floor", "lektordir"} {
			d, err := deliver(way, from, filepath.Join(tmp, fmt.Sprintf("%d-%s", round, way)))
			if err != nil {
				return nil, err
			}
			if best[way] == 0 || d < best[way] {
				best[way] = d
			}
		}
	}
	return best, nil
}

// parallel calls f for each of n things, on all processors.
func parallel(n int, f func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}

// throughLektordir delivers as a fetcher does.
func throughLektordir(from *lektordir.Dir, to string) (func() error, error) {
	type feed struct {
		about *lektordir.Feed
		items []lektordir.Item
	}
	hashes, err := from.FeedHashes()
	if err != nil {
		return nil, err
	}
	feeds := make([]feed, len(hashes))
	byHash := map[string]*feed{}
	for i, h := range hashes {
		about, err := from.ReadFeed(h)
		if err != nil {
			return nil, err
		}
		feeds[i].about = about
		byHash[h] = &feeds[i]
	}
	refs, err := from.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		e, err := from.ReadEntry(r, lektordir.AllFields)
		if err != nil {
			return nil, err
		}
		f := byHash[r.Feed]
		f.items = append(f.items, lektordir.Item{Entry: *e, GUID: e.ID, Text: string(e.Content)})
	}
	return func() error {
		return library(to, len(feeds), func(i int) (*lektordir.Feed, []lektordir.Item) { return feeds[i].about, feeds[i].items })
	}, nil
}

// library makes a lektor-dir of n feeds, as a fetcher does that fetches them all
// for the first time.
func library(dir string, n int, feed func(i int) (*lektordir.Feed, []lektordir.Item)) error {
	d, err := lektordir.Create(dir, nil)
	if err != nil {
		return err
	}
	w, err := d.NewWriter(lektordir.WriterOptions{Delay: 250 * time.Millisecond})
	if err != nil {
		return err
	}
	var pending sync.WaitGroup
	failed := make(chan error, n)
	err = parallel(n, func(i int) error {
		about, items := feed(i)
		t, err := w.Begin(lektordir.FeedHash(about.ID))
		if err != nil {
			return err
		}
		if err := t.PutFeed(about); err != nil {
			return err
		}
		if _, err := t.Stage(context.Background(), lektordir.Document{Items: items}); err != nil {
			return err
		}
		pending.Add(1)
		t.Commit(func(err error) {
			defer pending.Done()
			t.Close()
			if err != nil {
				failed <- err
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	w.Flush()
	pending.Wait()
	if err := w.Close(); err != nil {
		return err
	}
	close(failed)
	return <-failed
}
