package feedconv

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRelativePermalinks(t *testing.T) {
	runItems(t, []itemTest{
		{"explicit", rssItem, `<guid isPermaLink="true">/blog/a</guid>`, "http://example.com/blog/a"},
		{"explicit, of the directory", rssItem, `<guid isPermaLink="True">a/b.html</guid>`, "http://example.com/dir/a/b.html"},
		{"implicit", rssItem, `<guid>/blog/a</guid>`, "http://example.com/blog/a"},
		{"under a base", rssItem, `<guid xml:base="http://other.example/x/" isPermaLink="true">a/b</guid>`, "http://other.example/x/a/b"},
		{"the link first", rssItem, `<guid isPermaLink="true">/blog/a</guid><link>http://a/</link>`, "http://a/"},
		{"no permalink", rssItem, `<guid isPermaLink="false">/blog/a</guid>`, ""},
		{"a number", rssItem, `<guid isPermaLink="true">12345</guid>`, ""},
		{"words", rssItem, `<guid isPermaLink="true">a / b</guid>`, ""},
		{"urn", rssItem, `<guid isPermaLink="true">urn:a/b</guid>`, ""},
	}, func(e Entry) any { return e.Link })
	if e := rssItem(t, `<guid isPermaLink="true">/blog/a</guid>`); e.GUID != "/blog/a" || e.ID != "/blog/a" {
		t.Errorf("the identifier is %q", e.GUID)
	}
}

// A URL that a browser would run or find on the reader's disk is no link, wherever a
// link may stand and however it is hidden.
func TestNoLinks(t *testing.T) {
	for _, bad := range []string{"javascript:alert(1)", "JavaScript:alert(1)", " java\n\tscript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "about:blank", "blob:x", "x-evil:y"} {
		attr := strings.NewReplacer("\n", "&#10;", "\t", "&#9;").Replace(bad)
		js := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(bad)
		for name, e := range map[string]Entry{
			"rss": rssItem(t, `<guid isPermaLink="true">`+bad+`</guid><link>`+bad+`</link><comments>`+bad+`</comments><enclosure url="`+attr+`"/><author>`+bad+`</author>`+
				`<itunes:image href="`+attr+`"/><media:content url="`+attr+`"/><source url="`+attr+`">s</source><atom:author><atom:name>A</atom:name><atom:uri>`+bad+`</atom:uri></atom:author>`),
			"atom": atomItem(t, `<id>1</id><link href="`+attr+`"/><link rel="enclosure" href="`+attr+`"/><link rel="replies" href="`+attr+`"/><content src="`+attr+`"/>`+
				`<author><name>A</name><uri>`+bad+`</uri></author><media:thumbnail url="`+attr+`"/><source><title>s</title><link href="`+attr+`"/><link rel="self" href="`+attr+`"/></source>`),
			"json": jsonItem(t, `"id": "1", "url": "`+js+`", "external_url": "`+js+`", "image": "`+js+`", "attachments": [{"url": "`+js+`"}], "authors": [{"name": "A", "url": "`+js+`"}]`),
		} {
			src := Source{}
			if e.Source != nil {
				src = *e.Source
			}
			var person string
			for _, p := range e.Authors {
				person += p.URL
			}
			if got := e.Link + e.Comments + e.Image + person + src.Link + src.URL; got != "" || len(e.Enclosures) != 0 {
				t.Errorf("%s, %q: got %q %v; want got == \"\" and len(e.Enclosures) == 0", name, bad, got, e.Enclosures)
			}
		}
		f := rssChannel(t, `<link>`+bad+`</link><link>http://e/</link><image><url>`+bad+`</url></image><atom:link rel="hub" href="`+attr+`"/><item><title>x</title></item>`)
		if f.Link != "http://e/" || f.Image != "" || len(f.Links) != 0 {
			t.Errorf("feed, %q: %q %q %v", bad, f.Link, f.Image, f.Links)
		}
	}
	for _, good := range []string{"http://e/", "HTTPS://e/", "mailto:a@e", "ftp://e/x", "gemini://e/", "tel:+1", "magnet:?xt=1"} {
		if e := rssItem(t, `<link>`+good+`</link>`); e.Link != good {
			t.Errorf("%q: got %q, want %q", good, e.Link, good)
		}
	}
	e := rssItem(t, `<link>javascript:x</link><atom:link href="data:y"/><atom:link href="http://e/1"/>`)
	if e.Link != "http://e/1" {
		t.Errorf("the next link is taken: %q", e.Link)
	}
}

