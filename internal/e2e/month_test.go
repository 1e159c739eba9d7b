package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// month simulates a lektor-dir: feeds publish, a reader reads every second entry on the day of
// its arrival, and entries expire each night.
type month struct {
	feeds, days  int
	read, unread int // days after which read and unread entries expire
}

// whole is the simulation for the figures in lektor(7); short is for every run of the tests.
var (
	whole = month{feeds: 200, days: 30, read: 7, unread: 14}
	short = month{feeds: 5, days: 12, read: 2, unread: 4}
)

// rate returns the number of entries that a feed publishes a day.
func (m month) rate(feed int) int { return 1 + feed%9 }

// remaining computes the number of entries after the night of a day.
func (m month) remaining(day int) (entries int) {
	for feed := range m.feeds {
		for n := range m.rate(feed) * (day + 1) {
			came, stays := n/m.rate(feed), m.unread
			if n%2 == 0 {
				stays = m.read
			}
			if day-came < stays {
				entries++
			}
		}
	}
	return entries
}

// document returns a feed's document on a day: its newest twenty entries.
func (m month) document(feed, day int, start time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<rss version="2.0"><channel><title>Feed %d</title><link>http://feed.example/%[1]d/</link><description>d</description>`, feed)
	last := m.rate(feed)*(day+1) - 1
	for n := last; n >= max(0, last-19); n-- {
		came := start.Add(time.Duration(n/m.rate(feed)) * 24 * time.Hour)
		fmt.Fprintf(&b, `<item><title>Entry %d</title><guid isPermaLink="false">%d-%[1]d</guid><link>http://feed.example/%[2]d/%[1]d</link><author>kim@feed.example (Kim)</author><pubDate>%[3]s</pubDate><category>a</category><category>b</category><description>%[4]s</description></item>`,
			n, feed, came.Format(time.RFC1123Z), strings.Repeat(fmt.Sprintf("&lt;p&gt;Words of entry %d, of which there are some.&lt;/p&gt; ", n), 45))
	}
	return b.String() + `</channel></rss>`
}

// onDisk returns the disk use of a directory, each file once, in bytes and inodes.
func onDisk(dir string) (bytes int64, inodes int) {
	seen := map[uint64]bool{}
	must.Do(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		must.Do(err)
		var st unix.Stat_t
		must.Do(unix.Lstat(path, &st))
		if !seen[st.Ino] {
			seen[st.Ino] = true
			bytes += int64(st.Blocks) * 512
			inodes++
		}
		return nil
	}))
	return bytes, inodes
}

// nextTick waits for the next tick of the file system's clock and returns its time. Earlier moves
// have an earlier time, and later moves this time or a later one.
func nextTick(t *testing.T, dir string) time.Time {
	probe := filepath.Join(dir, "probe")
	stamp := func() time.Time {
		t.Helper()
		must.Do(os.WriteFile(probe, nil, 0o666))
		must.Do(os.Remove(probe))
		must.Do(os.WriteFile(probe, nil, 0o666))
		var st unix.Stat_t
		must.Do(unix.Stat(probe, &st))
		return time.Unix(st.Ctim.Unix())
	}
	first := stamp()
	for end := time.Now().Add(time.Minute); ; {
		if now := stamp(); now.After(first) {
			// The next tick has begun, so all earlier moves have an earlier time.
			return now
		}
		if time.Now().After(end) {
			t.Fatal("the clock of the file system stands still")
		}
	}
}

