package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
)

// sample returns a feed whose entries have all elements.
func sample() *feedconv.Feed {
	day := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)
	return &feedconv.Feed{
		ID: "https://e/i", Title: "</title><entry>", Link: "https://e/", Archive: true, Updated: day,
		Links: []feedconv.Link{{Rel: "self", URL: "https://e/archive-0001"}, {Rel: "current", URL: "https://e/i?a&b"}, {Rel: "prev-archive", URL: "https://e/0"}},
		Entries: []feedconv.Entry{
			{
				ID: "urn:1", Title: "<id>a</id>", Content: `<audio><source src="x"/></audio><source>y</source>`, Type: "application/xhtml+xml", PubDate: day, Updated: day.Add(time.Hour),
				Language: "fr", Categories: []string{"c"}, Duration: time.Minute, Source: &feedconv.Source{ID: "urn:s", Title: "S", URL: "https://s/"},
				Authors: []feedconv.Person{{Name: "<updated>"}}, Enclosures: []feedconv.Enclosure{{URL: "https://e/m", Type: "a/b", Length: 1}},
			},
			{ID: "2", Title: "<guid>", Content: "plain", Type: "text/plain", PubDate: day, Updated: day, Source: &feedconv.Source{URL: "https://s/"}},
		},
	}
}

func encode(t *testing.T, format string, f *feedconv.Feed) []byte {
	t.Helper()
	var b bytes.Buffer
	err := feedconv.EncodeAtom(&b, f)
	if format == "rss" {
		b.Reset()
		err = feedconv.EncodeRSS(&b, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	for _, format := range []string{"atom", "rss"} {
		f := sample()
		doc, err := Read(encode(t, format, f))
		if err != nil {
			t.Fatal(err)
		}
		if !doc.Archive || doc.Links["current"] != "https://e/i?a&b" || doc.Links["prev-archive"] != "https://e/0" || len(doc.Entries) != 2 {
			t.Errorf("%s: %+v", format, doc)
		}
		for i, e := range doc.Entries {
			was := f.Entries[i]
			if e.ID != was.ID || !e.Updated.Truncate(time.Second).Equal(was.Updated.Truncate(time.Second)) {
				t.Errorf("%s: %+v of %+v", format, e, was)
			}
			alone := func(change func(*feedconv.Entry)) string {
				one := was
				change(&one)
				return Printed(encode(t, format, &feedconv.Feed{Title: "Another feed", Entries: []feedconv.Entry{one}}))
			}
			for name, change := range map[string]func(*feedconv.Entry){
				"nothing": func(*feedconv.Entry) {},
				"id":      func(e *feedconv.Entry) { e.ID = "https://e/other" },
				"link":    func(e *feedconv.Entry) { e.Source = &feedconv.Source{ID: "urn:t", Title: "T", URL: "https://t/"} },
				"updated": func(e *feedconv.Entry) { e.Updated = e.Updated.Add(time.Second) },
			} {
				if alone(change) != e.Digest {
					t.Errorf("%s: entry %d is another version when %s changes", format, i, name)
				}
			}
			for name, change := range map[string]func(*feedconv.Entry){
				"title":   func(e *feedconv.Entry) { e.Title += "!" },
				"content": func(e *feedconv.Entry) { e.Content = strings.ReplaceAll(e.Content, "a", "b") },
				"date":    func(e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Second) },
			} {
				if alone(change) == e.Digest {
					t.Errorf("%s: entry %d is the same version when %s changes", format, i, name)
				}
			}
		}
		empty, err := Read(encode(t, format, &feedconv.Feed{}))
		if err != nil || empty.Archive || len(empty.Entries) > 0 {
			t.Errorf("%s: got %+v, %v; want err == nil and !empty.Archive and len(empty.Entries) == 0", format, empty, err)
		}
	}
	for _, bad := range []string{"", "x", "<feed>", "<html></html>", "{}", "<feed><entry></entry></feed>", `<rss><channel><item><guid>1</guid><pubDate>soon</pubDate></item></channel></rss>`} {
		if doc, err := Read([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v; want err != nil", bad, doc)
		}
	}
}

// WithNext adds only the link to the next archive, and Read returns it.
func TestWithNext(t *testing.T) {
	for _, format := range []string{"atom", "rss"} {
		old := encode(t, format, sample())
		keep := bytes.Clone(old)
		data, err := WithNext(old, `https://e/?a=1&b="2"`)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Read(data)
		if err != nil || doc.Links["next-archive"] != `https://e/?a=1&b="2"` || !bytes.Equal(old, keep) {
			t.Errorf("%s: got %+v, %v; want err == nil and doc.Links[\"next-archive\"] == `https://e/?a=1&b=\"2\"` and bytes.Equal(old, keep)", format, doc, err)
		}
		var added []string
		lines := strings.Split(string(old), "\n")
		for i, l := range strings.Split(string(data), "\n") {
			if n := i - len(added); n >= len(lines) || lines[n] != l {
				added = append(added, strings.TrimSpace(l))
			}
		}
		if len(added) != 1 || !strings.Contains(added[0], "next-archive") {
			t.Errorf("%s: added %q", format, added)
		}
		// The document has the same links as one that was encoded with the link.
		f := sample()
		f.Links = append(f.Links, feedconv.Link{Rel: "next-archive", URL: `https://e/?a=1&b="2"`})
		want, err := feedconv.ParseBytes(encode(t, format, f), feedconv.Options{})
		got, err2 := feedconv.ParseBytes(data, feedconv.Options{})
		if err != nil || err2 != nil || len(want.Links) != len(got.Links) || !got.Archive {
			t.Errorf("%s: got %+v, %v, %v; want err == nil and err2 == nil and len(want.Links) == len(got.Links) and got.Archive", format, got, err, err2)
		}
	}
	f := sample()
	f.Archive = false
	if data, err := WithNext(encode(t, "atom", f), "https://e/"); err == nil {
		t.Errorf("WithNext changes a document that is not an archive: %s", data)
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("../../../feedconv/testdata/golden/*.xml")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, p := range paths[:min(len(paths), 40)] {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><fh:archive/>` + "\n" + `<entry><id>1</id></entry></feed>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Read(data)
		if err != nil {
			return
		}
		for _, e := range doc.Entries {
			if e.ID == "" || !strings.HasPrefix(e.Digest, printed) {
				t.Fatalf("got %+v; want e.ID != \"\" and strings.HasPrefix(e.Digest, printed)", e)
			}
		}
		next, err := WithNext(data, "https://e/")
		if err == nil && len(next) <= len(data) {
			t.Fatal("nothing was added")
		}
		_ = Printed(data)
	})
}