func TestCoAuthors(t *testing.T) {
	ann, bob := Person{Name: "Ann", Email: "ann@e.example"}, Person{Name: "Bob"}
	runItems(t, []itemTest{
		{"author twice", rssItem, `<author>ann@e.example (Ann)</author><author>Bob</author>`, []Person{ann, bob}},
		{"creators beside an author", rssItem, `<author>ann@e.example (Ann)</author><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>`, []Person{ann, bob}},
		{"itunes twice", rssItem, `<itunes:author>Ann</itunes:author><itunes:author>Bob</itunes:author>`, []Person{{Name: "Ann"}, bob}},
		{"atom in RSS", rssItem, `<atom:author><atom:name>Ann</atom:name></atom:author><atom:author><atom:name>Bob</atom:name></atom:author>`, []Person{{Name: "Ann"}, bob}},
	}, func(e Entry) any { return e.Authors })
	runItems(t, []itemTest{
		{"atom", atomItem, `<id>1</id><contributor><name>Ann</name><email>ann@e.example</email></contributor><contributor><name>Bob</name></contributor>`, []Person{ann, bob}},
		{"dc", rssItem, `<dc:contributor>ann@e.example (Ann)</dc:contributor><dc:contributor>Bob</dc:contributor>`, []Person{ann, bob}},
		{"atom in RSS", rssItem, `<atom:contributor><atom:name>Bob</atom:name></atom:contributor>`, []Person{bob}},
	}, func(e Entry) any { return e.Contributors })
}

func TestNothingIsNoEntry(t *testing.T) {
	for _, doc := range []string{
		`<rss version="2.0"><channel><title>t</title>%<item><title>1</title></item></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>%<entry><title>1</title></entry></feed>`,
		`{"title": "t", "items": [%{"id": "1"}]}`,
	} {
		for _, nothing := range []string{`<item/>`, `<item> </item>`, `<item></item>`, `<item><title/><description> </description></item>`, `<item><link/></item>`} {
			nothing = strings.Repeat(nothing, 3)
			switch doc[1] {
			case 'f':
				nothing = strings.ReplaceAll(nothing, "item", "entry")
			case '"':
				nothing = `{}, {"title": "", "content_html": " "}, `
			}
			if f := mustParse(t, strings.Replace(doc, "%", nothing, 1), Options{MaxEntries: 1}); len(f.Entries) != 1 && len(f.Warnings) == 0 {
				t.Errorf("%s in %s: %+v", nothing, doc, f.Entries)
			}
			if f := mustParse(t, strings.Replace(doc, "%", nothing, 1), Options{}); len(f.Entries) != 1 {
				t.Errorf("%s in %s: %+v", nothing, doc, f.Entries)
			}
		}
	}
	if f := rssChannel(t, `<item><x:y xmlns:x="urn:x"/></item>`); len(f.Entries) != 1 {
		t.Error("an extension is something")
	}
}

func TestFeedsWithoutEntriesYet(t *testing.T) {
	for _, head := range []string{`<title/>`, `<subtitle>s</subtitle>`, `<author><name>A</name></author>`, `<generator>g</generator>`, `<logo>l</logo>`, `<rights>r</rights>`, `<id/><title/><updated/>`} {
		if f := atomChannel(t, head); len(f.Entries) != 0 {
			t.Errorf("%s: got %+v; want len(f.Entries) == 0", head, f)
		}
	}
}

