package feedconv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRule15FirstOfSingleElements(t *testing.T) {
	said := func(e Entry) any {
		return strings.Join([]string{e.Title, e.GUID, e.Link, e.Content, e.Comments, e.PubDate.Format(time.DateOnly)}, "|")
	}
	runItems(t, []itemTest{
		{"rss", rssItem, `<title>1</title><title>2</title><guid>g1</guid><guid>g2</guid><link>http://e/1</link><link>http://e/2</link>
<description>d1</description><description>d2</description><comments>http://c/1</comments><comments>http://c/2</comments>
<pubDate>2022-11-01</pubDate><pubDate>2022-11-02</pubDate>`, "1|g1|http://e/1|d1|http://c/1|2022-11-01"},
		{"the first that says something", rssItem, `<title/><title> </title><title>2</title><guid></guid><guid>g2</guid><link/><link>http://e/2</link>
<description><![CDATA[]]></description><description>d2</description><comments/><comments>http://c/2</comments><pubDate/><pubDate>2022-11-02</pubDate>`, "2|g2|http://e/2|d2|http://c/2|2022-11-02"},
		{"content:encoded", rssItem, `<title>1</title><description>s</description><content:encoded>c1</content:encoded><content:encoded>c2</content:encoded>`, "1|||c1||0001-01-01"},
		{"a module is no second element", rssItem, `<media:title>m</media:title><title>1</title><dc:title>d</dc:title>`, "1|||||0001-01-01"},
		{"long texts", rssItem, `<title>1</title><description>` + strings.Repeat("a", 500) + `</description><description>` + strings.Repeat("b", 500) + `</description>`,
			"1|||" + strings.Repeat("a", 500) + "||0001-01-01"},
		{"atom", atomItem, `<title>1</title><title type="html">2</title><id>g1</id><id>g2</id><link href="http://e/1"/><link href="http://e/2"/>
<content type="html">c1</content><content>c2</content><published>2022-11-01</published><published>2022-11-02</published>`, "1|g1|http://e/1|c1||2022-11-01"},
		{"content elsewhere", atomItem, `<id>1</id><content src="http://e/1" type="text/html"/><content>c2</content>`, "|1|http://e/1|||0001-01-01"},
	}, said)

	f := rssChannel(t, `<title>no</title><link>http://e/1</link><link>http://e/2</link><description>d1</description><description>d2</description>
<pubDate>2022-11-01</pubDate><pubDate>2022-11-02</pubDate><ttl>60</ttl><ttl>120</ttl><generator>g1</generator><generator>g2</generator>
<cloud domain="a" port="80" path="/"/><cloud domain="b" port="80" path="/"/><category>c1</category><category>c2</category>
<image><url>http://e/1.png</url><url>http://e/2.png</url></image><image><url>http://e/3.png</url></image><skipHours><hour>1</hour><hour>2</hour></skipHours>`)
	if got := fmt.Sprintln(f.Title, f.Link, f.Description, f.PubDate.Day(), f.TTL, f.Generator, f.Clouds, f.Categories, f.Image, f.SkipHours); got !=
		"t http://e/1 d1 1 1h0m0s g1 [{a 80 /  }] [c1 c2] http://e/1.png [1 2]\n" {
		t.Error(got)
	}
	f = atomChannel(t, `<title>1</title><title>2</title><id>a</id><id>b</id><subtitle>s1</subtitle><subtitle>s2</subtitle><rights>r1</rights><rights>r2</rights>
<updated>2022-11-01</updated><updated>2022-11-02</updated><author><name>A</name><name>B</name><uri>http://a/</uri><uri>http://b/</uri></author><author><name>C</name></author>`)
	if got := fmt.Sprintln(f.Title, f.ID, f.Description, f.Copyright, f.Updated.Day(), f.Authors); got != "1 a s1 r1 1 [A C]\n" || f.Authors[0].URL != "http://a/" {
		t.Error(got, f.Authors)
	}
}

