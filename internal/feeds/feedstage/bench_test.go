package feedstage

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/lektordir"
)

// news returns a document with count entries, of which the newest has number n.
func news(n, count int) []byte {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>News</title><link>http://example.com/</link><description>d</description>`)
	for k := n; k > n-count; k-- {
		fmt.Fprintf(&b, `<item><title>Entry %d</title><link>http://example.com/%[1]d</link><guid>http://example.com/%[1]d</guid>`+
			`<pubDate>%s</pubDate><description>&lt;p&gt;%s&lt;/p&gt;</description></item>`,
			k, time.Unix(1600000000+int64(k), 0).UTC().Format(time.RFC1123Z), strings.Repeat("Text of the entry. ", 20))
	}
	b.WriteString(`</channel></rss>`)
	return []byte(b.String())
}

// BenchmarkPast parses and delivers a document of 30 entries, one of which is new, for feeds that have
// delivered few or many entries before. It reports user and system CPU time.
func BenchmarkPast(b *testing.B) {
	for _, n := range []int{50, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := lektordir.Create(filepath.Join(b.TempDir(), "d"), nil)
			if err != nil {
				b.Fatal(err)
			}
			w, err := feedfiles.NewWriter(d, commit.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			deliver := func(body []byte, want int) {
				f, err := feedconv.ParseBytes(body, feedconv.Options{URL: feedID})
				if err != nil {
					b.Fatal(err)
				}
				tx, err := w.Begin(hash)
				if err != nil {
					b.Fatal(err)
				}
				defer tx.Close()
				if err := tx.PutFeed((&lektordir.Feed{ID: feedID, Name: f.Title}).Files()); err != nil {
					b.Fatal(err)
				}
				res, err := On(d, tx).Stage(b.Context(), Document(f, lektordir.UpdateNew, nil))
				if err != nil || len(res.New) != want {
					b.Fatal(res, err)
				}
				done := make(chan error)
				tx.Commit(func(err error) { done <- err })
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				// The user reads the entries and deletes them.
				for _, unique := range tx.Delivered() {
					if err := d.Remove(lektordir.Ref{Feed: hash, Unique: unique}); err != nil {
						b.Fatal(err)
					}
				}
			}
			deliver(news(n, n), n)
			var before, after unix.Rusage
			unix.Getrusage(unix.RUSAGE_SELF, &before)
			last := n
			for b.Loop() {
				last++
				deliver(news(last, 30), 1)
			}
			unix.Getrusage(unix.RUSAGE_SELF, &after)
			spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
		})
	}
}
