package feedconv

import (
	"fmt"
	"strings"
	"testing"
)

// Relative URLs in content are resolved against xml:base, a <base> in the HTML, the entry's link if
// it is on the host of the feed or of its site, the site, or the feed's URL, in this order.
func TestContentBase(t *testing.T) {
	const feed = "http://feed.example/dir/feed"
	for _, test := range []struct {
		name, url, base, site, link, content, want string
	}{
		{"xml:base", feed, "http://base.example/x/", "http://site.example/blog/", "http://site.example/blog/1/", `<base href="http://html.example/y/"><img src="i.png">`, "http://base.example/x/i.png"},
		{"relative xml:base", feed, "x/", "http://site.example/blog/", "http://site.example/blog/1/", `<img src="i.png">`, "http://feed.example/dir/x/i.png"},
		{"base in HTML", feed, "", "http://site.example/blog/", "http://site.example/blog/1/", `<BASE target="x"><base href="http://html.example/y/"><base href="http://no.example/"><img src="i.png">`, "http://html.example/y/i.png"},
		{"relative base in HTML", feed, "", "http://site.example/blog/", "http://site.example/blog/1/", `<base href="../y/"><img src="i.png">`, "http://site.example/blog/y/i.png"},
		{"base in HTML alone", "", "", "", "", `<base href="http://html.example/y/"><img src="i.png">`, "http://html.example/y/i.png"},
		{"base in HTML without a host", feed, "", "", "", `<base href="about:blank"><img src="i.png">`, "http://feed.example/dir/i.png"},
		{"link on the host of the site", feed, "", "http://site.example/blog/", "http://SITE.example/2026/1/", `<img src="i.png">`, "http://SITE.example/2026/1/i.png"},
		{"link on the host of the feed", feed, "", "http://site.example/blog/", "http://feed.example/2026/1/", `<img src="i.png">`, "http://feed.example/2026/1/i.png"},
		{"relative link", feed, "", "", "post/1/", `<img src="i.png">`, "http://feed.example/dir/post/1/i.png"},
		{"link elsewhere", feed, "", "http://site.example/blog/", "http://news.example/1/", `<img src="i.png">`, "http://site.example/blog/i.png"},
		{"no link", feed, "", "http://site.example/blog/", "", `<img src="i.png">`, "http://site.example/blog/i.png"},
		{"site alone", "", "", "http://site.example/blog/", "http://site.example/1/", `<img src="i.png">`, "http://site.example/1/i.png"},
		{"no site", feed, "", "", "http://news.example/1/", `<img src="i.png">`, "http://feed.example/dir/i.png"},
		{"nothing known", "", "", "", "http://news.example/1/", `<img src="i.png">`, "i.png"},
		{"root", feed, "", "", "http://feed.example/1/", `<img src="/i.png">`, "http://feed.example/i.png"},
	} {
		escaped := strings.NewReplacer("<", "&lt;", "&", "&amp;").Replace(test.content)
		xmlBase := ""
		if test.base != "" {
			xmlBase = ` xml:base="` + test.base + `"`
		}
		documents := map[string]string{
			"RSS": `<rss version="2.0"><channel><title>t</title><link>` + test.site + `</link><item` + xmlBase + `><guid>1</guid><description>` + escaped +
				`</description><link>` + test.link + `</link></item></channel></rss>`,
			"Atom": `<feed xmlns="http://www.w3.org/2005/Atom"><id>f</id><title>t</title><entry` + xmlBase + `><id>1</id><content type="html">` + escaped + `</content>`,
		}
		if test.link != "" {
			documents["Atom"] += `<link href="` + test.link + `"/>`
		}
		documents["Atom"] += `</entry>`
		if test.site != "" {
			documents["Atom"] += `<link href="` + test.site + `"/>`
		}
		documents["Atom"] += `</feed>`
		if test.base == "" {
			documents["JSON Feed"] = fmt.Sprintf(`{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "content_html": %q, "url": %q}], "home_page_url": %q}`, test.content, test.link, test.site)
			documents["RSS in JSON"] = fmt.Sprintf(`{"rss": {"channel": {"item": [{"guid": {"#value": "1", "isPermaLink": "false"}, "description": %q, "link": %q}], "link": %q}}}`, test.content, test.link, test.site)
		}
		for format, document := range documents {
			f, err := ParseBytes([]byte(document), Options{URL: test.url})
			if err != nil {
				t.Fatalf("%s, %s: %v", test.name, format, err)
			}
			if got := f.Entries[0].Content; !strings.HasSuffix(got, `<img src="`+test.want+`">`) {
				t.Errorf("%s, %s: %s, want %s", test.name, format, got, test.want)
			}
		}
	}
}

