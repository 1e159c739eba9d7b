package manual

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/dir"
)

const manDir = "../../../man"

// build makes the programs that manuals speak of, and gives their directory.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+"/", "../../../cmd/lektor-fetch", "../../../cmd/lektor-view")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// library makes a lektor-dir with something in it for every pipeline.
func library(t *testing.T) *dir.Dir {
	t.Helper()
	d := dir.New(t)
	must := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const planet, cast = "http://planet.example/atom.xml", "http://cast.example/rss.xml"
	must(d.Feed(planet, "Planet"))
	must(d.Feed(cast, "Podcast"))
	must(d.Entry(planet, "new", dir.Unique(1700000001, 1), "title=A Kernel story", "content=Kernel text", "pubdate=2023-11-01T10:00:00Z"))
	must(d.Entry(planet, "new", dir.Unique(1700000002, 2), "title=Second", "content=one\ntwo\nthree", "pubdate=2023-11-02T10:00:00Z"))
	must(d.Entry(planet, "new", dir.Unique(1700000003, 3), "title=Third", "content=<p>Third text</p>", "type=text/html"))
	must(d.Entry(cast, "new", dir.Unique(1700000004, 4), "title=Episode", "etc/enclosures=http://cast.example/4.mp3\taudio/mpeg\t1000"))
	must(d.Entry(planet, "cur", dir.Unique(1600000005, 5)+";2,S", "title=Old kernel"))
	must(d.Entry(planet, "cur", dir.Unique(1600000006, 6)+";2,FS", "title=Old and good"))
	return d
}

const feedXML = `<?xml version="1.0"?>
<rss version="2.0"><channel><title>Delivered</title><link>http://example.org/</link><description>d</description>
<item><title>From a document</title><link>http://example.org/1</link><guid>http://example.org/1</guid><description>text</description></item>
</channel></rss>
`

// TestPipelines runs every pipeline of lektor(7), each in a fresh lektor-dir.
func TestPipelines(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manDir, "lektor.7"))
	if err != nil {
		t.Fatal(err)
	}
	pipelines := literal(section(string(page), "PIPELINES"))
	// What each must print, and leave behind: a query and how many entries it has.
	want := []struct {
		out   string // regular expression
		query string
		count string
	}{
		{`(?m)\A(.*/cur/.*;2,S\n){3}\z`, "is:unread", "1"},
		{`(?s)Title: A Kernel story\n.*Title: Second\n.*Title: Third\n.*Third text\n`, "is:unread feed:planet", "0"},
		{`(?m)\A(.*/cur/.*;2,S?k\n){2}\z`, "flag:k", "2"},
		{`(?s)\A *5 Planet\n *1 Podcast\n\z`, "is:unread", "4"},
		{`\A3 Planet\n1 Podcast\n\z`, "is:unread", "4"},
		{`\Acurl -O http://cast.example/4.mp3\n\z`, "is:unread", "4"},
		{`\A *[1-9][0-9]+\n\z`, "is:unread", "4"},
		{`(?m)^1 N .*  Delivered +From a document$`, "feed:delivered", "1"},
		{`(?s)Title: Disk space at .*Feed: Disk space\n.*\n\n.*/\n`, `feed:"disk space"`, "1"},
		{`\A *1\n\z`, "is:read", "1"},
	}
	if len(pipelines) != len(want) || len(want) != 10 {
		t.Fatalf("%d pipelines in the page, %d tested", len(pipelines), len(want))
	}
	bin := build(t)
	for i, w := range want {
		t.Run(strings.Fields(pipelines[i])[0], func(t *testing.T) {
			d := library(t)
			work := t.TempDir()
			if err := os.WriteFile(filepath.Join(work, "feed.xml"), []byte(feedXML), 0o666); err != nil {
				t.Fatal(err)
			}
			sh := func(script string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, "/bin/sh", "-eu", "-c", script)
				cmd.Dir = work
				cmd.Env = append(os.Environ(), "LEKTORDIR="+d.Path, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "PAGER=", "LC_ALL=C")
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v of\n%s\n%s%s", err, script, out, &errs)
				}
				if s := errs.String(); strings.Contains(s, "warning") || strings.Contains(s, "hint") {
					t.Errorf("complaints of\n%s\n%s", script, s)
				}
				return string(out)
			}
			out := sh(pipelines[i])
			if !regexp.MustCompile(w.out).MatchString(out) {
				t.Errorf("\n%s\nprinted\n%s\nand not %s", pipelines[i], out, w.out)
			}
			if got := strings.TrimSpace(sh("lektor-view count -o all '" + w.query + "'")); got != w.count {
				t.Errorf("\n%s\nleaves %s of %s, not %s", pipelines[i], got, w.query, w.count)
			}
		})
	}
}

// TestShellDelivery runs the shell of lektor-dir(5): what it delivers is an
// entry, and what it marks is read.
func TestShellDelivery(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(manDir, "lektor-dir.5"))
	if err != nil {
		t.Fatal(err)
	}
	fetcher := literal(section(string(page), "DELIVERY"))
	viewer := literal(section(string(page), "VIEWING"))
	if len(fetcher) != 1 || len(viewer) != 1 {
		t.Fatalf("%d and %d scripts", len(fetcher), len(viewer))
	}
	bin := build(t)
	d := dir.New(t)
	script := fetcher[0] + `
lektor-view ls -o '{{.feed}}: {{.title}}'
unique=${entry#*/}
` + viewer[0] + `
lektor-view count
lektor-fetch check >&2
`
	cmd := exec.Command("/bin/sh", "-eu", "-c", script)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+d.Path, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || string(out) != "Clock: Current time\n0 unread of 1\n" {
		t.Errorf("%v\n%s%s", err, out, &errs)
	}
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
		out, _ := exec.Command(mandoc, "-T", "lint", "-W", "style", page).Output()
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "referenced manual not found") {
				t.Error(strings.TrimSpace(line))
			}
		}
	}
}

// section gives the text of a section of a page in mdoc.
func section(page, name string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, ".Sh "); ok {
			inside = strings.TrimSpace(title) == name
			continue
		}
		if inside {
			b.WriteString(line)
		}
	}
	return b.String()
}

// literal gives the texts of the literal displays in a piece of a page, as a
// reader sees them.
func literal(text string) []string {
	var found []string
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, ".Bd -literal"):
			inside = true
		case strings.HasPrefix(line, ".Ed"):
			if inside {
				found = append(found, b.String())
			}
			inside = false
			b.Reset()
		case inside:
			b.WriteString(unescape.Replace(line))
		}
	}
	return found
}

// unescape undoes the escapes of roff that examples need.
var unescape = strings.NewReplacer(`\e`, `\`, `\&`, "", `\-`, "-", `\(aq`, "'", `\(dq`, `"`)
