package lektordir

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/stage"
)

// importWorld is a feed whose entries are imported from another reader.
type importWorld struct {
	*testing.T
	d *Dir
	w *fetcher
}

func (wo *importWorld) stage(f func(*delivery) (Result, error)) Result {
	wo.Helper()
	txn, err := wo.w.Begin(feedHash)
	if err != nil {
		wo.Fatal(err)
	}
	defer txn.Close()
	if err := txn.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		wo.Fatal(err)
	}
	res, err := f(txn)
	if err == nil {
		err = end(txn)
	}
	if err != nil {
		wo.Fatal(err)
	}
	return res
}

// importedEntry is an entry that the other reader kept.
type importedEntry struct {
	Item
	ByLink bool
}

func (wo *importWorld) move(entries ...importedEntry) Result {
	wo.Helper()
	var all []stage.ImportedEntry
	for _, e := range entries {
		all = append(all, stage.ImportedEntry{Item: e.stage(), ByLink: e.ByLink})
	}
	return wo.stage(func(t *delivery) (Result, error) {
		res, err := t.StageImported(wo.Context(), all)
		return result(t.Feed(), res), err
	})
}

func (wo *importWorld) fetch(items ...Item) Result {
	wo.Helper()
	return wo.stage(func(t *delivery) (Result, error) {
		return t.stageAll(wo.Context(), document(UpdateNew, items...))
	})
}

// listed returns the titles of the listed entries.
func (wo *importWorld) listed() (titles []string) {
	wo.Helper()
	refs, err := wo.d.List(wo.Context(), ListOptions{AllVersions: true})
	if err != nil {
		wo.Fatal(err)
	}
	for _, r := range refs {
		e, err := wo.d.ReadEntry(r, FieldTitle)
		if err != nil {
			wo.Fatal(err)
		}
		titles = append(titles, e.Title)
	}
	return titles
}

var day = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func post(guid, link, title string, date time.Time) Item {
	return Item{GUID: guid, Entry: Entry{ID: guid, Link: link, Title: title, Content: []byte("text"), PubDate: date}}
}

// If an entry is imported and the feed has it, too, it is delivered once, in whichever order
// they come. Both are recognised as one entry by the guid or by the link.
func TestImported(t *testing.T) {
	const link = "http://example.com/1"
	mine := importedEntry{Item: post("urn:1", link, "Mine", day), ByLink: true}
	linkOnly := importedEntry{Item: post("", link, "Mine", day), ByLink: true}
	guidOnly := importedEntry{Item: post("urn:1", link, "Mine", day)}
	for name, c := range map[string]struct {
		imported importedEntry
		first    []Item // items of the feed before the import
		then     []Item // items of the feed after the import
		want     int    // number of entries in the end
		updated  bool   // the feed's version replaces the imported one
	}{
		"by guid":                {mine, nil, []Item{post("urn:1", link, "Mine", day)}, 1, true},
		"by guid, moved":         {mine, nil, []Item{post("urn:1", link+"/x", "Feed's", day)}, 1, true},
		"by link":                {linkOnly, nil, []Item{post("urn:2", link, "Feed's", day)}, 1, true},
		"by link, other guid":    {mine, nil, []Item{post("urn:2", link, "Feed's", day.Add(time.Hour))}, 1, true},
		"no guid in the feed":    {mine, nil, []Item{post("", link, "Feed's", day)}, 1, true},
		"no guid at all":         {linkOnly, nil, []Item{post("", link, "Mine", day)}, 1, true},
		"no date in the feed":    {linkOnly, nil, []Item{post("urn:2", link, "Feed's", time.Time{})}, 1, true},
		"a later one":            {mine, nil, []Item{post("urn:2", link, "Feed's", day.Add(48*time.Hour))}, 2, false},
		"later, with its title":  {mine, nil, []Item{post("urn:2", link, "Mine", day.Add(7*24*time.Hour))}, 1, true},
		"later, no title":        {importedEntry{Item: post("urn:1", link, "", day), ByLink: true}, nil, []Item{post("urn:2", link, "", day.Add(48*time.Hour))}, 2, false},
		"several with the link":  {linkOnly, nil, []Item{post("urn:2", link, "A", day), post("urn:3", link, "B", day)}, 3, false},
		"link says nothing":      {guidOnly, nil, []Item{post("urn:2", link, "Feed's", day)}, 2, false},
		"another":                {mine, nil, []Item{post("urn:2", link+"2", "Mine", day)}, 2, false},
		"first, by guid":         {mine, []Item{post("urn:1", link, "Feed's", day)}, nil, 1, false},
		"first, by link":         {mine, []Item{post("urn:2", link, "Feed's", day)}, nil, 1, false},
		"first, without guid":    {mine, []Item{post("", link, "Feed's", day)}, nil, 1, false},
		"first, new guid":        {guidOnly, []Item{post("urn:2", link, "Mine", day)}, nil, 1, false},
		"first, and not by link": {guidOnly, []Item{post("urn:2", link, "Feed's", day)}, nil, 2, false},
	} {
		d, _ := newDir(t)
		wo := &importWorld{t, d, writer(t, d)}
		if c.first != nil {
			wo.fetch(c.first...)
		}
		n := len(wo.listed())
		for i := range 2 {
			res := wo.move(c.imported)
			if added := len(wo.listed()) - n; i == 1 && (len(res.New) > 0 || res.Unchanged != 1) || added > 1 {
				t.Errorf("%s: imported again: %+v", name, res)
			}
		}
		for i := range 2 {
			if c.then == nil {
				break
			}
			res := wo.fetch(c.then...)
			if i == 0 && (len(res.Updated) == 1) != c.updated || i == 1 && res.Unchanged != len(c.then) {
				t.Errorf("%s: fetch %d: %+v", name, i, res)
			}
		}
		if res := wo.move(c.imported); len(res.New) > 0 {
			t.Errorf("%s: imported after the fetch: %+v", name, res)
		}
		got := wo.listed()
		if len(got) != c.want || c.updated && got[0] != c.then[0].Entry.Title {
			t.Errorf("%s: %q, want %d entries", name, got, c.want)
		}
	}
}

