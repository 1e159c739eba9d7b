package feedconv

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/text/markup"
)

// namespaces are those that the documents of the tests use.
const namespaces = ` xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"` +
	` xmlns:dcterms="http://purl.org/dc/terms/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"` +
	` xmlns:media="http://search.yahoo.com/mrss/" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:xhtml="http://www.w3.org/1999/xhtml"` +
	` xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"` +
	` xmlns:fh="http://purl.org/syndication/history/1.0" xmlns:source="http://source.scripting.com/" xmlns:rssCloud="http://rsscloud.org/"`

func mustParse(t *testing.T, document string, opts Options) *Feed {
	t.Helper()
	f, err := ParseBytes([]byte(document), opts)
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return f
}

// The three below make a document around an element's content, and parse it.

func rssItem(t *testing.T, content string) Entry {
	t.Helper()
	return onlyEntry(t, rssChannel(t, "<item>"+content+"</item>"))
}

func rssChannel(t *testing.T, content string) *Feed {
	t.Helper()
	return mustParse(t, `<rss version="2.0"`+namespaces+`><channel><title>t</title>`+content+`</channel></rss>`, goldenOptions)
}

func atomChannel(t *testing.T, content string) *Feed {
	t.Helper()
	return mustParse(t, `<feed xmlns="http://www.w3.org/2005/Atom"`+namespaces+`>`+content+`</feed>`, goldenOptions)
}

func atomItem(t *testing.T, content string) Entry {
	t.Helper()
	return onlyEntry(t, atomChannel(t, "<title>t</title><entry>"+content+"</entry>"))
}

func jsonItem(t *testing.T, content string) Entry {
	t.Helper()
	return onlyEntry(t, mustParse(t, `{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [{`+content+`}]}`, goldenOptions))
}

func onlyEntry(t *testing.T, f *Feed) Entry {
	t.Helper()
	if len(f.Entries) != 1 {
		t.Fatalf("%d entries", len(f.Entries))
	}
	return f.Entries[0]
}

// itemTest is an item of some format and what one field of it must be.
type itemTest struct {
	name string
	item func(*testing.T, string) Entry
	in   string
	want any
}

func runItems(t *testing.T, tests []itemTest, field func(Entry) any) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := field(test.item(t, test.in)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s: got %#v, want %#v", test.in, got, test.want)
			}
		})
	}
}

func TestRule13Link(t *testing.T) {
	runItems(t, []itemTest{
		{"native", rssItem, `<link>http://a/1</link><atom:link href="http://a/2"/><guid>http://a/3</guid>`, "http://a/1"},
		{"native, the first of two", rssItem, `<link>http://a/1</link><link>http://a/2</link>`, "http://a/1"},
		{"native, the first is empty", rssItem, `<link/><link>http://a/2</link>`, "http://a/2"},
		{"relative", rssItem, `<link>1?a=1&amp;b=2</link>`, "http://example.com/dir/1?a=1&b=2"},
		{"not encoded anew", rssItem, `<link>HTTP://Ex.ORG:80/a b/é/%7e/../x</link>`, "HTTP://Ex.ORG:80/a b/é/%7e/../x"},
		{"atom alternate", rssItem, `<atom:link rel="self" href="http://a/1"/><atom:link rel="alternate" href="http://a/2"/><guid>http://a/3</guid>`, "http://a/2"},
		{"permalink guid", rssItem, `<guid>http://a/3</guid>`, "http://a/3"},
		{"explicit permalink guid", rssItem, `<guid isPermaLink="true">https://a/3</guid>`, "https://a/3"},
		{"guid that is no permalink", rssItem, `<guid isPermaLink="false">http://a/3</guid>`, ""},
		{"guid that is no URL", rssItem, `<guid>3</guid>`, ""},
		{"atom: no rel", atomItem, `<id>1</id><link href="http://a/1"/>`, "http://a/1"},
		{"atom: a page is preferred", atomItem, `<id>1</id><link type="application/json" href="http://a/1"/><link type="text/html" href="http://a/2"/>`, "http://a/2"},
		{"atom: other relations", atomItem, `<id>1</id><link rel="edit" href="http://a/1"/><link rel="related" href="http://a/2"/>`, ""},
		{"atom: id is no link", atomItem, `<id>http://a/1</id>`, ""},
		{"atom: content elsewhere", atomItem, `<id>1</id><content type="text/html" src="http://a/1"/>`, "http://a/1"},
		{"json", jsonItem, `"url": "1", "external_url": "2"`, "http://example.com/dir/1"},
		{"json: external", jsonItem, `"external_url": "http://a/2"`, "http://a/2"},
	}, func(e Entry) any { return e.Link })
}

