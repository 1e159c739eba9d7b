package e2e

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldsReachTheDirectoryAndPublish: the fields of an entry in a document are in the
// directory, and in the published feed.
func TestFieldsReachTheDirectoryAndPublish(t *testing.T) {
	const doc = `<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/" xml:lang="de">
<id>urn:f</id><title>F</title><updated>2026-01-01T00:00:00Z</updated>
<entry xml:lang="fr-CA"><id>urn:e</id><title>E</title><updated>2026-01-01T00:00:00Z</updated><content>text</content>
<author><name>Ann</name></author><author><name>Bob</name><email>bob@a.example</email></author>
<contributor><name>Cy</name><email>cy@a.example</email></contributor><contributor><name>Di</name></contributor>
<category term="go" scheme="https://a.example/tags" label="Go &amp; co"/><category term="plain"/>
<link rel="via" href="https://v.example/" title="V"/><rights>© Ann</rights>
<source><id>urn:other</id><title>Other</title><link href="https://other.example/"/><link rel="self" href="https://other.example/feed"/>
<updated>2025-12-31T00:00:00Z</updated><author><name>Eve</name></author><rights>© Eve</rights><icon>https://other.example/i</icon><subtitle>About others</subtitle></source>
<itunes:duration>1:02:03</itunes:duration><itunes:episode>7</itunes:episode><itunes:season>2</itunes:season>
<itunes:image href="https://a.example/i.png"/></entry></feed>`
	dir := filepath.Join(t.TempDir(), "feeds")
	run := func(stdin, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Stdin = strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, errs.String())
		}
		return string(out)
	}
	bin := build(t)
	run(doc, filepath.Join(bin, "lektor-fetch"), "deliver", "--id", "urn:f")
	found, _ := filepath.Glob(filepath.Join(dir, "new", "*", "*"))
	if len(found) != 1 {
		t.Fatalf("entries: %q", found)
	}
	for name, want := range map[string]string{
		"author": "Ann, Bob <bob@a.example>\n",
		"extras": "category\tgo\thttps://a.example/tags\tGo & co\ncategory\tplain\nimage\thttps://a.example/i.png\nlanguage\tfr-CA\ncontributor\tCy <cy@a.example>\ncontributor\tDi\n" +
			"person\tauthor\tAnn\t\t\nperson\tauthor\tBob\tbob@a.example\t\nperson\tcontributor\tCy\tcy@a.example\t\nperson\tcontributor\tDi\t\t\nperson\tsource\tEve\t\t\n" +
			"relation\tvia\thttps://v.example/\t\tV\nrights\t© Ann\n" +
			"source\turn:other\tOther\thttps://other.example/\thttps://other.example/feed\t2025-12-31T00:00:00Z\t© Eve\thttps://other.example/i\tAbout others\nduration\t3723\nepisode\t7\nseason\t2\n",
	} {
		if got, err := os.ReadFile(filepath.Join(found[0], name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	view := filepath.Join(bin, "lektor-view")
	if got := run("", view, "ls", "-o", "{{.image}} {{.language}} {{.contributors}} {{.source}} {{.duration}} {{.episode}} {{.season}}"); got != "https://a.example/i.png fr-CA [Cy <cy@a.example> Di] Other 3723 7 2\n" {
		t.Errorf("ls: %q", got)
	}
	// encoding/xml, which shares no code with lektor, reads the feed.
	var published struct {
		Entries []struct {
			Lang         string   `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
			Authors      []string `xml:"author>name"`
			Contributors []string `xml:"contributor>name"`
			Source       struct {
				ID       string `xml:"id"`
				Title    string `xml:"title"`
				Updated  string `xml:"updated"`
				Author   string `xml:"author>name"`
				Rights   string `xml:"rights"`
				Logo     string `xml:"logo"`
				Subtitle string `xml:"subtitle"`
			} `xml:"source"`
			Rights     string `xml:"rights"`
			Categories []struct {
				Term   string `xml:"term,attr"`
				Scheme string `xml:"scheme,attr"`
				Label  string `xml:"label,attr"`
			} `xml:"category"`
			Links []struct {
				Rel   string `xml:"rel,attr"`
				Href  string `xml:"href,attr"`
				Title string `xml:"title,attr"`
			} `xml:"link"`
			Duration string `xml:"http://www.itunes.com/dtds/podcast-1.0.dtd duration"`
			Episode  string `xml:"http://www.itunes.com/dtds/podcast-1.0.dtd episode"`
			Season   string `xml:"http://www.itunes.com/dtds/podcast-1.0.dtd season"`
		} `xml:"entry"`
	}
	out := run("", view, "publish", "--format", "atom")
	if err := xml.Unmarshal([]byte(out), &published); err != nil || len(published.Entries) != 1 {
		t.Fatalf("got %v\n%s; want err == nil and len(published.Entries) == 1", err, out)
	}
	e := published.Entries[0]
	if e.Lang != "fr-CA" || strings.Join(e.Authors, "+") != "Ann+Bob" || strings.Join(e.Contributors, "+") != "Cy+Di" || e.Source.ID != "urn:other" || e.Source.Title != "Other" || e.Duration != "3723" && e.Duration != "1:02:03" || e.Episode != "7" || e.Season != "2" {
		t.Errorf("published: %+v\n%s", e, out)
	}
	if got := fmt.Sprintf("%q %q %q", e.Source, e.Categories, e.Rights); got !=
		`{"urn:other" "Other" "2025-12-31T00:00:00Z" "Eve" "© Eve" "https://other.example/i" "About others"} [{"go" "https://a.example/tags" "Go & co"} {"plain" "" ""}] "© Ann"` {
		t.Errorf("published: %s\n%s", got, out)
	}
	if got := fmt.Sprintf("%q", e.Links); !strings.Contains(got, `{"via" "https://v.example/" "V"}`) {
		t.Errorf("published: %s\n%s", got, out)
	}
	if !strings.Contains(out, "https://a.example/i.png") {
		t.Errorf("no image in\n%s", out)
	}
}
