package feedconv

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the .golden files anew")

// goldenOptions are where the golden documents are said to have been found.
var goldenOptions = Options{URL: "http://example.com/dir/feed"}

// goldenDocuments returns the documents under testdata/golden: every file there
// that is not the expected result of another.
func goldenDocuments(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, name := range files {
		if filepath.Ext(name) != ".golden" {
			documents = append(documents, name)
		}
	}
	if len(documents) < 20 {
		t.Fatalf("only %d golden documents were found", len(documents))
	}
	return documents
}

// TestGolden compares each document with the feed beside it. To add a pair,
// add a document, run the test with -update, and read what it wrote.
func TestGolden(t *testing.T) {
	results := map[string]bool{}
	for _, name := range goldenDocuments(t) {
		golden := strings.TrimSuffix(name, filepath.Ext(name)) + ".golden"
		if results[golden] {
			t.Errorf("%s: two documents of this name", golden)
		}
		results[golden] = true
		t.Run(filepath.Base(name), func(t *testing.T) {
			document, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := dumpResult(ParseBytes(document, goldenOptions))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	stale, _ := filepath.Glob(filepath.Join("testdata", "golden", "*.golden"))
	for _, name := range stale {
		if !results[name] {
			t.Errorf("%s has no document", name)
		}
	}
}

// dumper writes a feed as lines "field: value"; the lines of a longer value
// follow indented.
type dumper struct {
	strings.Builder
	indent string
}

func (d *dumper) field(name, value string) {
	if value == "" {
		return
	}
	value = strings.ReplaceAll(value, "\n", "\n"+d.indent+"\t")
	fmt.Fprintf(d, "%s%s: %s\n", d.indent, name, value)
}

func (d *dumper) time(name string, t time.Time) {
	if !t.IsZero() {
		d.field(name, t.Format(time.RFC3339Nano))
	}
}

func (d *dumper) flag(name string, set bool) {
	if set {
		d.field(name, "yes")
	}
}

func dumpList[T any](d *dumper, name string, list []T) {
	for _, v := range list {
		d.field(name, fmt.Sprintf("%+v", v))
	}
}

func dumpPersons(d *dumper, list []Person) {
	for _, p := range list {
		d.field("author", p.String())
		if p.Name != "" || p.Email != "" {
			d.field("author-url", p.URL)
		}
	}
}

func dumpResult(f *Feed, err error) string {
	var d dumper
	if err != nil {
		d.field("error", err.Error())
		return d.String()
	}
	d.field("format", string(f.Format))
	d.field("id", f.ID)
	d.field("title", f.Title)
	d.field("description", f.Description)
	d.field("link", f.Link)
	d.field("language", f.Language)
	d.field("image", f.Image)
	d.field("copyright", f.Copyright)
	d.field("generator", f.Generator.String())
	dumpPersons(&d, f.Authors)
	dumpList(&d, "category", f.Categories)
	d.time("updated", f.Updated)
	d.time("published", f.PubDate)
	dumpList(&d, "links", f.Links)
	dumpList(&d, "cloud", f.Clouds)
	if f.TTL != 0 {
		d.field("ttl", f.TTL.String())
	}
	if f.UpdateInterval != 0 {
		d.field("update-interval", f.UpdateInterval.String())
	}
	dumpList(&d, "skip-hour", f.SkipHours)
	dumpList(&d, "skip-day", f.SkipDays)
	d.flag("complete", f.Complete)
	d.flag("archive", f.Archive)
	d.flag("expired", f.Expired)
	d.flag("truncated", f.Truncated)
	dumpList(&d, "attribute", f.Attributes)
	dumpList(&d, "extension", f.Extensions)
	dumpList(&d, "warning", f.Warnings)
	for i := range f.Entries {
		d.entry(&f.Entries[i])
	}
	return d.String()
}

func (d *dumper) entry(e *Entry) {
	d.WriteString("entry:\n")
	d.indent = "\t"
	d.field("id", e.ID)
	if e.GUID != e.ID {
		d.field("guid", cmp.Or(e.GUID, "none"))
	}
	d.field("link", e.Link)
	d.field("title", e.Title)
	dumpPersons(d, e.Authors)
	for _, p := range e.Contributors {
		d.field("contributor", p.String())
	}
	d.time("published", e.PubDate)
	if !e.Updated.Equal(e.PubDate) {
		d.time("updated", e.Updated)
	}
	d.field("published-raw", e.PubDateRaw)
	dumpList(d, "category", e.Categories)
	dumpList(d, "term", e.Terms)
	dumpList(d, "relation", e.Links)
	dumpList(d, "in-reply-to", e.InReplyTo)
	d.field("rights", e.Rights)
	dumpList(d, "enclosure", e.Enclosures)
	d.field("comments", e.Comments)
	d.field("image", e.Image)
	d.field("language", e.Language)
	if e.Duration != 0 {
		d.field("duration", e.Duration.String())
	}
	if e.Episode != 0 || e.Season != 0 {
		d.field("episode", fmt.Sprintf("%d of season %d", e.Episode, e.Season))
	}
	if e.Source != nil {
		d.field("source", fmt.Sprintf("%+v", *e.Source))
	}
	d.field("summary-type", e.SummaryType)
	d.field("summary", e.Summary)
	d.field("type", e.Type)
	d.field("content", e.Content)
	dumpList(d, "attribute", e.Attributes)
	dumpList(d, "extension", e.Extensions)
	d.indent = ""
}
