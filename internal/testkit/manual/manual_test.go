package manual

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

const manDir = "../../../man"

func TestMain(m *testing.M) { testdir.Main(m) }

// library makes a lektor-dir with something in it for every pipeline.
func library(t *testing.T, d *testdir.Dir) {
	t.Helper()
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	must := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const planet, cast = "http://planet.example/atom.xml", "http://cast.example/rss.xml"
	must(d.Feed(planet, "Planet"))
	must(d.Feed(cast, "Podcast"))
	must(d.Entry(planet, "new", testdir.Unique(1700000001, 1), "title=A Kernel story", "content=Kernel text", "pubdate=2023-11-01T10:00:00Z"))
	must(d.Entry(planet, "new", testdir.Unique(1700000002, 2), "title=Second", "content=one\ntwo\nthree", "pubdate=2023-11-02T10:00:00Z"))
	must(d.Entry(planet, "new", testdir.Unique(1700000003, 3), "title=Third", "content=<p>Third text</p>", "type=text/html"))
	must(d.Entry(cast, "new", testdir.Unique(1700000004, 4), "title=Episode", "+enclosure=http://cast.example/4.mp3\taudio/mpeg\t1000"))
	must(d.Entry(planet, "cur", testdir.Unique(1600000005, 5)+";2,S", "title=Old kernel"))
	must(d.Entry(planet, "cur", testdir.Unique(1600000006, 6)+";2,FS", "title=Old and good"))
}

// TestLint checks the pages where mandoc is installed.
func TestLint(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	pages, err := filepath.Glob(filepath.Join(manDir, "*.[1-9]"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		// Whether other pages are installed is not the page's fault.
		out, err := exec.Command(mandoc, "-T", "lint", "-W", "style", page).Output()
		if len(out) == 0 && err != nil {
			t.Errorf("mandoc of %s: %v", page, err)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "referenced manual not found") {
				t.Error(strings.TrimSpace(line))
			}
		}
	}
}
