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

// FuzzList: what is put into a list, sorted, comes out of it; and what is no list does
// no harm.
func FuzzList(f *testing.F) {
	f.Add("a ab abc b überall über 東京", []byte("\x00abc\x01d"))
	f.Add("same same", []byte{0, 255, 47, 'a', 3})
	f.Fuzz(func(t *testing.T, text string, odd []byte) {
		words := []string{}
		b := newBag(nil)
		b.add(text)
		words = append(words, b.words...)
		slices.Sort(words)
		var l lister
		for _, w := range words {
			l.add([]byte(w))
		}
		var got []string
		for r := (reader{rest: l.list}); r.next(); {
			got = append(got, string(r.word))
		}
		if !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
		if plain := string(l.list.plain()); plain != "\n"+strings.Join(append(words, ""), "\n") {
			t.Errorf("got %q, want %q", plain, "\n"+strings.Join(append(words, ""), "\n"))
		}
		n := 0
		for r := (reader{rest: odd}); r.next(); n++ {
		}
		if n > len(odd) {
			t.Errorf("%d words in %d bytes", n, len(odd))
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
		if s.known(unknown); len(unknown) != 1 {
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
			got, ok := s.wordsWith(seg, 1<<20)
			if !ok || !slices.Equal(got, want) {
				t.Fatalf("%+v: %d words, not %d: %q, %q", seg, len(got), len(want), got[:min(5, len(got))], want[:min(5, len(want))])
			}
			if got, ok := s.wordsWith(seg, len(want)-1); ok && len(want) > 0 {
				t.Fatalf("%+v: %d words with a limit of %d", seg, len(got), len(want)-1)
			}
		}
	}
	if s.c.err != nil {
		t.Fatal(s.c.err)
	}
	if r, ok := s.c.one("SELECT count(*) FROM vocab"); !ok || r.int(0) < 10 {
		t.Errorf("%d blocks", r.int(0))
	}
}
