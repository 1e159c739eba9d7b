// Gluster measures delivery to a volume of GlusterFS, whose two replicas, the mount and
// lektor-fetch have one machine in common. Beside it stand the least that could be
// done with the calls of an entry, and a single file of each. As that machine is what
// is measured, it tells as well what does not depend on it: how much processor time an
// entry takes of whom, and how many calls get to each replica.
//
//	gluster [-set OPTION=VALUE]...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

const (
	entries = 320
	atOnce  = 8 // of what is measured, feeds or directories
	rounds  = 3
	// late is how long the volume has work that was not waited for: locks are given
	// back a second later.
	late = 1500 * time.Millisecond
)

var settings [][2]string

func main() {
	flag.Func("set", "`OPTION=VALUE` of the volume, as in \"gluster volume set\"; several times", func(s string) error {
		option, value, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("there is no = in it")
		}
		settings = append(settings, [2]string{option, value})
		return nil
	})
	flag.Parse()
	if !gluster.Inside() {
		os.Exit(gluster.Main(context.Background()))
	}
	must.Main("bench", run)
}

// measured is a way to write entries. do writes those of one lane below a directory
// that is there and is no other lane's, nor another round's.
type measured struct {
	what string
	do   func(dir string, lane int) error
}

var all = []measured{
	{"a file each", func(dir string, lane int) error {
		for i := range entries / atOnce {
			if err := write(filepath.Join(dir, fmt.Sprintf("file-%d-%d", lane, i))); err != nil {
				return err
			}
		}
		return nil
	}},
	{"floor: a directory with four files", func(dir string, lane int) error {
		for i := range entries / atOnce {
			dir := filepath.Join(dir, fmt.Sprintf("entry-%d-%d", lane, i))
			if err := os.Mkdir(dir, 0o777); err != nil {
				return err
			}
			for _, name := range []string{"id", "title", "content", "extras"} {
				if err := write(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
			if err := os.Rename(dir, dir+".new"); err != nil {
				return err
			}
		}
		return nil
	}},
	{"lektor-fetch deliver", func(dir string, lane int) error {
		cmd := exec.Command("bin/lektor-fetch", "deliver", "--id", fmt.Sprintf("tag:example.org,2026:%d", lane))
		cmd.Env = append(os.Environ(), "LEKTORDIR="+filepath.Join(dir, "feeds"))
		cmd.Stdin = strings.NewReader(document(lane))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}},
}

func run() {
	ctx := context.Background()
	// In memory, if there is a place for it: the disk is not what is compared.
	place := "/dev/shm"
	if _, err := os.Stat(place); err != nil {
		place = ""
	}
	work := must.Get(os.MkdirTemp(place, "lektor-gluster-bench-"))
	defer os.RemoveAll(work)
	volume := must.Get(gluster.New(ctx, work))
	defer volume.Close()
	for _, s := range settings {
		must.Do(volume.Set(ctx, s[0], s[1]))
		fmt.Printf("%s: %s\n", s[0], s[1])
	}
	at := filepath.Join(work, "mount")
	must.Do(volume.Mount(ctx, at))
	fmt.Printf("%-36s %10s   %s\n", "", "", "of processor time, in ms, each entry takes")
	fmt.Printf("%-36s %10s %10s %10s %10s %14s\n", "", "entries/s", "itself", "the mount", "a replica", "calls/replica")
	var best [3]result
	// In turns, as the machine may have other things to do.
	for round := range rounds {
		for i, m := range all {
			r := measure(volume, m, filepath.Join(at, fmt.Sprint(round, "-", i)))
			if r.rate > best[i].rate {
				best[i] = r
			}
		}
	}
	must.Do(volume.Count(ctx))
	for i, m := range all {
		must.Get(volume.Calls(ctx)) // and forget them
		measure(volume, m, filepath.Join(at, fmt.Sprint("counted-", i)))
		calls := 0
		for _, n := range must.Get(volume.Calls(ctx)) {
			calls += n
		}
		r := best[i]
		fmt.Printf("%-36s %10.1f %10.1f %10.1f %10.1f %14.1f\n", m.what, r.rate, r.own, r.mount, r.replica, float64(calls)/entries)
	}
}

// result is what was measured: entries a second, and milliseconds of processor time
// for each.
type result struct{ rate, own, mount, replica float64 }

// measure does it, in a directory that it makes.
func measure(volume *gluster.Volume, m measured, dir string) (r result) {
	must.Do(os.Mkdir(dir, 0o777))
	mount, replicas, err := volume.Times()
	must.Do(err)
	own := ownTime()
	begin := time.Now()
	errs := make([]error, atOnce)
	var lanes sync.WaitGroup
	for lane := range atOnce {
		lanes.Go(func() { errs[lane] = m.do(dir, lane) })
	}
	lanes.Wait()
	r.rate = entries / time.Since(begin).Seconds()
	for _, err := range errs {
		must.Do(err)
	}
	own = ownTime() - own
	time.Sleep(late)
	mount2, replicas2, err := volume.Times()
	must.Do(err)
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / entries }
	r.own, r.mount, r.replica = each(own), each(mount2-mount), each(replicas2-replicas)/2
	return r
}

// ownTime is the processor time of this program and of those that it ran.
func ownTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		must.Do(syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// write makes a file that is on the disks of both replicas.
func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString("An entry of some feed\n"); err != nil {
		return err
	}
	return f.Sync()
}

func document(lane int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<rss version="2.0"><channel><title>Feed %d</title><link>http://example.org/</link><description/>`, lane)
	for i := range entries / atOnce {
		fmt.Fprintf(&b, `<item><title>Entry %d</title><guid isPermaLink="false">%d-%d</guid><pubDate>Mon, 02 Mar 2026 12:%02d:00 GMT</pubDate><description>%s</description></item>`,
			i, lane, i, i, strings.Repeat("words and more words ", 100))
	}
	return b.String() + "</channel></rss>"
}
