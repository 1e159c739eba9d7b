package lektordir

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// BenchmarkDeliver delivers 200 feeds of 20 entries of 2.5 kB, durably, from
// four goroutines.
func BenchmarkDeliver(b *testing.B) {
	content := []byte(strings.Repeat("text of an entry, ", 140))
	entries := 0
	for b.Loop() {
		b.StopTimer()
		d, err := Create(filepath.Join(b.TempDir(), "d"), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		w, err := newFetcher(d, commit.Options{Delay: 300 * time.Millisecond})
		if err != nil {
			b.Fatal(err)
		}
		work := make(chan int)
		var wg, done sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range work {
					id := fmt.Sprintf("http://example.com/%d", i)
					tx, err := w.Begin(FeedHash(id))
					if err != nil {
						b.Error(err)
						continue
					}
					tx.PutFeed(&Feed{ID: id, Name: id})
					for k := range 20 {
						v := version{
							Entry: Entry{
								Title: "An entry", ID: fmt.Sprintf("%s/%d", id, k), Content: content, Author: "A",
								PubDate: time.Unix(1700000000, 0), Type: "text/html", Link: id, Categories: []string{"one"},
							},
							Version: commit.Version{Identity: journal.DigestOf(id, fmt.Sprint(k)), Content: journal.DigestOf("x")},
						}
						if _, err := tx.add(context.Background(), v); err != nil {
							b.Error(err)
						}
					}
					done.Add(1)
					tx.Commit(func(err error) {
						if err != nil {
							b.Error(err)
						}
						tx.Close()
						done.Done()
					})
				}
			}()
		}
		for i := range 200 {
			work <- i
		}
		close(work)
		wg.Wait()
		w.Close()
		done.Wait()
		entries += 200 * 20
	}
	b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "entries/s")
}
