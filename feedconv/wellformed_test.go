package feedconv

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An item in an extension of an item is the extension's: the version that lost
// in Simple Sharing neither takes the place of the one that won nor renames the
// feed.
func TestItemsInExtensions(t *testing.T) {
	for _, ns := range []string{sse, "http://feedsync.org/2007/feedsync", "urn:unknown"} {
		for _, outer := range []string{"conflicts", "conflict", "other"} {
			f := mustParse(t, `<rss version="2.0" xmlns:sx="`+ns+`"><channel><title>Feed</title><item><guid>1</guid>
				<sx:sync id="1" version="3" conflict="true"><sx:`+outer+`><item><guid>1</guid><title>loser</title><link>http://e/loser</link></item></sx:`+outer+`></sx:sync>
				<title>winner</title></item><item><guid>2</guid><title>2</title></item></channel></rss>`, Options{})
			if f.Title != "Feed" || len(f.Entries) != 2 || f.Entries[0].Title != "winner" || f.Entries[0].Link != "" || f.Entries[1].ID != "2" || len(f.Warnings) != 0 {
				t.Errorf("%s %s: %q %+v %v", ns, outer, f.Title, f.Entries, f.Warnings)
			}
			if x := f.Entries[0].Extensions; len(x) != 1 || x[0].Children[0].Children[0].Children[1].Text != "loser" {
				t.Errorf("%s %s: extensions %+v", ns, outer, x)
			}
		}
	}
	f := mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:x="urn:x"><title>Feed</title><entry><id>a:1</id><x:y><entry><id>a:2</id><title>inner</title></entry></x:y>
		<title>outer</title></entry></feed>`, Options{})
	if len(f.Entries) != 1 || f.Entries[0].ID != "a:1" || f.Entries[0].Title != "outer" || len(f.Warnings) != 0 {
		t.Errorf("atom: %+v %v", f.Entries, f.Warnings)
	}
	// One that is cut off in such an item is not delivered by half.
	f = mustParse(t, `<rss version="2.0" xmlns:sx="`+sse+`"><channel><title>t</title><item><guid>1</guid></item><item><guid>2</guid>
		<sx:sync><sx:conflicts><item><guid>3</guid>`, Options{})
	if len(f.Entries) != 1 || f.Entries[0].ID != "1" || !f.Truncated {
		t.Errorf("cut off: %+v", f.Entries)
	}
}

// The children of an element that nobody knows are its own.
func TestChildrenOfUnknownElements(t *testing.T) {
	for _, in := range []string{
		`<video><guid>v</guid><title>clip</title><link>http://e/v</link><pubDate>1 Jan 2001</pubDate><item><title>x</title></item></video>`,
		`<items><title>clip</title></items>`, `<channel><title>clip</title></channel>`, `<rdf:Seq xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><title>clip</title></rdf:Seq>`,
		`<categories><title>clip</title><guid>v</guid></categories>`, `<feed><title>clip</title></feed>`,
		`<media:group xmlns:media="http://search.yahoo.com/mrss/"><title>clip</title><x:title xmlns:x="urn:x">clip</x:title></media:group>`,
		`<x:y xmlns:x="urn:x"><title>clip</title><channel><item><title>a</title></item></channel></x:y>`,
		`<description>a <item>b</item> <title>c</title></description>`,
		`<item><guid>v</guid><title>clip</title></item>`,
	} {
		for name, doc := range map[string]string{
			"before": item(in + `<guid>g</guid><title>own</title>`),
			"after":  item(`<guid>g</guid><title>own</title>` + in),
		} {
			f := mustParse(t, doc, Options{})
			if len(f.Entries) != 1 || f.Entries[0].ID != "g" || f.Entries[0].Title != "own" || f.Entries[0].Link != "" || !f.Entries[0].PubDate.IsZero() {
				t.Errorf("%s %s: %+v", name, in, f.Entries)
			}
			if wantWarnings := strings.Count(in, "<item>") - strings.Count(in, "</x:y>") - strings.Count(in, "<video>") - strings.Count(in, "<description>"); len(f.Warnings) != wantWarnings {
				t.Errorf("%s %s: got %v; want len(f.Warnings) == wantWarnings", name, in, f.Warnings)
			}
			without := mustParse(t, item(strings.Replace(in, in, "", 1)+`<title>own</title>`), Options{})
			if noID := mustParse(t, item(in+`<title>own</title>`), Options{}); len(noID.Entries) != 1 || noID.Entries[0].GUID != without.Entries[0].GUID {
				t.Errorf("%s: guid %q", in, noID.Entries[0].GUID)
			}
		}
	}
}

