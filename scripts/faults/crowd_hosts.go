//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// oneAsks lets fetchers of two hosts, whose clocks differ a little, begin at the same
// moment, again and again when all feeds are due, and counts what they ask the server:
// each feed is asked once, and what it has is delivered once. dirs are the lektor-dir
// as each of the two has it; fetch is lektor-fetch, and self this program.
func oneAsks(ctx context.Context, fetch, self string, dirs [2]string, feeds, rounds int) error {
	var mu sync.Mutex
	asked := map[string]int{}
	round := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprintf(w, `<rss version="2.0"><channel><title>%s</title><link>http://a.example</link><description>d</description>`, r.URL.Path)
		for i := range round + 1 {
			fmt.Fprintf(w, `<item><title>Entry %d</title><guid isPermaLink="false">%s-%d</guid></item>`, i, r.URL.Path, i)
		}
		fmt.Fprint(w, `</channel></rss>`)
	}))
	defer server.Close()
	run := func(dir, stdin string, env []string, argv ...string) (string, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), append(env, "LEKTORDIR="+dir, "no_proxy=*", "LC_ALL=C")...)
		cmd.Stdin = strings.NewReader(stdin)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%q: %w: %s", argv, err, errs.String())
		}
		return out.String(), nil
	}
	var list strings.Builder
	list.WriteString(`<opml version="2.0"><body>`)
	for i := range feeds {
		fmt.Fprintf(&list, `<outline type="rss" xmlUrl="%s/%d"/>`, server.URL, i)
	}
	list.WriteString(`</body></opml>`)
	if _, err := run(dirs[0], list.String(), nil, fetch, "import", "--no-fetch", "-"); err != nil {
		return err
	}
	// The server may still be at the end of an answer that the programs have had.
	begin := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		round = n
		clear(asked)
	}
	times := func(feed int) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[fmt.Sprintf("/%d", feed)]
	}
	for round := range rounds {
		begin(round)
		var wg sync.WaitGroup
		var outs [2]string
		var bad [2]error
		for i, dir := range dirs {
			// The second is ahead, and would take what the first asks for passed.
			shift := time.Duration(round)*2*time.Hour + time.Duration(i)*time.Minute
			if round%2 == 1 {
				shift -= time.Duration(i) * 2 * time.Minute
			}
			wg.Go(func() {
				outs[i], bad[i] = run(dir, "", []string{
					childVariable + "=update", "CROWD_SHIFT=" + shift.String(), fmt.Sprintf("CROWD_HOST=host%d", i), "CROWD_PID=7",
				}, self)
			})
		}
		wg.Wait()
		if err := errors.Join(bad[:]...); err != nil {
			return err
		}
		for i := range feeds {
			if n := times(i); n != 1 {
				bad[0] = errors.Join(bad[0], fmt.Errorf("in round %d the server was asked %d times for feed %d", round, n, i))
			}
		}
		if n := strings.Count(outs[0]+outs[1], "\n"); n != feeds {
			bad[0] = errors.Join(bad[0], fmt.Errorf("in round %d, %d entries were delivered, not one of each of %d feeds", round, n, feeds))
		}
		if bad[0] != nil {
			return bad[0]
		}
	}
	return nil
}