// An imported entry is recognised by its link once. A later entry with the link is another one,
// even if a viewer has taken the imported entry, so that it was not replaced.
func TestImportedOnce(t *testing.T) {
	for _, taken := range []bool{false, true} {
		d, _ := newDir(t)
		wo := &importWorld{t, d, writer(t, d)}
		const link = "http://example.com/1"
		wo.move(importedEntry{Item: post("", link, "Mine", day), ByLink: true})
		if taken {
			refs, _ := d.List(t.Context(), ListOptions{})
			if _, err := d.SetFlags(refs[0], "F", ""); err != nil {
				t.Fatal(err)
			}
		}
		if res := wo.fetch(post("urn:2", link, "Feed's", day)); len(res.New) > 0 || len(res.Updated) == 1 == taken {
			t.Errorf("taken %t: %+v", taken, res)
		}
		if res := wo.fetch(post("urn:3", link, "Another", day)); len(res.New) != 1 {
			t.Errorf("taken %t: the next one: %+v", taken, res)
		}
		if got := wo.listed(); len(got) != 2 {
			t.Errorf("%q", got)
		}
	}
}

// An imported and deleted entry does not come back, even if a power cut left only the first of
// its lines in the journal.
func TestImportedDeleted(t *testing.T) {
	d, _ := newDir(t)
	wo := &importWorld{t, d, writer(t, d)}
	mine := importedEntry{Item: post("urn:1", "http://example.com/1", "Mine", day), ByLink: true}
	res := wo.move(mine)
	if err := d.Remove(res.New[0]); err != nil {
		t.Fatal(err)
	}
	if res := wo.move(mine); len(res.New) > 0 {
		t.Errorf("%+v", res)
	}
	if res := wo.fetch(post("urn:1", "http://example.com/1", "Mine", day)); len(res.New)+len(res.Updated) > 0 {
		t.Errorf("%+v", res)
	}
	path := d.journalPath(feedHash)
	lines, err := dirfs.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, lines[:bytes.IndexByte(lines, '\n')+9], 0o666); err != nil {
		t.Fatal(err)
	}
	if res := wo.move(mine); len(res.New) > 0 {
		t.Errorf("%+v", res)
	}
	if res := wo.fetch(post("urn:1", "http://example.com/1", "Mine", day)); len(res.New)+len(res.Updated) > 0 {
		t.Errorf("%+v", res)
	}
}

// If several entries of a document have the guid and the link of an imported entry, the one with
// the same text matches, whatever its title is. The others are delivered.
func TestImportedAmongSeveral(t *testing.T) {
	const link = "http://example.com/1"
	with := func(title, text string) Item {
		it := post("urn:1", link, title, day)
		it.Entry.Content = []byte(text)
		return it
	}
	for _, taken := range []bool{false, true} {
		for text, want := range map[string]int{"one": 2, "other": 2, "neither": 3} {
			d, _ := newDir(t)
			wo := &importWorld{t, d, writer(t, d)}
			ref := wo.move(importedEntry{Item: with("1", text)}).New[0]
			if taken {
				if _, err := d.SetFlags(ref, "S", ""); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				wo.fetch(with("One", "one"), with("", "other"))
				texts := map[string]int{}
				refs, err := d.List(t.Context(), ListOptions{AllVersions: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range refs {
					e, err := d.ReadEntry(r, FieldContent)
					if err != nil {
						t.Fatal(err)
					}
					texts[string(e.Content)]++
				}
				if len(refs) != want || texts["one"] != 1 || texts["other"] != 1 {
					t.Errorf("taken %t, kept %q: %v", taken, text, texts)
				}
			}
		}
	}
}
