package lektordir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
)

// damages returns what can happen to a journal, by name; nil means that the file is gone.
func damages(sound []byte) map[string][]byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(sound, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(bytes.Clone(lines[len(lines)-1]), '\n')
	some := func(n int) []byte { return bytes.Join(lines[:n], nil) }
	junk := []byte("junk\n")
	all := map[string][]byte{
		"gone": nil, "emptied": {}, "junk alone": junk,
		"half": sound[:len(sound)/2], "half and a byte": sound[:len(sound)/2+1],
		"half of its lines": some(len(lines) / 2), "one line lost": some(len(lines) - 1),
		"CR LF":          bytes.ReplaceAll(sound, []byte("\n"), []byte("\r\n")),
		"CR":             bytes.ReplaceAll(sound, []byte("\n"), []byte("\r")),
		"junk at end":    slices.Concat(sound, junk),
		"junk for lines": slices.Concat(junk, junk, some(1), junk),
		"binary junk":    slices.Concat([]byte("\xff\xfe\x00\x1b[31m\n"), sound[100:]),
		"NULs":           bytes.Repeat([]byte{0}, len(sound)),
		"NULs at end":    slices.Concat(some(3), bytes.Repeat([]byte{0}, 200)),
		"NUL lines":      bytes.Repeat([]byte("\x00\n"), 20),
		"NULs inside":    slices.Concat(sound[:130], bytes.Repeat([]byte{0}, 300), sound[430:]),
		"reversed":       slices.Concat(sound[200:], sound[:200]),
	}
	begin := 0
	for n, l := range lines {
		for _, at := range []int{0, 3, 9, 15, 16, 20, 27, 40, 55, len(l) - 5, len(l) - 1} {
			flipped := bytes.Clone(sound)
			flipped[begin+at] ^= 1 << (at % 7)
			all[fmt.Sprintf("line %d, byte %d", n, at)] = flipped
		}
		begin += len(l)
	}
	return all
}

// If a journal is damaged, the entries of new/ and cur/ are not delivered again, whatever their flags
// are. The damaged lines stay until check repairs the journal; check reports them.
func TestDamagedJournal(t *testing.T) {
	entries := pastItems(6, 6)
	entries[2].Entry.Link, entries[3].Entry.Link = "", "" // without a second key
	fresh := pastItems(7, 1)[0]
	for _, policy := range []Policy{UpdateNew, UpdateAlways, UpdateNever} {
		d, _ := newDir(t)
		feed := &Feed{ID: feedID, Name: "Example"}
		deliverItems := func(want int, items ...Item) []Ref {
			t.Helper()
			tx, err := writer(t, d).Begin(feedHash)
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.PutFeed(feed); err != nil {
				t.Fatal(err)
			}
			res, err := tx.stageAll(ctx, document(policy, items...))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
			if got := append(res.New, res.Updated...); len(got) != want || res.Ignored > 0 {
				t.Fatalf("policy %q: %d entries are delivered, want %d; %d ignored", policy, len(got), want, res.Ignored)
			}
			return res.New
		}
		for i, r := range deliverItems(6, entries...) {
			if i < 5 { // the last one stays in new/
				if _, err := d.SetFlags(r, []string{"F", "S", "ST", "FSa", "x"}[i], ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := paths(list(t, d, ListOptions{}))
		sound := []byte(read(t, d.journalPath(feedHash)))
		set := func(journal []byte) {
			t.Helper()
			if journal == nil {
				if err := os.Remove(d.journalPath(feedHash)); err != nil {
					t.Fatal(err)
				}
				return
			}
			write(t, d.journalPath(feedHash), string(journal))
		}
		for name, damaged := range damages(sound) {
			if policy != UpdateAlways && strings.HasPrefix(name, "line ") {
				continue
			}
			// The state after the delivery.
			set(sound)
			if err := os.Truncate(d.Join("etc/fetch/lock", feedHash), int64(len(sound))); err != nil {
				t.Fatal(err)
			}
			if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
				t.Fatalf("policy %q: before %s: %v, %v", policy, name, ps, err)
			}
			set(damaged)
			ps, err := d.Check(ctx, false)
			if err != nil || len(ps) != 1 || ps[0].Path != commit.JournalPath(feedHash) || !ps[0].Safe {
				t.Errorf("policy %q: %s: check reports %v, %v", policy, name, ps, err)
			}
			// Either a fetcher or check restores the lines.
			deliverItems(0, entries...)
			if after := paths(list(t, d, ListOptions{})); !slices.Equal(before, after) {
				t.Fatalf("policy %q: %s: %v, want %v", policy, name, after, before)
			}
			data := []byte(read(t, d.journalPath(feedHash)))
			for l := range bytes.Lines(damaged) {
				if !bytes.Contains(data, bytes.TrimSuffix(l, []byte("\n"))) {
					t.Errorf("policy %q: %s: %q is no longer in the journal", policy, name, l)
				}
			}
			set(damaged)
			if ps, err := d.Check(ctx, true); err != nil || len(ps) != 1 || !ps[0].Repaired {
				t.Errorf("policy %q: %s: check repairs %v, %v", policy, name, ps, err)
			}
			if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
				t.Errorf("policy %q: %s: check reports %v after the repair, %v", policy, name, ps, err)
			}
			deliverItems(0, entries...)
			if after := paths(list(t, d, ListOptions{})); !slices.Equal(before, after) {
				t.Fatalf("policy %q: %s: %v after the repair, want %v", policy, name, after, before)
			}
			if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
				t.Errorf("policy %q: %s: check reports %v after a delivery, %v", policy, name, ps, err)
			}
		}
		// A change is noticed again, if the policy wants it.
		set(nil)
		deliverItems(1, append([]Item{fresh}, entries...)...)
		entries := slices.Clone(entries)
		entries[0].Entry.Content = []byte("Another text")
		if policy != UpdateNever {
			deliverItems(1, entries...)
		}
	}
}

