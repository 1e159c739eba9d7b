package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
)

func recordOf(i int) Record {
	return Record{
		Identity: DigestOf("id", fmt.Sprint(i)),
		Key:      Key{Link: [4]byte{byte(i)}, Rest: [4]byte{2}},
		Content:  DigestOf("content", fmt.Sprint(i)),
		Unique:   entryname.Unique(time.Unix(int64(i), 0), 1, int64(i), DigestOf("id", fmt.Sprint(i)).String(), "host"),
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

// If a journal is truncated or a byte is changed, exactly the undamaged lines are valid.
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
		j, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for want+1 < len(ends) && ends[want+1] <= n {
			want++
		}
		if j.Len() != want || j.Good != int64(ends[want]) {
			t.Fatalf("truncated at %d: %d lines up to %d, want %d up to %d", n, j.Len(), j.Good, want, ends[want])
		}
		if err := Append(path, j, []Record{recordOf(9)}); err != nil {
			t.Fatal(err)
		}
		j, _ = Read(path)
		if j.Len() != want+1 || j.Bad() != 0 {
			t.Fatalf("truncated at %d, then appended: %d lines, %d bad", n, j.Len(), j.Bad())
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := slices.Clone(whole)
		at := rnd.IntN(len(b) - 1)
		b[at] ^= byte(1 + rnd.IntN(255))
		os.WriteFile(path, b, 0o666)
		j, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		hit := 0
		for ends[hit+1] <= at {
			hit++
		}
		for i := range 5 {
			_, ok := j.Named(recordOf(i).Unique)
			// A changed newline makes one bad line of two.
			damaged := i == hit || at == ends[hit+1]-1 && i == hit+1
			if ok == damaged {
				t.Fatalf("changed byte %d: line %d is valid: %v", at, i, ok)
			}
		}
	}
}

func TestJournalLookups(t *testing.T) {
	a, b := recordOf(1), recordOf(1)
	b.Content, b.Unique = DigestOf("other"), entryname.Unique(time.Unix(9, 0), 1, 9, a.Lineage(), "host")
	alias := recordOf(2)
	alias.Unique = b.Unique
	path := filepath.Join(t.TempDir(), "seen")
	os.WriteFile(path, alias.appendTo(b.appendTo(a.appendTo(nil))), 0o666)
	j, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := j.Versions(a.Identity); len(got) != 2 || got[1] != b {
		t.Errorf("versions: %v", got)
	}
	if got := j.LineageOf(alias); len(got) != 3 {
		t.Errorf("lineage of the alias: %v", got)
	}
	if got := j.WithKey(a.Key); len(got) != 2 {
		t.Errorf("with key: %v", got)
	}
	if _, ok := j.Named("nobody"); ok {
		t.Error("Named finds an unknown name")
	}
}

// A journal is worth compacting if more than half of its lines are repeats, wherever they are. A
// journal of changed entries is not.
func TestWorthCompacting(t *testing.T) {
	for _, c := range []struct {
		name           string
		lines          func(i int) (entry, content int)
		repeats, total int
		want           bool
	}{
		{"repeats first", func(i int) (int, int) { return max(i-1600, 0), 0 }, 1600, 3000, true},
		{"repeats last", func(i int) (int, int) { return min(i, 1400), 0 }, 1599, 3000, true},
		{"half", func(i int) (int, int) { return i % 1500, 0 }, 1500, 3000, false},
		{"by turns", func(i int) (int, int) { return i % 10, i / 10 % 3 }, 2970, 3000, true},
		{"few lines", func(i int) (int, int) { return 0, 0 }, compactFrom - 2, compactFrom - 1, false},
		{"no repeats", func(i int) (int, int) { return i, 0 }, 0, 3000, false},
		{"changed entries", func(i int) (int, int) { return i % 10, i }, 0, 3000, false},
	} {
		path := filepath.Join(t.TempDir(), "seen")
		var b []byte
		distinct := map[[2]int]bool{}
		for i := range c.total {
			entry, content := c.lines(i)
			distinct[[2]int{entry, content}] = true
			r := recordOf(entry)
			r.Content = DigestOf(fmt.Sprint(content))
			b = r.appendTo(b)
		}
		if got := c.total - len(distinct); got != c.repeats {
			t.Fatalf("%s: the test has %d repeats, want %d", c.name, got, c.repeats)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		j, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.WorthCompacting(); got != c.want {
			t.Errorf("%s: worthCompacting = %t, want %t", c.name, got, c.want)
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

// A line whose names are not those of entries is not valid, even if its checksum is right.
func TestForgedRecord(t *testing.T) {
	for _, name := range []string{"..", ".", ".x", "a/b", "a;gone"} {
		for _, replaces := range []bool{false, true} {
			r := recordOf(1)
			if replaces {
				r.Replaces = name
			} else {
				r.Unique = name
			}
			b := r.appendTo(nil)
			if _, ok := parseRecord(b[:len(b)-1]); ok {
				t.Errorf("%s is valid", b)
			}
		}
	}
}

// FuzzJournal reads a journal of arbitrary bytes and appends a line. The valid lines stay, and the
// file ends with the new line.
func FuzzJournal(f *testing.F) {
	one, two := recordOf(1).appendTo(nil), recordOf(2).appendTo(nil)
	wrong := bytes.Clone(two)
	wrong[3] ^= 1
	for _, lines := range [][][]byte{
		nil, {one}, {one, two}, {one, one, two, one}, // repeated
		{one, two[:len(two)-1]}, {one, two[:20]}, {one[:len(one)-1], two}, // cut off
		{wrong, one}, {one, wrong}, {one, wrong, two}, {one, wrong[:40], two}, // damaged
		{[]byte("\n\n"), one}, {one, bytes.Repeat([]byte{0}, 100)}, {[]byte("\xff\x00"), two},
	} {
		f.Add(bytes.Join(lines, nil))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		path := filepath.Join(t.TempDir(), "seen")
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		j, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		// The valid lines, found in the simplest way.
		var good [][]byte
		rest := file
		for {
			line, more, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			if _, ok := parseRecord(line); ok {
				good = append(good, line)
			}
			rest = more
		}
		if j.Len() != len(good) {
			t.Fatalf("%d lines are valid, want %d", j.Len(), len(good))
		}
		next := recordOf(99)
		if err := Append(path, j, []Record{next}); err != nil {
			t.Fatal(err)
		}
		again, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if again.Len() != len(good)+1 || again.Good != again.Size {
			t.Fatalf("%d lines are valid, want %d; valid up to %d of %d", again.Len(), len(good)+1, again.Good, again.Size)
		}
		if got, ok := again.Named(next.Unique); !ok || got != next {
			t.Fatalf("%+v, %v", got, ok)
		}
		for _, line := range good {
			r, _ := parseRecord(line)
			if r.Unique == next.Unique {
				continue
			}
			if _, ok := again.Named(r.Unique); !ok {
				t.Fatalf("%s is lost", r.Unique)
			}
		}
	})
}

// Len returns the number of valid lines.
func (j *Journal) Len() (n int) {
	for range j.All {
		n++
	}
	return n
}

// Compaction keeps every identity, every content, and the newest name of each entry.
func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	j, _ := Read(path)
	var recs []Record
	for i := range 2 * compactFrom {
		r := recordOf(i % 3)
		r.Content = DigestOf(fmt.Sprint(i % 2))
		r.Unique = entryname.Unique(time.Unix(int64(i), 0), 1, int64(i), r.Lineage(), "host")
		recs = append(recs, r)
	}
	if err := Append(path, j, recs); err != nil {
		t.Fatal(err)
	}
	j, _ = Read(path)
	after, err := Compact(path, j)
	if err != nil {
		t.Fatal(err)
	}
	if after.Len() != 6 {
		t.Errorf("%d lines after compaction, want 6", after.Len())
	}
	type version struct{ id, content Digest }
	has := map[version]string{}
	for _, r := range after.All {
		has[version{r.Identity, r.Content}] = r.Unique
	}
	for _, r := range recs {
		if has[version{r.Identity, r.Content}] == "" {
			t.Errorf("lost: %v", r)
		}
	}
	for i := range 3 {
		want := j.Versions(recordOf(i).Identity)
		got := after.Versions(recordOf(i).Identity)
		if got[len(got)-1].Unique != want[len(want)-1].Unique {
			t.Errorf("identity %d: newest %s, want %s", i, got[len(got)-1].Unique, want[len(want)-1].Unique)
		}
	}
}
