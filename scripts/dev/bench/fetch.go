//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// fetcher is a program that fetches feeds. setup subscribes to urls in a directory, and
// returns the command that fetches them all.
type fetcher struct {
	ways  []*way
	setup func(w *way, dir string, urls []string) func() *exec.Cmd
	count func(w *way, dir string) int // returns the number of entries in dir
	// settle adds a fetch before the one that finds nothing new, since newsboat stores validators
	// only from the second fetch on.
	settle bool
	// family means that child processes do the work, so its own memory is not meaningful.
	family bool
}

func (b *bench) fetchers() []*fetcher {
	return []*fetcher{
		{ways: b.ours("lektor-fetch"), setup: setupLektor, count: func(_ *way, dir string) int {
			return len(must.Get(filepath.Glob(filepath.Join(dir, "feeds/new/*/*/content"))))
		}},
		{ways: b.other("sfeed_update", "sfeed_update"), setup: setupSfeed, family: true,
			count: func(_ *way, dir string) (n int) {
				for _, f := range must.Get(filepath.Glob(filepath.Join(dir, "feeds/*"))) {
					n += strings.Count(string(must.Get(os.ReadFile(f))), "\n")
				}
				return n
			}},
		{ways: b.other("newsboat", "newsboat"), setup: setupNewsboat, settle: true,
			count: func(_ *way, dir string) (n int) {
				must.Get(fmt.Sscan(string(must.Get(newsboat(dir, "print-unread").Output())), &n))
				return n
			}},
	}
}

// fetch measures first fetches.
func (b *bench) fetch() {
	b.firstFetch(sizes["few"], b.rounds)
	b.firstFetch(sizes["feeds"], b.rounds)
	if b.against == "" {
		b.firstFetch(sizes["large"], 1)
	}
}

func (b *bench) firstFetch(feeds, rounds int) {
	if feeds == 0 {
		return
	}
	s := serve(feeds, sizes["entries"], sizes["bytes"])
	defer s.Close()
	n := feeds * sizes["entries"]
	all := b.fetchers()
	var ways []*way
	for _, f := range all {
		for _, w := range f.ways {
			// Load every program and the server's code into memory before the first round.
			f.once(w, b.place(), s.urls[:min(feeds, 25)], s)
			w.once = func(w *way, _ int) measurement {
				// No directory is removed before the end. ext4 does not reuse an inode that was
				// freed in the last minutes, and checks each of them for a new file.
				return f.once(w, b.place(), s.urls, s)
			}
			ways = append(ways, w)
		}
	}
	b.compare(group{what: fmt.Sprintf("first fetch, %d × %d × %.1f kB", feeds, sizes["entries"],
		float64(sizes["bytes"])/1000), unit: "entries", n: n, rounds: rounds}, ways, nil)
}

// once fetches urls for the first time, and checks that all entries exist.
func (f *fetcher) once(w *way, dir string, urls []string, s *origin) measurement {
	command := f.setup(w, dir, urls)
	m := f.run(command(), s)
	want := len(urls) * sizes["entries"]
	if f.settle && want > 5000 {
		return m // to count entries takes newsboat minutes
	}
	if n := f.count(w, dir); n != want {
		must.Fail("%s has %d entries, want %d; answers: %s", w.name, n, want, m.note)
	}
	return m
}

func (f *fetcher) run(cmd *exec.Cmd, s *origin) measurement {
	s.reset()
	m, _ := take(cmd)
	m.note = s.answers()
	if f.family {
		m.memory = 0
	}
	return m
}