func TestRule14Id(t *testing.T) {
	runItems(t, []itemTest{
		{"guid", rssItem, `<guid isPermaLink="false"> 513abd:1 </guid><link>http://a/1</link>`, "513abd:1"},
		{"guid, byte for byte", rssItem, `<guid>HTTP://Ex.ORG/%7e?a&amp;b#c</guid>`, "HTTP://Ex.ORG/%7e?a&b#c"},
		{"guid is not resolved", rssItem, `<guid>/1</guid>`, "/1"},
		{"rdf:about", func(t *testing.T, s string) Entry {
			return onlyEntry(t, mustParse(t, `<rdf:RDF xmlns="http://purl.org/rss/1.0/"`+namespaces+`><channel><title>t</title></channel>`+s+`</rdf:RDF>`, goldenOptions))
		}, `<item rdf:about="http://a/1#x"><title>x</title><link>http://a/1</link></item>`, "http://a/1#x"},
		{"link", rssItem, `<link>/1</link>`, "http://example.com/1"},
		{"atom id, byte for byte", atomItem, `<id>HTTP://Ex.ORG/%7e/ü?a&amp;b#c</id><link href="http://a/1"/>`, "HTTP://Ex.ORG/%7e/ü?a&b#c"},
		{"atom id is not resolved", atomItem, `<id xml:base="http://a/">1</id>`, "1"},
		{"atom link", atomItem, `<link href="http://a/1"/>`, "http://a/1"},
		{"json id", jsonItem, `"id": "a b"`, "a b"},
		{"json number", jsonItem, `"id": 123456789012345678901234567890`, "123456789012345678901234567890"},
	}, func(e Entry) any { return e.ID })

	t.Run("digest", func(t *testing.T) {
		seen := map[string]string{}
		for _, s := range []string{
			"<title>a</title>", "<title>b</title>", "<description>a</description>", "<title>a</title><description>b</description>",
			"<title>ab</title>", "<title>a</title><pubDate>1 Jan 2004</pubDate>", "<title>a</title><pubDate>never</pubDate>", "<comments>http://a/</comments>",
		} {
			e := rssItem(t, s)
			if e.GUID != "" || len(e.ID) != len("urn:sha256:")+64 || !strings.HasPrefix(e.ID, "urn:sha256:") {
				t.Errorf("%s: id %q, guid %q", s, e.ID, e.GUID)
			}
			if other, ok := seen[e.ID]; ok {
				t.Errorf("%s and %s have one id", s, other)
			}
			seen[e.ID] = s
			if again := rssItem(t, s); again.ID != e.ID {
				t.Errorf("%s: another id the second time", s)
			}
		}
	})
}