func TestPodcastFields(t *testing.T) {
	const in = `<itunes:duration>1:02:03</itunes:duration><itunes:episode> 7 </itunes:episode><itunes:season>2</itunes:season>`
	for _, e := range []Entry{rssItem(t, in+`<title>x</title>`), atomItem(t, in+`<id>1</id>`)} {
		if e.Duration != time.Hour+2*time.Minute+3*time.Second || e.Episode != 7 || e.Season != 2 || len(e.Extensions) != 0 {
			t.Errorf("%+v", e)
		}
	}
	if e := jsonItem(t, `"id": "1", "attachments": [{"url": "a", "duration_in_seconds": 61.7}]`); e.Duration != 61*time.Second {
		t.Errorf("got %v, want %v", e.Duration, 61*time.Second)
	}
	for in, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1:30": 90 * time.Second, "90.5": 90 * time.Second, " 0:01:30 ": 90 * time.Second,
		"": 0, "x": 0, "-5": 0, "1:2:3:4": 0, "99999999999999": 0, "1:-2": 0,
	} {
		if got := duration(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestSource(t *testing.T) {
	e := atomItem(t, `<id>1</id><source><id>tag:s</id><title>S &amp; T</title><updated>2004-01-02T00:00:00Z</updated><link href="/page"/><link rel="self" href="feed"/><author><name>A</name></author></source>`)
	want := &Source{ID: "tag:s", Title: "S & T", URL: "http://example.com/dir/feed", Link: "http://example.com/page", Updated: time.Date(2004, 1, 2, 0, 0, 0, 0, time.UTC), Authors: []Person{{Name: "A"}}}
	if !reflect.DeepEqual(e.Source, want) {
		t.Errorf("got %+v, want %+v", e.Source, want)
	}
	if e := rssItem(t, `<title>x</title><source url="feed">S &amp;amp; T</source>`); !reflect.DeepEqual(e.Source, &Source{Title: "S & T", URL: "http://example.com/dir/feed"}) {
		t.Errorf("got %+v, want %+v", e.Source, &Source{Title: "S & T", URL: "http://example.com/dir/feed"})
	}
	if e := rssItem(t, `<title>x</title><source/>`); e.Source != nil {
		t.Errorf("got %+v, want %+v", e.Source, nil)
	}
}

func TestModuleImages(t *testing.T) {
	const image = "http://example.com/dir/i.png"
	runItems(t, []itemTest{
		{"itunes:link", rssItem, `<title>x</title><itunes:link rel="image" type="video/jpeg" href="i.png">text</itunes:link>`, image},
		{"itunes:link of another relation", rssItem, `<title>x</title><itunes:link rel="x" href="i.png"/>`, ""},
		{"itunes:image first", rssItem, `<title>x</title><itunes:link rel="image" href="j.png"/><itunes:image href="i.png"/>`, image},
		{"data is none", rssItem, `<title>x</title><itunes:image href="data:x"/><media:thumbnail url="i.png"/>`, image},
	}, func(e Entry) any { return e.Image })
	if f := rssChannel(t, `<itunes:link rel="image" href="i.png"/>`); f.Image != image {
		t.Errorf("feed: %q", f.Image)
	}
	runItems(t, []itemTest{
		{"rss", rssItem, `<title>x</title><media:content url="a.jpg"><media:description type="html">&lt;b&gt;d</media:description></media:content>`, "<b>d"},
		{"atom", atomItem, `<id>1</id><media:content url="a.jpg"><media:description type="html">&lt;b&gt;d</media:description></media:content>`, "<b>d"},
		{"atom, in a group", atomItem, `<id>1</id><media:group><media:content url="a.jpg"><media:description>d</media:description></media:content></media:group>`, "d"},
		{"of a picture", rssItem, `<title>x</title><media:content url="a.jpg" medium="image"><media:description>d</media:description></media:content>`, ""},
		{"of a picture by its type", atomItem, `<id>1</id><media:group><media:content url="a.jpg" type="image/jpeg"><media:description>d</media:description></media:content></media:group>`, ""},
		{"of a picture and of the entry", rssItem, `<title>x</title><media:content url="a.jpg" medium="image"><media:description>d</media:description></media:content><media:description>e</media:description>`, "e"},
		{"atom, a default namespace", atomItem, `<id>1</id><content xmlns="http://search.yahoo.com/mrss/" url="a.jpg"><description>d</description></content>`, "d"},
	}, func(e Entry) any { return e.Content })
}

func TestLongTitles(t *testing.T) {
	long := strings.Repeat("ä ", maxTitle)
	for name, f := range map[string]*Feed{
		"rss":  mustParse(t, `<rss version="2.0"><channel><title>`+long+`</title><item><title>`+long+`</title></item><item><title>`+long+`</title></item></channel></rss>`, Options{}),
		"atom": mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom"><title>`+long+`</title><entry><title>`+long+`</title></entry></feed>`, Options{}),
		"json": mustParse(t, `{"title": "`+long+`", "items": [{"title": "`+long+`"}]}`, Options{}),
	} {
		for _, title := range []string{f.Title, f.Entries[0].Title} {
			if n := len([]rune(title)); n > maxTitle || n < maxTitle-1 {
				t.Errorf("%s: %d characters", name, n)
			}
		}
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, "10000 characters") {
			t.Errorf("%s: got %v; want len(f.Warnings) == 1 and strings.Contains(f.Warnings[0].Text, \"10000 characters\")", name, f.Warnings)
		}
	}
	if e := rssItem(t, "<title>"+strings.Repeat("ä", maxTitle)+"</title>"); len(e.Title) != 2*maxTitle {
		t.Errorf("%d bytes", len(e.Title))
	}
}

func TestLongLists(t *testing.T) {
	for name, e := range map[string]*Feed{
		"rss":  rssChannel(t, `<item>`+manyEntries(maxList+1, `<category>%d</category>`)+`</item>`),
		"json": mustParse(t, `{"title": "t", "items": [{"id": "1", "tags": [`+manyEntries(maxList+1, `"%d",`)+`""]}]}`, Options{}),
	} {
		if len(e.Entries[0].Categories) != maxList || len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0].Text, "1000") {
			t.Errorf("%s: %d, %v", name, len(e.Entries[0].Categories), e.Warnings)
		}
	}
}

// A DOCTYPE of XHTML before the root does not make an HTML page of a feed.
func TestHTMLDoctypeBeforeFeed(t *testing.T) {
	for _, doctype := range []string{"<!DOCTYPE html>", `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">`} {
		for _, root := range []string{"<rss>", `<rss version="2.0">`} {
			if f := mustParse(t, doctype+root+`<channel><title>t</title><item><title>1</title></item></channel></rss>`, Options{}); len(f.Entries) != 1 || len(f.Warnings) != 0 {
				t.Errorf("%s%s: got %+v; want len(f.Entries) == 1 and len(f.Warnings) == 0", doctype, root, f)
			}
		}
		if f := mustParse(t, doctype+`<channel><title>t</title><item><title>1</title></item></channel>`, Options{}); len(f.Entries) != 1 {
			t.Errorf("%s: got %+v; want len(f.Entries) == 1", doctype, f)
		}
		if _, err := ParseBytes([]byte(doctype+`<head><title>x</title></head><channel><item/></channel>`), Options{}); err == nil {
			t.Error("a page is a page")
		}
	}
}
