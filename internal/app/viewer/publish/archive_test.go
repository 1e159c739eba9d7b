package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// world is a lektor-dir, what is published of it, and what is known of both by other
// ways than those that are tested.
type world struct {
	*fixture
	rnd     *rand.Rand
	www     string
	server  *httptest.Server
	options Options

	clock   int64 // of deliveries
	entries []*story
	writes  int // of the run

	// Published archives, by number: the entries as they were first found, and the bytes.
	archives [][]pageEntry
	bytes    [][]byte
	sizes    []int
	titles   map[string]map[string]bool // all titles that an id was published with
	everIn   map[string]int             // the archive of an id
	current  *page
}

// story is an entry, over the time.
type story struct {
	id, title     string
	date, updated int64
	identity      int
	changes       int
	at            string // its directory, "" when it is not there
}

func newWorld(t testing.TB, seed uint64, format string) *world {
	w := &world{
		fixture: newFixture(t), rnd: rand.New(rand.NewPCG(seed, 5005)), www: t.TempDir(),
		titles: map[string]map[string]bool{}, everIn: map[string]int{}, clock: 1700000000,
	}
	w.server = serve(t, w.www)
	w.options = Options{
		Common: w.Common(), Format: format, Archive: w.www, PerPage: 1 + w.rnd.IntN(4),
		Self: w.server.URL + "/index." + format, Title: "Feed",
	}
	w.options.disk = &disk{
		// Durability is not what is tested here.
		write:  func(path string, data []byte) error { w.writes++; return atomicfile.WriteUnsynced(path, data) },
		remove: func(path string) error { w.writes++; return os.Remove(path) },
	}
	return w
}

func (w *world) run() {
	w.T.Helper()
	w.writes = 0
	if err := Publish(context.Background(), w.options, w.Streams("")); err != nil {
		w.T.Fatalf("%v\n%s", err, &w.Err)
	}
	if w.Err.Len() > 0 {
		w.T.Fatalf("said: %s", &w.Err)
	}
}

// deliver writes a version of an entry.
func (w *world) deliver(s *story) {
	w.clock++
	rfc := func(t int64) string { return time.Unix(t, 0).UTC().Format(time.RFC3339) }
	files := []string{"id=" + s.id, "title=" + s.title, "content=of " + s.title, "pubdate=" + rfc(s.date)}
	if s.updated != s.date {
		files = append(files, "+updated="+rfc(s.updated))
	}
	s.at = w.Add("new", testdir.Unique(w.clock, s.identity), files...)
}

// add adds an entry: mostly a new one, sometimes a late one or one of the same date.
func (w *world) add() {
	n := len(w.entries)
	s := &story{id: fmt.Sprintf("http://a.example/%d", n), title: fmt.Sprintf("Entry %d", n), identity: n + 1}
	switch w.rnd.IntN(6) {
	case 0:
		s.date = 1500000000 + int64(w.rnd.IntN(1000))
	case 1:
		s.date = 1600000000
	default:
		s.date = 1600000000 + int64(n)*100
	}
	s.updated = s.date
	w.entries = append(w.entries, s)
	w.deliver(s)
}

// change makes another version of an entry: a new one, or one that was there before.
func (w *world) change(s *story) {
	w.clock++
	s.changes++
	if i := strings.Index(s.title, ","); i >= 0 && w.rnd.IntN(3) == 0 {
		s.title = s.title[:i]
	} else {
		s.title = fmt.Sprintf("%s, %d", strings.Split(s.title, ",")[0], w.rnd.IntN(3))
	}
	switch {
	case w.rnd.IntN(2) == 0:
		s.updated += int64(w.rnd.IntN(1000))
	case w.rnd.IntN(2) == 0:
		s.updated -= int64(w.rnd.IntN(1000)) // there are such feeds
	}
	if w.rnd.IntN(2) == 0 {
		_ = os.RemoveAll(s.at) // else both versions are there, as with on-update deliver
	}
	w.deliver(s)
}

// vanish removes all versions of an entry.
func (w *world) vanish(s *story) {
	all, err := filepath.Glob(filepath.Join(w.Path, "new", testdir.Hash(viewdir.FeedID), fmt.Sprintf("*I%016x.*", s.identity)))
	if err != nil {
		w.T.Fatal(err)
	}
	for _, path := range all {
		if err := os.RemoveAll(path); err != nil {
			w.T.Fatal(err)
		}
	}
	s.at = ""
}

// someday does what may happen between two runs.
func (w *world) someday() {
	for range w.rnd.IntN(2*w.options.PerPage + 2) {
		w.add()
	}
	for _, s := range w.entries {
		switch w.rnd.IntN(12) {
		case 0:
			if s.at != "" {
				w.change(s)
			}
		case 1:
			if s.at != "" {
				w.vanish(s)
			} else {
				w.deliver(s)
			}
		}
	}
	if w.rnd.IntN(5) == 0 {
		w.options.PerPage = 1 + w.rnd.IntN(4)
	}
}

