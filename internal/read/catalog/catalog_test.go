package catalog

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// world is a lektor-dir that changes at random, and a catalogue of it.
type world struct {
	*testing.T
	*rand.Rand
	path string
	dir  *lektordir.Dir
	c    *Catalog
	last *Snapshot
	n    int
}

func newWorld(t *testing.T, seed uint64, o Options) *world {
	made := testdir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Notice = func(text string) {
		if !o.Compare && strings.Contains(text, "limit") {
			t.Skip(text)
		}
	}
	if o.Key == nil {
		o.Key = delivered
	}
	w := &world{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), path: made.Path, dir: d}
	w.c = Open(d, o)
	t.Cleanup(w.c.Close)
	return w
}

func delivered(r lektordir.Ref) uint64 { return uint64(max(0, r.Delivered().UnixMicro())) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) write(path, text string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o777))
	w.must(os.WriteFile(path, []byte(text), 0o666))
}

// feed is the hash of one of a few feeds.
func (w *world) feed() string { return lektordir.FeedHash(fmt.Sprint(w.IntN(7))) }

// one returns one of the paths that match, "" if there is none.
func (w *world) one(pattern string) string {
	all, err := filepath.Glob(filepath.Join(w.path, pattern))
	w.must(err)
	if len(all) == 0 {
		return ""
	}
	return all[w.IntN(len(all))]
}

// unique returns a unique name: mostly of the form of lektor-fetch, with few times, hosts and identities.
func (w *world) unique() string {
	w.n++
	second := 1700000000 + w.IntN(5)
	switch w.IntN(10) {
	case 2:
		return fmt.Sprint("notime", w.n)
	case 0:
		return fmt.Sprintf("%d.%d_%d.other", second, w.n, w.IntN(3))
	case 1:
		return fmt.Sprintf("0%d.M1P2Q%dI%016x.host", second, w.n, w.IntN(9)) // no number of lektor-fetch
	}
	return fmt.Sprintf("%d.M%dP%dQ%dI%016x.host%d", second, w.IntN(3), w.IntN(3), w.n, w.IntN(30), w.IntN(2))
}

func (w *world) move(from, to string) {
	w.must(os.MkdirAll(filepath.Dir(to), 0o777))
	if err := os.Rename(from, to); err != nil && !os.IsExist(err) {
		w.Fatal(err)
	}
}

// replace puts a copy of a directory in its place, or a link to it.
func (w *world) replace(dir string) {
	away := fmt.Sprintf("%s.away%d", w.path, w.IntN(1<<30))
	w.must(os.Rename(dir, away))
	w.Cleanup(func() { os.RemoveAll(away) })
	if w.IntN(2) == 0 {
		w.must(os.Symlink(away, dir))
		return
	}
	w.must(os.CopyFS(dir, os.DirFS(away)))
}

// step changes something.
func (w *world) step() {
	feed := w.feed()
	entry := w.one("[nc]*/*/[0-9n]*")
	place := filepath.Dir(entry)
	base, _, _ := strings.Cut(filepath.Base(entry), ";")
	hash := filepath.Base(place)
	switch k := w.IntN(34); {
	case k < 9 || entry == "": // delivered, or copied
		staged := w.dir.Join("tmp", fmt.Sprint(w.n))
		w.must(os.MkdirAll(staged, 0o777))
		w.move(staged, w.dir.Join("new", feed, w.unique()))
	case k < 20: // marked
		info := []string{";2,", ";2,S", ";2,FS", ";2,S", ";2,ST", ";2,ab", ";2,SF", "", ";1,x", ";2,S,x"}[w.IntN(10)]
		w.move(entry, w.dir.Join("cur", hash, base+info))
	case k == 20: // marked as not taken
		w.move(entry, w.dir.Join("new", hash, base))
	case k < 23:
		w.must(os.RemoveAll(entry))
	case k == 23: // a feed goes
		for _, p := range places {
			if w.IntN(3) > 0 {
				w.must(os.RemoveAll(w.dir.Join(p, feed)))
			}
		}
	case k == 24: // a feed comes as it was staged, with old times
		staged := w.dir.Join("tmp", "staged")
		w.must(os.MkdirAll(filepath.Join(staged, w.unique()), 0o777))
		w.must(os.Chtimes(staged, time.Unix(1700000000, 0), time.Unix(1700000000, 0)))
		if os.Rename(staged, w.dir.Join("new", feed)) != nil {
			w.must(os.RemoveAll(staged))
		}
	case k == 25:
		w.replace(place)
	case k == 26 && w.IntN(3) == 0:
		w.replace(w.dir.Join(places[w.IntN(3)]))
	case k < 29:
		w.write(w.dir.Join("src", feed, "id"), "http://"+feed+"\n")
		w.write(w.dir.Join("src", feed, "name"), fmt.Sprint("name ", w.n, "\n"))
		w.write(w.dir.Join("src", feed, "etc/fetch/url"), "http://"+feed+"\n")
	case k < 31: // settings, by an editor or as lektor-fetch writes them
		file := []string{"etc/categories", "etc/view/alias", "etc/fetch/error", "name", "etc/fetch/from"}[w.IntN(5)]
		path := w.dir.Join("src", feed, file)
		if w.IntN(2) == 0 {
			w.write(path, fmt.Sprint("value ", w.n, "\n"))
			break
		}
		w.write(path+".t", fmt.Sprint("value ", w.n, "\n"))
		w.must(os.Rename(path+".t", path))
	case k == 31:
		w.must(os.RemoveAll(w.dir.Join("src", feed, []string{"etc", "etc/fetch/url", "etc/view", "etc/history"}[w.IntN(4)])))
	case k == 32: // a complete feed
		w.write(w.dir.Join("src", feed, "etc/history/complete"), fmt.Sprintf("%016x\n%016x\n", w.IntN(30), w.IntN(30)))
	case k == 33:
		w.c.events.Lost()
	}
}