// The base of content is not that of links, which identify entries.
func TestContentBaseLeavesLinks(t *testing.T) {
	e := rssItem(t, `<link>/post/1/</link><comments>c</comments><enclosure url="a.mp3" type="audio/mpeg" length="1"/>`+
		`<description>&lt;a href="#top"&gt;&lt;a href="x"&gt;</description>`)
	if got := fmt.Sprint(e.Link, " ", e.Comments, " ", e.Enclosures[0].URL, " ", e.Content); got != `http://example.com/post/1/ http://example.com/dir/c http://example.com/dir/a.mp3 <a href="#top"><a href="http://example.com/post/1/x">` {
		t.Error(got)
	}
}

// The content of Atom entries is also that of other vocabularies.
func TestContentEncodedInAtom(t *testing.T) {
	const encoded = `<content:encoded>&lt;p&gt;full&lt;/p&gt;</content:encoded>`
	for _, test := range []struct{ name, in, content, summary string }{
		{"beside a summary", `<id>1</id><summary>short</summary>` + encoded, "<p>full</p>", "short"},
		{"alone", `<id>1</id>` + encoded, "<p>full</p>", ""},
		{"beside empty content", `<id>1</id><content/>` + encoded, "<p>full</p>", ""},
		{"beside content elsewhere", `<id>1</id><content src="http://e.example/" type="text/html"/>` + encoded, "<p>full</p>", ""},
		{"beside content", `<id>1</id><content>native</content>` + encoded, "native", ""},
		{"xhtml:body", `<id>1</id><summary>short</summary><xhtml:body><xhtml:p>full</xhtml:p></xhtml:body>`, "<p>full</p>", "short"},
	} {
		if e := atomItem(t, test.in); e.Content != test.content || e.Summary != test.summary {
			t.Errorf("%s: %q, %q", test.name, e.Content, e.Summary)
		}
	}
}

// CDATA that is escaped itself is removed, and its text is HTML.
func TestEscapedCDATA(t *testing.T) {
	for _, test := range []struct{ in, content, mime string }{
		{`&lt;![CDATA[&lt;p&gt;a &amp;amp; b&lt;/p&gt;]]&gt;`, "<p>a &amp; b</p>", "text/html"},
		{"\n&lt;![CDATA[&lt;img src=\"i.png\"&gt;]]&gt;&lt;p&gt;more", `<img src="http://example.com/dir/i.png"><p>more`, "text/html"},
		{`&lt;![CDATA[&lt;p&gt;cut`, "<p>cut", "text/html"},
		{"&lt;![CDATA[one\ntwo]]&gt;", "one\ntwo", "text/plain"},
		{"<![CDATA[<![CDATA[<p>a]]]]><![CDATA[>]]>", "<p>a", "text/html"},
		{`about &lt;![CDATA[x]]&gt;`, "about <![CDATA[x]]>", "text/html"},
	} {
		for format, e := range map[string]Entry{
			"description": rssItem(t, `<description>`+test.in+`</description>`),
			"encoded":     rssItem(t, `<content:encoded>`+test.in+`</content:encoded>`),
			"summary":     rssItem(t, `<itunes:summary>`+test.in+`</itunes:summary>`),
			"Atom":        atomItem(t, `<id>1</id><content type="html">`+test.in+`</content>`),
		} {
			if format == "Atom" && test.mime == "text/plain" {
				continue
			}
			if e.Content != test.content || e.Type != test.mime {
				t.Errorf("%s, %q: %q, %s", format, test.in, e.Content, e.Type)
			}
		}
	}
}

// The same holds for the description of a feed.
func TestEscapedCDATAInFeed(t *testing.T) {
	for name, f := range map[string]*Feed{
		"RSS":  rssChannel(t, "<description>&lt;![CDATA[&lt;p&gt;a&lt;/p&gt;&lt;p&gt;b&lt;/p&gt;]]&gt;</description>"),
		"Atom": atomChannel(t, `<title>t</title><subtitle type="html">&lt;![CDATA[&lt;p&gt;a&lt;/p&gt;&lt;p&gt;b&lt;/p&gt;]]&gt;</subtitle>`),
	} {
		if f.Description != "a b" {
			t.Errorf("%s: %q", name, f.Description)
		}
	}
}
