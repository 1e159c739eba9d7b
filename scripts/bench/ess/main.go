// Ess measures how fast lektor-ess aggregates: it generates ESS documents, a
// file each, and has "lektor-ess top" find the newest entries of them all, from
// a warm cache; once of a quarter of the documents and once of all, to show how
// time and memory grow.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/testkit/must"
	"golang.org/x/sync/errgroup"
)

func main() {
	if filepath.Base(os.Args[0]) == "lektor-ess" {
		must.Main("ess", stand)
		return
	}
	var o options
	flag.IntVar(&o.documents, "documents", 1_000_000, "number of documents in files of their own; 0 leaves this out")
	flag.IntVar(&o.entries, "entries", 100, "entries in each")
	flag.IntVar(&o.n, "n", 1000, "how many of the newest entries to find")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the best counts")
	flag.IntVar(&o.lines, "lines", 200_000, "number of documents that stand one a line, for one program and for four; 0 leaves this out")
	flag.IntVar(&o.lineEntries, "line-entries", 10, "entries in each of these")
	flag.StringVar(&o.bin, "bin", "bin", "directory of lektor-ess")
	flag.StringVar(&o.dir, "dir", "", "put the documents into a temporary directory in here, not in $TMPDIR")
	flag.Parse()
	if flag.NArg() > 0 || o.documents < 0 || o.documents > 0 && o.documents < 4 || o.lines < 0 || o.lineEntries < 1 || o.entries < 1 || o.n < 1 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	must.Main("ess", func() { run(o, os.Stdout) })
}

type options struct {
	documents, entries, n, rounds int
	lines, lineEntries            int
	bin, dir                      string
}

// build is the build time of the newest document, in minutes.
const build = 29_000_000

func run(o options, w io.Writer) {
	program := must.Get(filepath.Abs(filepath.Join(o.bin, "lektor-ess")))
	if _, err := os.Stat(program); err != nil {
		must.Fail("%w (run make first)", err)
	}
	inFiles(o, program, w)
	inLines(o, program, w)
}

// inFiles has documents aggregated that are a file each.
func inFiles(o options, program string, w io.Writer) {
	if o.documents == 0 {
		return
	}
	tmp := must.Get(os.MkdirTemp(o.dir, "lektor-ess-bench."))
	defer os.RemoveAll(tmp)
	tmp = must.Get(filepath.Abs(tmp))
	parts := []int{o.documents / 4, o.documents}
	start := time.Now()
	sizes := generate(o, tmp, parts)
	fmt.Fprintf(w, "lektor-ess top -n %d, %d documents × %d entries, on %d × %s/%s (generated in %.0f s)\n",
		o.n, o.documents, o.entries, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, time.Since(start).Seconds())
	for i, part := range parts {
		var best usage
		for range o.rounds {
			u := top(program, tmp, part, o.n)
			u.memory = max(u.memory, best.memory)
			if best.time != 0 && best.time < u.time {
				u.time, u.cpu = best.time, best.cpu
			}
			best = u
		}
		seconds, mb := best.time.Seconds(), float64(sizes[i])/1e6
		fmt.Fprintf(w, "%9d documents  %6.1f MB  %5.2f s (%5.2f s of processor)  %4.0f MB/s  %7.0f documents/s  %3d MiB of memory\n",
			part, mb, seconds, best.cpu.Seconds(), mb/seconds, float64(part)/seconds, best.memory>>20)
	}
}

// usage is what a run takes.
type usage struct {
	time, cpu time.Duration
	memory    int64
}

// perDir is how many documents lie in a directory.
const perDir = 1000

func name(i int) string { return fmt.Sprintf("%d/%d.ess", i/perDir, i) }

// generate writes the documents, and gives the bytes of the first so many of
// them. Nothing is kept for each: the system counts the memory of who starts a
// program as that program's own.
func generate(o options, tmp string, parts []int) []int64 {
	sizes := make([]int64, len(parts))
	var jobs errgroup.Group
	jobs.SetLimit(runtime.NumCPU())
	for first := 0; first < o.documents; first += perDir {
		jobs.Go(func() error {
			err := os.Mkdir(filepath.Join(tmp, fmt.Sprint(first/perDir)), 0o700)
			var doc []byte
			for i := first; i < min(first+perDir, o.documents) && err == nil; i++ {
				doc = document(doc[:0], i, o.entries)
				for p, part := range parts {
					if i < part {
						atomic.AddInt64(&sizes[p], int64(len(doc)))
					}
				}
				err = os.WriteFile(filepath.Join(tmp, name(i)), doc, 0o600)
			}
			return err
		})
	}
	must.Do(jobs.Wait())
	return sizes
}

// names is the list of the first documents, separated by NUL.
type names struct {
	next, end int
	rest      []byte
}

func (n *names) Read(p []byte) (int, error) {
	for len(n.rest) < len(p) && n.next < n.end {
		n.rest = append(append(n.rest, name(n.next)...), 0)
		n.next++
	}
	if len(n.rest) == 0 {
		return 0, io.EOF
	}
	k := copy(p, n.rest)
	n.rest = append(n.rest[:0], n.rest[k:]...)
	return k, nil
}

// document appends the i-th document: entries within ten days before a build in
// the last hour.
func document(b []byte, i, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i), 1))
	at := build - rng.Int64N(60)
	entries := make([]ess.Entry, n)
	for j := range entries {
		entries[j] = ess.Entry{Minute: at - rng.Int64N(10*24*60), Sum: uint8(rng.IntN(256))}
	}
	return ess.AppendESS(b, ess.Time(at), fmt.Sprintf("https://www.example%d.com/feed.xml", i), entries)
}

// top runs the program on the first documents.
func top(program, dir string, documents, n int) (u usage) {
	cmd := exec.Command(program, "top", "-n", fmt.Sprint(n), "-0", "-")
	cmd.Dir = dir
	cmd.Stdin = &names{end: documents}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	start := time.Now()
	err := cmd.Run()
	u.time = time.Since(start)
	if err != nil || said.Len() > 0 {
		must.Do(errors.Join(err, errors.New(said.String())))
	}
	doc := must.Get(ess.Decode(out.Bytes(), nil))
	if len(doc.Entries) != n {
		must.Fail("%d entries, not %d", len(doc.Entries), n)
	}
	return taken(cmd, u.time)
}

// maxrss is the most memory of a process, in bytes.
func maxrss(r *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) * 1024
}