// document reads a file that is published.
func (w *world) document(name string) (*page, []byte) {
	w.T.Helper()
	data, err := os.ReadFile(filepath.Join(w.www, name))
	if err != nil {
		w.T.Fatal(err)
	}
	p, err := readPage(data)
	if err != nil {
		w.T.Fatalf("%s: %v\n%s", name, err, data)
	}
	p.url = w.server.URL + "/" + name
	return p, data
}

// check compares what is published with what must be.
func (w *world) check() {
	w.T.Helper()
	format := w.options.Format
	name := func(n int) string { return fmt.Sprintf("archive-%04d.%s", n, format) }
	url := func(n, count int) string {
		if n < 1 || n > count {
			return ""
		}
		return w.server.URL + "/" + name(n)
	}
	files, err := filepath.Glob(filepath.Join(w.www, "archive-*"))
	if err != nil {
		w.T.Fatal(err)
	}
	count, made := len(files), len(w.archives)
	for n := 1; n <= count; n++ {
		p, data := w.document(name(n))
		if n > made {
			w.archives = append(w.archives, p.entries)
			w.bytes = append(w.bytes, data)
			w.sizes = append(w.sizes, w.options.PerPage)
		}
		if !slices.Equal(p.entries, w.archives[n-1]) || len(p.entries) != w.sizes[n-1] {
			w.T.Fatalf("%s had\n%v\nand has\n%v\nof %d", name(n), w.archives[n-1], p.entries, w.sizes[n-1])
		}
		if old := string(w.bytes[n-1]); old != string(data) && !grew(old, string(data), "next-archive") {
			w.T.Fatalf("%s was\n%s\nand is\n%s", name(n), old, data)
		}
		w.bytes[n-1] = data
		var newest time.Time
		for _, e := range p.entries {
			w.everIn[e.id] = n
			w.publishedAs(e)
			if e.updated.After(newest) {
				newest = e.updated
			}
		}
		if !p.updated.Equal(newest) {
			w.T.Fatalf("%s is of %s, its newest entry of %s", name(n), p.updated, newest)
		}
		for rel, want := range map[string]string{
			"self": url(n, count), "current": w.options.Self, "prev-archive": url(n-1, count), "next-archive": url(n+1, count),
		} {
			if got := p.link(w.T, rel); got != want {
				w.T.Fatalf("%s of %d: %s is %q, not %q", name(n), count, rel, got, want)
			}
		}
		if p.marks["archive"] != 1 {
			w.T.Fatalf("%s is not marked", name(n))
		}
	}
	w.checkCurrent(url(count, count), count > made)
}

// grew reports whether now is old with one more line, which contains word.
func grew(old, now, word string) bool {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			return len(b) == len(a)+1 && strings.Contains(b[i], word) && slices.Equal(b[i+1:], a[i:])
		}
	}
	return false
}

func (w *world) publishedAs(e pageEntry) {
	if w.titles[e.id] == nil {
		w.titles[e.id] = map[string]bool{}
	}
	w.titles[e.id][e.title] = true
}

// checkCurrent compares the subscription document with what must be in it.
func (w *world) checkCurrent(prev string, full bool) {
	w.T.Helper()
	p, _ := w.document("index." + w.options.Format)
	w.current = p
	if p.link(w.T, "prev-archive") != prev || len(p.links["next-archive"])+p.marks["archive"]+p.marks["complete"] > 0 {
		w.T.Fatalf("the subscription document has %v %v, want prev-archive %q", p.links, p.marks, prev)
	}
	live := map[string]string{}
	pending, changed := map[string]bool{}, map[string]bool{}
	for _, s := range w.entries {
		if s.at != "" {
			live[s.id] = s.title
			pending[s.id] = w.everIn[s.id] == 0
			changed[s.id] = s.changes > 0
		}
	}
	left := 0
	var newest time.Time
	for _, e := range p.entries {
		if live[e.id] != e.title {
			w.T.Fatalf("%s is published as %q, and is %q", e.id, e.title, live[e.id])
		}
		delete(live, e.id)
		w.publishedAs(e)
		if e.updated.After(newest) {
			newest = e.updated
		}
		if pending[e.id] {
			left++
		} else if !changed[e.id] {
			w.T.Fatalf("%s is in archive %d and in the subscription document, and never changed", e.id, w.everIn[e.id])
		}
	}
	for id, title := range live {
		n := w.everIn[id]
		if n == 0 || !slices.ContainsFunc(w.archives[n-1], func(e pageEntry) bool { return e.id == id && e.title == title }) {
			w.T.Fatalf("%s, %q, is published nowhere", id, title)
		}
	}
	if n := w.options.PerPage; left >= 2*n || full && left < n {
		w.T.Fatalf("the subscription document has %d entries that are in no archive; %d to a page", left, n)
	}
	if len(p.entries) > 0 && !p.updated.Equal(newest) {
		w.T.Fatalf("the subscription document is of %s, its newest entry of %s", p.updated, newest)
	}
}