// check compares the catalogue with what is listed anew.
func (w *world) check() {
	w.Helper()
	s, err := w.c.Now(w.Context())
	w.must(err)
	hashes := map[string]bool{}
	for _, p := range places {
		ents, err := os.ReadDir(w.dir.Join(p))
		w.must(err)
		for _, e := range ents {
			hashes[e.Name()] = true
		}
	}
	differ := map[string]bool{}
	for was, is := range s.Since(w.last) {
		if differ[is.Hash] = true; was != nil && was.Hash != is.Hash {
			w.Fatalf("%s was %s", is.Hash, was.Hash)
		}
	}
	if w.last != nil {
		for _, f := range w.last.Feeds {
			if now := s.Feed(f.Hash); !differ[f.Hash] && (now == nil || !reflect.DeepEqual(now.Came(nil), f.Came(nil)) || !reflect.DeepEqual(now.About, f.About)) {
				w.Errorf("%s differs", f.Hash)
			}
		}
	}
	var all []string
	var got []string
	for _, f := range s.Feeds {
		got = append(got, f.Hash)
	}
	if want := slices.Sorted(maps.Keys(hashes)); !slices.Equal(got, want) {
		w.Fatalf("feeds\n%q, want\n%q", got, want)
	}
	for _, f := range s.Feeds {
		refs, _ := w.dir.List(w.Context(), lektordir.ListOptions{Feeds: []string{f.Hash}})
		if got := f.Came(nil); !slices.Equal(got, refs) {
			w.Fatalf("%s has\n%v, want\n%v", f.Hash, got, refs)
		}
		if a := subscriptions.ReadAbout(w.dir, f.Hash); !reflect.DeepEqual(a, f.About) {
			w.Fatalf("%s is\n%+v, want\n%+v", f.Hash, f.About, a)
		}
		shown, unread, flagged, flags, newest := 0, 0, 0, Flags(0), time.Time{}
		listed := map[ID]string{}
		for e := range f.All() {
			listed[e.ID()] = e.Ref().Path()
		}
		for _, r := range refs {
			if all = append(all, r.Path()); r.Trashed() {
				continue
			}
			shown, flags = shown+1, flags|FlagsOf(r.Flags())
			if r.HasFlag('F') {
				flagged++
			}
			if e, ok := f.Find(r.Unique); !ok || e.Ref() != r || listed[IDOf(r)] != r.Path() {
				w.Fatalf("%v is found as %v, %v, and listed as %s", r, e, ok, listed[IDOf(r)])
			}
			if r.Unread() {
				unread++
			}
			if newest.IsZero() || r.Delivered().After(newest) {
				newest = r.Delivered()
			}
		}
		if shown != f.Shown || shown != len(listed) || flagged != f.Flagged || unread != f.Unread || flags != f.Flags || !newest.Equal(f.Newest()) {
			w.Fatalf("%s has %d, %d unread, %s, last %s; want %d, %d, %s, %s", f.Hash, f.Shown, f.Unread, f.Flags, f.Newest(), shown, unread, flags, newest)
		}
	}
	var rising, falling []string
	last := uint64(0)
	for key, e := range s.Between(0, 1<<63, true) {
		r := e.Ref()
		if rising = append(rising, r.Path()); key <= last && len(rising) > 1 {
			w.Fatalf("key %d after %d", key, last)
		}
		if found, ok := s.Find(key); !ok || found != e || e.Unread() != r.Unread() || e.Trashed() != r.Trashed() || e.Micros() != r.Delivered().UnixMicro() || e.Flags() != FlagsOf(r.Flags()) {
			w.Fatalf("%v is found as %v, %v", e, found, ok)
		}
		last = key
	}
	for _, e := range s.Between(0, 1<<63, false) {
		falling = append(falling, e.Ref().Path())
	}
	if slices.Reverse(falling); !slices.Equal(rising, falling) {
		w.Fatalf("rising %q, falling %q", rising, falling)
	}
	even := s.Only(func(f *Feed) bool { return f.Shown%2 == 0 })
	var some []string
	for key, e := range even.Between(0, 1<<63, true) {
		some = append(some, e.Ref().Path())
		if found, ok := even.Find(key); !ok || found != e || even.Feed(e.Feed.Hash) != e.Feed {
			w.Fatalf("%v is found as %v, %v", e, found, ok)
		}
	}
	if want := slices.DeleteFunc(slices.Clone(rising), func(path string) bool {
		return s.Feed(strings.Split(path, "/")[1]).Shown%2 != 0
	}); !slices.Equal(some, want) {
		w.Fatalf("of some feeds\n%q, want\n%q", some, want)
	}
	slices.Sort(all)
	if slices.Sort(rising); !slices.Equal(rising, all) {
		w.Fatalf("in order\n%q, want\n%q", rising, all)
	}
	w.last = s
}

