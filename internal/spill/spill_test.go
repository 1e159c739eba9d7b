package spill_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/spill"
)

// thing has a part that its order does not see.
type thing struct {
	key  int64
	name string
	odd  bool
	n    uint64
}

func how(most int) spill.How[thing] {
	return spill.How[thing]{
		Order: func(a, b thing) int { return cmp.Compare(a.key, b.key) },
		Encode: func(b []byte, t thing) []byte {
			e := spill.Encoder(b)
			e.Int(t.key)
			e.Text(t.name)
			e.Bool(t.odd)
			e.Uint(t.n)
			return e
		},
		Decode: func(s string) thing {
			d := spill.NewDecoder(s)
			return thing{key: d.Int(), name: d.Text(), odd: d.Bool(), n: d.Uint()}
		},
		Most: most,
	}
}

// TestList: in whatever parts things come and are kept, they are in order, equal ones as
// they came, as slices.SortStableFunc has them.
func TestList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var want []thing
		l := spill.New(how(1 + random.IntN(40)))
		for range random.IntN(30) {
			var some []thing
			for range random.IntN(9) {
				some = append(some, thing{int64(random.IntN(20) - 10), fmt.Sprint("name ", len(want)+len(some)), random.IntN(2) == 0, random.Uint64()})
			}
			want = append(want, some...)
			l.Add(some...)
		}
		slices.SortStableFunc(want, how(0).Order)
		if l.Len() != len(want) {
			t.Fatalf("round %d: %d of %d", round, l.Len(), len(want))
		}
		for _, from := range []int{0, 0, random.IntN(len(want) + 2)} {
			var got []thing
			for x, err := range l.From(from) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, x)
			}
			if !slices.Equal(got, want[min(from, len(want)):]) {
				t.Fatalf("round %d: from %d on\n%v\nnot\n%v", round, from, got, want)
			}
		}
		l.Close()
	}
}

// TestNowhere: where no file can be made, all are in memory.
func TestNowhere(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/nowhere")
	l := spill.New(how(2))
	defer l.Close()
	for i := range 9 {
		l.Add(thing{key: int64(-i)})
	}
	next := int64(-8)
	for x, err := range l.All() {
		if err != nil || x.key != next {
			t.Fatalf("%v, %v; want %d", x, err, next)
		}
		next++
	}
	if next != 1 {
		t.Errorf("it ends before %d", next)
	}
}

// TestNoName: the file has no name, and goes with the list.
func TestNoName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	l := spill.New(how(1))
	l.Add(thing{})
	l.Add(thing{})
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	n := 0
	for range l.All() {
		n++
		break
	}
	l.Close()
	if n != 1 {
		t.Error("it ends at once")
	}
}

// TestPile: whatever is in the file, a text is what it was.
func TestPile(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round, dir := range []string{t.TempDir(), t.TempDir(), "/nowhere"} {
		t.Setenv("TMPDIR", dir)
		for _, most := range []int{1, 7, 100, 0} {
			p := spill.NewPile(most)
			var want []string
			for i := range 100 {
				b := make([]byte, random.IntN(30))
				for k := range b {
					b[k] = byte(i)
				}
				p.Add(b)
				want = append(want, string(b))
			}
			for _, i := range random.Perm(len(want)) {
				if got, err := p.Text(i); err != nil || got != want[i] {
					t.Fatalf("round %d, %d in memory: %d is %q, %v; not %q", round, most, i, got, err, want[i])
				}
			}
			var all []string
			for text, err := range p.Texts() {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
			if p.Len() != len(want) || !slices.Equal(all, want) {
				t.Errorf("%d, and %q, not %q", p.Len(), all, want)
			}
			p.Close()
		}
	}
}

// TestSet: it has what was added, however much that is, and nothing else.
func TestSet(t *testing.T) {
	s := spill.NewSet()
	for i := range 60000 {
		text := fmt.Sprint("text ", i)
		if s.Has(text) {
			t.Fatalf("%s is there before it was added", text)
		}
		s.Add(text)
		if i%3 == 0 {
			s.Add(text)
		}
		if back := fmt.Sprint("text ", i/2); !s.Has(text) || !s.Has(back) {
			t.Fatalf("%s or %s is not there", text, back)
		}
	}
	for i := range 60000 {
		if !s.Has(fmt.Sprint("text ", i)) || s.Has(fmt.Sprint("another ", i)) {
			t.Fatal(i)
		}
	}
}
