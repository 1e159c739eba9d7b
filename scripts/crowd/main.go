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

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

func main() {
	helper()
	long := flag.Duration("time", time.Minute, "let them work for `TIME`")
	grows := flag.Duration("grow", 40*time.Millisecond, "add or change an entry every `TIME`")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "choose by `NUMBER`; what meets is another matter")
	keep := flag.Bool("keep", false, "keep the lektor-dir")
	volume := flag.Bool("gluster", false, "work on a volume of GlusterFS, as machines that each have a mount of it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	must.Main("crowd", func() {
		if *volume && !gluster.Inside() {
			os.Exit(gluster.Main(ctx))
		}
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
	defer c.close()
	fmt.Println("seed:", seed)
	if c.second != "" {
		// Before the crowd, which leaves nothing idle.
		must.Do(oneAsks(ctx, c.fetch, c.self, [2]string{c.dir + "-hosts", c.second + "-hosts"}, 40, 5))
		fmt.Println("two hosts began at once, 5 times: each of 40 feeds was asked once")
	}
	if c.alone != nil {
		fmt.Println("skipped, other hosts and repeated process numbers of the programs themselves:", c.alone)
	}
	must.Do(c.rush(ctx, seed, long, grows))
	found := c.report()
	fmt.Printf("%d entries there, %d removed, %d delivered as fetchers say; %d findings\n", len(c.ev.entries), len(c.ev.removed), len(c.ev.printed), found)
	return found
}