func TestRule15WhichDate(t *testing.T) {
	const day = "2004-01-0"
	runItems(t, []itemTest{
		{"pubDate", rssItem, `<pubDate>Thu, 01 Jan 2004 00:00:00 GMT</pubDate><dcterms:issued>2004-01-02</dcterms:issued><dc:date>2004-01-03</dc:date>`, day + "1 " + day + "3"},
		{"one stands in", rssItem, `<pubDate>2004-01-01</pubDate>`, day + "1 " + day + "1"},
		{"updated stands in", rssItem, `<dc:date>2004-01-02</dc:date>`, day + "2 " + day + "2"},
		{"dcterms", rssItem, `<dcterms:issued>2004-01-02</dcterms:issued><dcterms:modified>2004-01-03</dcterms:modified><dc:date>2004-01-04</dc:date>`, day + "2 " + day + "3"},
		{"atom in RSS", rssItem, `<atom:published>2004-01-02</atom:published><atom:updated>2004-01-03</atom:updated>`, day + "2 " + day + "3"},
		{"the next if one is unreadable", rssItem, `<pubDate>x</pubDate><dcterms:issued>2004-01-02</dcterms:issued>`, day + "2 " + day + "2"},
		{"atom", atomItem, `<id>1</id><published>2004-01-02T00:00:00Z</published><updated>2004-01-03T00:00:00Z</updated>`, day + "2 " + day + "3"},
		{"atom 0.3 names", atomItem, `<id>1</id><issued>2004-01-02T00:00:00Z</issued><modified>2004-01-03T00:00:00Z</modified>`, day + "2 " + day + "3"},
		{"json", jsonItem, `"date_published": "2004-01-02T00:00:00Z", "date_modified": "2004-01-03"`, day + "2 " + day + "3"},
	}, func(e Entry) any { return e.PubDate.Format(time.DateOnly) + " " + e.Updated.Format(time.DateOnly) })

	runItems(t, []itemTest{
		{"none", rssItem, `<title>x</title>`, ""},
		{"unreadable", rssItem, `<pubDate> 30 Feb 2004 </pubDate>`, "30 Feb 2004"},
		{"readable", rssItem, `<pubDate>1 Feb 2004</pubDate>`, ""},
		{"unreadable, but another", rssItem, `<pubDate>30 Feb 2004</pubDate><dc:date>2004</dc:date>`, ""},
	}, func(e Entry) any { return e.PubDateRaw })

	f := rssChannel(t, `<pubDate>1 Jan 2004</pubDate><lastBuildDate>2 Jan 2004</lastBuildDate><dc:date>2004-01-03</dc:date>`)
	if f.PubDate.Day() != 1 || f.Updated.Day() != 2 {
		t.Errorf("feed: %v, %v", f.PubDate, f.Updated)
	}
}

func TestRule16Authors(t *testing.T) {
	ann := Person{Name: "Ann B.", Email: "ann@example.com"}
	runItems(t, []itemTest{
		{"mail (name)", rssItem, `<author>ann@example.com (Ann B.)</author>`, []Person{ann}},
		{"name (mail)", rssItem, `<author>Ann B. (ann@example.com)</author>`, []Person{ann}},
		{"name <mail>", rssItem, `<author>Ann B. &lt;ann@example.com&gt;</author>`, []Person{ann}},
		{"name <mailto:mail>", rssItem, `<author>Ann B. &lt;mailto:ann@example.com&gt;</author>`, []Person{ann}},
		{"name mail", rssItem, `<author>Ann B. ann@example.com</author>`, []Person{ann}},
		{"name, escaped twice", rssItem, `<author>Ann B. &amp;lt;ann@example.com&amp;gt;</author>`, []Person{ann}},
		{"mailto", rssItem, `<author>mailto:ann@example.com</author>`, []Person{{Email: "ann@example.com"}}},
		{"mail", rssItem, `<author>ann@example.com</author>`, []Person{{Email: "ann@example.com"}}},
		{"name", rssItem, `<author>Ann B.</author>`, []Person{{Name: "Ann B."}}},
		{"brackets in a name", rssItem, `<author>Ann (the great) B.</author>`, []Person{{Name: "Ann (the great) B."}}},
		{"at in a name", rssItem, `<author>Ann @ work</author>`, []Person{{Name: "Ann @ work"}}},
		{"URL", rssItem, `<author>http://example.com/ann</author>`, []Person{{URL: "http://example.com/ann"}}},
		{"author before dc", rssItem, `<author>A</author><dc:creator>B</dc:creator>`, []Person{{Name: "A"}}},
		{"every dc:creator", rssItem, `<dc:creator>A</dc:creator><dc:creator>B</dc:creator><dc:creator>A</dc:creator><itunes:author>C</itunes:author>`, []Person{{Name: "A"}, {Name: "B"}}},
		{"itunes", rssItem, `<itunes:author>C &amp;amp; D</itunes:author>`, []Person{{Name: "C & D"}}},
		{"atom in RSS", rssItem, `<atom:author><atom:name>A</atom:name><atom:email>a@example.com</atom:email></atom:author>`, []Person{{Name: "A", Email: "a@example.com"}}},
		{"none", rssItem, `<title>x</title>`, []Person(nil)},
		{"atom", atomItem, `<id>1</id><author><name> A </name><email>a@example.com</email><uri>/a</uri></author><author><name>B</name></author>`,
			[]Person{{Name: "A", Email: "a@example.com", URL: "http://example.com/a"}, {Name: "B"}}},
		{"atom: mail in the name", atomItem, `<id>1</id><author><name>a@example.com (A)</name></author>`, []Person{{Name: "A", Email: "a@example.com"}}},
		{"json", jsonItem, `"authors": [{"name": "A", "url": "a"}, {"name": "B", "url": "mailto:b@example.com"}, {}, "C", 5, null]`,
			[]Person{{Name: "A", URL: "http://example.com/dir/a"}, {Name: "B", Email: "b@example.com"}, {Name: "C"}, {Name: "5"}}},
		{"json: one", jsonItem, `"author": {"name": "A"}`, []Person{{Name: "A"}}},
	}, func(e Entry) any { return e.Authors })

	f := rssChannel(t, `<managingEditor>ann@example.com (Ann B.)</managingEditor><item><title>x</title></item>`)
	if !reflect.DeepEqual(f.Authors, []Person{ann}) || f.Entries[0].Authors != nil {
		t.Errorf("the feed's author: %v, its entry's: %v", f.Authors, f.Entries[0].Authors)
	}
}

