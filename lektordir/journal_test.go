package lektordir

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/entryname"
)

func recordOf(i int) record {
	return record{
		Identity: digestOf("id", fmt.Sprint(i)),
		Key:      key{Link: [4]byte{byte(i)}, Rest: [4]byte{2}},
		Content:  digestOf("content", fmt.Sprint(i)),
		Unique:   entryname.Unique(time.Unix(int64(i), 0), 1, int64(i), digestOf("id", fmt.Sprint(i)).String(), "host"),
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
		if j.Len() != want+1 || j.bad() != 0 {
			t.Fatalf("cut at %d, then appended: %d lines, %d bad", n, j.Len(), j.bad())
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
	a, b := recordOf(1), recordOf(1)
	b.Content, b.Unique = digestOf("other"), entryname.Unique(time.Unix(9, 0), 1, 9, a.lineage(), "host")
	alias := recordOf(2)
	alias.Unique = b.Unique
	path := filepath.Join(t.TempDir(), "seen")
	os.WriteFile(path, alias.appendTo(b.appendTo(a.appendTo(nil))), 0o666)
	j, err := readJournal(path)
	if err != nil {
		t.Fatal(err)
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
		r.Unique = entryname.Unique(time.Unix(int64(i), 0), 1, int64(i), r.lineage(), "host")
		recs = append(recs, r)
	}
	if err := appendJournal(path, j, recs); err != nil {
		t.Fatal(err)
	}
	j, _ = readJournal(path)
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
	for _, r := range after.all {
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

// A journal of which more than half are repeats is compacted, wherever they are; one of
// changed entries is not.
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
			r.Content = digestOf(fmt.Sprint(content))
			b = r.appendTo(b)
		}
		if got := c.total - len(distinct); got != c.repeats {
			t.Fatalf("%s: the test has %d repeats, want %d", c.name, got, c.repeats)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.worthCompacting(); got != c.want {
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

// A fetch reads of the journal the lines of what the document has, however long
// the feed's past is, and a line is as short as the promise allows.
func TestWorkOfAPast(t *testing.T) {
	work := func(n int) (parsed, bytes int) {
		d, _ := newDir(t)
		past(t, d, n)
		tx, err := writer(t, d).Begin(feedHash)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Close()
		items := pastItems(n+1, 30) // one is new
		res, err := tx.Stage(t.Context(), Document{Items: items})
		if err != nil || len(res.New) != 1 || res.Unchanged != 29 {
			t.Fatal(res, err)
		}
		return tx.journal.parsed, len(tx.journal.data)
	}
	few, _ := work(50)
	many, size := work(5000)
	// Beside those that are meant, a few that share a hash with them.
	if few < 29*2 || many > 2*few {
		t.Errorf("%d lines are read of a past of 50, %d of one of 5000", few, many)
	}
	if size > 5000*110 {
		t.Errorf("%d bytes a line", size/5000)
	}
}

// The time that a document takes grows as it does, whatever its entries share.
func TestWorkOfADocument(t *testing.T) {
	for name, change := range map[string]func(*Item){
		"nothing":               func(*Item) {},
		"guid":                  func(it *Item) { it.GUID = "same" },
		"link":                  func(it *Item) { it.GUID, it.Entry.Link = "", "same" },
		"guid and link":         func(it *Item) { it.GUID, it.Entry.Link = "same", "same" },
		"all but the guid":      func(it *Item) { it.Entry = Entry{ID: it.Entry.ID, Title: "same", Link: "same"} },
		"neither guid nor link": func(it *Item) { it.GUID, it.Entry.Link = "", "" },
	} {
		work := func(n int) int {
			d, _ := newDir(t)
			items := pastItems(n, n)
			for i := range items {
				change(&items[i])
			}
			w := writer(t, d)
			parsed := 0
			for range 2 {
				tx, err := w.Begin(feedHash)
				if err != nil {
					t.Fatal(err)
				}
				if err := tx.PutFeed(&Feed{ID: feedID, Name: "x"}); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Stage(t.Context(), Document{Items: items}); err != nil {
					t.Fatal(err)
				}
				parsed = tx.journal.parsed
				if err := commit(tx); err != nil {
					t.Fatal(err)
				}
			}
			return parsed
		}
		if few, many := work(20), work(120); many > 10*few {
			t.Errorf("%s shared: %d lines are read for 20 entries, %d for 120", name, few, many)
		}
	}
}

// Lines of before are read, and written anew in half the bytes.
func TestCompactionOfLongLines(t *testing.T) {
	d, _ := newDir(t)
	path := d.journalPath(feedHash)
	var b strings.Builder
	var want []record
	for i := range compactFrom {
		r := recordOf(i)
		want = append(want, r)
		line := fmt.Sprintf("%s%016x %s%08x%s%08x %s%016x %s - %d ", r.Identity, i, hex.EncodeToString(r.Key.Link[:]), i, hex.EncodeToString(r.Key.Rest[:]), i, r.Content, i, r.Unique, i)
		fmt.Fprintf(&b, "%s%08x\n", line, crc32.Checksum([]byte(line), crcTable))
	}
	write(t, path, b.String())
	w := writer(t, d)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	j, err := tx.readJournal()
	if err != nil {
		t.Fatal(err)
	}
	var got []record
	for _, r := range j.all {
		got = append(got, r)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, not %d", len(got), len(want))
	}
	if n := len(read(t, path)); n > b.Len()*6/10 {
		t.Errorf("%d bytes of %d", n, b.Len())
	}
}