// Over any time, the entries of an archive stay, and a reader that looks now and then
// has all that is published, in the version that is published. (What is withdrawn
// between two of its looks, and was in no archive, it cannot have.)
func TestArchiveHistories(t *testing.T) {
	histories := 8
	if n := os.Getenv("LEKTOR_HISTORIES"); n != "" {
		if _, err := fmt.Sscan(n, &histories); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, []string{"atom", "rss"}[seed%2])
			var readers []*reader
			for range 8 {
				w.someday()
				w.run()
				w.check()
				w.run()
				if w.writes != 0 {
					t.Fatalf("with nothing new %d files were written", w.writes)
				}
				if w.rnd.IntN(6) == 0 {
					w.forget()
				}
				if w.rnd.IntN(3) == 0 {
					readers = append(readers, newReader(t, w.server, "/index."+w.options.Format))
				}
				for _, r := range readers {
					if w.rnd.IntN(2) == 0 {
						w.compare(r)
					}
				}
			}
			for _, r := range append(readers, newReader(t, w.server, "/index."+w.options.Format)) {
				w.compare(r)
			}
		})
	}
}

// forget removes the ledger, and checks that the next run rebuilds it.
func (w *world) forget() {
	w.T.Helper()
	if err := os.Remove(filepath.Join(w.www, ".archives")); err != nil {
		w.T.Fatal(err)
	}
	w.run()
	w.check()
}

// compare updates a reader, and compares its entries with the published ones.
func (w *world) compare(r *reader) {
	w.T.Helper()
	r.look()
	have := r.titles()
	for _, s := range w.entries {
		if s.at != "" && have[s.id] != s.title {
			w.T.Fatalf("a reader has %s as %q (%+v), and it is %q", s.id, have[s.id], r.have[s.id], s.title)
		}
	}
	for id := range w.everIn {
		if have[id] == "" {
			w.T.Fatalf("a reader has not %s of archive %d", id, w.everIn[id])
		}
	}
	for id, title := range have {
		if !w.titles[id][title] {
			w.T.Fatalf("a reader has %s as %q, which was never published", id, title)
		}
	}
}

// errKilled ends a run at an operation of the disk.
var errKilled = errors.New("killed")

// tree returns the contents of the files below a directory, by name.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[d.Name()] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A run that is killed at any change of a file leaves a feed that a reader can read
// whole, and the next run makes what an uninterrupted one had made.
func TestArchiveKilled(t *testing.T) {
	for _, format := range []string{"atom", "rss"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(format, lost), func(t *testing.T) {
				w := newWorld(t, 1, format)
				w.options.PerPage = 2
				for range 7 {
					w.add()
				}
				w.run()
				before := tree(t, w.www)
				if lost {
					delete(before, ".archives")
				}
				for range 7 {
					w.add()
				}
				for _, n := range []int{1, 3, 6} { // archived, and to be archived now
					w.change(w.entries[n])
				}
				w.options.Title = "Another"
				start(t, w.www, before)
				w.run()
				want, all := tree(t, w.www), w.writes
				if all < 8 { // three archives, ledger, document, three links
					t.Fatalf("%d changes: %v", all, slices.Sorted(maps.Keys(want)))
				}
				write := w.options.disk.write
				for k := range all {
					start(t, w.www, before)
					n := 0
					w.options.disk.write = func(path string, data []byte) error {
						if n++; n > k {
							return errKilled
						}
						return write(path, data)
					}
					if err := Publish(context.Background(), w.options, w.Streams("")); !errors.Is(err, errKilled) {
						t.Fatalf("%d: %v", k, err)
					}
					w.options.disk.write = write
					w.readable()
					// The next run removes the temporary file of a killed write.
					left := filepath.Join(w.www, fmt.Sprintf(".archive-0003.%s1234567890", format))
					if err := errors.Join(os.WriteFile(left, nil, 0o666), os.Chtimes(left, viewdir.Now, viewdir.Now.Add(-time.Hour*24*365))); err != nil {
						t.Fatal(err)
					}
					w.run()
					if got := tree(t, w.www); !maps.Equal(got, want) {
						for name := range want {
							if got[name] != want[name] {
								t.Fatalf("killed at change %d: %s is\n%s\nand would have been\n%s", k, name, got[name], want[name])
							}
						}
						t.Fatalf("killed at change %d: %v, not %v", k, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
					}
				}
			})
		}
	}
}

// start puts a directory into a state.
func start(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name := range tree(t, root) {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// readable makes sure that a reader finds all documents there are links to, and that
// no archive links to one that does not link back.
func (w *world) readable() {
	w.T.Helper()
	r := newReader(w.T, w.server, "/index."+w.options.Format)
	for _, p := range r.look() {
		if next := p.link(w.T, "next-archive"); next != "" && r.get(next).link(w.T, "prev-archive") != p.url {
			w.T.Fatalf("%s links to %s, and that not back", p.url, next)
		}
	}
	if len(r.have) < 7 {
		w.T.Fatalf("a reader has %d entries of at least 7", len(r.have))
	}
}
