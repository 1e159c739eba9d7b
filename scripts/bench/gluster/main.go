// Gluster measures delivery to a volume of GlusterFS, whose two replicas, the mount and
// lektor-fetch have one machine in common. Beside it stand the least that could be
// done with the calls of an entry, and a single file of each.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
)

const (
	entries = 320
	atOnce  = 8 // of what is measured, feeds or directories
)

func main() {
	if !gluster.Inside() {
		os.Exit(gluster.Main(context.Background()))
	}
	must.Main("bench", run)
}

func run() {
	// In memory, if there is a place for it: the disk is not what is compared.
	place := "/dev/shm"
	if _, err := os.Stat(place); err != nil {
		place = ""
	}
	work := must.Get(os.MkdirTemp(place, "lektor-gluster-bench-"))
	defer os.RemoveAll(work)
	volume := must.Get(gluster.New(context.Background(), work))
	defer volume.Close()
	at := filepath.Join(work, "mount")
	must.Do(volume.Mount(context.Background(), at))
	for _, m := range []struct {
		what string
		do   func(lane int) error
	}{
		{"a file each", func(lane int) error {
			for i := range entries / atOnce {
				if err := write(filepath.Join(at, fmt.Sprintf("file-%d-%d", lane, i))); err != nil {
					return err
				}
			}
			return nil
		}},
		{"floor: a directory with four files", func(lane int) error {
			for i := range entries / atOnce {
				dir := filepath.Join(at, fmt.Sprintf("entry-%d-%d", lane, i))
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
		{"lektor-fetch deliver", func(lane int) error {
			cmd := exec.Command("bin/lektor-fetch", "deliver", "--id", fmt.Sprintf("tag:example.org,2026:%d", lane))
			cmd.Env = append(os.Environ(), "LEKTORDIR="+filepath.Join(at, "feeds"))
			cmd.Stdin = strings.NewReader(document(lane))
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %s", err, out)
			}
			return nil
		}},
	} {
		errs := make([]error, atOnce)
		var lanes sync.WaitGroup
		begin := time.Now()
		for lane := range atOnce {
			lanes.Go(func() { errs[lane] = m.do(lane) })
		}
		lanes.Wait()
		rate := entries / time.Since(begin).Seconds()
		for _, err := range errs {
			must.Do(err)
		}
		fmt.Printf("%-36s %8.1f entries/s\n", m.what, rate)
	}
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
		fmt.Fprintf(&b, `<item><title>Entry %d</title><guid isPermaLink="false">%d-%d</guid><pubDate>Mon, 02 Mar 2026 12:00:00 GMT</pubDate><description>%s</description></item>`,
			i, lane, i, strings.Repeat("words and more words ", 100))
	}
	return b.String() + "</channel></rss>"
}