// TestMonth simulates days of a lektor-dir by an injected clock. The number of entries each night
// is the computed one, and disk use becomes constant. With LEKTOR_TEST_MONTH it simulates 30 days
// of 200 feeds, which takes minutes.
func TestMonth(t *testing.T) {
	m := short
	if os.Getenv("LEKTOR_TEST_MONTH") != "" {
		m = whole
	}
	start := time.Now().Add(-time.Duration(m.days) * 24 * time.Hour).Truncate(time.Second)
	var day atomic.Int32
	now := func() time.Time { return start.Add(time.Duration(day.Load()) * 24 * time.Hour) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var feed int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &feed); err != nil {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, m.document(feed, int(day.Load()), start))
	}))
	defer server.Close()
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(base, "cache"))
	dir := filepath.Join(base, "feeds")
	d := must.Get(lektordir.Create(dir, &lektordir.Options{Now: now}))
	w := must.Get(feedfiles.NewWriter(d, commit.Options{}))
	for i := range m.feeds {
		must.Get(subscriptions.Add(w, d, &subscriptions.Subscription{ID: fmt.Sprintf("%s/%d", server.URL, i)}, subscriptions.AddOptions{}))
	}
	must.Do(w.Close())

	ctx := context.Background()
	var said strings.Builder
	streams := cmdline.NewStreams("lektor", strings.NewReader(""), &said, &said)
	run := func(err error) {
		t.Helper()
		if err != nil || streams.Report.Errors() > 0 {
			t.Fatalf("day %d: %v\n%s", day.Load(), err, said.String())
		}
	}
	var stamps []time.Time // the beginnings of days
	var used []int64
	for today := range m.days {
		day.Store(int32(today))
		stamps = append(stamps, nextTick(t, base))
		run(fetcher.Update(ctx, fetcher.UpdateOptions{
			Common: fetcher.Common{Dir: dir, Options: fetcher.Options{Fetch: fetch.Config{Now: now, PerHost: 8}}}, All: true, Quiet: true,
		}, streams))
		// Mark every second entry of today as read.
		var read []string
		for _, ref := range must.Get(d.List(ctx, lektordir.ListOptions{Places: []lektordir.Place{lektordir.New}})) {
			if now().Sub(ref.Delivered()) > 12*time.Hour {
				continue
			}
			var n int
			must.Get(fmt.Sscanf(must.Get(d.ReadEntry(ref, lektordir.FieldTitle)).Title, "Entry %d", &n))
			if n%2 == 0 {
				read = append(read, d.Join(ref.Path()))
			}
		}
		run(viewer.Mark(ctx, viewer.MarkOptions{
			Common: session.Common{Dir: dir, Now: now, Terminal: "test"}, Names: session.Names{Args: read}, Set: "S",
			Print: cmdline.PrinterOptions{Format: "path"},
		}, streams))
		// The clock of the file system dates the arrival and the reading of entries, and all days
		// take a minute of it. So expire runs at a time that is this many days after the day
		// whose entries should expire.
		for _, x := range []struct {
			after  int
			expire viewer.ExpireOptions
		}{
			{m.read, viewer.ExpireOptions{Read: fmt.Sprintf("%dd", m.read), Unread: viewer.Never}},
			{m.unread, viewer.ExpireOptions{Read: viewer.Never, Unread: fmt.Sprintf("%dd", m.unread)}},
		} {
			gone := today - x.after
			if gone < 0 {
				continue
			}
			x.expire.Trashed, x.expire.Keep = viewer.Never, -1
			x.expire.Common = session.Common{Dir: dir, Terminal: "test", Now: func() time.Time { return stamps[gone+1].AddDate(0, 0, x.after) }}
			run(viewer.Expire(ctx, x.expire, streams))
		}
		said.Reset()

		count := len(must.Get(d.List(ctx, lektordir.ListOptions{AllVersions: true})))
		bytes, inodes := onDisk(dir)
		cache, _ := onDisk(base)
		used = append(used, bytes)
		t.Logf("day %2d: %6d entries, %6.1f MiB in %7d inodes, beside it %.1f MiB", today+1, count, float64(bytes)/(1<<20), inodes, float64(cache-bytes)/(1<<20))
		if want := m.remaining(today); count != want {
			t.Fatalf("day %d: %d entries are left, not %d", today+1, count, want)
		}
	}
	// From the day when the first unread entries expire, as many entries arrive as expire.
	level := used[m.unread]
	for i, n := range used[m.unread:] {
		if n > level+level/20 {
			t.Errorf("day %d: %d bytes, %d on the day when it should have levelled off", m.unread+i+1, n, level)
		}
	}
	if grown := used[m.unread/2]; grown >= level {
		t.Errorf("it never grew: %d bytes on day %d, %d on day %d", grown, m.unread/2+1, level, m.unread+1)
	}
}
