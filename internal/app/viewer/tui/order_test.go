package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// titles returns the numbers of the listed entries in their order.
func (k *desk) titles() string {
	var all []string
	for _, it := range k.browser.list.Items {
		all = append(all, it.Ref().Unique[8:10])
	}
	return strings.Join(all, " ")
}

// The menu of orders sorts the list, and reverses the present order. An order holds for its node
// and the nodes in it, and is remembered.
func TestSort(t *testing.T) {
	d := &remembering{memory: newMemory(12), saved: values.New('=')}
	close(d.gate)
	k := newDesk(t, d, 100, 24)
	k.await("Title 11")
	sorted := func(want string) {
		t.Helper()
		k.until(want, func() bool { return k.browser.list.Complete && k.titles() == want })
	}
	k.press("l", "s", "j", "enter") // by the last digit, in this disk
	sorted("00 10 01 11 02 03 04 05 06 07 08 09")
	if it, _ := k.browser.list.Current(); it.Unique[8:10] != "11" {
		t.Errorf("the cursor has left its entry for %s", it.Unique)
	}
	k.press("s", "enter")
	sorted("09 08 07 06 05 04 03 02 11 01 10 00")
	k.press("h", "j", "j") // to the folder
	sorted("09 08 07 06 05 04 03 02 11 01 10 00")
	k.press("l", "s", "k", "enter")
	sorted("11 10 09 08 07 06 05 04 03 02 01 00")
	k.press("s", "enter")
	sorted("00 01 02 03 04 05 06 07 08 09 10 11")
	k.press("h", "j", "j") // to the feed of the folder below
	sorted("00 01 02 03 04 05 06 07 08 09 10 11")
	k.until("saved", func() bool {
		return d.text() == "sort all=-title\nsort folder news=date\n"
	})
	// Entries that are flagged now are first.
	k.press("l", "j", "j", "j", "m")
	k.start(k.apply(k.do(keys.Call{Action: "sort", Words: []string{"flags"}})))
	sorted("03 11 10 09 08 07 06 05 04 02 01 00")
	// A random order stays while the list does, and each choice makes another.
	k.start(k.apply(k.do(keys.Call{Action: "sort", Words: []string{"random"}})))
	k.until("random", func() bool { return k.browser.list.Complete && k.browser.list.Sorted.By == "random" })
	first := k.titles()
	d.mu.Lock()
	d.refs = append(d.refs, lektordir.Ref{Feed: "f", Unique: "1700000012.1.h", Place: lektordir.New})
	d.mu.Unlock()
	k.update(part.Then(k.browser.tree.Noticed))
	k.await("/13")
	if got := strings.Join(strings.Fields(strings.Replace(k.titles(), "12", "", 1)), " "); got != first {
		t.Errorf("%s became %s", first, got)
	}
	k.start(k.apply(k.do(keys.Call{Action: "sort", Words: []string{"random"}})))
	k.until("shuffled anew", func() bool {
		return k.browser.list.Complete && len(k.titles()) > 0 && strings.Replace(k.titles(), " 12", "", 1) != first
	})
	k.start(k.apply(k.do(keys.Call{Action: "sort", Words: []string{"size"}})))
	if s := k.shows(); !strings.Contains(s, "there is no order size") {
		t.Errorf("%s", s)
	}
	// The next start has the same orders.
	again := newDesk(t, d, 100, 24)
	again.browser.tree.Settings.Values = d.saved
	again.until("sorted", func() bool { return strings.HasPrefix(again.titles(), "09 08 07 06") })
}

// remembering is a disk that keeps the settings.
type remembering struct {
	*memory
	saved *values.Values
	feeds []tree.Feed
}

func (d *remembering) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.saved.Text())
}

func (d *remembering) Remember(_ context.Context, name, value string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saved.Set(name, value)
	return nil
}

func (d *remembering) Now(ctx context.Context, _ catalog.Part) (*catalog.Snapshot, error) {
	return d.names.now(ctx, d)
}

