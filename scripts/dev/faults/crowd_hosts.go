//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	feedserver "github.com/lektordir/lektor/internal/testkit/server"
)

// oneAsks starts fetchers of two hosts, whose clocks differ a little, at the same moment, in each
// round when all feeds are due. It counts the requests: each feed must be requested once, and its
// entries delivered once. dirs are the paths of the lektor-dir on the two hosts. fetch is the
// path of lektor-fetch, and self of this program.
func oneAsks(ctx context.Context, fetch, self string, dirs [2]string, feeds, rounds int) (err error) {
	defer must.Catch(&err)
	server := must.Get(feedserver.New("127.0.0.1"))
	defer server.Close()
	run := func(dir string, env []string, argv ...string) string {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), append(env, "LEKTORDIR="+dir, "no_proxy=*", "LC_ALL=C")...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		must.That(err, "%q: %s", argv, &stderr)
		return string(out)
	}
	path := func(feed int) string { return fmt.Sprintf("/%d", feed) }
	for i := range feeds {
		run(dirs[0], nil, fetch, "add", "--no-fetch", "--as-is", server.URL(path(i)))
	}
	for round := range rounds {
		for i := range feeds {
			server.Forget(path(i))
			server.Handle(path(i), feedserver.Doc("application/rss+xml", feedserver.RSS(path(i), 1, round+1)))
		}
		var wg sync.WaitGroup
		var outs [2]string
		var bad [2]error
		for i, dir := range dirs {
			// The second host is ahead, so the due times of the first have passed for it.
			shift := time.Duration(round)*2*time.Hour + time.Duration(i)*time.Minute
			if round%2 == 1 {
				shift -= time.Duration(i) * 2 * time.Minute
			}
			wg.Go(func() {
				bad[i] = must.Run(func() {
					outs[i] = run(dir, []string{
						childVariable + "=update", "CROWD_SHIFT=" + shift.String(), fmt.Sprintf("CROWD_HOST=host%d", i),
						"CROWD_PID=7",
					}, self)
				})
			})
		}
		wg.Wait()
		must.Do(errors.Join(bad[:]...))
		for i := range feeds {
			if n := len(server.Requests(path(i))); n != 1 {
				err = errors.Join(err, fmt.Errorf("in round %d the server was asked %d times for feed %d", round, n, i))
			}
		}
		if n := strings.Count(outs[0]+outs[1], "\n"); n != feeds {
			err = errors.Join(err, fmt.Errorf("in round %d, %d entries were delivered, not one of each of %d feeds",
				round, n, feeds))
		}
		must.Do(err)
	}
	return nil
}