func TestRule17Content(t *testing.T) {
	type result struct{ content, contentType, summary, summaryType string }
	html := func(content string) result { return result{content: content, contentType: markup.TypeHTML} }
	runItems(t, []itemTest{
		{"description", rssItem, `<description>&lt;b&gt;d&lt;/b&gt;</description>`, html("<b>d</b>")},
		{"content:encoded", rssItem, `<description>d</description><content:encoded>c</content:encoded>`, result{"c", markup.TypeHTML, "d", markup.TypeHTML}},
		{"both the same", rssItem, `<description>d</description><content:encoded>d</content:encoded>`, html("d")},
		{"xhtml:body", rssItem, `<description>d</description><xhtml:body><xhtml:p>c <xhtml:b>d</xhtml:b></xhtml:p></xhtml:body>`, result{"<p>c <b>d</b></p>", markup.TypeHTML, "d", markup.TypeHTML}},
		{"fullitem", rssItem, `<description>d</description><fullitem>c</fullitem>`, result{"c", markup.TypeHTML, "d", markup.TypeHTML}},
		{"atom:content", rssItem, `<description>d</description><atom:content type="html">c</atom:content>`, result{"c", markup.TypeHTML, "d", markup.TypeHTML}},
		{"summary in RSS", rssItem, `<atom:summary type="text">s</atom:summary>`, result{content: "s", contentType: markup.TypePlain}},
		{"itunes:summary", rssItem, `<description/><itunes:summary>s</itunes:summary>`, html("s")},
		{"CDATA", rssItem, `<description><![CDATA[<a href="x">&amp;</a>]]> &amp;lt;</description>`, html(`<a href="http://example.com/dir/x">&amp;</a> &lt;`)},
		{"none", rssItem, `<title>x</title>`, result{contentType: markup.TypePlain}},
		{"atom text", atomItem, `<id>1</id><content>a &lt;b&gt; &amp;amp;</content>`, result{content: "a <b> &amp;", contentType: markup.TypePlain}},
		{"atom html", atomItem, `<id>1</id><content type="html">&lt;a href="/x"&gt;&amp;amp;&lt;/a&gt;</content>`, html(`<a href="http://example.com/x">&amp;</a>`)},
		{"atom xhtml", atomItem, `<id>1</id><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>a &lt; b</p></div></content>`,
			result{content: "<p>a &lt; b</p>", contentType: markup.TypeXHTML}},
		{"atom other type", atomItem, `<id>1</id><content type="text/markdown">*a* &lt; b</content>`, result{content: "*a* < b", contentType: "text/markdown"}},
		{"atom summary only", atomItem, `<id>1</id><summary type="html">&lt;p&gt;s</summary>`, html("<p>s")},
		{"atom summary and content", atomItem, `<id>1</id><summary>s</summary><content type="html">c</content>`, result{"c", markup.TypeHTML, "s", markup.TypePlain}},
		{"json html before text", jsonItem, `"content_text": "t", "content_html": "<p>h"`, html("<p>h")},
		{"json text", jsonItem, `"content_text": "a <b>\r\nc", "summary": "s"`, result{"a <b>\nc", markup.TypePlain, "s", markup.TypePlain}},
	}, func(e Entry) any { return result{e.Content, e.Type, e.Summary, e.SummaryType} })
}

