package index_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
)

// TestFlippedBytes changes random bytes of the index file and of its journal: lists stay
// those of the directory. LEKTOR_INDEX_FLIPS sets the number of tries.
func TestFlippedBytes(t *testing.T) {
	tries := 12
	if n, err := strconv.Atoi(os.Getenv("LEKTOR_INDEX_FLIPS")); err == nil {
		tries = n
	}
	w := filled(t, 300)
	w.build()
	w.more(300, 320)
	w.clock = func() time.Time { return time.Now().Add(time.Hour) } // nothing is young
	// A process that ends soon leaves a journal.
	cmd := w.child()
	cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief")
	w.must(cmd.Run())
	whole := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(w.file() + suffix)
		w.must(err)
		whole[suffix] = data
	}
	asked := append(questions(), question{"z17q", entrystore.Selection{All: true}}, question{"17", entrystore.Selection{All: true, Newest: 2}}, question{"title:3 or w4x", entrystore.Selection{All: true}})
	want := make([][]string, len(asked))
	for i, q := range asked {
		want[i] = w.ask(false, q.words, q.sel)
	}
	random := rand.New(rand.NewPCG(1, 3))
	found := 0
	for try := range tries {
		_, x := w.open()
		w.must(x.Drop())
		for suffix, data := range whole {
			data = append([]byte(nil), data...)
			if suffix == "" || try%2 == 0 {
				for range 20 {
					data[random.IntN(len(data))] ^= byte(1 + random.IntN(255))
				}
			}
			w.must(os.WriteFile(w.file()+suffix, data, 0o666))
		}
		w.said.Reset()
		for i, q := range asked {
			if got := w.ask(true, q.words, q.sel); !slices.Equal(got, want[i]) {
				t.Errorf("try %d, %q:\nindex:\n%q\ndirectory:\n%q", try, q.words, got, want[i])
			}
		}
		if w.said.Len() > 0 {
			found++
		}
	}
	if found < tries/2 {
		t.Errorf("damage was found in %d of %d tries", found, tries)
	}
}

// TestCheckDamaged changes a byte of each page in turn: Check finds it.
func TestCheckDamaged(t *testing.T) {
	w := filled(t, 60)
	w.build()
	whole, err := os.ReadFile(w.file())
	w.must(err)
	const page = 8192
	for at := page / 2; at < len(whole); at += page {
		data := slices.Clone(whole)
		data[at] ^= 4
		w.must(os.WriteFile(w.file(), data, 0o666))
		_, x := w.open()
		found := 0
		if _, err := x.Check(t.Context(), nil, func(string) { found++ }); err != nil || found == 0 {
			t.Errorf("page %d: %d problems, %v", at/page, found, err)
		}
	}
}

// TestJournalWithoutEnd fills the end of the journal with zeros, or cuts it off, while the
// file has already what the journal says: lists stay those of the directory.
func TestJournalWithoutEnd(t *testing.T) {
	const n, more = 1600, 20 // so that lists of the two feeds are on different pages
	w := filled(t, n)
	w.build()
	w.clock = func() time.Time { return time.Now().Add(time.Hour) } // nothing is young
	for feed := range 2 {
		for i := n + feed; i < n+more; i += 2 {
			w.more(i, i+1)
		}
		// A process that ends soon leaves a journal.
		cmd := w.child()
		cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief")
		w.must(cmd.Run())
	}
	journal, err := os.ReadFile(w.file() + "-wal")
	w.must(err)
	asked := []question{{"", entrystore.Selection{All: true, Newest: 2 * more}}, {"z1617q or z1618q", entrystore.Selection{All: true}}}
	want := make([][]string, len(asked))
	for i, q := range asked {
		want[i] = w.ask(false, q.words, q.sel)
	}
	w.build() // writes the journal's pages to the file
	file, err := os.ReadFile(w.file())
	w.must(err)
	const frame = 24 + 8192
	if len(journal) < 10*frame {
		t.Fatalf("the journal has %d bytes", len(journal))
	}
	frames := (len(journal) - 32) / frame
	for at := 32 + frame; at < len(journal); at += frame * max(1, frames/3) {
		zeros := slices.Clone(journal)
		clear(zeros[at:])
		for damage, data := range map[string][]byte{"": journal, "zeros": zeros, "cut off": journal[:at+frame/2]} {
			_, x := w.open()
			w.must(x.Drop())
			w.must(os.WriteFile(w.file(), file, 0o666))
			w.must(os.WriteFile(w.file()+"-wal", data, 0o666))
			w.said.Reset()
			for i, q := range asked {
				if got := w.ask(true, q.words, q.sel); !slices.Equal(got, want[i]) {
					t.Errorf("%q from %d of %d, %q:\nindex:\n%q\ndirectory:\n%q", damage, at, len(journal), q.words, got, want[i])
				}
			}
			if damage == "" && w.said.Len() > 0 {
				t.Errorf("a journal that is whole: %s", w.said.String())
			}
		}
	}
}