// An element inside a text element does not count as the outer element's.
func TestNestedInTextElements(t *testing.T) {
	for _, in := range []string{
		`<author>Laura<x:y><name>EVIL</name></x:y></author>`,
		`<author>Laura<name>EVIL</name></author>`,
		`<author><name>Laura</name><x:y><name>EVIL</name></x:y></author>`,
		`<author><x:y><name>EVIL</name></x:y><name>Laura</name></author>`,
		`<author><name>Laura</name><name>EVIL</name></author>`,
		`<author><name>Laura<x:y><name>EVIL</name></x:y></name></author>`,
		`<author>Laura<x:y><name>EVIL`,
		`<author>Laura<x:y><name>EVIL</author>`,
	} {
		for name, e := range map[string]*Feed{
			"rss":  mustParse(t, `<rss version="2.0"><channel><title>t</title><item><title>1</title>`+in+`</item></channel></rss>`, Options{}),
			"atom": mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><entry><id>1</id>`+in+`</entry></feed>`, Options{}),
		} {
			if len(e.Entries) != 1 || len(e.Entries[0].Authors) != 1 || e.Entries[0].Authors[0] != (Person{Name: "Laura"}) {
				t.Errorf("%s, %s: %+v", name, in, e.Entries)
			}
		}
	}
	e := rssItem(t, `<link>http://e/<x:y><link>http://evil/</link></x:y></link><comments>http://c/<b>x</b></comments><image>http://i/<x:y><url>http://evil/</url></x:y></image>`)
	if e.Link != "http://e/" || e.Comments != "http://c/" || e.Image != "http://i/" {
		t.Errorf("got %q %q %q; want e.Link == \"http://e/\" and e.Comments == \"http://c/\" and e.Image == \"http://i/\"", e.Link, e.Comments, e.Image)
	}
	e = rssItem(t, `<author><b>Laura</b> Roe</author>`)
	if len(e.Authors) != 1 || e.Authors[0].Name != "Laura Roe" {
		t.Errorf("got %+v; want len(e.Authors) == 1 and e.Authors[0].Name == \"Laura Roe\"", e.Authors)
	}
}

var entryTag = regexp.MustCompile(`<(?:item|entry)(?:\s[^>]*)?>`)

// A start tag of an entry that is missing anywhere leaves the feed what it is.
func TestMissingEntryTag(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedFeeds, "*"))
	for _, name := range append(goldenDocuments(t), files...) {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := ParseBytes(document, goldenOptions)
		if err != nil || whole.Format == JSONFeed || whole.Title == "" {
			continue
		}
		tags := entryTag.FindAllIndex(document, -1)
		for i, tag := range tags[:min(len(tags), 5)] {
			f, err := ParseBytes(slices.Concat(document[:tag[0]], document[tag[1]:]), goldenOptions)
			if err != nil {
				if len(tags) > 1 {
					t.Errorf("%s without tag %d: %v", name, i, err)
				}
				continue
			}
			if f.Title != whole.Title || whole.ID != "" && f.ID != whole.ID || whole.Link != "" && f.Link != whole.Link || whole.Description != "" && f.Description != whole.Description {
				t.Errorf("%s without tag %d is %q %q %q", name, i, f.Title, f.ID, f.Link)
			}
		}
	}
}

// A feed with any head is a feed that has no entries yet.
func TestRule15FeedWithAnyHead(t *testing.T) {
	for _, head := range []string{
		`<title>t</title>`, `<title/>`, `<id>x</id>`, `<updated>2022-11-18</updated>`, `<link href="http://e/"/>`, `<contributor><name>A</name></contributor>`,
		`<author><name>A</name></author>`, `<category term="x"/>`, `<rights>r</rights>`, `<generator>g</generator>`, `<icon>http://e/</icon>`, `<logo>http://e/</logo>`,
		`<subtitle>s</subtitle>`, `<fh:complete xmlns:fh="http://purl.org/syndication/history/1.0"/>`, `<dc:rights xmlns:dc="http://purl.org/dc/elements/1.1/">r</dc:rights>`, `<entry/>`,
	} {
		f, err := ParseBytes([]byte(`<feed xmlns="http://www.w3.org/2005/Atom">`+head+`</feed>`), Options{})
		if err != nil || len(f.Entries) != 0 {
			t.Errorf("%s: got %v; want err == nil and len(f.Entries) == 0", head, err)
		}
	}
	for _, head := range []string{`<copyright>r</copyright>`, `<tagline>s</tagline>`, `<info>i</info>`, `<modified>2022-11-18</modified>`} {
		if _, err := ParseBytes([]byte(`<feed version="0.3" xmlns="http://purl.org/atom/ns#">`+head+`</feed>`), Options{}); err != nil {
			t.Errorf("%s: %v", head, err)
		}
	}
	if _, err := ParseBytes([]byte(`<rss version="2.0"><channel/></rss>`), Options{}); err != nil {
		t.Error(err)
	}
	for _, document := range []string{
		`<feed/>`, `<feed></feed>`, `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"> </feed>`, `<feed><product>p</product></feed>`,
		`<feed>&lt;title>t</feed>`, `<feed><![CDATA[<title>]]></feed>`, `<feed><!-- <title>t</title> --></feed>`, `<feed><x><title>t</title></x></feed>`,
		`<rss/>`, `<rss version="2.0">&lt;channel></rss>`, `<rss><![CDATA[<channel>]]></rss>`, `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`,
	} {
		var notFeed *NotFeedError
		if f, err := ParseBytes([]byte(document), Options{}); !errors.As(err, &notFeed) {
			t.Errorf("%s: got %+v %v; want errors.As(err, &notFeed)", document, f, err)
		}
	}
}
