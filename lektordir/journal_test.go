package lektordir

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func recordOf(i int) record {
	return record{
		Identity: digestOf("id", fmt.Sprint(i)),
		Key:      key{Link: [8]byte{byte(i)}, Rest: [8]byte{2}},
		Content:  digestOf("content", fmt.Sprint(i)),
		Unique:   uniqueName(time.Unix(int64(i), 0), 1, int64(i), digestOf("id", fmt.Sprint(i)).String()[:16], "host"),
		Time:     time.Unix(int64(i), 0).UTC(),
	}
}

func TestRecordRoundTrip(t *testing.T) {
	r := recordOf(7)
	for _, replaces := range []string{"", "1.M1P1Q1I0123456789abcdef.h"} {
		r.Replaces = replaces
		b := r.appendTo(nil)
		got, ok := parseRecord(bytes.TrimSuffix(b, []byte("\n")))
		if !ok || got != r {
			t.Errorf("%s: %+v, want %+v", b, got, r)
		}
	}
}

// Whatever is cut off or flipped, the lines that are whole count and no other.
func TestJournalDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	var whole []byte
	ends := []int{0}
	for i := range 5 {
		whole = recordOf(i).appendTo(whole)
		ends = append(ends, len(whole))
	}
	for n := range len(whole) + 1 {
		os.WriteFile(path, whole[:n], 0o666)
		j, err := readJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for want+1 < len(ends) && ends[want+1] <= n {
			want++
		}
		if j.Len() != want || j.good != int64(ends[want]) {
			t.Fatalf("cut at %d: %d lines up to %d, want %d up to %d", n, j.Len(), j.good, want, ends[want])
		}
		if err := appendJournal(path, j, []record{recordOf(9)}); err != nil {
			t.Fatal(err)
		}
		j, _ = readJournal(path)
		if j.Len() != want+1 || j.bad != 0 {
			t.Fatalf("cut at %d, then appended: %d lines, %d bad", n, j.Len(), j.bad)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := slices.Clone(whole)
		at := rnd.IntN(len(b) - 1)
		b[at] ^= byte(1 + rnd.IntN(255))
		os.WriteFile(path, b, 0o666)
		j, err := readJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		hit := 0
		for ends[hit+1] <= at {
			hit++
		}
		for i := range 5 {
			_, ok := j.named(recordOf(i).Unique)
			// A newline lost makes one bad line of two.
			damaged := i == hit || at == ends[hit+1]-1 && i == hit+1
			if ok == damaged {
				t.Fatalf("flipped %d: line %d counts: %v", at, i, ok)
			}
		}
	}
}

func TestJournalLookups(t *testing.T) {
	j := &journal{byID: map[digest][]int{}, byKey: map[key][]int{}, byUnique: map[string]int{}, lineage: map[string][]int{}}
	a, b := recordOf(1), recordOf(1)
	b.Content, b.Unique = digestOf("other"), uniqueName(time.Unix(9, 0), 1, 9, a.lineage(), "host")
	alias := recordOf(2)
	alias.Unique = b.Unique
	for _, r := range []record{a, b, alias} {
		j.add(r)
	}
	if got := j.versions(a.Identity); len(got) != 2 || got[1] != b {
		t.Errorf("versions: %v", got)
	}
	if got := j.lineageOf(alias); len(got) != 3 {
		t.Errorf("lineage of the alias: %v", got)
	}
	if got := j.withKey(a.Key); len(got) != 2 {
		t.Errorf("with key: %v", got)
	}
	if _, ok := j.named("nobody"); ok {
		t.Error("named nobody")
	}
}

// Compaction forgets no identity, no delivered digest and no newest name.
func TestCompaction(t *testing.T) {
	d, _ := newDir(t)
	path := d.journalPath(feedHash)
	os.MkdirAll(filepath.Dir(path), 0o777)
	j, _ := readJournal(path)
	var recs []record
	for i := range 2 * compactFrom {
		r := recordOf(i % 3)
		r.Content = digestOf(fmt.Sprint(i % 2))
		r.Unique = uniqueName(time.Unix(int64(i), 0), 1, int64(i), r.lineage(), "host")
		recs = append(recs, r)
	}
	if err := appendJournal(path, j, recs); err != nil {
		t.Fatal(err)
	}
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	after, err := tx.readJournal()
	if err != nil {
		t.Fatal(err)
	}
	if after.Len() != 6 {
		t.Errorf("%d lines after compaction, want 6", after.Len())
	}
	type version struct{ id, content digest }
	has := map[version]string{}
	for _, r := range after.records {
		has[version{r.Identity, r.Content}] = r.Unique
	}
	for _, r := range recs {
		if has[version{r.Identity, r.Content}] == "" {
			t.Errorf("forgotten: %v", r)
		}
	}
	for i := range 3 {
		want := j.versions(recordOf(i).Identity)
		got := after.versions(recordOf(i).Identity)
		if got[len(got)-1].Unique != want[len(want)-1].Unique {
			t.Errorf("identity %d: newest %s, want %s", i, got[len(got)-1].Unique, want[len(want)-1].Unique)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(recordOf(1).appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseRecord(bytes.TrimSuffix(b, []byte("\n")))
		if !ok {
			return
		}
		again, ok := parseRecord(bytes.TrimSuffix(r.appendTo(nil), []byte("\n")))
		if !ok || again != r {
			t.Errorf("%q reads as %+v, and that as %+v", b, r, again)
		}
	})
}
