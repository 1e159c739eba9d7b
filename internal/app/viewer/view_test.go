package viewer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/rules"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestOrder: entries are sorted by pubdate, or if that is missing or in the future, by delivery.
func TestOrder(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=none")                                   // 14 March 14:53
	f.Add("new", "1773500001.1.h", "title=future", "pubdate=2026-03-16T00:00:00Z") // 14 March 14:53
	f.Add("new", "1773500002.1.h", "title=old", "pubdate=2020-01-01T00:00:00Z")
	f.Add("new", "1773500003.1.h", "title=young", "pubdate=2026-03-15T22:00:00Z")
	f.Add("new", "1773500004.1.h", "title=unreadable", "pubdate=soon")
	ctx := context.Background()
	s := f.Streams("")
	err := List(ctx, ListOptions{Common: f.Common(), Sort: "date", Print: cmdline.PrinterOptions{Format: "title"}}, s)
	f.Want(err, "old\nnone\nfuture\nunreadable\nyoung\n")
	// Days are those of the time zone of the clock, in which young is dated on the 16th.
	for query, want := range map[string]string{
		"on:today":      "young\n",
		"on:yesterday":  "",
		"on:2026-03-14": "unreadable\nfuture\nnone\n",
		"since:2d":      "young\nunreadable\nfuture\nnone\n",
		"before:1y":     "old\n",
	} {
		s := f.Streams("")
		err := List(ctx, ListOptions{Common: f.Common(), Query: []string{query}, Print: cmdline.PrinterOptions{Format: "title"}}, s)
		f.Want(err, want)
	}
	s = f.Streams("")
	err = List(ctx, ListOptions{Common: f.Common(), Query: []string{"young"}, Number: true}, s)
	f.Want(err, "1 N 2026-03-16 00:00  Alpha  young\n")
}

// TestTerminals: each terminal has a last list. A process without a terminal uses the newest one.
func TestTerminals(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=one")
	f.Add("new", "1773500001.1.h", "title=two")
	ctx := context.Background()
	list := func(terminal, query string) {
		c := f.Common()
		c.Terminal = terminal
		if err := List(ctx, ListOptions{Common: c, Query: []string{query}, Number: true}, f.Streams("")); err != nil {
			t.Fatal(err)
		}
	}
	mark := func(terminal string) string {
		c := f.Common()
		c.Terminal = terminal
		s := f.Streams("")
		if err := Mark(ctx, MarkOptions{Common: c, Names: session.Names{Args: []string{"1"}}, Set: "a", Print: cmdline.PrinterOptions{Format: "title"}}, s); err != nil {
			t.Fatal(err)
		}
		return f.Out.String() + f.Err.String()
	}
	list("x", "one")
	list("y", "two")
	old := time.Now().Add(-time.Hour)
	names, _ := filepath.Glob(filepath.Join(f.Path, "etc", "view", "list.*.y"))
	if len(names) != 1 {
		t.Fatal(names)
	}
	if err := os.Chtimes(names[0], old, old); err != nil {
		t.Fatal(err)
	}
	for terminal, want := range map[string]string{"x": "one\n", "y": "two\n", "none": "one\n"} {
		if got := mark(terminal); got != want {
			t.Errorf("%s: %q", terminal, got)
		}
	}
}