// foreignTrees are what may stand anywhere in a document and says nothing of
// it. № is a number that makes them differ.
var foreignTrees = []string{
	`<x№:a xmlns:x№="urn:foreign:№"><title>evil</title><guid>evil</guid><id>evil</id><link href="http://evil/">http://evil/</link><pubDate>1 Jan 2001</pubDate><updated>2001-01-01T00:00:00Z</updated></x№:a>`,
	`<y:a xmlns:y="urn:y"><item><title>evil №</title></item><entry><title>evil</title></entry><channel><title>evil</title><item/></channel></y:a>`,
	`<a xmlns="urn:default"><b><title>evil №</title><summary>evil</summary><content>evil</content></b><item/><entry/><description>evil</description></a>`,
	`<y:a xmlns:y="urn:y" title="evil" href="evil"/>`,
	`<y:a xmlns:y="urn:y">text <item xmlns="http://www.w3.org/2005/Atom"><author><name>evil №</name></author></item> text</y:a>`,
	`<video><guid>evil №</guid><title>evil</title><item><title>evil</title></item><entry/><y:a xmlns:y="urn:y"><title>evil</title></y:a></video>`,
	`<y:sync xmlns:y="http://feedsync.org/2007/feedsync"><y:conflicts><item><title>evil №</title><y:sync/></item></y:conflicts></y:sync>`,
	`<y:feed xmlns:y="urn:y"><rdf:li xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">evil №</dc:creator></rdf:li></y:feed>`,
	`<y:a xmlns:y="urn:y"><category>evil №</category><media:group xmlns:media="http://search.yahoo.com/mrss/"><media:title>evil</media:title></media:group></y:a>`,
}

// containers are the elements that have elements and no text of their own.
var containers = map[string]bool{
	"rss": true, "channel": true, "item": true, "feed": true, "entry": true, "RDF": true, "author": true, "source": true,
	"image": true, "group": true, "items": true, "textInput": true, "skipDays": true, "skipHours": true, "owner": true,
}

// placesFor returns the offsets of a well-formed document at which an element may be
// inserted, nil if it is not well-formed.
func placesFor(document []byte) []int {
	d := xml.NewDecoder(bytes.NewReader(document))
	var open []string
	var places []int
	for {
		token, err := d.Token()
		if err == io.EOF && len(open) == 0 {
			return places
		} else if err != nil {
			return nil
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			// An author of RSS is text, and so is its source.
			if (name == "author" || name == "source") && token.Name.Space != "http://www.w3.org/2005/Atom" && token.Name.Space != "http://purl.org/atom/ns#" || len(open) > 0 && !containers[open[len(open)-1]] {
				name = "text"
			}
			open = append(open, name)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 && containers[open[n-1]] {
			if at := int(d.InputOffset()); at >= 2 && string(document[at-2:at]) != "/>" {
				places = append(places, at)
			}
		}
	}
}

// A well-formed document is never torn: whatever stands in it that is of no
// format changes no field of any entry.
func TestForeignSubtreesChangeNothing(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedFeeds, "*"))
	documents := map[string][]byte{}
	for _, name := range append(files, goldenDocuments(t)...) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		documents[name] = b
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		for _, format := range []Format{Atom10, RSS20} {
			var b bytes.Buffer
			if err := encodeAs(&b, generated(r), format); err != nil {
				t.Fatal(err)
			}
			documents[fmt.Sprint(format, i)] = b.Bytes()
		}
	}
	tried := 0
	for name, document := range documents {
		places := placesFor(document)
		if places == nil {
			continue
		}
		var not *NotFeedError
		want, err := ParseBytes(document, goldenOptions)
		if errors.As(err, &not) {
			continue
		}
		tried++
		for range 6 {
			var out []byte
			last := 0
			step := 1 + r.IntN(1+len(places)/20)
			for i := r.IntN(step); i < len(places); i += step {
				out = append(append(out, document[last:places[i]]...), strings.ReplaceAll(foreignTrees[r.IntN(len(foreignTrees))], "№", fmt.Sprint(i))...)
				last = places[i]
			}
			out = append(out, document[last:]...)
			got, err := ParseBytes(out, goldenOptions)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if a, b := withoutExtensions(got), withoutExtensions(want); a != b {
				t.Errorf("%s:\n%s\nwant\n%s\n%.3000s", name, a, b, out)
				break
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d documents are well-formed", tried)
	}
}

func withoutExtensions(f *Feed) string {
	f.Extensions, f.Attributes = nil, nil
	for i := range f.Entries {
		f.Entries[i].Extensions, f.Entries[i].Attributes = nil, nil
	}
	return dumpResult(f, nil)
}
