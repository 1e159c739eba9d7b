package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// FuzzWordsAround: each word of a row that has a piece is found once, and a row that is damaged does no harm.
func FuzzWordsAround(f *testing.F) {
	f.Add("a ab abc b überall über 東京", "b", []byte("\nabc\nd"))
	f.Add("same same", "\ns", []byte("a\n\nb"))
	f.Add("any thing", "g\n", []byte("g"))
	f.Fuzz(func(t *testing.T, text, piece string, damaged []byte) {
		if inner := strings.Trim(piece, "\n"); inner == "" || strings.Contains(inner, "\n") {
			return
		}
		words, _ := tokens(nil, text)
		row, want := "\n", []string(nil)
		for _, w := range words {
			if row += w + "\n"; strings.Contains("\n"+w+"\n", piece) {
				want = append(want, w)
			}
		}
		if got := wordsAround(nil, []byte(row), []byte(piece), len(row)); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %q, not %q", piece, row, got, want)
		}
		if got := wordsAround(nil, damaged, []byte(piece), len(damaged)); len(got) > len(damaged) {
			t.Errorf("%d words in %d bytes", len(got), len(damaged))
		}
	})
}

// TestVocabulary adds words at random, and asks for pieces as a slow and simple list of
// them does.
func TestVocabulary(t *testing.T) {
	d, err := lektordir.Open(testdir.New(t).Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := New(d, Options{Cache: filepath.Join(t.TempDir(), "cache")})
	if err := x.Build(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := x.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	random := rand.New(rand.NewPCG(3, 4))
	letters := []rune("abcdefgñ東")
	word := func() string {
		w := make([]rune, 1+random.IntN(9))
		for i := range w {
			w[i] = letters[random.IntN(len(letters))]
		}
		return string(w)
	}
	all := map[string]bool{}
	for round := range 12 {
		var some []string
		for range []int{30, 2000, 5000}[round%3] {
			some = append(some, fmt.Sprint(word(), random.IntN(1000)))
		}
		slices.Sort(some)
		some = slices.Compact(some)
		set := func() map[string]struct{} {
			m := map[string]struct{}{}
			for _, w := range some {
				m[w] = struct{}{}
			}
			return m
		}
		s.addWords(set())
		for _, w := range some {
			all[w] = true
		}
		unknown := set()
		unknown[some[0]+"zz"] = struct{}{}
		if forgetKnown(s, unknown); len(unknown) != 1 {
			t.Fatalf("%d words are not there, or what begins with one is: %v", len(unknown)-1, s.c.err)
		}
		for range 12 {
			w := some[random.IntN(len(some))]
			r := []rune(w)
			from := random.IntN(len(r))
			seg := segment{text: string(r[from : from+1+random.IntN(len(r)-from)]), class: alpha, start: random.IntN(3) == 0, end: random.IntN(3) == 0}
			var want []string
			for w := range all {
				i := "\n" + w + "\n"
				piece := seg.text
				if seg.start {
					piece = "\n" + piece
				}
				if seg.end {
					piece += "\n"
				}
				if strings.Contains(i, piece) {
					want = append(want, w)
				}
			}
			slices.Sort(want)
			got, ok := (&View{s: s}).wordsWith(seg, 1<<20)
			slices.Sort(got)
			if !ok || !slices.Equal(got, want) {
				t.Fatalf("%+v: %d words, not %d: %q, %q", seg, len(got), len(want), got[:min(5, len(got))], want[:min(5, len(want))])
			}
			if got, ok := (&View{s: s}).wordsWith(seg, len(want)-1); ok && len(want) > 0 {
				t.Fatalf("%+v: %d words with a limit of %d", seg, len(got), len(want)-1)
			}
		}
	}
	if s.c.err != nil {
		t.Fatal(s.c.err)
	}
	if r, ok := s.c.one("SELECT count(*) FROM vocab"); !ok || r.int(0) < 5 {
		t.Errorf("%d rows", r.int(0))
	}
}
