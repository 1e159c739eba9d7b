//go:build linux

package main

import (
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// besideArg is the first argument of a run of this program that works beside a measured program, until
// its standard input ends. The others are the task and the lektor-dir. A task in this process would delay
// the measurement.
const besideArg = "-beside"

// The tasks are to deliver entries, and to keep a processor busy.
const (
	arriveTask = "arrive"
	busyTask   = "busy"
)

// besideChild is the main function of such a run.
func besideChild(args []string) {
	task, dir := args[0], args[1]
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	work := func(int) {}
	if task == arriveTask {
		feeds := len(must.Get(must.Get(lektordir.Open(dir, nil)).FeedHashes()))
		// All feeds in turn, as in a run of a fetcher.
		work = func(round int) { arrive(dir, 10*round%feeds, 10, 250) }
	}
	for round := 0; !over.Load(); round++ {
		work(round)
	}
}

// beside starts a task and returns a function that ends it.
func beside(task, dir string) (end func()) {
	cmd := again(besideArg, task, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in := must.Get(cmd.StdinPipe())
	must.Do(cmd.Start())
	return func() {
		in.Close()
		must.That(cmd.Wait(), "%s beside the measurement", task)
	}
}