// unchanged measures fetches with nothing new: lektor-fetch with many feeds, and the other
// programs with as many as in a first fetch.
func (b *bench) unchanged() {
	if sizes["unchanged"] == 0 {
		return
	}
	many := serve(sizes["unchanged"], 1, 200)
	defer many.Close()
	few := serve(sizes["feeds"], sizes["entries"], sizes["bytes"])
	defer few.Close()
	for i, s := range []*origin{few, many} {
		var ways []*way
		check := func() {}
		for k, f := range b.fetchers() {
			for _, w := range f.ways {
				if i == 1 && k > 0 {
					continue
				}
				command := f.setup(w, w.dir, s.urls)
				f.run(command(), s)
				if f.settle {
					f.run(command(), s)
				}
				w.once = func(*way, int) measurement { return f.run(command(), s) }
				ways = append(ways, w)
				if k == 0 {
					before, next := snapshot(w.dir), check
					check = func() { next(); onlyStamps(before, snapshot(w.dir)) }
				}
			}
		}
		g := b.compare(group{what: fmt.Sprintf("nothing new, %d feeds", len(s.urls)), unit: "feeds", n: len(s.urls)},
			ways, nil)
		if m, want := middle(g.rounded[0]), fmt.Sprintf("%d × 304", len(s.urls)); m.note != want {
			must.Fail("answers %s, want %s", m.note, want)
		}
		check()
	}
}

// snapshot returns the time of the last change of each file and directory below dir.
func snapshot(dir string) map[string]string {
	all := map[string]string{}
	must.Do(filepath.Walk(filepath.Join(dir, "feeds"), func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			all[path] = fmt.Sprint(fi.Mode(), fi.Size(), fi.ModTime().UnixNano())
		}
		return err
	}))
	return all
}

// onlyStamps checks that only time stamps were written.
func onlyStamps(before, after map[string]string) {
	for path, state := range after {
		if name := filepath.Base(path); name != "checked" && name != "next" && before[path] != state {
			must.Fail("%s was written though nothing is new", path)
		}
	}
	if len(before) != len(after) {
		must.Fail("%d files became %d though nothing is new", len(before), len(after))
	}
}

func setupLektor(w *way, dir string, urls []string) func() *exec.Cmd {
	var opml strings.Builder
	opml.WriteString("<opml version=\"2.0\"><body>\n")
	for i, u := range urls {
		fmt.Fprintf(&opml, "<outline type=\"rss\" text=\"Feed %d\" xmlUrl=\"%s\"/>\n", i, u)
	}
	list := filepath.Join(dir, "feeds.opml")
	must.Do(os.WriteFile(list, []byte(opml.String()+"</body></opml>\n"), 0o600))
	take(w.lektor(filepath.Join(dir, "feeds"), "lektor-fetch", "import", "--no-fetch", list))
	return func() *exec.Cmd { return w.lektor(filepath.Join(dir, "feeds"), "lektor-fetch", "update", "--all") }
}

// setupSfeed configures sfeed_update for conditional requests, as its documentation shows.
func setupSfeed(_ *way, dir string, urls []string) func() *exec.Cmd {
	var rc strings.Builder
	fmt.Fprintf(&rc, `sfeedpath="$HOME/feeds"
maxjobs=%d
fetch() {
	etag="$HOME/etags/$(basename "$3")"
	curl -L --max-redirs 0 -H "User-Agent:" -f -s -m 15 --compressed \
		--etag-save "${etag}" --etag-compare "${etag}" -z "${etag}" "$2" 2>/dev/null
}
feeds() {
`, sizes["jobs"])
	for i, u := range urls {
		fmt.Fprintf(&rc, "\tfeed 'feed%d' '%s'\n", i, u)
	}
	path := filepath.Join(dir, "sfeedrc")
	must.Do(os.WriteFile(path, []byte(rc.String()+"}\n"), 0o600))
	for _, name := range []string{"feeds", "etags"} {
		must.Do(os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	return func() *exec.Cmd { return command(dir, "sfeed_update", path) }
}

func setupNewsboat(_ *way, dir string, urls []string) func() *exec.Cmd {
	must.Do(os.WriteFile(filepath.Join(dir, "urls"), []byte(strings.Join(urls, "\n")+"\n"), 0o600))
	must.Do(os.WriteFile(filepath.Join(dir, "config"), fmt.Appendf(nil, "reload-threads %d\nmax-items 0\n",
		sizes["jobs"]), 0o600))
	return func() *exec.Cmd { return newsboat(dir, "reload") }
}

func newsboat(dir, action string) *exec.Cmd {
	return command(dir, "newsboat", "-q", "-u", filepath.Join(dir, "urls"), "-C", filepath.Join(dir, "config"), "-c",
		filepath.Join(dir, "cache.db"), "-x", action)
}
