//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/testkit/must"
)

// build is the build time of the newest document, in minutes, and topmost the number of newest
// entries to find.
const build, topmost = 29_000_000, 1000

// ess measures lektor-ess top, for documents in a file each and for documents in a line each.
func (b *bench) ess() {
	if n := sizes["documents"]; n > 0 {
		dir := b.place()
		parallel((n+999)/1000, func(k int) {
			must.Do(os.Mkdir(filepath.Join(dir, fmt.Sprint(k)), 0o700))
			for i := 1000 * k; i < min(n, 1000*(k+1)); i++ {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				at, list := entries(rng, 100)
				must.Do(os.WriteFile(filepath.Join(dir, name(i)), ess.AppendESS(nil, ess.Time(at), essURL(i), list),
					0o600))
			}
		})
		names := filepath.Join(dir, "names")
		var list []byte
		for i := range n {
			list = append(append(list, name(i)...), 0)
		}
		must.Do(os.WriteFile(names, list, 0o600))
		b.compare(group{what: fmt.Sprintf("newest of %d documents, a file each", n), unit: "documents", n: n,
			warm: true}, b.ours("lektor-ess top"), func(w *way, _ int) measurement {
			cmd := command(dir, filepath.Join(w.bin, "lektor-ess"), "top", "-n", fmt.Sprint(topmost), "-0", "-")
			stdin := must.Get(os.Open(names))
			defer stdin.Close()
			cmd.Stdin = stdin
			m, out := take(cmd)
			checkTop(out)
			return m
		})
	}
	if sizes["lines"] > 0 {
		b.inLines(sizes["lines"])
	}
}

// These are the commands of the recipe in lektor-ess(1) for several processors: lines are split
// by their feeds, and the newest entries of each part are merged. Both ways have the same build
// time.
const (
	top  = `lektor-ess top --at @1740000000 -n "$1" --lines`
	part = `parallel -j 4 "perl -ne '/,([^,]*)/; print if unpack(q(%32C*), \$1) % 4 == {}' all.ess > part.{}" ::: 0 1 2 3`
	four = "export N=\"$1\"; parallel -j 4 'lektor-ess top --at @1740000000 -n $N --lines < {}' ::: part.? | " + top
)

// inLines compares one program with the recipe. Both must print the same bytes.
func (b *bench) inLines(n int) {
	dir := b.place()
	writeLines(filepath.Join(dir, "all.ess"), n)
	ways := b.ours("lektor-ess top --lines")
	printed := map[string][]byte{}
	for _, w := range ways {
		w.once = func(w *way, _ int) measurement {
			cmd := command(dir, filepath.Join(w.bin, "lektor-ess"), "top", "--at", "@1740000000", "-n",
				fmt.Sprint(topmost), "--lines", "all.ess")
			m, out := take(cmd)
			checkTop(out)
			printed[w.name] = out
			return m
		}
	}
	for _, s := range []struct{ name, script string }{{"parting", part}, {"four, by GNU parallel", four}} {
		for _, w := range b.other(s.name, "parallel", "perl") {
			w.once = func(w *way, _ int) measurement {
				cmd := command(dir, "sh", "-c", s.script, "sh", fmt.Sprint(topmost))
				cmd.Env = append(cmd.Env, "PATH="+b.bin+":"+os.Getenv("PATH"))
				m, out := take(cmd)
				m.memory = 0 // it would be the shell's
				if s.script == four {
					printed[w.name] = out
				}
				return m
			}
			ways = append(ways, w)
		}
	}
	b.compare(group{what: fmt.Sprintf("newest of %d documents, a line each", n), unit: "documents", n: n}, ways, nil)
	for name, out := range printed {
		if !bytes.Equal(out, printed[ways[0].name]) {
			must.Fail("%s prints other bytes than %s", name, ways[0].name)
		}
	}
}

func checkTop(out []byte) {
	if doc := must.Get(ess.Decode(out, nil)); len(doc.Entries) != topmost {
		must.Fail("%d entries, want %d", len(doc.Entries), topmost)
	}
}

func name(i int) string   { return fmt.Sprintf("%d/%d.ess", i/1000, i) }
func essURL(i int) string { return fmt.Sprintf("https://www.example%d.com/feed.xml", i) }

// entries returns n entries from the ten days before a build in the last hour.
func entries(rng *rand.Rand, n int) (at int64, list []ess.Entry) {
	at = build - rng.Int64N(60)
	for range n {
		list = append(list, ess.Entry{Minute: at - rng.Int64N(10*24*60), Sum: uint8(rng.IntN(256))})
	}
	return at, list
}

// writeLines writes documents of ten entries, one a line. A fifth of the feeds have two
// documents, the earlier or the later one first. An entry of both has another title in one of
// them, and the later document of some feeds lacks the newest entry, so the later one must count.
func writeLines(path string, documents int) {
	f := must.Get(os.Create(path))
	out := bufio.NewWriterSize(f, 1<<20)
	feeds := max(1, documents*5/6)
	for i := range documents {
		feed := i
		if i >= feeds {
			feed = (i - feeds) * 5
		}
		minute, list := entries(rand.New(rand.NewPCG(uint64(feed), 2)), 10)
		// For every second feed, the document at the end is the later one.
		switch later := (i >= feeds) == (feed%2 == 0); {
		case later:
			minute++
			list[0].Sum++
		case feed%1000 < 6:
			list[0].Minute = minute
		}
		must.Get(out.Write(append(ess.AppendESSLine(nil, ess.Time(minute), essURL(feed), list), '\n')))
	}
	must.Do(errors.Join(out.Flush(), f.Close()))
}
