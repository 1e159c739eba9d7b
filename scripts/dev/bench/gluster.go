//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// lanes is the number of goroutines that write to the volume at once.
const lanes = 8

// gluster runs this program again for this row only, in namespaces in which a volume of GlusterFS
// can be made.
func (b *bench) gluster() {
	if sizes["gluster"] > 0 {
		if status := gluster.Main(context.Background()); status != 0 {
			must.Fail("status %d", status)
		}
	}
}

// onVolume measures delivery to a volume of two replicas in memory. For comparison, it measures
// the minimum of calls for an entry, and one file for each. All of GlusterFS runs on this
// machine, so the note has the processor time of each part for an entry, and the number of calls
// that reach each replica.
func (b *bench) onVolume() {
	ctx := context.Background()
	place := "/dev/shm" // the disk is not measured
	if _, err := os.Stat(place); err != nil {
		place = ""
	}
	work := must.Get(os.MkdirTemp(place, "lektor-bench-gluster-"))
	defer os.RemoveAll(work)
	volume := must.Get(gluster.New(ctx, work))
	defer volume.Close()
	at := filepath.Join(work, "mount")
	must.Do(volume.Mount(ctx, at))
	must.Do(volume.Count(ctx))
	n := sizes["gluster"]
	ways := b.ours("lektor-fetch deliver")
	for _, w := range ways {
		w.once = func(w *way, _ int) measurement {
			return onLanes(ctx, volume, at, func(dir string, lane int) {
				cmd := w.lektor(filepath.Join(dir, "feeds"), "lektor-fetch", "deliver", "--id",
					fmt.Sprintf("tag:example.org,2026:%d", lane))
				cmd.Stdin = strings.NewReader(onceDocument(lane, n/lanes))
				out, err := cmd.CombinedOutput()
				must.That(err, "%s", out)
			})
		}
	}
	floor := func(files ...string) func(w *way, _ int) measurement {
		return func(*way, int) measurement {
			return onLanes(ctx, volume, at, func(dir string, lane int) {
				for i := range n / lanes {
					entry := filepath.Join(dir, fmt.Sprintf("entry-%d-%d", lane, i))
					if len(files) == 0 {
						synced(entry)
						continue
					}
					must.Do(os.Mkdir(entry, 0o777))
					for _, name := range files {
						synced(filepath.Join(entry, name))
					}
					must.Do(os.Rename(entry, entry+".new"))
				}
			})
		}
	}
	if b.against == "" {
		ways = append(ways, &way{name: "floor: a directory of four files",
			once: floor("id", "title", "content", "extras")}, &way{name: "a file each", once: floor()})
	}
	b.compare(group{what: "GlusterFS, eight at once", unit: "entries", n: n}, ways, nil)
}

// onLanes measures eight goroutines at once in a new directory of the volume.
func onLanes(ctx context.Context, volume *gluster.Volume, at string, do func(dir string, lane int)) (m measurement) {
	dir := must.Get(os.MkdirTemp(at, ""))
	must.Get(volume.Calls(ctx)) // resets the counts
	mount, replicas := must.Get2(volume.Times())
	begin := time.Now()
	errs := make(chan error, lanes)
	for lane := range lanes {
		go func() { errs <- must.Run(func() { do(dir, lane) }) }()
	}
	for range lanes {
		must.Do(<-errs)
	}
	m.time = time.Since(begin)
	time.Sleep(1500 * time.Millisecond) // the volume releases locks a second later
	mount2, replicas2 := must.Get2(volume.Times())
	calls := 0
	for _, n := range must.Get(volume.Calls(ctx)) {
		calls += n
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(sizes["gluster"]) }
	m.note = fmt.Sprintf("mount %.1f ms, a replica %.1f ms and %.1f calls an entry", each(mount2-mount),
		each(replicas2-replicas)/2, float64(calls)/float64(sizes["gluster"]))
	return m
}

// synced makes a file that is on the disks of both replicas.
func synced(path string) {
	f := must.Get(os.Create(path))
	defer f.Close()
	must.Get(f.WriteString("An entry of some feed\n"))
	must.Do(f.Sync())
}

func onceDocument(lane, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<rss version="2.0"><channel><title>Feed %d</title><link>http://example.org/</link><description/>`,
		lane)
	for i := range n {
		fmt.Fprintf(&b,
			`<item><title>Entry %d</title><guid isPermaLink="false">%d-%[1]d</guid><pubDate>Mon, 02 Mar 2026 12:%02[1]d:00 GMT</pubDate><description>%[3]s</description></item>`,
			i, lane, strings.Repeat("words and more words ", 100))
	}
	return b.String() + "</channel></rss>"
}
