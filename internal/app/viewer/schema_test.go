package viewer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/schema"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// schemaDir has an entry with all fields, and one without any.
func schemaDir(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	if _, err := f.Feed(viewdir.FeedID, "Alpha", "author=Editors", "etc/categories=Tech/Go\nNews"); err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Open(f.Path, &lektordir.Options{Now: func() time.Time { return viewdir.Now }})
	if err != nil {
		t.Fatal(err)
	}
	full := lektordir.Entry{
		Title: "All \x1b[31mof it\u202e", ID: "urn:x:full", Content: []byte("<p>A <a href=/l>link</a>.</p>"), Author: "Kim <kim@a.example>",
		PubDate: viewdir.Now.Add(-time.Hour), Type: "text/html", Link: "http://a.example/full", Updated: viewdir.Now, Summary: "Short.\nVery.",
		Enclosures: []lektordir.Enclosure{
			{URL: "http://a.example/1.mp3", Type: "audio/mpeg", Length: 12345}, {URL: "http://a.example/2\u009b", Length: -1}, {URL: "http://a.example/3", Type: "x/y\x1b", Length: 0},
		},
		Categories: []string{"x", "y"}, Comments: "http://a.example/c", Image: "http://a.example/i", Language: "en",
		Contributors: []string{"Ann", "Bo"}, Source: lektordir.Source{Title: "Elsewhere", ID: "urn:x:e"}, Duration: time.Minute, Episode: 2, Season: 1,
		InReplyTo: []lektordir.ReplyTo{{Ref: "urn:x:parent"}},
		Elements: lektordir.Elements{{Name: lektordir.Transcript, Attributes: []lektordir.Attribute{{Name: "url", Value: "http://a.example/t"}}},
			{Name: lektordir.Chapters, Attributes: []lektordir.Attribute{{Name: "url", Value: "http://a.example/c\u009b"}}}},
		FullText: lektordir.FullText{URL: "http://a.example/full/"}, FeedContent: []byte("A."),
	}
	if _, err := d.Deliver(t.Context(), &lektordir.Feed{ID: viewdir.FeedID, Name: "Alpha", Author: "Editors"}, lektordir.UpdateNew, full, lektordir.Entry{ID: "urn:x:least"}); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSchema: the schema in docs/ has exactly the fields that -o json prints.
func TestSchema(t *testing.T) {
	f := schemaDir(t)
	want := schema.Open(t, "lektor-view.schema.json")
	var names []string
	for _, c := range entrystore.Columns() {
		if !c.Extra || c.Full {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if got := want.Properties(); !slices.Equal(got, names) {
		t.Errorf("the schema has\n%q\nand -o json\n%q", got, names)
	}

	o := ListOptions{Common: f.Common(), Sort: "-title", Print: cmdline.PrinterOptions{Format: "json"}}
	if err := List(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	listed := f.Out.String()
	lines := strings.Split(strings.TrimSuffix(listed, "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), listed)
	}
	for i, line := range lines {
		if err := want.Check([]byte(line)); err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		has := sortedKeys(record)
		// The first entry by title is the one with all fields.
		if wanted := [][]string{names, want.Required()}[i]; !slices.Equal(has, wanted) {
			t.Errorf("a record has\n%q\nnot\n%q", has, wanted)
		}
		wrongly(t, want, record)
	}
	for _, part := range []string{
		`"title":"All [31mof it"`, `"folder":["Tech/Go","News"]`, `"summary":"Short.\nVery."`, `"content":"A link[1].\n\n[1] http://a.example/l"`,
		`"enclosures":[{"url":"http://a.example/1.mp3","type":"audio/mpeg","length":12345},{"url":"http://a.example/2"},{"url":"http://a.example/3","type":"x/y","length":0}]`,
		`"duration":60,"episode":2,"season":1`,
	} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("%s is not in\n%s", part, lines[0])
		}
	}
	if part := `"folder":["Tech/Go","News"],"delivered"`; !strings.Contains(lines[1], part) || !strings.Contains(lines[1], `"summary":"","content":""}`) || !strings.Contains(lines[1], `"enclosures":[]`) {
		t.Errorf("empty fields: %s", lines[1])
	}

	// show and next print the same records.
	var paths []string
	for _, line := range lines {
		var record struct{ Path string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, record.Path)
	}
	show := ShowOptions{Common: f.Common(), Names: session.Names{Args: paths}, Print: o.Print, Pager: Pager{Command: "false"}}
	err := Show(t.Context(), show, f.Streams(""))
	f.Want(err, listed)
	err = Next(t.Context(), ShowOptions{Common: f.Common(), Query: []string{"id:urn:x:full"}, Print: o.Print, Pager: Pager{Command: "false"}}, f.Streams(""))
	f.Want(err, lines[0]+"\n")
}

func sortedKeys(record map[string]any) []string {
	var keys []string
	for key := range record {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// wrongly checks that the schema refuses a record that is made invalid in various ways.
func wrongly(t *testing.T, s *schema.Schema, record map[string]any) {
	t.Helper()
	fails := func(what string) {
		data, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if s.Check(data) == nil {
			t.Errorf("the schema accepts %s: %s", what, data)
		}
	}
	record["unheard"] = "x"
	fails("a field that is not documented")
	delete(record, "unheard")
	for _, key := range sortedKeys(record) {
		v := record[key]
		for _, other := range []any{nil, map[string]any{}, []any{1}, 1.5} {
			record[key] = other
			fails(key + " of another type")
		}
		delete(record, key)
		if slices.Contains(s.Required(), key) {
			fails("a record without " + key)
		}
		record[key] = v
	}
	date := record["date"]
	for _, wrong := range []string{"", "yesterday", "2026-03-15", "2026-03-15T10:00:00+02:00", "2026-13-15T10:00:00Z"} {
		record["date"] = wrong
		fails("the date " + wrong)
	}
	record["date"] = date
	list, _ := record["enclosures"].([]any)
	record["enclosures"] = append(slices.Clone(list), "http://a.example/")
	fails("an enclosure that is a URL")
	record["enclosures"] = append(slices.Clone(list), map[string]any{"type": "a/b"})
	fails("an enclosure without a URL")
	record["enclosures"] = append(slices.Clone(list), map[string]any{"url": "x", "size": 1})
	fails("an enclosure with something else")
	record["enclosures"] = list
	data, err := json.Marshal(record)
	if err == nil {
		err = s.Check(data)
	}
	if err != nil {
		t.Errorf("the restored record: %v", err)
	}
}

// TestEnclosures: enclosures have fields in templates, and are printed as URLs elsewhere.
func TestEnclosures(t *testing.T) {
	f := schemaDir(t)
	for format, want := range map[string]string{
		"enclosures":                         "http://a.example/1.mp3, http://a.example/2, http://a.example/3",
		"id,enclosures":                      "urn:x:full\thttp://a.example/1.mp3, http://a.example/2, http://a.example/3",
		"{{range .enclosures}}{{.}} {{end}}": "http://a.example/1.mp3 http://a.example/2 http://a.example/3 ",
		"{{range .enclosures}}{{.url}}|{{.type}}|{{.length}} {{end}}":   "http://a.example/1.mp3|audio/mpeg|12345 http://a.example/2|| http://a.example/3|x/y|0 ",
		`{{.enclosures | join " "}}`:                                    "http://a.example/1.mp3 http://a.example/2 http://a.example/3",
		`{{.enclosures | text}}`:                                        "http://a.example/1.mp3, http://a.example/2, http://a.example/3",
		`{{index .enclosures 1 | json}}`:                                `{"url":"http://a.example/2"}`,
		`{{.folder | join "+"}}`:                                        "Tech/Go+News",
		`{{len .enclosures}}\t{{(index .enclosures 0).type | pad 5}}\n`: "3\taudi…",
	} {
		err := List(t.Context(), ListOptions{Common: f.Common(), Query: []string{"title:all"}, Print: cmdline.PrinterOptions{Format: format}}, f.Streams(""))
		f.Want(err, want+"\n")
	}
}