func TestRule18Title(t *testing.T) {
	runItems(t, []itemTest{
		{"plain", rssItem, `<title> a
 b	c </title>`, "a b c"},
		{"markup", rssItem, `<title>&lt;b&gt;a&lt;/b&gt;&lt;br&gt;c</title>`, "a c"},
		{"entities, once", rssItem, `<title>AT&amp;amp;T &amp;amp;amp; &amp;#8217;</title>`, "AT&T &amp; ’"},
		{"less than", rssItem, `<title>1 &lt; 2 &amp;&amp; 3 &gt; 2</title>`, "1 < 2 && 3 > 2"},
		{"no element of HTML", rssItem, `<title>Vec&lt;String&gt;</title>`, "Vec<String>"},
		{"CDATA", rssItem, `<title><![CDATA[a <i>b</i> &amp; c]]></title>`, "a b & c"},
		{"dc", rssItem, `<dc:title>d</dc:title><media:title>m</media:title>`, "d"},
		{"media", rssItem, `<title/><media:title>m</media:title>`, "m"},
		{"atom", rssItem, `<atom:title>a</atom:title>`, "a"},
		{"native first", rssItem, `<media:title>m</media:title><dc:title>d</dc:title><title>n</title>`, "n"},
		{"none", rssItem, `<description>micro</description>`, ""},
		{"atom text", atomItem, `<id>1</id><title>a &lt;b&gt; &amp;amp; c</title>`, "a <b> &amp; c"},
		{"atom type text", atomItem, `<id>1</id><title type="text">a &lt;b&gt; &amp;amp; c</title>`, "a <b> &amp; c"},
		{"atom html", atomItem, `<id>1</id><title type="html">a &lt;b&gt;c&lt;/b&gt; &amp;amp; d</title>`, "a c & d"},
		{"atom html in CDATA", atomItem, `<id>1</id><title type="html"><![CDATA[a <b>c</b> &amp; d]]></title>`, "a c & d"},
		{"atom xhtml", atomItem, `<id>1</id><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>c</b> &amp; &amp;amp;</div></title>`, "a c & &amp;"},
		{"json is text", jsonItem, `"title": "a <b>\n &amp;"`, "a <b> &amp;"},
	}, func(e Entry) any { return e.Title })
}

func TestRule19Categories(t *testing.T) {
	runItems(t, []itemTest{
		{"category", rssItem, `<category> a </category><category>b</category><category>a</category><category/>`, []string{"a", "b"}},
		{"itunes, nested", rssItem, `<itunes:category text="a"><itunes:category text="b"/></itunes:category>`, []string{"a", "b"}},
		{"keywords", rssItem, `<itunes:keywords>a, b,,a</itunes:keywords><media:keywords>c</media:keywords>`, []string{"a", "b", "c"}},
		{"media", rssItem, `<media:category label="L">a/b</media:category><media:category>c</media:category>`, []string{"L", "c"}},
		{"dc:subject", rssItem, `<dc:subject>a</dc:subject><dc:subject>b</dc:subject>`, []string{"a", "b"}},
		{"entities", rssItem, `<category>a &amp;amp; b</category>`, []string{"a & b"}},
		{"atom", atomItem, `<id>1</id><category term="a" label="A"/><category label="b"/><category term="http://a/b" label="c"/>`, []string{"a", "b", "c"}},
		{"json", jsonItem, `"tags": ["a", 5, null, {}, "a"]`, []string{"a", "5"}},
	}, func(e Entry) any { return e.Categories })
}

func TestRule19Enclosures(t *testing.T) {
	mp3 := Enclosure{URL: "http://example.com/dir/1.mp3", Type: "audio/mpeg", Length: 12}
	runItems(t, []itemTest{
		{"RSS", rssItem, `<enclosure url="1.mp3" type="audio/mpeg" length="12"/><enclosure url="2.mp3" length="x"/><enclosure type="x"/>`,
			[]Enclosure{mp3, {URL: "http://example.com/dir/2.mp3", Length: -1}}},
		{"atom in RSS", rssItem, `<atom:link rel="enclosure" href="1.mp3" type="audio/mpeg" length="12"/>`, []Enclosure{mp3}},
		{"media repeats", rssItem, `<enclosure url="1.mp3" length="0"/><media:content url="1.mp3" type="audio/mpeg" fileSize="12"/>`, []Enclosure{mp3}},
		{"media group", rssItem, `<media:group><media:content url="1.mp3" type="audio/mpeg" fileSize="12"/></media:group>`, []Enclosure{mp3}},
		{"atom", atomItem, `<id>1</id><link rel="enclosure" href="1.mp3" type="audio/mpeg" length="12"/>`, []Enclosure{mp3}},
		{"json", jsonItem, `"attachments": [{"url": "1.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 12}, {"mime_type": "x"}, 5]`, []Enclosure{mp3}},
		{"json: one", jsonItem, `"attachments": {"url": "1.mp3", "mime_type": "audio/mpeg", "size_in_bytes": "12"}`, []Enclosure{mp3}},
	}, func(e Entry) any { return e.Enclosures })
}

