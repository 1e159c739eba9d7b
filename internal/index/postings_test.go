package index

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

// emptyIndex gives a new index, to which a test writes.
func emptyIndex(t testing.TB) *session {
	t.Helper()
	d, err := lektordir.Open(dir.New(t).Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := New(d, Options{Cache: filepath.Join(t.TempDir(), "cache")})
	if err := x.create(); err != nil {
		t.Fatal(err)
	}
	s, err := x.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// matches is what FTS5 says of a word.
func matches(s *session, word string) (ids []int64) {
	for r := s.c.query("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", quoted(word)); r.next(); {
		ids = append(ids, r.int(0))
	}
	return ids
}

// scribbler changes the words of an index at random, as updates do and more.
type scribbler struct {
	*session
	random *rand.Rand
	words  []string
	live   []int64
}

func newScribbler(t testing.TB, seed uint64) *scribbler {
	w := &scribbler{session: emptyIndex(t), random: rand.New(rand.NewPCG(seed, 9))}
	w.next = 1
	for i := range 300 {
		w.words = append(w.words, []string{fmt.Sprintf("w%d", i), fmt.Sprintf("über%dstraße", i), fmt.Sprintf("%03d東京", i), pairOf(fmt.Sprint(i), "x"), strings.Repeat("long", 7) + fmt.Sprint(i), "Title" + fmt.Sprint(i)}[i%6])
	}
	// Pages are small, so that lists of few entries and words go from one to the next.
	w.c.exec("INSERT INTO words (words, rank) VALUES ('pgsz', ?)", []int{32, 50, 120, 4050}[seed%4])
	return w
}

func (w *scribbler) scribble() {
	w.c.exec("BEGIN IMMEDIATE")
	for range 1 + w.random.IntN(80) {
		if w.random.IntN(4) == 0 && len(w.live) > 0 {
			i := w.random.IntN(len(w.live))
			w.c.exec("DELETE FROM words WHERE rowid = ?", w.live[i])
			w.live = slices.Delete(w.live, i, i+1)
			continue
		}
		var text strings.Builder
		for range 1 + w.random.IntN(12) {
			text.WriteString(w.words[min(w.random.IntN(len(w.words)), w.random.IntN(len(w.words)), w.random.IntN(len(w.words)))] + " ")
		}
		w.c.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", w.next, text.String())
		w.live = append(w.live, w.next)
		w.next += 1 + w.random.Int64N(3)*w.random.Int64N(300)
	}
	switch w.random.IntN(10) {
	case 0:
		w.c.exec("INSERT INTO words (words) VALUES ('optimize')")
	case 1, 2:
		w.c.exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", []int{1, -1, 3, -8}[w.random.IntN(4)])
	case 3:
		w.merging(2 + w.random.IntN(20))
	}
	w.c.exec("COMMIT")
}

// TestPostings: what is read without FTS5 is what FTS5 says, whatever was done.
// LEKTOR_INDEX_HISTORIES tries so many.
func TestPostings(t *testing.T) {
	histories := uint64(4)
	if n, err := strconv.ParseUint(os.Getenv("LEKTOR_INDEX_HISTORIES"), 10, 64); err == nil {
		histories = n
	}
	for seed := range histories {
		w := newScribbler(t, seed)
		graves := false
		for round := range 12 {
			w.scribble()
			p := w.postings()
			for i, word := range append([]string{"absent", "", "zzz"}, w.words...) {
				if i > 3 && w.random.IntN(5) > 0 {
					continue
				}
				want := matches(w.session, word)
				if word == "" {
					want = nil
				}
				if !p.read(word) {
					t.Fatalf("seed %d, round %d: %q is not understood", seed, round, word)
				}
				slices.Sort(p.ids)
				if !slices.Equal(p.ids, want) {
					t.Fatalf("seed %d, round %d: %q is in %d, and not in %d", seed, round, word, p.ids, want)
				}
			}
			for _, in := range p.parts {
				graves = graves || len(in.buried) > 0
			}
		}
		if w.c.err != nil {
			t.Fatal(w.c.err)
		}
		if !graves {
			t.Errorf("seed %d: nothing was removed from a part", seed)
		}
	}
}

// TestPostingsDamaged: where pages are damaged, what is read is what FTS5 says or not
// understood, but for numbers that nothing tells from others.
func TestPostingsDamaged(t *testing.T) {
	w := newScribbler(t, 5)
	for range 20 {
		w.scribble()
	}
	whole := w.postings()
	page := whole.page
	refused := 0
	for range 400 {
		p := w.postings()
		p.page = func(row int64) []byte {
			b := slices.Clone(page(row))
			switch at := w.random.IntN(len(b) + 1); w.random.IntN(4) {
			case 0:
				return b[:at]
			case 1:
				return nil
			case 2:
				return append(b, 0)
			default:
				if at < len(b) {
					b[at] ^= 1 << w.random.IntN(8)
				}
			}
			return b
		}
		word := w.words[w.random.IntN(40)]
		if !p.read(word) {
			refused++
			// FTS5 is asked then.
			p.known = false
			if got, want := p.of(word), matches(w.session, word); !slices.Equal(got, want) {
				t.Fatalf("%q is in %d, and not in %d", word, got, want)
			}
			continue
		}
		for _, id := range p.ids {
			if id < 1 || id >= w.next {
				t.Fatalf("%q is in %d", word, id)
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d pages were refused", refused)
	}
	// What says that it is of another version is not read.
	w.c.exec("UPDATE words_config SET v = 5 WHERE k = 'version'")
	if p := w.postings(); p.known || p.read(w.words[0]) {
		t.Error("a format is understood that is not known")
	}
	if w.c.err != nil {
		t.Fatal(w.c.err)
	}
}

// FuzzPostings: whatever stands on the pages, what is found are entries, each once.
func FuzzPostings(f *testing.F) {
	w := newScribbler(f, 1)
	for range 4 {
		w.scribble()
	}
	list, _ := w.c.one("SELECT block FROM words_data WHERE id = ?", partsRow)
	for r := w.c.query("SELECT block FROM words_data WHERE id > ? ORDER BY id LIMIT 20", partsRow); r.next(); {
		f.Add(list.blob(0), r.blob(0), r.blob(0), w.words[0])
	}
	f.Add(list.blob(0), []byte{0, 0, 0, 8, 2, '0', 'a', 1, 4}, []byte{0, 4, 0, 6, 5, 1}, "a")
	f.Add(list.blob(0), []byte{0, 0, 0, 8, 2, '0', 'a', 1, 4}, []byte{8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "a")
	f.Fuzz(func(t *testing.T, list, first, others []byte, word string) {
		parts, ok := partsOf(list)
		if !ok {
			parts = []part{{id: 1, first: 1, last: 3}, {id: 2, first: 1, last: 1, graves: 2}}
		}
		pages := 0
		p := &postings{next: 1000, parts: parts[:min(len(parts), 20)], known: true}
		p.start = func(part uint64, term []byte) uint64 { return uint64(len(term)) % 3 }
		p.page = func(row int64) []byte {
			if pages++; pages%2 == 1 {
				return first
			}
			return others
		}
		if !p.read(word) {
			return
		}
		for i, id := range p.ids {
			if id < 1 || id >= p.next {
				t.Fatalf("%d", p.ids)
			}
			if len(p.parts) == 1 && i > 0 && id <= p.ids[i-1] {
				t.Fatalf("%d", p.ids)
			}
		}
	})
}