func (d *remembering) Feeds(ctx context.Context) ([]tree.Feed, error) {
	if d.feeds == nil {
		return d.memory.Feeds(ctx)
	}
	return d.feeds, nil
}

// many is a disk with some feeds: the index has their counts, and nothing is listed.
type many struct{ *remembering }

func (d many) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	if part.Enough == nil {
		d.wait(ctx)
		return nil, ctx.Err()
	}
	s, err := d.names.now(ctx, unlisted{d})
	if err == nil {
		s.Missing = 1
	}
	return s, err
}

// unlisted is a disk without entries.
type unlisted struct{ many }

func (unlisted) List(context.Context) (map[string][]lektordir.Ref, error) {
	return map[string][]lektordir.Ref{}, nil
}

func (d many) Counts(context.Context) (map[string]entrystore.Tally, error) {
	counts := map[string]entrystore.Tally{}
	for i, f := range d.feeds {
		counts[f.Hash] = entrystore.Tally{All: 9, Unread: i % 3}
	}
	return counts, nil
}

// Feeds and folders with nothing unread are hidden, and feeds are sorted, in the folder of the
// cursor. The node of the cursor stays until the user leaves it.
func TestFeeds(t *testing.T) {
	d := many{&remembering{memory: newMemory(0), saved: values.New('=')}}
	for i := range 9 {
		d.feeds = append(d.feeds, tree.Feed{Hash: fmt.Sprintf("h%d", i), Title: fmt.Sprintf("feed%d", i), Folders: [][]string{nil, {"A"}, {"A / B=B"}}[i/3]})
	}
	d.feeds = append(d.feeds, tree.Feed{Hash: "h9", Title: "feed9", Folders: []string{"C"}}) // nothing unread
	k := newDesk(t, d, 100, 30)
	tree := func() string {
		var all []string
		for _, n := range k.browser.tree.Nodes {
			all = append(all, strings.TrimPrefix(n.Title, "feed"))
		}
		return strings.Join(all, " ")
	}
	check := func(want string, keys ...string) {
		t.Helper()
		k.press(keys...)
		if got := tree(); got != want {
			t.Fatalf("%v: %s, not %s\n%s", keys, got, want, k.shows())
		}
	}
	k.until("counts", func() bool { return k.browser.tree.Snapshot != nil && !k.browser.tree.Snapshot.Uncounted })
	k.await("feed9")
	check("All Flagged A 3 4 5 B=B 6 7 8 C 9 0 1 2")
	check("All Flagged A 4 5 B=B 7 8 1 2", "H")
	check("All Flagged A 3 4 5 B=B 6 7 8 C 9 0 1 2", "H")
	check("All Flagged A 3 4 5 B=B 7 8 C 9 0 1 2", "j", "j", "j", "j", "j", "j", "H")
	check("All Flagged A 3 4 5 B=B 7 8 C 9 0 1 2", "j", "k", "k", "k") // in A
	check("All Flagged A 4 5 B=B 7 8 C 9 0 1 2", "H")
	k.await("A: what has nothing unread is hidden")
	check("All Flagged A 3 4 5 B=B 7 8 C 9 0 1 2", "H", "k")
	check("All Flagged A 5 4 3 B=B 8 7 C 9 0 1 2", "s", "j", "enter") // most unread first
	check("All Flagged A 3 4 5 B=B 7 8 C 9 0 1 2", "s", "enter")
	k.until("saved", func() bool {
		return d.text() == "hide all=no\nhide folder a/b%3Db=yes\nhide folder a=no\nfeeds folder a=-unread\n"
	})
	// The node of the cursor has nothing unread, and is hidden when the cursor leaves it.
	check("All Flagged A 3 4 5 B=B 7 8 C 9 0 1 2", "H")
	check("All Flagged A 4 5 B=B 7 8 C 9 0 1 2", "j")
}