func TestRule19Image(t *testing.T) {
	const image = "http://example.com/dir/i.png"
	runItems(t, []itemTest{
		{"itunes href", rssItem, `<itunes:image href="i.png"/>`, image},
		{"itunes url", rssItem, `<itunes:image url="i.png"/>`, image},
		{"media", rssItem, `<media:thumbnail url="i.png"/>`, image},
		{"json", jsonItem, `"image": "i.png", "banner_image": "b.png"`, image},
	}, func(e Entry) any { return e.Image })

	for name, f := range map[string]*Feed{
		"RSS":    rssChannel(t, `<image><url>i.png</url><title>x</title></image>`),
		"itunes": rssChannel(t, `<itunes:image href="i.png"/><image><url>j.png</url></image>`),
		"atom":   atomChannel(t, `<id>1</id><icon>j.png</icon><logo>i.png</logo>`),
		"icon":   atomChannel(t, `<id>1</id><icon>i.png</icon>`),
	} {
		if f.Image != image {
			t.Errorf("%s: got %q, want %q", name, f.Image, image)
		}
	}
}

func TestRule19Language(t *testing.T) {
	for _, test := range []struct{ in, header, want string }{
		{`<language>en_US</language>`, "de", "en-US"},
		{`<dc:language>fr</dc:language>`, "de", "fr"},
		{``, "de_AT, en", "de-AT"},
		{`<language> </language>`, "", ""},
	} {
		f := mustParse(t, `<rss version="2.0"`+namespaces+`><channel><title>t</title>`+test.in+`</channel></rss>`, Options{ContentLanguage: test.header})
		if f.Language != test.want {
			t.Errorf("%s, %s: got %q, want %q", test.in, test.header, f.Language, test.want)
		}
	}
}

func TestRule20CloudItems(t *testing.T) {
	e := rssItem(t, `<description>&lt;p&gt;top&lt;/p&gt;</description><rssCloud:item><title>a &amp;amp; b</title><link>http://a/1?x&amp;y</link>
<description>d &lt;i&gt;e&lt;/i&gt;</description><rssCloud:item><description>deeper</description></rssCloud:item></rssCloud:item>
<rssCloud:item><title>c</title></rssCloud:item>`)
	want := `<p>top</p><ul><li><a href="http://a/1?x&amp;y">a &amp; b</a> d <i>e</i><ul><li>deeper</li></ul></li><li>c</li></ul>`
	if e.Content != want || e.Type != markup.TypeHTML {
		t.Errorf("got %s %s", e.Type, e.Content)
	}
	// The guide also has items in an element of their own.
	e = rssItem(t, `<title>t</title><rssCloud:items><rssCloud:item><title>a</title><rssCloud:items><rssCloud:item><description>deeper</description></rssCloud:item></rssCloud:items></rssCloud:item>
<rssCloud:item>c</rssCloud:item></rssCloud:items><pubDate>Mon, 02 Jan 2006 15:04:05 GMT</pubDate>`)
	if want := `<ul><li>a<ul><li>deeper</li></ul></li><li>c</li></ul>`; e.Content != want || e.PubDate.IsZero() {
		t.Errorf("got %s %s, want %s", e.PubDate, e.Content, want)
	}
}

func TestRule20CDFIsRefusedByName(t *testing.T) {
	_, err := ParseBytes([]byte(`<CHANNEL HREF="http://a/"><TITLE>t</TITLE><ITEM HREF="http://a/1"><TITLE>1</TITLE></ITEM></CHANNEL>`), Options{})
	var notFeed *NotFeedError
	if !errors.As(err, &notFeed) || !strings.Contains(notFeed.What, "CDF") {
		t.Errorf("got %v", err)
	}
}

