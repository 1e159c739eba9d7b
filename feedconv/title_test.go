package feedconv

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/text/markup"
)

// titleRow is a title as it stands in XML, and as readers show it: in RSS, and in Atom with
// type="html". The readers are sfeed 1.7, newsboat 2.21, feedparser 6.0.10 and rss-parser 3.13.0.
// In RSS all four show the text of the XML, as sfeed and rss-parser do in Atom.
type titleRow struct {
	xml string
	// text is the title as text.
	text string
	// newsboat and feedparser are their titles in Atom; empty if they are text.
	newsboat, feedparser string
	// ours is our title in both formats; empty if it is text.
	ours string
}

const nothing = "(nothing)"

var titleRows = []titleRow{
	// Titles that name elements.
	{xml: "Why &lt;script&gt; tags and &lt;b&gt; are back", text: "Why <script> tags and <b> are back", newsboat: "Why", feedparser: "Why <b>"},
	{xml: "&lt;script&gt; tags, &lt;style&gt; tags", text: "<script> tags, <style> tags", newsboat: nothing, feedparser: nothing},
	{xml: "All about &lt;style&gt; and CSS", text: "All about <style> and CSS", newsboat: "All about", feedparser: "All about"},
	{xml: "Handle &lt;script&gt; &#38; &lt;style&gt; in titles", text: "Handle <script> & <style> in titles", newsboat: "Handle", feedparser: "Handle"},
	{xml: "<![CDATA[The <table> tag]]>", text: "The <table> tag", newsboat: "The"},
	{xml: "The &lt;title&gt; element", text: "The <title> element", newsboat: "The  element", feedparser: "The  element"},
	{xml: "The &lt;textarea&gt; element", text: "The <textarea> element", newsboat: "The  element"},
	{xml: "Vec&lt;String&gt; in Rust", text: "Vec<String> in Rust", newsboat: "Vec in Rust", feedparser: "Vec in Rust"},
	{xml: "Using &lt;em&gt; and &lt;i&gt;", text: "Using <em> and <i>", newsboat: "Using  and"},
	{xml: "Use &lt;!-- comments --&gt; well", text: "Use <!-- comments --> well", newsboat: "Use  well"},
	{xml: "Why &lt;?php is long", text: "Why <?php is long", newsboat: "Why"},
	{xml: "The &lt;!DOCTYPE html&gt; line", text: "The <!DOCTYPE html> line", newsboat: "The  line", feedparser: "The  line"},
	{xml: "&lt;h1&gt;Head&lt;/h1&gt;", text: "<h1>Head</h1>", newsboat: "Head"},
	{xml: "&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two&lt;/p&gt;", text: "<p>One</p><p>two</p>", newsboat: "One"},
	// Text for readers of either kind.
	{xml: "5 &lt; 6", text: "5 < 6", newsboat: "5"},
	{xml: "a &lt; b &amp;&amp; c &gt; d", text: "a < b && c > d", newsboat: "a  d"},
	{xml: "AT&amp;T", text: "AT&T", newsboat: "ATT"},
	// Markup.
	{xml: "AT&amp;amp;T", text: "AT&amp;T", newsboat: "AT&T", ours: "AT&T"},
	{xml: "The &amp;copy; entity", text: "The &copy; entity", newsboat: "The © entity", ours: "The © entity"},
	{xml: "The &amp;amp;copy; entity", text: "The &amp;copy; entity", newsboat: "The &copy; entity", ours: "The &copy; entity"},
	{xml: "&lt;b&gt;Bold&lt;/b&gt; news", text: "<b>Bold</b> news", newsboat: "Bold news", ours: "Bold news"},
	{xml: "&amp;lt;b&amp;gt;Bold&amp;lt;/b&amp;gt; news", text: "&lt;b&gt;Bold&lt;/b&gt; news", newsboat: "<b>Bold</b> news", ours: "<b>Bold</b> news"},
	{xml: "&amp;lt;script&amp;gt; tags", text: "&lt;script&gt; tags", newsboat: "<script> tags", ours: "<script> tags"},
	{xml: "&lt;b&gt;&lt;script&gt;&lt;/b&gt; in bold", text: "<b><script></b> in bold", newsboat: nothing, feedparser: "<b></b>", ours: "<script> in bold"},
	{xml: "&lt;p&gt;Whole&lt;/p&gt;", text: "<p>Whole</p>", newsboat: "Whole", ours: "Whole"},
	{xml: "One&lt;br&gt;two", text: "One<br>two", newsboat: "One", feedparser: "One<br />two", ours: "One two"},
	{xml: "The &lt;br&gt; tag", text: "The <br> tag", newsboat: "The", feedparser: "The <br /> tag", ours: "The tag"},
	{xml: `A &lt;img src="x" alt="smile"&gt; face`, text: `A <img src="x" alt="smile"> face`, newsboat: "A [image 1] face",
		feedparser: `A <img alt="smile" src="x" /> face`, ours: "A smile face"},
	{xml: "&lt;![CDATA[In a section]]&gt;", text: "<![CDATA[In a section]]>", newsboat: nothing, feedparser: nothing, ours: "In a section"},
}