// TestModel: whatever happens to a lektor-dir, the catalogue has what is there.
func TestModel(t *testing.T) {
	for _, compare := range []bool{false, true} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(compare, seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed, Options{Compare: compare})
				for range 120 {
					for range w.IntN(4) {
						w.step()
					}
					w.check()
				}
			})
		}
	}
}

// TestParts: if the catalogue reads a few feeds at a time, it has all of them in the end, and those that do not
// wait at once.
func TestParts(t *testing.T) {
	for _, compare := range []bool{false, true} {
		w := newWorld(t, 5, Options{Compare: compare})
		for range 60 {
			for range w.IntN(6) {
				w.step()
			}
			first := w.feed()
			var n atomic.Int32 // feeds are read by several goroutines
			s, err := w.c.Part(t.Context(), Part{First: map[string]bool{first: true}, Enough: func(int) bool { return n.Add(1) > 1 }})
			w.must(err)
			refs, _ := w.dir.List(t.Context(), lektordir.ListOptions{Feeds: []string{first}})
			if f := s.Feed(first); f != nil && !slices.Equal(f.Came(nil), refs) || f == nil && len(refs) > 0 {
				t.Fatalf("%s is %+v, and has %v", first, f, refs)
			}
			if w.IntN(3) == 0 {
				w.check()
			}
		}
	}
}

