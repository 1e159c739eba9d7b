package fullscreen

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/read/catalog"
)

// TestSortTexts: the index and the entries have the same texts to sort by.
func TestSortTexts(t *testing.T) {
	f := newFixture(t)
	const n = 20
	for i := range n {
		f.Add("new", fmt.Sprintf("%d.1.h", 1773000000+i), fmt.Sprintf("title= Title %d", i%7), fmt.Sprintf("author=Kim %d", i%3))
	}
	l := f.adapter(10)
	refs, err := listAll(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	texts := func(by string, refs []catalog.Entry) []string {
		return l.SortTexts(t.Context(), refs, by)
	}
	read := texts("title", refs) // there is no index yet
	if err := l.Learn(t.Context(), refs, func(string, int, int) {}); err != nil || !l.index.Exists() {
		t.Fatal("no index", err)
	}
	f.Add("new", "1773900000.1.h", "title=later")
	if refs, err = listAll(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	titles := texts("title", refs)
	if !slices.Equal(titles[:n], read) || titles[3] != "title 3" || titles[n] != "later" {
		t.Errorf("%q %q, and from the entries %q", titles[:4], titles[n:], read[:4])
	}
	if got, few := texts("author", refs), texts("author", refs[:2]); got[4] != "kim 1" || !slices.Equal(got[:2], few) {
		t.Errorf("%q %q", got[:5], few)
	}
}

// TestRemember: settings are saved in a file, whose other lines stay.
func TestRemember(t *testing.T) {
	f := newFixture(t)
	l := f.adapter(10)
	if err := os.MkdirAll(l.dir.Join("etc/view"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.dir.Join(viewDir, screenFile), []byte("note\nlayout=wide\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, s := range [][2]string{{"sort all", "title"}, {"sort folder a/b%3Dc", "-date"}, {"sort all", "-title"}, {"hide all", "yes"}, {"hide all", ""}} {
		if err := l.Remember(t.Context(), s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := "note\nlayout=wide\nsort all=-title\nsort folder a/b%3Dc=-date\n"
	if got, err := os.ReadFile(l.dir.Join(viewDir, screenFile)); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if v, err := l.settings(); err != nil || v.Get("sort folder a/b%3Dc") != "-date" {
		t.Errorf("%v", err)
	}
}