// The titles of entries and feeds, and the names of categories and authors, keep the words that
// other readers show.
func TestTitlesKeepTheirWords(t *testing.T) {
	for _, row := range titleRows {
		want := cmp.Or(row.ours, row.text)
		parse := func(format, document string) *Feed {
			f, err := ParseBytes([]byte(document), Options{})
			if err != nil {
				t.Fatalf("%s: %s: %v", format, row.xml, err)
			}
			return f
		}
		f := parse("RSS", `<rss version="2.0"><channel><title>`+row.xml+`</title><item><guid isPermaLink="false">1</guid><title>`+row.xml+
			`</title><category>`+row.xml+`</category><author>`+row.xml+`</author><source url="http://s.example/">`+row.xml+`</source></item></channel></rss>`)
		e := f.Entries[0]
		var author string
		if len(e.Authors) > 0 {
			author = e.Authors[0].Name
		}
		for name, got := range map[string]string{"feed": f.Title, "entry": e.Title, "category": strings.Join(e.Categories, "|"), "author": author, "source": e.Source.Title} {
			if got != want {
				t.Errorf("RSS, %s, %s: %q, want %q", name, row.xml, got, want)
			}
		}
		f = parse("RDF", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>x</title></channel><item rdf:about="http://r.example/1"><title>`+
			row.xml+`</title></item></rdf:RDF>`)
		if got := f.Entries[0].Title; got != want {
			t.Errorf("RDF, %s: %q, want %q", row.xml, got, want)
		}
		atom := `<feed xmlns="http://www.w3.org/2005/Atom"><id>f</id><title type="html">` + row.xml + `</title><entry><id>1</id><title type="html">` + row.xml +
			`</title><source><id>s</id><title type="html">` + row.xml + `</title></source></entry></feed>`
		f = parse("Atom", atom)
		for name, got := range map[string]string{"feed": f.Title, "entry": f.Entries[0].Title, "source": f.Entries[0].Source.Title} {
			if got != want {
				t.Errorf("Atom, %s, %s: %q, want %q", name, row.xml, got, want)
			}
		}
		f = parse("Atom text", strings.ReplaceAll(atom, ` type="html"`, ""))
		if got := f.Entries[0].Title; got != row.text {
			t.Errorf("Atom, text, %s: %q, want %q", row.xml, got, row.text)
		}
		f = parse("JSON Feed", fmt.Sprintf(`{"version": "https://jsonfeed.org/version/1.1", "title": %q, "items": [{"id": "1", "title": %[1]q}]}`, row.text))
		if got := f.Title + "|" + f.Entries[0].Title; got != row.text+"|"+row.text {
			t.Errorf("JSON Feed, %s: %q, want %q twice", row.xml, got, row.text)
		}
	}
}

// Published titles are escaped once, so that readers show their words, unless we would take them
// for markup. They come back as they are.
func TestEncodeRSSTitles(t *testing.T) {
	for _, row := range titleRows {
		f := &Feed{Title: row.text, Entries: []Entry{{ID: "1", Title: row.text, Source: &Source{Title: row.text, URL: "http://s.example/"}}}}
		var b bytes.Buffer
		if err := EncodeRSS(&b, f); err != nil {
			t.Fatal(err)
		}
		written := markup.EscapeText(row.text)
		if row.ours != "" {
			written = markup.EscapeText(written)
		}
		written = strings.ReplaceAll(written, "]]>", "]]&gt;")
		if n := strings.Count(b.String(), ">"+written+"</"); n != 3 {
			t.Errorf("%d titles of 3 are %s in\n%s", n, written, b.String())
		}
		back, err := ParseBytes(b.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e := back.Entries[0]; back.Title != row.text || e.Title != row.text || e.Source.Title != row.text {
			t.Errorf("%q comes back as %q, %q, %q", row.text, back.Title, e.Title, e.Source.Title)
		}
	}
}

// Markup in titles: pairs of phrasing elements, elements around the whole, line breaks and images.
func TestTitleMarkup(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"<b>a</b><I class='x y'>b</i >", "ab"},
		{`<a href="http://e.example/?a>b" title=x>c</a>`, "c"},
		{"<b><i>x</b></i>", "x"},
		{"<b><b>x</b>", "<b>x"},
		{"</b>x<b>", "</b>x<b>"},
		{"<b/>x", "<b/>x"},
		{"<em>Using</em> <em>", "Using <em>"},
		{"<video></video> and <object>x</object>", "<video></video> and <object>x</object>"},
		{" <div class=t>\n<p><b>a</b> b</p> </div>\n", "a b"},
		{"<b><p>a</p></b>", "a"},
		{"<p>a</p> b", "<p>a</p> b"},
		{"<p>a", "<p>a"},
		{"a<br/>b<BR />c", "a b c"},
		{"a<img src=x>b", "ab"},
		{`a <img alt='&eacute; "q"' src=x> b`, `a é "q" b`},
		{`a <IMG ALT="b" /> c`, "a b c"},
		{"The <img> tag, <img loading=lazy>", "The <img> tag, <img loading=lazy>"},
		{"<script>alert(1)</script>", "<script>alert(1)</script>"},
		{"a <b <b>c</b>", "a <b c"},
		{`<a href=http://e.example/">b</a>`, "b"},
		{`<a title="x>b</a>`, `<a title="x>b</a>`},
		{`<img src=x alt="a<br />b">`, "a<br />b"},
		{"<unknown-b>x</unknown-b>", "<unknown-b>x</unknown-b>"},
		{"<![CDATA[<b>a</b> &amp; b]]>", "a & b"},
		{"Using <![CDATA[ in titles", "Using <![CDATA[ in titles"},
		{"<![CDATA[ explained", "<![CDATA[ explained"},
	} {
		if got := titleText(test.in); got != test.want {
			t.Errorf("%q: %q, want %q", test.in, got, test.want)
		}
	}
	// XHTML has elements where HTML has text.
	e := atomItem(t, `<id>1</id><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <unknown>b</unknown> &lt;script&gt;<h1>c</h1></div></title>`)
	if want := "a b <script> c"; e.Title != want {
		t.Errorf("XHTML: %q, want %q", e.Title, want)
	}
}

// Reading a title takes linear time.
func TestTitleIsLinear(t *testing.T) {
	const n = 1 << 18
	for _, piece := range []string{"<", "<a", "<a ", "<a b=\"", "<a b='", "<!--", "<![CDATA[", "<a>", "</a>", "<a></a>", "<p>", "<p></p>", "<img ", "<img alt=", "&a", "<a b='>", "<a b=\"'>", "<a '=\">", "<a b c=d ", "<x y ", "<b>\"<a "} {
		titleText(strings.Repeat(piece, n/len(piece)))
		titleText(strings.Repeat(piece, n/len(piece)) + ">")
	}
}
