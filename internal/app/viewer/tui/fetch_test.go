package tui

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/read/catalog"
)

// fetches is a lektor-dir whose lektor-fetch is the test.
type fetches struct {
	*memory
	runs chan *fetcherRun
}

// fetcherRun is a run of lektor-fetch, which waits for its end.
type fetcherRun struct {
	in, args string
	line     func(string)
	messages []string
	ended    chan error
}

func (d *fetches) Fetcher(ctx context.Context, in string, args []string, line func(string)) ([]string, error) {
	r := &fetcherRun{in: in, args: strings.Join(args, " "), line: line, ended: make(chan error)}
	select {
	case d.runs <- r:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case err := <-r.ended:
		return r.messages, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run waits for the next run of lektor-fetch, and checks its arguments and input.
func (d *fetches) run(k *desk, args, in string) *fetcherRun {
	k.t.Helper()
	var r *fetcherRun
	k.until("lektor-fetch "+args, func() bool {
		select {
		case r = <-d.runs:
			return true
		default:
			return false
		}
	})
	if r.args != args || r.in != in {
		k.t.Errorf("ran %q with %q, not %q with %q", r.args, r.in, args, in)
	}
	return r
}

// pausing is a disk with a paused feed, in a folder with another one and alone in one.
type pausing struct{ *fetches }

func (d pausing) Now(ctx context.Context, _ catalog.Part) (*catalog.Snapshot, error) {
	return d.names.now(ctx, d)
}

func (d pausing) Feeds(context.Context) ([]tree.Feed, error) {
	return []tree.Feed{{Hash: "f", Title: "Feed", Folders: []string{"Both"}, Subscribed: true}, {Hash: "g", Title: "Rests", Folders: []string{"Both", "Alone"}, Paused: true, Subscribed: true}}, nil
}

// TestPausedFeeds: a paused feed has a mark, and only its own key fetches it.
func TestPausedFeeds(t *testing.T) {
	d := pausing{&fetches{newMemory(3), make(chan *fetcherRun)}}
	close(d.gate)
	k := newDesk(t, d, 120, 24)
	k.await("Title 02")
	k.press("h", "j", "j")
	k.await("=Rests")
	k.press("g", "f")
	k.await("all feeds of the folder are paused")
	k.press("j", "F")
	d.run(k, "update --progress -", "g\n").ended <- nil
	k.until("the end", k.settled)
	k.press("j", "g", "f")
	d.run(k, "update --progress -", "f\n").ended <- nil
}

// One fetch runs at a time. Its progress, its result and its errors are shown, and the timer
// begins when it ends.
func TestFetch(t *testing.T) {
	d := &fetches{newMemory(3), make(chan *fetcherRun)}
	close(d.gate)
	k := newDesk(t, d, 120, 24)
	type timer struct {
		after time.Duration
		msg   tea.Msg
	}
	var timers []timer
	k.After = func(after time.Duration, msg tea.Msg) tea.Cmd {
		if _, ok := msg.(part.Then); !ok || after < time.Second {
			return sendLater(after, msg)
		}
		timers = append(timers, timer{after, msg})
		return nil
	}
	k.o.Screen.Set("fetch-every", "5")
	k.start(k.apply(k.work.Fetching.Start()))
	k.await("Title 02")
	k.until("the first timer", func() bool { return len(timers) == 1 && timers[0].after == 3*time.Second })
	k.press("l", "F")
	r := d.run(k, "update --progress -", "f\n")
	r.line("fetching\t3\t7")
	k.await("fetching 3/7")
	k.press("U")
	k.await("a fetch is running already")
	k.update(timers[0].msg) // the timer ends during a fetch
	r.line("done\t7 feeds: 5 fetched, 2 failed; 1 new entry")
	r.messages = []string{"http://a.example/: 404\x1b", "http://b.example/: refused"}
	r.ended <- &exec.ExitError{}
	k.await("7 feeds: 5 fetched, 2 failed; 1 new entry; http://a.example/: 404 (ge: all messages)")
	k.press("g", "e")
	k.await("http://b.example/: refused")
	k.press("q")
	if len(timers) != 2 || timers[1].after != 5*time.Minute {
		t.Fatalf("%v", timers)
	}
	k.update(timers[0].msg) // stale
	k.update(timers[1].msg)
	r = d.run(k, "update --progress", "")
	r.line("done\t0 feeds: nothing done; 0 new entries")
	r.ended <- nil
	k.until("the end", func() bool { return len(timers) == 3 })
	if strings.Contains(k.shows(), "nothing done") {
		t.Error("a timer that fetched nothing says so")
	}
	// A folder's feeds without a subscription are left out.
	d.unsubscribed.Store(true)
	k.update(part.Then(k.browser.tree.Noticed))
	k.until("the end of the subscription", func() bool { return !k.browser.tree.Snapshot.Feeds["f"].Subscribed })
	k.press("h", "j", "j", "g", "f")
	k.await("you are subscribed to none of these feeds")
	// The timer stops if lektor-fetch does not start.
	k.press("U")
	r = d.run(k, "update --progress -a", "")
	before := len(timers)
	r.ended <- errors.New("no such file")
	k.await("lektor-fetch does not start, and nothing is fetched until you press a key for it: no such file")
	if len(timers) != before {
		t.Error("the timer goes on")
	}
	k.o.NoFetcher = errors.New("there is no lektor-fetch")
	k.press("U")
	k.await("there is no lektor-fetch")
	if k.press("?"); strings.Contains(k.shows(), "fetch all feeds") {
		t.Error("help has a key that does nothing")
	}
}
