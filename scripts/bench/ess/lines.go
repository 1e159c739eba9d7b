package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// part and four are the recipe of lektor-ess(1), and one the single program that four has
// to equal; at is so that both say the same build time. $N is how many entries are asked for.
const (
	at   = "--at @1740000000"
	one  = "lektor-ess top " + at + " -n $N --lines <all.ess"
	part = `parallel -j 4 "perl -ne '/,([^,]*)/; print if unpack(q(%32C*), \$1) % 4 == {}' all.ess > part.{}" ::: 0 1 2 3`
	four = "parallel -j 4 'lektor-ess top " + at + " -n $N --lines < {}' ::: part.? | lektor-ess top " + at + " -n $N --lines"
)

// notes is the variable with the file in which a program under measurement is noted,
// and inner the one with the program that the name of this one stands for.
const notes, inner = "LEKTOR_BENCH_NOTES", "LEKTOR_BENCH_REAL"

// stand runs the program that this one stands for, and notes what it took.
func stand() {
	cmd := exec.Command(os.Getenv(inner), os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	u := taken(cmd, time.Since(start))
	f := must.Get(os.OpenFile(os.Getenv(notes), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))
	must.Get(fmt.Fprintf(f, "%d %d %d\n", u.time, u.cpu, u.memory))
	must.Do(f.Close())
	if err != nil {
		os.Exit(1)
	}
}

// taken is what a command took that has ended.
func taken(cmd *exec.Cmd, time time.Duration) usage {
	u := usage{time: time, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.memory = maxrss(r)
	}
	return u
}

// inLines has the documents of many feeds, a line each, aggregated by one program and
// by four, and compares what they write.
func inLines(o options, program string, w io.Writer) {
	if o.lines == 0 {
		return
	}
	if _, err := exec.LookPath("parallel"); err != nil {
		fmt.Fprintln(w, "no GNU parallel: lines are left out")
		return
	}
	tmp := must.Get(filepath.Abs(must.Get(os.MkdirTemp(o.dir, "lektor-ess-lines."))))
	defer os.RemoveAll(tmp)
	size := writeLines(filepath.Join(tmp, "all.ess"), o.lines, o.lineEntries)
	must.Do(os.Mkdir(filepath.Join(tmp, "bin"), 0o700))
	must.Do(os.Symlink(must.Get(os.Executable()), filepath.Join(tmp, "bin/lektor-ess")))
	fmt.Fprintf(w, "lektor-ess top -n %d --lines, %d documents × %d entries, %.1f MB\n", o.n, o.lines, o.lineEntries, float64(size)/1e6)
	var first []byte
	for _, how := range []struct{ name, command string }{{"one", one}, {"parting", part}, {"four, by GNU parallel", four}} {
		notesFile := filepath.Join(tmp, "notes")
		must.Do(os.RemoveAll(notesFile))
		cmd := exec.Command("sh", "-c", how.command)
		cmd.Dir = tmp
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(tmp, "bin")+":"+os.Getenv("PATH"), notes+"="+notesFile, inner+"="+program, fmt.Sprintf("N=%d", o.n))
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		start := time.Now()
		err := cmd.Run()
		u := taken(cmd, time.Since(start))
		if err != nil || said.Len() > 0 {
			must.Do(errors.Join(err, errors.New(said.String())))
		}
		fmt.Fprintf(w, "%-22s %6.1f s (%6.1f s of processor)  %8.0f documents/s\n", how.name, u.time.Seconds(), u.cpu.Seconds(), float64(o.lines)/u.time.Seconds())
		if how.command == part {
			continue
		}
		for line := range strings.Lines(string(must.Get(os.ReadFile(notesFile)))) {
			var p usage
			must.Get(fmt.Sscan(line, &p.time, &p.cpu, &p.memory))
			fmt.Fprintf(w, "    lektor-ess         %6.1f s (%6.1f s of processor)  %4d MiB of memory\n", p.time.Seconds(), p.cpu.Seconds(), p.memory>>20)
		}
		if first == nil {
			first = out.Bytes()
			if doc := must.Get(ess.Decode(first, nil)); len(doc.Entries) != o.n {
				must.Fail("%d entries, not %d", len(doc.Entries), o.n)
			}
		} else if !bytes.Equal(first, out.Bytes()) {
			must.Fail("the outcome of %q is another than that of one", how.command)
		}
	}
	fmt.Fprintln(w, "the same bytes")
}

// writeLines writes documents, one a line, and gives how many bytes these are. A fifth
// of the feeds have two, somewhere in the file and of these the earlier or the later
// one first. What is in both has another title in one, and of some the newest entry is
// gone from the later: so it has to be known which of them counts.
func writeLines(path string, documents, entries int) (size int64) {
	f := must.Get(os.Create(path))
	out := bufio.NewWriterSize(f, 1<<20)
	feeds := max(1, documents*5/6)
	list := make([]ess.Entry, entries)
	var line []byte
	for i := range documents {
		feed := i
		if i >= feeds {
			feed = (i - feeds) * 5
		}
		rng := rand.New(rand.NewPCG(uint64(feed), 2))
		minute := build - rng.Int64N(60)
		for k := range list {
			list[k] = ess.Entry{Minute: minute - rng.Int64N(10*24*60), Sum: uint8(rng.IntN(256))}
		}
		// Of every second feed the one at the end is the later one.
		switch later := (i >= feeds) == (feed%2 == 0); {
		case later:
			minute++
			list[0].Sum++
		case feed%1000 < 6:
			list[0].Minute = minute
		}
		line = append(ess.AppendESSLine(line[:0], ess.Time(minute), fmt.Sprintf("https://www.example%d.com/feed.xml", feed), list), '\n')
		size += int64(len(line))
		must.Get(out.Write(line))
	}
	must.Do(errors.Join(out.Flush(), f.Close()))
	return size
}