func TestRule21HTMLAsFound(t *testing.T) {
	const in = `<p onclick=x()>unclosed <b>&nbsp;<SCRIPT>a<b</SCRIPT><img src='http://a/?a&b'></p><unknown/>` + "\n\ttab"
	for _, e := range []Entry{
		rssItem(t, `<description><![CDATA[`+in+`]]></description>`),
		rssItem(t, `<content:encoded><![CDATA[`+in+`]]></content:encoded>`),
		atomItem(t, `<id>1</id><content type="html"><![CDATA[`+in+`]]></content>`),
		atomItem(t, `<id>1</id><content type="html">`+strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(in)+`</content>`),
		jsonItem(t, `"content_html": "`+strings.NewReplacer("\n", `\n`, "\t", `\t`, `"`, `\"`).Replace(in)+`"`),
	} {
		if e.Content != in {
			t.Errorf("got %q, want %q", e.Content, in)
		}
	}
}

func TestFeedFields(t *testing.T) {
	f := rssChannel(t, `<atom:link rel="self" href="feed" type="application/rss+xml"/><atom:link rel="hub" href="http://hub/"/>
<atom10:link xmlns:atom10="http://www.w3.org/2005/Atom" rel="next" href="?2"/>
<cloud domain="d" port="80" path="/p" registerProcedure="r" protocol="xml-rpc"/>
<source:cloud>https://e/notify?x=1</source:cloud><source:cloud domain="g" port="x" path="/q" protocol="http-post"/>
<ttl> 60 </ttl><sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>
<skipHours><hour>0</hour><hour>24</hour><hour>7</hour><hour>25</hour></skipHours><skipDays><day>Saturday</day><day>nonday</day></skipDays>
<fh:complete/><fh:archive/>`)
	if want := []Link{{"self", "http://example.com/dir/feed", "application/rss+xml", ""}, {"hub", "http://hub/", "", ""},
		{"next", "http://example.com/dir/feed?2", "", ""}}; !reflect.DeepEqual(f.Links, want) {
		t.Errorf("links: %+v", f.Links)
	}
	if want := []Cloud{{"d", 80, "/p", "r", "xml-rpc"}, {"e", 443, "/notify?x=1", "", "https-post"}, {"g", 0, "/q", "", "http-post"}}; !reflect.DeepEqual(f.Clouds, want) {
		t.Errorf("clouds: %+v", f.Clouds)
	}
	if f.TTL != time.Hour || f.UpdateInterval != 15*time.Minute {
		t.Errorf("ttl %v, interval %v", f.TTL, f.UpdateInterval)
	}
	if !reflect.DeepEqual(f.SkipHours, []int{0, 7}) || !reflect.DeepEqual(f.SkipDays, []time.Weekday{time.Saturday}) {
		t.Errorf("skip %v, %v", f.SkipHours, f.SkipDays)
	}
	if !f.Complete || !f.Archive || f.Expired {
		t.Errorf("complete %t, archive %t, expired %t", f.Complete, f.Archive, f.Expired)
	}
}

func TestUpdateInterval(t *testing.T) {
	for _, test := range []struct {
		period, frequency string
		want              time.Duration
	}{
		{"hourly", "1", time.Hour}, {"hourly", "", time.Hour}, {"Daily", "2", 12 * time.Hour}, {"weekly", "0", 7 * 24 * time.Hour},
		{"", "", 0}, {"", "24", time.Hour}, {"sometimes", "", 0}, {"hourly", "-5", time.Hour},
	} {
		if got := updateInterval(test.period, test.frequency); got != test.want {
			t.Errorf("%q, %q: %v, want %v", test.period, test.frequency, got, test.want)
		}
	}
}

func TestTTLOutOfRange(t *testing.T) {
	for _, s := range []string{"", "x", "-5", "99999999999", "600000"} {
		if got := ttl(s); got != 0 {
			t.Errorf("%q: got %v, want %v", s, got, 0)
		}
	}
}

func TestPersonString(t *testing.T) {
	for want, p := range map[string]Person{
		"A <a@b>": {"A", "a@b", "http://c/"}, "A": {Name: "A", URL: "http://c/"}, "<a@b>": {Email: "a@b"}, "http://c/": {URL: "http://c/"}, "": {},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