// TestTurns: feeds that change all the time are read in turns, and a call reads about as many entries as
// is enough. At the start, the feeds to which an entry was delivered last come first.
func TestTurns(t *testing.T) {
	w := newWorld(t, 1, Options{})
	const feeds, many, enough = 60, 100, 300
	hash := func(i int) string { return lektordir.FeedHash(fmt.Sprint("feed ", i)) }
	deliver := func(i int) { w.must(os.MkdirAll(w.dir.Join("new", hash(i), w.unique()), 0o777)) }
	for i := range feeds {
		deliver(i)
		for i%2 > 0 && w.n%many > 0 {
			deliver(i)
		}
		at := time.Unix(1700000000+int64(i*7%feeds), 0)
		w.must(os.Chtimes(w.dir.Join("new", hash(i)), at, at))
	}
	part := Part{Enough: func(entries int) bool { return entries >= enough }}
	s, err := w.c.Part(t.Context(), part)
	w.must(err)
	if s.Missing == 0 || s.Missing+len(s.Feeds) != feeds {
		t.Fatalf("%d feeds, %d are missing", len(s.Feeds), s.Missing)
	}
	oldest := feeds // of the feeds that were read
	for i := range feeds {
		if s.Feed(hash(i)) != nil {
			oldest = min(oldest, i*7%feeds)
		}
	}
	if oldest < s.Missing {
		t.Errorf("feed %d is read before some of the %d that changed after it", oldest, s.Missing)
	}
	for s.Missing > 0 {
		select {
		case <-w.c.Changed():
		case <-time.After(time.Minute):
			t.Fatal("no change is reported while feeds wait")
		}
		s, err = w.c.Part(t.Context(), part)
		w.must(err)
	}
	waits, most := map[string]int{}, 0
	const rounds = 20
	for range rounds {
		for i := range feeds {
			deliver(i)
		}
		last := s
		s, err = w.c.Part(t.Context(), part)
		w.must(err)
		read, entries := map[string]bool{}, 0
		for _, is := range s.Since(last) {
			read[is.Hash] = true
			entries += max(leastEntries, is.Shown)
		}
		if len(read) == 0 || entries > enough+8*(many+rounds) {
			t.Fatalf("%d feeds with %d entries are read", len(read), entries)
		}
		for i := range feeds {
			if waits[hash(i)]++; read[hash(i)] {
				waits[hash(i)] = 0
			}
			most = max(most, waits[hash(i)])
		}
	}
	if fair := feeds/2*(leastEntries+many+2*rounds)/enough + 1; most > fair {
		t.Errorf("a feed waits for %d calls, not %d", most, fair)
	}
	w.check()
}

// TestQuiet: without changes, nobody is woken, also if times are compared.
func TestQuiet(t *testing.T) {
	for _, compare := range []bool{false, true} {
		w := newWorld(t, 1, Options{Compare: compare})
		w.must(os.MkdirAll(w.dir.Join("new", w.feed(), w.unique()), 0o777))
		w.check()
		w.check()
		select { // the delivery
		case <-w.c.Changed():
		default:
		}
		w.check()
		select {
		case <-w.c.Changed():
			t.Errorf("compare %t: a call of Now wakes its caller", compare)
		default:
		}
	}
}

// TestAway: who waits for a change is woken after a lektor-dir was moved away, and after another took its place.
func TestAway(t *testing.T) {
	w := newWorld(t, 1, Options{Poll: time.Millisecond})
	w.write(w.dir.Join("src", w.feed(), "id"), "http://x.example/")
	w.check()
	woken := func(done func() bool) {
		t.Helper()
		for end := time.After(time.Minute); !done(); {
			select {
			case <-w.c.Changed():
			case <-end:
				t.Fatal("no change is reported")
			}
		}
	}
	w.must(os.Rename(w.path, w.path+"-away"))
	woken(func() bool { _, err := w.c.Now(t.Context()); return err != nil })
	w.must(os.CopyFS(w.path, os.DirFS(w.path+"-away")))
	w.must(os.MkdirAll(w.dir.Join("new", w.feed(), w.unique()), 0o777))
	woken(func() bool { s, err := w.c.Now(t.Context()); return err == nil && len(s.Feeds) > 1 })
	w.must(os.RemoveAll(w.path + "-away"))
	w.check()
}

// TestSnapshots: an earlier snapshot stays as it was, while later ones share with it.
func TestSnapshots(t *testing.T) {
	w := newWorld(t, 3, Options{})
	type kept struct {
		s    *Snapshot
		text string
	}
	var all []kept
	text := func(s *Snapshot) string {
		var b strings.Builder
		for key, e := range s.Between(0, 1<<63, true) {
			fmt.Fprintln(&b, key, e.Ref().Path())
		}
		return b.String()
	}
	for range 60 {
		for range 5 {
			w.step()
		}
		s, err := w.c.Now(t.Context())
		w.must(err)
		all = append(all, kept{s, text(s)})
	}
	for i, k := range all {
		if text(k.s) != k.text {
			t.Errorf("snapshot %d has changed", i)
		}
	}
}

// TestStaged: a feed that was staged before the start, and renamed while the catalogue begins, has
// an old mtime. It is seen.
func TestStaged(t *testing.T) {
	for i := range 40 {
		w := newWorld(t, uint64(i), Options{Compare: i%4 == 0})
		hash := lektordir.FeedHash("x")
		staged := w.dir.Join("tmp", hash)
		w.must(os.MkdirAll(filepath.Join(staged, testdir.Unique(1700000000, 1)), 0o777))
		w.must(os.Chtimes(staged, time.Unix(1700000000, 0), time.Now().Add(-2*time.Second)))
		for range 20 {
			w.must(os.MkdirAll(w.dir.Join("new", w.feed(), w.unique()), 0o777))
		}
		var begun sync.WaitGroup
		begun.Go(func() { _, _ = w.c.Now(t.Context()) })
		if i%2 == 0 {
			begun.Wait()
		}
		w.must(os.Rename(staged, w.dir.Join("new", hash)))
		s, err := w.c.Now(t.Context())
		w.must(err)
		if f := s.Feed(hash); f == nil || f.Unread != 1 {
			t.Fatalf("%d: the feed is %+v", i, f)
		}
		begun.Wait()
		w.c.Close()
	}
}

