package archive

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func at(seconds int) time.Time { return time.Unix(1600000000+int64(seconds), 0).UTC() }

// substitute returns a function for Candidate.Else.
func substitute(of string) func(string) string {
	return func(id string) string { return fmt.Sprintf("urn:%x", sha256.Sum256([]byte(of+id))) }
}

func entries(ids ...string) []Entry {
	var out []Entry
	for i, id := range ids {
		letter := string(rune('a' + i))
		out = append(out, Entry{ID: id, Digest: "d" + letter, Origin: Origin{"feed", "e" + letter}, Updated: at(i)})
	}
	return out
}

// A ledger is read as it was written, and a damaged one is refused.
func TestLedgerText(t *testing.T) {
	l := &Ledger{Self: "https://e/i.atom", Format: "atom"}
	list := entries("a", "b\t\"\n\u202e", "", "d", "e", "f")
	l.Archive(list[:2])
	l.Archive(list[2:3])
	l.Subscribe(list, []int{3, 4})
	list[0].Digest = "other"
	l.Subscribe(list, []int{0, 4, 5})
	l.Recover(3, []Entry{{ID: "x", Digest: "~1", Updated: at(7)}})
	text := l.Bytes()
	for _, want := range []string{
		"lektor archives 1\tatom\thttps://e/i.atom\t3\n",
		"1+\tda,other\tfeed.ea\t2020-09-13T12:26:40Z,2020-09-13T12:26:40Z\t\"a\"\n",
		"x\tdd\tfeed.ed\t2020-09-13T12:26:43Z\t\"sha256:", "-\tde\t", "3\t~1\t-\t2020-09-13T12:26:47Z\t\"x\"\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), `"d"`) {
		t.Errorf("the ledger still names a withdrawn entry:\n%s", text)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !bytes.Equal(back.Bytes(), text) {
		t.Fatalf("%v\n%s\nbecame\n%s", err, text, back.Bytes())
	}
	if !back.Anew() || (&Ledger{}).Anew() {
		t.Error("Anew does not report whether the ledger was restored")
	}
	for i := 0; i < len(text); i += 3 {
		for _, b := range []byte{text[i] ^ 1, '\n', '\t'} {
			damaged := bytes.Clone(text)
			if damaged[i] = b; bytes.Equal(damaged, text) {
				continue
			}
			// Only damage at the end of the file, after the checksum, is harmless.
			if l, err := Parse(damaged); err == nil && !bytes.Equal(l.Bytes(), text) {
				t.Fatalf("Parse accepts the ledger although byte %d is %q", i, b)
			}
		}
		if _, err := Parse(text[:i]); err == nil && i < len(text)-1 {
			t.Fatalf("Parse accepts the ledger although it is cut off at %d", i)
		}
	}
}

func FuzzParse(f *testing.F) {
	l := &Ledger{Self: "https://e/i.atom", Format: "rss"}
	list := entries("a", "b", "c", "d")
	l.Archive(list[:2])
	list[0].Digest = "x"
	l.Subscribe(list, []int{0, 2})
	f.Add(l.Bytes())
	f.Add([]byte("lektor archives 1\tatom\t\t0\nsum\t"))
	// A fuzzer cannot guess the checksum, so add the right one to its text.
	f.Fuzz(func(t *testing.T, text []byte) {
		body, _, _ := bytes.Cut(text, []byte("\nsum\t"))
		text = append(body, '\n')
		l, err := Parse(fmt.Appendf(text, "sum\t%s\n", checksum(text)))
		if err != nil {
			return
		}
		back, err := Parse(l.Bytes())
		if err != nil || !bytes.Equal(back.Bytes(), l.Bytes()) {
			t.Fatalf("%v: %q became %q", err, l.Bytes(), back.Bytes())
		}
	})
}

// ids returns the ids of entries that have these ids and origins.
func ids(l *Ledger, list ...Candidate) string {
	for i := range list {
		list[i].Else = substitute(list[i].Origin.Feed)
	}
	out := l.IDs(list)
	for i, id := range out {
		if id != list[i].ID {
			out[i] = "else"
		}
	}
	return strings.Join(out, " ")
}

func candidate(id, feed, entry string) Candidate {
	return Candidate{Entry: Entry{ID: id, Origin: Origin{feed, entry}, Digest: feed + entry}, Global: strings.Contains(id, ":")}
}

// An entry keeps its id, and never gets the id of another entry.
func TestIDs(t *testing.T) {
	one := func(c Candidate) *Ledger {
		l := &Ledger{}
		l.Subscribe([]Entry{c.Entry}, []int{0})
		return l
	}
	gone := one(candidate("2", "x", "1"))
	gone.Subscribe(nil, nil)
	archived := &Ledger{}
	archived.Archive([]Entry{candidate("2", "x", "1").Entry})
	anew := &Ledger{}
	anew.Recover(1, []Entry{{ID: "2", Digest: "x1"}})
	for name, c := range map[string]struct {
		l    *Ledger
		list []Candidate
		want string
	}{
		"the first entry gets the id":  {&Ledger{}, []Candidate{candidate("2", "x", "1"), candidate("2", "y", "1"), candidate("2", "y", "2")}, "2 else else"},
		"an older entry is added":      {one(candidate("2", "x", "1")), []Candidate{candidate("2", "y", "1"), candidate("2", "x", "1")}, "else 2"},
		"the first was archived":       {archived, []Candidate{candidate("2", "y", "1"), candidate("2", "x", "1")}, "else 2"},
		"the first is gone":            {archived, []Candidate{candidate("2", "y", "1")}, "else"},
		"the first was withdrawn":      {gone, []Candidate{candidate("2", "y", "1")}, "else"},
		"the first comes back":         {gone, []Candidate{candidate("2", "y", "1"), candidate("2", "x", "1")}, "else 2"},
		"its feed has moved":           {one(candidate("urn:2", "x", "1")), []Candidate{candidate("urn:2", "y", "1")}, "urn:2"},
		"another of its feed":          {one(candidate("urn:2", "x", "1")), []Candidate{candidate("urn:2", "x", "2")}, "else"},
		"both feeds are here":          {one(candidate("urn:2", "x", "1")), []Candidate{candidate("urn:2", "y", "1"), candidate("urn:2", "x", "1")}, "else urn:2"},
		"the ledger was lost":          {anew, []Candidate{candidate("2", "y", "1"), candidate("2", "x", "1")}, "else 2"},
		"lost, and the entry changed":  {anew, []Candidate{candidate("2", "y", "2")}, "2"},
		"two entries of the same name": {&Ledger{}, []Candidate{candidate("2", "x", "1"), candidate("2", "x", "1")}, "2 else"},
	} {
		if got := ids(c.l, c.list...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// When entries are added and removed, no two entries ever share an id, and no id changes.
func TestIDsStay(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		l := &Ledger{}
		has := map[Origin]string{}
		was := map[string]Origin{}
		for range 10 {
			var list []Candidate
			for feed := range 3 {
				for e := range 4 {
					if rnd.IntN(2) == 0 {
						c := candidate(fmt.Sprint(e/2), fmt.Sprint("f", feed), fmt.Sprint(e))
						c.Else = substitute(c.Origin.Feed)
						list = append(list, c)
					}
				}
			}
			rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			plain := make([]Entry, len(list))
			for i, id := range l.IDs(list) {
				o := list[i].Origin
				if has[o] != "" && has[o] != id {
					t.Fatalf("seed %d: %v was %s and is %s", seed, o, has[o], id)
				}
				if p, ok := was[id]; ok && p != o {
					t.Fatalf("seed %d: %s was %v and is %v", seed, id, p, o)
				}
				has[o], was[id] = id, o
				plain[i] = list[i].Entry
				plain[i].ID = id
			}
			plan := l.Plan(plain, 2)
			for _, of := range plan.Archives {
				var in []Entry
				for _, i := range of {
					in = append(in, plain[i])
				}
				l.Archive(in)
			}
			l.Subscribe(plain, plan.Subscription)
			if rnd.IntN(3) == 0 {
				var err error
				if l, err = Parse(l.Bytes()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// An entry in no archive is in the subscription document. Recording an archive does not change
// the plan of the others.
func TestPlan(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rnd.IntN(4)
		l := &Ledger{}
		var list []Entry
		archived := map[string]string{}
		for range 6 {
			for range rnd.IntN(4 * n) {
				id := fmt.Sprint(len(list), "-", rnd.IntN(1000))
				list = slices.Insert(list, rnd.IntN(len(list)+1), Entry{ID: id, Digest: "1", Origin: Origin{"f", id}})
			}
			for i := range list {
				if rnd.IntN(8) == 0 {
					list[i].Digest = fmt.Sprint(rnd.IntN(2))
				}
			}
			plan := l.Plan(list, n)
			for k, of := range plan.Archives {
				rest := l.Plan(list, n)
				if got := rest.Archives; fmt.Sprint(got) != fmt.Sprint(plan.Archives[k:]) || !slices.Equal(rest.Subscription, plan.Subscription) {
					t.Fatalf("seed %d: after %d archives the rest is %v, not %v", seed, k, got, plan.Archives[k:])
				}
				var in []Entry
				for _, i := range of {
					if archived[list[i].ID] != "" {
						t.Fatalf("seed %d: %s is archived twice", seed, list[i].ID)
					}
					archived[list[i].ID] = list[i].Digest
					in = append(in, list[i])
				}
				if len(of) != n || l.Archive(in) != l.Count {
					t.Fatalf("seed %d: an archive has %d entries", seed, len(of))
				}
			}
			l.Subscribe(list, plan.Subscription)
			left := 0
			for i, e := range list {
				digest, in := archived[e.ID], slices.Contains(plan.Subscription, i)
				if digest == "" {
					left++
				}
				if digest != e.Digest && !in {
					t.Fatalf("seed %d: %+v is in no document", seed, e)
				}
			}
			if left >= 2*n || len(plan.Archives) > 0 && left < n || !slices.IsSorted(plan.Subscription) {
				t.Fatalf("seed %d: %d of %d entries are left for the subscription document", seed, left, n)
			}
			if again := l.Plan(list, n); len(again.Archives) > 0 || !slices.Equal(again.Subscription, plan.Subscription) {
				t.Fatalf("seed %d: planned again, the plan is %v, not %v", seed, again, plan)
			}
		}
	}
}

// The time of each new version is later than that of the published one.
func TestUpdated(t *testing.T) {
	e := entries("a")[0]
	l := &Ledger{}
	if got := l.Updated(e); !got.Equal(at(0)) {
		t.Errorf("new: %s", got)
	}
	l.Archive([]Entry{e})
	for _, c := range []struct {
		digest    string
		own, want int
	}{
		{"da", 0, 0}, {"da", -9, 0}, // as it was
		{"2", 0, 1}, {"2", 0, 1}, {"2", -5, 1}, // changed, and not changed again
		{"3", 9, 9}, {"da", 0, 10}, {"da", 0, 10}, {"da", 20, 20}, {"4", 20, 21},
	} {
		e.Digest, e.Updated = c.digest, at(c.own)
		e.Updated = l.Updated(e)
		if !e.Updated.Equal(at(c.want)) {
			t.Errorf("%+v: got %s; want e.Updated.Equal(at(c.want))", c, e.Updated.Sub(at(0)))
		}
		l.Subscribe([]Entry{e}, l.Plan([]Entry{e}, 1).Subscription)
		var err error
		if l, err = Parse(l.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	// The time never exceeds the year 9999.
	e.Updated = latest
	l.Subscribe([]Entry{e}, []int{0})
	e.Digest = "5"
	if got := l.Updated(e); got.After(latest) {
		t.Errorf("got %s; want !got.After(latest)", got)
	}
}
