package feedconv

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedFeeds are real documents that lie beside the project, where they lie.
var sharedFeeds = filepath.Join("..", "..", "shared", "feeds")

// TestSharedFeeds compares what is read from real documents with a count over
// the XML or JSON by other means.
func TestSharedFeeds(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedFeeds, "*"))
	if len(files) == 0 {
		t.Skip("no documents in " + sharedFeeds)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			document, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ParseBytes(document, goldenOptions)
			switch filepath.Ext(name) {
			case ".html", ".opml":
				var notFeed *NotFeedError
				if !errors.As(err, &notFeed) || notFeed.HTML != (filepath.Ext(name) == ".html") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Warnings) > 0 {
				t.Errorf("got %v; want len(f.Warnings) == 0", f.Warnings)
			}
			invariants(t, f, goldenOptions)
			var titles []string
			if filepath.Ext(name) == ".json" {
				titles = jsonTitles(t, document)
			} else {
				titles = xmlTitles(t, document)
			}
			compareTitles(t, f, titles)
			for i := range f.Entries {
				if e := &f.Entries[i]; e.ID == "" || e.PubDate.IsZero() || e.Content == "" && e.Link == "" {
					t.Errorf("entry %d lacks something: %+v", i, e)
				}
			}
			for _, format := range encodings {
				checkRoundTrip(t, f, format)
			}
		})
	}
}

func compareTitles(t *testing.T, f *Feed, titles []string) {
	t.Helper()
	if len(f.Entries) != len(titles) || len(titles) == 0 {
		t.Fatalf("%d entries, want %d", len(f.Entries), len(titles))
	}
	for i, want := range titles {
		if got := f.Entries[i].Title; got != want {
			t.Errorf("title %d: %q, want %q", i, got, want)
		}
	}
}

// xmlTitles returns the titles of the items or entries of a document: HTML
// escaped once more than the XML needs, except in Atom where no type says so.
func xmlTitles(t *testing.T, document []byte) []string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	d.Strict = false
	var titles []string
	var path []string
	var title strings.Builder
	escaped, foreign := false, false // foreign: <media:title> and the like
	for {
		token, err := d.Token()
		if err == io.EOF {
			return titles
		} else if err != nil {
			t.Fatal(err)
		}
		n := len(path)
		inTitle := n > 1 && path[n-1] == "title" && !foreign && (path[n-2] == "item" || path[n-2] == "entry")
		switch token := token.(type) {
		case xml.StartElement:
			path = append(path, token.Name.Local)
			switch token.Name.Local {
			case "item", "entry":
				titles = append(titles, "")
			case "title":
				title.Reset()
				foreign = strings.Contains(token.Name.Space, "itunes") || strings.Contains(token.Name.Space, "mrss")
				escaped = token.Name.Space != "http://www.w3.org/2005/Atom"
				for _, a := range token.Attr {
					escaped = escaped || a.Name.Local == "type" && a.Value == "html"
				}
			}
		case xml.CharData:
			if inTitle {
				title.Write(token)
			}
		case xml.EndElement:
			if path = path[:n-1]; inTitle {
				s := title.String()
				if escaped {
					s = html.UnescapeString(s)
				}
				titles[len(titles)-1] = strings.Join(strings.Fields(s), " ")
			}
		}
	}
}

// jsonTitles returns the titles of a JSON Feed's or an RSS-in-JSON's items.
func jsonTitles(t *testing.T, document []byte) []string {
	t.Helper()
	type item struct {
		Title string `json:"title"`
	}
	var feed struct {
		Items []item `json:"items"`
		RSS   struct {
			Channel struct {
				Item []item `json:"item"`
			} `json:"channel"`
		} `json:"rss"`
	}
	if err := json.Unmarshal(document, &feed); err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, i := range append(feed.Items, feed.RSS.Channel.Item...) {
		titles = append(titles, strings.Join(strings.Fields(i.Title), " "))
	}
	return titles
}