// TestPager: the pager gets the text, and is not started without any.
func TestPager(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=one", "content="+strings.Repeat("word ", 1<<18))
	file := filepath.Join(t.TempDir(), "paged")
	ctx := context.Background()
	o := ShowOptions{Common: f.Common(), Names: session.Names{Args: []string{"1773500000.1.h"}}, Pager: Pager{Command: "cat >" + file}}
	if err := Show(ctx, o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(data), "Title: one\n") || f.Out.Len() > 0 {
		t.Errorf("%v, paged %.80q, printed %.80q", err, data, &f.Out)
	}
	// If the user quits the pager early, the entry is marked as read.
	o.Pager.Command, o.Mark = "head -n 1 >"+file, true
	if err := Show(ctx, o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	if err := Count(ctx, CountOptions{Common: f.Common(), Print: cmdline.PrinterOptions{Format: "unread"}}, f.Streams("")); err != nil || f.Out.String() != "0\n" {
		t.Errorf("%v %s", err, &f.Out)
	}
	os.Remove(file)
	o.Pager.Command, o.Args = "cat >"+file, []string{"nothing"}
	s := f.Streams("")
	if err := Show(ctx, o, s); err != nil || s.Report.Errors() != 1 {
		t.Errorf("%v, %s", err, &f.Err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the pager was started for nothing")
	}
}

// brokenPipe fails after left bytes.
type brokenPipe struct{ left int }

func (w *brokenPipe) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// TestDigestBrokenPipe: only entries that were printed are marked as read.
func TestDigestBrokenPipe(t *testing.T) {
	f := newFixture(t)
	for i := range 10 {
		f.Add("new", fmt.Sprintf("177350000%d.1.h", i), "content="+strings.Repeat("x ", 30))
	}
	s := cmdline.NewStreams("lektor-view", nil, &brokenPipe{left: 350}, io.Discard)
	err := Digest(context.Background(), DigestOptions{Common: f.Common(), Lines: 4}, s)
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v", err)
	}
	read, _ := filepath.Glob(filepath.Join(f.Path, "cur", "*", "*;2,S"))
	unread, _ := filepath.Glob(filepath.Join(f.Path, "new", "*", "*"))
	if len(read) != 3 || len(unread) != 7 {
		t.Errorf("%d read, %d unread", len(read), len(unread))
	}
}

// TestConcurrentMarks: concurrent viewers set flags on the same entries, and no flag is lost.
func TestConcurrentMarks(t *testing.T) {
	f := newFixture(t)
	const n = 50
	var names []string
	for i := range n {
		name := fmt.Sprintf("17735000%02d.1.h", i)
		names = append(names, name)
		f.Add("new", name)
	}
	var wg sync.WaitGroup
	for _, flag := range []string{"a", "b", "c"} {
		wg.Go(func() {
			var out, errs bytes.Buffer
			s := cmdline.NewStreams("x", nil, &out, &errs)
			err := Mark(context.Background(), MarkOptions{Common: f.Common(), Names: session.Names{Args: names}, Set: flag}, s)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	refs, _ := filepath.Glob(filepath.Join(f.Path, "cur", "*", "*"))
	if len(refs) != n {
		t.Errorf("%d of %d entries", len(refs), n)
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await polls until the text is there.
func (b *lockedBuffer) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if got := b.String(); got == want {
			return
		} else if time.Now().After(deadline) || !strings.HasPrefix(want, got) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// follow starts Follow, waits until it watches, and returns its output.
func (f *fixture) follow(t *testing.T, o FollowOptions) (out, errs *lockedBuffer, stop func() error) {
	t.Helper()
	out, errs = &lockedBuffer{}, &lockedBuffer{}
	ready, done := make(chan bool), make(chan error, 1)
	o.Common = f.Common()
	o.Poll = 20 * time.Millisecond
	o.Ready = func() { close(ready) }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- Follow(ctx, o, cmdline.NewStreams("lektor-view", nil, out, errs)) }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("follow ended: %v", err)
	}
	stop = func() error {
		cancel()
		return <-done
	}
	t.Cleanup(cancel)
	return out, errs, stop
}

// deliver writes an entry to tmp and moves it to new.
func (f *fixture) deliver(name string, files ...string) {
	f.T.Helper()
	from := f.Add("tmp", name, files...)
	to := filepath.Join(f.Path, "new", testdir.Hash(viewdir.FeedID), name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		f.T.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		f.T.Fatal(err)
	}
}

func TestFollow(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=oldest")
	f.Add("new", "1773500001.1.h", "title=older no")
	f.Add("new", "1773500002.1.h", "title=old")
	f.Add("cur", "1773500003.1.h;2,S", "title=read")
	out, errs, stop := f.follow(t, FollowOptions{
		Past: 2, Query: []string{"not:no"}, Print: cmdline.PrinterOptions{Format: "title"},
	})
	out.await(t, "oldest\nold\n")
	f.deliver("1773500004.1.h", "title=new")
	out.await(t, "oldest\nold\nnew\n")
	f.deliver("1773500005.1.h", "title=no")
	f.deliver("1773500006.1.h", "title")
	f.deliver("1773500007.1.h", "title=newer")
	out.await(t, "oldest\nold\nnew\nnewer\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := errs.String(); !strings.Contains(got, "1773500006.1.h: it has no file title; skipped\n") {
		t.Errorf("no warning: %s", got)
	}
}

// TestFollowFeeds: arrivals are seen if a feed's directory is removed and made again, or comes with them.
func TestFollowFeeds(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500003.1.h", "title=before")
	out, _, stop := f.follow(t, FollowOptions{Print: cmdline.PrinterOptions{Format: "title"}})
	want := ""
	for i := range 3 {
		if err := os.RemoveAll(filepath.Join(f.Path, "new", testdir.Hash(viewdir.FeedID))); err != nil {
			t.Fatal(err)
		}
		f.deliver(fmt.Sprintf("177350000%d.1.h", 4+i), fmt.Sprint("title=", i))
		want += fmt.Sprintln(i)
		out.await(t, want)
	}
	// A script delivers the first entry of a feed that it staged long before.
	staged := filepath.Join(f.Path, "tmp/other")
	entry := filepath.Join(staged, "1500000000.1.h")
	for path, text := range map[string]string{"title": "other", "content": "x", "id": "i", "author": "", "pubdate": "2026-03-14T16:53:00Z", "feed/id": "http://o.example/", "feed/name": "O"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(entry, path)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(entry, path), []byte(text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1500000000, 0)
	if err := os.Chtimes(staged, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(staged, filepath.Join(f.Path, "new/other")); err != nil {
		t.Fatal(err)
	}
	out.await(t, want+"other\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestFollowOnce: an entry is printed once, also if it is listed again because a newer version was removed,
// or because it came back from cur/.
func TestFollowOnce(t *testing.T) {
	f := newFixture(t)
	out, _, stop := f.follow(t, FollowOptions{Print: cmdline.PrinterOptions{Format: "title"}})
	const identity = "I00000000000000ab.h"
	f.deliver("1773500004.M1P1Q1"+identity, "title=first")
	out.await(t, "first\n")
	f.deliver("1773500005.M1P1Q2"+identity, "title=second")
	out.await(t, "first\nsecond\n")
	hash := testdir.Hash(viewdir.FeedID)
	if err := os.RemoveAll(filepath.Join(f.Path, "new", hash, "1773500005.M1P1Q2"+identity)); err != nil {
		t.Fatal(err)
	}
	f.deliver("1773500006.1.h", "title=third")
	out.await(t, "first\nsecond\nthird\n")
	at, cur := filepath.Join(f.Path, "new", hash, "1773500006.1.h"), filepath.Join(f.Path, "cur", hash, "1773500006.1.h;2,S")
	if err := os.MkdirAll(filepath.Dir(cur), 0o777); err != nil {
		t.Fatal(err)
	}
	for i, step := range [][2]string{{at, cur}, {cur, at}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
		f.deliver(fmt.Sprintf("177350001%d.1.h", i), fmt.Sprint("title=", i))
		out.await(t, "first\nsecond\nthird\n0\n1\n"[:len("first\nsecond\nthird\n")+2*(i+1)])
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestFollowNumbers: other commands accept the numbers that follow printed.
func TestFollowNumbers(t *testing.T) {
	f := newFixture(t)
	out, _, stop := f.follow(t, FollowOptions{Number: true})
	f.deliver("1773500004.1.h", "title=one")
	out.await(t, "  1 N 2026-03-14 16:53  "+"Alpha                     one\n")
	f.deliver("1773500005.1.h", "title=two")
	out.await(t, "  1 N 2026-03-14 16:53  "+"Alpha                     one\n  2 N 2026-03-14 16:53  "+"Alpha                     two\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
	s := f.Streams("")
	err := Mark(t.Context(), MarkOptions{Common: f.Common(), Names: session.Names{Args: []string{"2"}}, Set: "F", Print: cmdline.PrinterOptions{Format: "title"}}, s)
	f.Want(err, "two\n")
}

// TestFollowNumbersOfFormat: other commands also accept the numbers that follow printed in a
// format.
func TestFollowNumbersOfFormat(t *testing.T) {
	f := newFixture(t)
	out, _, stop := f.follow(t, FollowOptions{Number: true, Print: cmdline.PrinterOptions{Format: "{{.number}} {{.title}}"}})
	f.deliver("1773500004.1.h", "title=one")
	out.await(t, "1 one\n")
	f.deliver("1773500005.1.h", "title=two")
	out.await(t, "1 one\n2 two\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
	s := f.Streams("")
	err := Mark(t.Context(), MarkOptions{Common: f.Common(), Names: session.Names{Args: []string{"1"}}, Set: "F", Print: cmdline.PrinterOptions{Format: "title"}}, s)
	f.Want(err, "one\n")
}

func TestFollowLines(t *testing.T) {
	f := newFixture(t)
	out, _, stop := f.follow(t, FollowOptions{Screen: cmdline.Screen{Width: 40}})
	f.deliver("1773500004.1.h", "title=one two three four five six seven")
	out.await(t, " N Sat 16:53  one two three four five s…\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestFollowExec: text of entries is data for the command, never part of it.
func TestFollowExec(t *testing.T) {
	f := newFixture(t)
	out, errs, stop := f.follow(t, FollowOptions{
		Exec: `case $LEKTOR_TITLE in bad) exit 3; esac; printf '%s|%s|%s\n' "${1##*/}" "$LEKTOR_TITLE" "$LEKTOR_FEED"; test "$1" = "$LEKTOR_ENTRY"`,
	})
	f.deliver("1773500004.1.h", "title=bad")
	f.deliver("1773500005.1.h", "title=$(touch x)`touch y`'; touch z; \x1b[0m\nq")
	out.await(t, "1773500005.1.h|$(touch x)`touch y`'; touch z; [0m q|Alpha\n")
	if got := errs.String(); !strings.Contains(got, "--exec for new/") || !strings.Contains(got, "1773500004.1.h: exit status 3") {
		t.Errorf("the failure is not reported: %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestFollowExecStops: ^C ends follow while its command runs.
func TestFollowExecStops(t *testing.T) {
	f := newFixture(t)
	out, _, stop := f.follow(t, FollowOptions{Exec: "echo started; exec sleep 600"})
	f.deliver("1773500004.1.h")
	out.await(t, "started\n")
	done := make(chan error)
	go func() { done <- stop() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("follow does not stop")
	}
}

// TestManyMalformed: a query warns of at most 20 malformed entries.
func TestManyMalformed(t *testing.T) {
	f := newFixture(t)
	for i := range 50 {
		f.Add("new", fmt.Sprintf("17735000%02d.1.h", i), "title")
	}
	s := f.Streams("")
	err := List(context.Background(), ListOptions{Common: f.Common()}, s)
	f.Want(err, "")
	if n := s.Report.Warnings(); n != 20 {
		t.Errorf("%d warnings", n)
	}
	if !strings.Contains(f.Err.String(), "and so are others like it") {
		t.Error(&f.Err)
	}
}

// TestCancelled: a command that is stopped returns an error, and does not print a part of a list
// as if it were complete.
func TestCancelled(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h")
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("stopped")
	cancel(why)
	s := f.Streams("")
	for name, err := range map[string]error{
		"ls":     List(ctx, ListOptions{Common: f.Common()}, s),
		"count":  Count(ctx, CountOptions{Common: f.Common()}, s),
		"digest": Digest(ctx, DigestOptions{Common: f.Common()}, s),
		"next":   Next(ctx, ShowOptions{Common: f.Common()}, s),
		"mark":   Mark(ctx, MarkOptions{Common: f.Common(), Set: "S", Names: session.Names{Args: []string{"1773500000.1.h"}}}, s),
	} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.Out.Len() > 0 {
		t.Error(&f.Out)
	}
}

// bigDir makes a lektor-dir of n entries in 100 feeds, a tenth of them unread.
func bigDir(b *testing.B, n int) *fixture {
	f := newFixture(b)
	const feeds = 100
	for i := range feeds {
		f.Feed(fmt.Sprintf("http://%d.example/", i), fmt.Sprintf("Feed %d", i))
	}
	for i := range n {
		place, info := "cur", ";2,S"
		if i%10 == 0 {
			place, info = "new", ""
		}
		dir := filepath.Join(f.Path, place, testdir.Hash(fmt.Sprintf("http://%d.example/", i%feeds)), testdir.Unique(1700000000+int64(i), i)+info)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			b.Fatal(err)
		}
		for name, text := range map[string]string{
			"title": fmt.Sprintf("Title of entry %d", i), "id": fmt.Sprintf("urn:%d", i), "content": "Some content\n",
			"pubdate": time.Unix(1600000000+int64(i*7919%1000000), 0).UTC().Format(time.RFC3339),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o666); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.Symlink("../../../src/x", filepath.Join(dir, "feed")); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

func BenchmarkList100k(b *testing.B) {
	f := bigDir(b, 100_000)
	for _, bm := range []struct {
		name string
		o    ListOptions
	}{
		{"newest20", ListOptions{All: true, Newest: 20}},
		{"unread", ListOptions{}},
		{"all", ListOptions{All: true}},
		{"paths", ListOptions{All: true, Sort: "delivered", Print: cmdline.PrinterOptions{Format: "path"}}},
		{"title", ListOptions{All: true, Query: []string{"title:99999"}}},
		{"words", ListOptions{All: true, Query: []string{"nothing"}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				bm.o.Common = f.Common()
				if err := List(context.Background(), bm.o, cmdline.NewStreams("x", nil, io.Discard, io.Discard)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if err := Count(context.Background(), CountOptions{Common: f.Common()}, cmdline.NewStreams("x", nil, io.Discard, io.Discard)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var _ = lektordir.New

// TestFollowRules checks that follow applies rules to the entries that exist when it begins
// and to those that arrive, and that it does not print entries that a rule trashes.
func TestFollowRules(t *testing.T) {
	f := newFixture(t)
	write := func(lines ...string) {
		if err := os.WriteFile(filepath.Join(f.Path, entrystore.RulesFile), []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(f.Path, "etc", "view"), 0o777); err != nil {
		t.Fatal(err)
	}
	write("title:ad -> trash", "title:tea -> flag F", "title:old -> read")
	f.Add("new", "1773500001.1.h", "title=Old")
	out, errs, stop := f.follow(t, FollowOptions{Rules: true, Print: cmdline.PrinterOptions{Format: "title,flags"}})
	f.deliver("1773500002.1.h", "title=Ad")
	f.deliver("1773500003.1.h", "title=Tea")
	f.deliver("1773500004.1.h", "title=Coffee")
	out.await(t, "Tea\tF\nCoffee\t\n")
	// The rules may change while follow runs, and be invalid for a while.
	write("titel:coffee -> trash")
	f.deliver("1773500005.1.h", "title=Coffee")
	out.await(t, "Tea\tF\nCoffee\t\nCoffee\t\n")
	write("title:coffee -> flag c")
	f.deliver("1773500006.1.h", "title=Coffee")
	out.await(t, "Tea\tF\nCoffee\t\nCoffee\t\nCoffee\tc\n")
	if err := stop(); err != nil || strings.Count(errs.String(), "etc/view/rules, line 1, column 1: there is no key titel:") != 1 {
		t.Errorf("%v, %s", err, errs)
	}
	// No rules were applied to the entry that arrived while they were invalid.
	if err := rules.Apply(t.Context(), rules.Options{Common: f.Common(), Print: cmdline.PrinterOptions{Format: "name"}}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	all, err := testdir.Entries(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range all {
		got[e.Unique] = e.Place + " " + e.Flags
	}
	want := map[string]string{
		"1773500001.1.h": "cur 2,S", "1773500002.1.h": "cur 2,T", "1773500003.1.h": "cur 2,F",
		"1773500004.1.h": "new ", "1773500005.1.h": "cur 2,c", "1773500006.1.h": "cur 2,c",
	}
	if len(all) != len(want) || !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each order of a list is as likely as any other, and a limited list has any of its entries.
func TestRandomOrder(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"1700000001.1.h", "1700000002.1.h", "1700000003.1.h"} {
		f.Add("new", name, "title="+name[9:10])
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		newest, lists int
	}{{0, 6}, {2, 6}, {1, 3}} {
		seen := map[string]int{}
		for range 100 * c.lists {
			o := ListOptions{Common: f.Common(), Sort: "random", Newest: c.newest, Random: random.Uint64, Print: cmdline.PrinterOptions{Format: "title"}}
			if err := List(t.Context(), o, f.Streams("")); err != nil {
				t.Fatal(err)
			}
			seen[strings.ReplaceAll(f.Out.String(), "\n", " ")]++
		}
		for list, n := range seen {
			if len(seen) != c.lists || n < 60 || n > 140 {
				t.Errorf("-n %d: %q is listed %d times, and %d lists of %d", c.newest, list, n, len(seen), c.lists)
			}
		}
	}
}