// TestLoad: a rename that ended before a call is seen, beside many others.
func TestLoad(t *testing.T) {
	for _, compare := range []bool{false, true} {
		w := newWorld(t, 1, Options{Compare: compare})
		for i := range 4 {
			for k := range 50 {
				w.must(os.MkdirAll(w.dir.Join("new", lektordir.FeedHash(fmt.Sprint(i/2)), testdir.Unique(1700000000+int64(i), 50*i+k+1)), 0o777))
			}
		}
		var work sync.WaitGroup
		for i := range 4 {
			work.Go(func() {
				hash := lektordir.FeedHash(fmt.Sprint(i / 2))
				w.must(os.MkdirAll(w.dir.Join("cur", hash), 0o777))
				for k := range 50 {
					unique := testdir.Unique(1700000000+int64(i), 50*i+k+1)
					to := w.dir.Join("cur", hash, unique+";2,S")
					if err := os.Rename(w.dir.Join("new", hash, unique), to); err != nil {
						t.Error(err)
					}
					s, err := w.c.Now(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if !slices.ContainsFunc(s.Feed(hash).Came(nil), func(r lektordir.Ref) bool { return w.dir.Join(r.Path()) == to }) {
						t.Errorf("%s is not seen", to)
					}
				}
			})
		}
		work.Wait()
	}
}

// TestChanged: a change wakes who waits for it, and a call whose context has ended loses none.
func TestChanged(t *testing.T) {
	w := newWorld(t, 1, Options{})
	w.check()
	w.must(os.MkdirAll(w.dir.Join("new", w.feed(), w.unique()), 0o777))
	ended, end := context.WithCancel(t.Context())
	end()
	for range 5 {
		if _, err := w.c.Now(ended); err == nil {
			t.Error("a call whose context has ended succeeds")
		}
	}
	select {
	case <-w.c.Changed():
	case <-time.After(time.Minute):
		t.Error("no change is reported")
	}
	w.check()
}

// TestHosts: entries of many hosts are found in each version of a feed, also of more hosts than have a number.
func TestHosts(t *testing.T) {
	f := NewFeed("x", nil, nil)
	var refs []lektordir.Ref
	for i := range 3 * maxHosts / 2 {
		refs = append(refs, lektordir.Ref{Feed: "x", Unique: fmt.Sprintf("1700000000.M0P1Q1I%016x.host%d", i%2, i), Place: lektordir.New})
		if i%100 != 0 {
			continue
		}
		if f = f.with(refs); f.Shown != len(refs) {
			t.Fatalf("%d entries, not %d", f.Shown, len(refs))
		}
		for _, r := range refs {
			if e, ok := f.Find(r.Unique); !ok || e.Ref() != r || e.ID() != IDOf(r) {
				t.Fatalf("%v: %v %v", r, e.Ref(), ok)
			}
		}
	}
}

// TestSize: an entry takes at most 60 bytes.
func TestSize(t *testing.T) {
	var s Snapshot
	const feeds, each = 100, 100
	total := 0
	for n := range feeds {
		var refs []lektordir.Ref
		hash := fmt.Sprintf("%040d", n)
		for i := range each {
			refs = append(refs, lektordir.Ref{Feed: hash, Unique: testdir.Unique(1700000000+int64(i*feeds+n), i+1)})
		}
		f := (&Feed{Hash: hash, number: uint32(n)}).with(refs)
		s = *s.with([]*Feed{f}, delivered)
		if len(f.kept) > 0 {
			t.Fatalf("%v are kept as they are", f.kept)
		}
		total += cap(f.names)*int(reflect.TypeFor[name]().Size()) + cap(f.states)*int(reflect.TypeFor[state]().Size())
	}
	total += cap(s.order) * int(reflect.TypeFor[place]().Size())
	if total > 60*feeds*each {
		t.Errorf("%d bytes an entry", total/feeds/each)
	}
}
