// Command crowd lets eight fetchers and eight viewers work on one lektor-dir at
// once, and accounts for every entry at the end: see the README beside it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

func main() {
	helper()
	long := flag.Duration("time", time.Minute, "let them work for `TIME`")
	grows := flag.Duration("grow", 40*time.Millisecond, "add or change an entry every `TIME`")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "choose by `NUMBER`; what meets is another matter")
	keep := flag.Bool("keep", false, "keep the lektor-dir")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	must.Main("crowd", func() {
		if run(ctx, *seed, *long, *grows, *keep) > 0 {
			os.Exit(1)
		}
	})
}

// run gives how much was found.
func run(ctx context.Context, seed uint64, long, grows time.Duration, keep bool) int {
	work := must.Get(os.MkdirTemp("", "lektor-crowd-"))
	if keep {
		fmt.Println("lektor-dir:", work+"/lektor")
	} else {
		defer os.RemoveAll(work)
	}
	c := must.Get(open(work))
	defer c.feeds.server.Close()
	fmt.Println("seed:", seed)
	if c.alone != nil {
		fmt.Println("skipped, other hosts and repeated process numbers of the programs themselves:", c.alone)
	}
	must.Do(c.rush(ctx, seed, long, grows))
	found := c.report()
	fmt.Printf("%d entries there, %d removed, %d delivered as fetchers say; %d findings\n", len(c.ev.entries), len(c.ev.removed), len(c.ev.printed), found)
	return found
}