// A part of a line that a killed fetcher left is no damage: the next one removes it without a word.
func TestTornJournal(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"), sample("2", "B"))
	sound := read(t, d.journalPath(feedHash))
	write(t, d.journalPath(feedHash), sound+sound[:50])
	var warned []string
	w := writerWith(t, d, commit.Options{Warn: func(s string) { warned = append(warned, s) }})
	deliverBy(t, w, sample("3", "C"))
	if got := read(t, d.journalPath(feedHash)); !strings.HasPrefix(got, sound) || strings.Count(got, "\n") != 3 || len(warned) > 0 {
		t.Errorf("%q, warnings %q", got, warned)
	}
	write(t, d.journalPath(feedHash), sound)
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if _, err := tx.stageAll(ctx, document("", pastItems(1, 1)...)); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], filepath.Join("src", feedHash)) {
		t.Errorf("warnings %q", warned)
	}
}

// If the size after the last delivery is unknown, as after an upgrade or a restore without the locks, a
// journal that lost whole lines is noticed by the entries that have none.
func TestDamagedJournalOfUnknownSize(t *testing.T) {
	for name, lost := range map[string][2]int{"first lines": {0, 2}, "last lines": {2, 4}, "all lines": {0, 4}, "nothing": {0, 0}} {
		d, _ := newDir(t)
		stage := func(w *fetcher, items ...Item) []Ref {
			t.Helper()
			tx, err := w.Begin(feedHash)
			if err != nil {
				t.Fatal(err)
			}
			res, err := tx.stageAll(ctx, document("", items...))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
			return res.New
		}
		items := pastItems(5, 5)
		for _, r := range stage(writer(t, d), items[1:]...) {
			if _, err := d.SetFlags(r, "FS", ""); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.SplitAfter(strings.TrimSuffix(read(t, d.journalPath(feedHash)), "\n"), "\n")
		lines[3] += "\n"
		write(t, d.journalPath(feedHash), strings.Join(slices.Delete(lines, lost[0], lost[1]), ""))
		if err := os.Truncate(d.Join("etc/fetch/lock", feedHash), 0); err != nil {
			t.Fatal(err)
		}
		var warned []string
		w := writerWith(t, d, commit.Options{Warn: func(s string) { warned = append(warned, s) }})
		if refs := stage(w, items...); len(refs) != 1 || (len(warned) > 0) != (name != "nothing") {
			t.Errorf("%s: %v, warnings %q", name, refs, warned)
		}
	}
}

// A feed that was removed with its journal, also by hand, begins anew without a warning.
func TestRemovedJournal(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("1", "A"))
	shell(t, d, `rm -r src/$HASH new/$HASH`)
	var warned []string
	w := writerWith(t, d, commit.Options{Warn: func(s string) { warned = append(warned, s) }})
	if refs := deliverBy(t, w, sample("1", "A")); len(refs) != 1 || len(warned) > 0 {
		t.Errorf("%v, warnings %q", refs, warned)
	}
	if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
		t.Errorf("%v, %v", ps, err)
	}
}

// A lektor-dir in which nothing was fetched needs no journals: it may be a copy without the state of the
// fetcher, whose names have identities all the same.
func TestNoJournalInACopy(t *testing.T) {
	d, _ := newDir(t)
	tx, err := writer(t, d).Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.stageAll(ctx, document(UpdateNew, pastItems(3, 3)...)); err != nil {
		t.Fatal(err)
	}
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Join("etc/fetch"), d.Join("src", feedHash, "etc/fetch")} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if ps, err := d.Check(ctx, false); err != nil || len(ps) > 0 {
		t.Errorf("%v, %v", ps, err)
	}
}
