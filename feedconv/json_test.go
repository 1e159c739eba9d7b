package feedconv

import (
	"strings"
	"testing"
)

// JSON behind a mark against inclusion, and in a call, is JSON.
func TestWrappedJSON(t *testing.T) {
	const feed = `{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [{"id": "1", "title": "a ) }"}]}`
	for _, test := range []struct{ before, behind string }{
		{")]}',\n", ""}, {")]}'\n", "\n"}, {" )]}', ", ""}, {"\ufeff)]}',", ""},
		{"callback(", ");"}, {"jQuery_1.cb['x'](", ")"}, {"/**/ cb (\n", " ) ;\n"}, {"typeof cb === 'function' && cb(", ");"}, {"cb(", ""},
	} {
		f, err := ParseBytes([]byte(test.before+feed+test.behind), Options{})
		if err != nil || f.Title != "t" || len(f.Entries) != 1 || len(f.Warnings) != 1 || f.Warnings[0].Line != 1 || f.Truncated {
			t.Errorf("%q %q: %+v %v", test.before, test.behind, f, err)
		}
	}
	f, err := ParseBytes([]byte("cb(\n\n"+feed[:len(feed)-2]), Options{})
	if err != nil || !f.Truncated || len(f.Warnings) != 2 || f.Warnings[1].Line != 3 {
		t.Errorf("cut off: %+v %v", f, err)
	}
	// Junk before a feed of XML is none.
	f, err = ParseBytes([]byte(`warning({"a": 1}) <rss version="2.0"><channel><title>t</title></channel></rss>`), Options{})
	if err != nil || f.Format != RSS20 {
		t.Errorf("got %+v %v; want err == nil and f.Format == RSS20", f, err)
	}
	for _, s := range []string{")]}',", ")]}', x", "cb(", "cb({", `cb({"a": 1});`, `cb(1, {"items": []})`, `1cb({"items": []})`, `a b({"items": []})`} {
		if f, err := ParseBytes([]byte(s), Options{}); err == nil {
			t.Errorf("%q: got %+v; want err != nil", s, f)
		}
	}
}

// Wherever a document is cut, what is whole before the cut is given.
func TestJSONCutAnywhere(t *testing.T) {
	for _, document := range []string{
		`{"version": "https://jsonfeed.org/version/1", "title": "t", "items": [{"id": "1"}, {"id": "2", "tags": ["a"]}, {"id": "3"}], "x": "y"}`,
		`{"rss": {"channel": {"title": "t", "item": [{"guid": "1"}, {"guid": "2", "category": ["a"]}, {"guid": "3"}]}}}`,
		`{"type": "OrderedCollection", "orderedItems": [{"id": "1"}, {"id": "2", "tag": ["a"]}, {"id": "3"}], "x": "y"}`,
	} {
		for cut := range len(document) {
			whole := 0
			for i := range 3 {
				if end := strings.Index(document, `"`+string(rune('1'+i))+`"`); cut > end && strings.IndexByte(document[end:cut], '}') >= 0 {
					whole++
				}
			}
			f, err := ParseBytes([]byte(document[:cut]), Options{})
			switch {
			case whole == 0 && err == nil:
				t.Fatalf("%s: no error", document[:cut])
			case whole == 0:
			case err != nil:
				t.Fatalf("%s: %v", document[:cut], err)
			case len(f.Entries) != whole || !f.Truncated || len(f.Warnings) != 1:
				t.Fatalf("%s: %d entries, want %d; truncated %t, %v", document[:cut], len(f.Entries), whole, f.Truncated, f.Warnings)
			}
		}
	}
}

// A field of a wrong type costs nothing but itself.
func TestJSONWrongTypes(t *testing.T) {
	for _, bad := range []string{`null`, `true`, `5`, `-0.5`, `"x"`, `[]`, `{}`, `[[]]`, `[{}]`, `{"url": {}}`, `[null, "", 5]`} {
		feed := func(fields, around string) string {
			var b strings.Builder
			for name := range strings.FieldsSeq(fields) {
				b.WriteString(`"` + name + `": ` + bad + `, `)
			}
			return strings.ReplaceAll(around, "@", b.String())
		}
		for _, document := range []string{
			feed("title description home_page_url feed_url next_url icon favicon language expired author authors hubs",
				`{@ "version": "https://jsonfeed.org/version/1", "items": [{"id": "1"}]}`),
			feed("url external_url title content_html content_text summary image banner_image date_published date_modified author authors tags language attachments",
				`{"items": [{@ "id": "1"}]}`),
			feed("title link description language copyright generator pubDate lastBuildDate ttl skipHours skipDays managingEditor category image cloud source:cloud atom:link",
				`{"rss": {"channel": {@ "item": {"guid": "1"}}}}`),
			feed("title link description content:encoded pubDate author category comments enclosure itunes:image",
				`{"rss": {"channel": {"item": {@ "guid": "1"}}}}`),
			feed("name summary attributedTo updated url next first",
				`{@ "type": "Collection", "items": [{"id": "1"}]}`),
			feed("actor object url name nameMap content summary published updated tag attachment image replies attributedTo mediaType",
				`{"type": "Collection", "items": [{@ "id": "1"}]}`),
		} {
			f, err := ParseBytes([]byte(document), goldenOptions)
			if err != nil || len(f.Entries) != 1 || f.Entries[0].ID != "1" {
				t.Errorf("%s: got %+v, %v; want err == nil and len(f.Entries) == 1 and f.Entries[0].ID == \"1\"", document, f, err)
				continue
			}
			invariants(t, f, goldenOptions)
		}
	}
}
