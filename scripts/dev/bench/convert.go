//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// convertArg is the first argument of a run of this program that converts documents. The others are
// their number, and the number and size of their entries.
const convertArg = "-convert"

// convert measures the package feedconv on one processor: documents in memory become feeds.
func (b *bench) convert() {
	n, ways := sizes["converted"], b.packages("feedconv")
	if n == 0 || ways == nil {
		return
	}
	total := 0
	for i := range n {
		total += len(generate(i, sizes["entries"], sizes["bytes"]).text)
	}
	g := group{what: fmt.Sprintf("%d documents of %d MB converted", n, total/1e6), unit: "MB", n: total / 1e6,
		warm: true}
	b.compare(g, ways, func(w *way, _ int) measurement {
		return w.timed(convertArg, strconv.Itoa(n), strconv.Itoa(sizes["entries"]), strconv.Itoa(sizes["bytes"]))
	})
}

// convertChild is the main function of such a run.
func convertChild(args []string) {
	n, entries, size := must.Get(strconv.Atoi(args[0])), must.Get(strconv.Atoi(args[1])),
		must.Get(strconv.Atoi(args[2]))
	docs := make([][]byte, n)
	for i := range docs {
		docs[i] = generate(i, entries, size).text
	}
	all := func() {
		for _, doc := range docs {
			if f := must.Get(feedconv.ParseBytes(doc, feedconv.Options{})); len(f.Entries) != entries {
				must.Fail("a document has %d entries", len(f.Entries))
			}
		}
	}
	runtime.GOMAXPROCS(1)
	all() // the first time, memory is new
	timeOf(all)
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	must.Do(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
