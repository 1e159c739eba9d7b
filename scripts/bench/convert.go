//go:build linux

package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// convert measures the package feedconv on one processor: documents in memory become feeds.
func (b *bench) convert() {
	n := sizes["converted"]
	if n == 0 || b.against != "" {
		return
	}
	docs, total := make([][]byte, n), 0
	for i := range docs {
		docs[i] = generate(i, sizes["entries"], sizes["bytes"]).text
		total += len(docs[i])
	}
	g := group{what: fmt.Sprintf("%d documents of %d MB converted", n, total/1e6), unit: "MB", n: total / 1e6, warm: true}
	b.compare(g, []*way{{name: "feedconv"}}, func(*way, int) measurement {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		began, cpu := time.Now(), processorTime()
		for _, doc := range docs {
			if f := must.Get(feedconv.ParseBytes(doc, feedconv.Options{})); len(f.Entries) != sizes["entries"] {
				must.Fail("a document has %d entries", len(f.Entries))
			}
		}
		return measurement{time: time.Since(began), cpu: processorTime() - cpu}
	})
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	must.Do(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
