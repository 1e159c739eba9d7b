package feedconv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/scan"
)

// item puts the children of an item into an RSS document.
func item(children string) string {
	return `<rss version="2.0"><channel><title>T</title><item>` + children + `</item></channel></rss>`
}

// entry puts the children of an entry into an Atom document.
func entry(children string) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry>` + children + `</entry></feed>`
}

func TestTidyRule4Root(t *testing.T) {
	feed := item("<title>x</title>")
	for name, doc := range map[string]string{
		"php warning":     "<br />\n<b>Warning</b>: mysql_connect() in <b>/x.php</b> on line <b>3</b><br />\n" + feed,
		"text":            "  oops\n" + feed,
		"far":             strings.Repeat("<!-- padding -->\n", 1000) + feed,
		"declaration":     "\n\n<?xml version='1.1' encoding='x'?>" + feed,
		"two BOMs":        "\uFEFF\uFEFF" + feed,
		"html page first": "<html><body>" + feed,
		"upper case":      strings.NewReplacer("rss", "RSS", "channel", "Channel", "item", "ITEM", "title", "Title").Replace(feed),
		"not before":      "<feeds><item/></feeds>" + feed,
		"after a comment": "<!-- <rss><channel> -->" + feed,
	} {
		t.Run(name, func(t *testing.T) {
			f, d := tidyRSS(t, doc, Options{})
			if len(f.Items) != 1 || f.Items[0].Title != "x" || d.Root != "rss" {
				t.Errorf("items %v, root %q\n%s", f.Items, d.Root, d.xml)
			}
		})
	}
	f, d := tidyRSS(t, "<channel><title>Bare</title><item><title>x</title></item></channel>", Options{})
	if f.Title != "Bare" || len(f.Items) != 1 || d.Root != "channel" {
		t.Errorf("bare channel: %q, %d items, root %q", f.Title, len(f.Items), d.Root)
	}
	for _, c := range []struct {
		doc, what string
		html      bool
	}{
		{`<!DOCTYPE html><html><head><title> Not
			a &amp; feed</title></head><body><script>var x = "<rss><channel>";</script>`, `an HTML page titled "Not a & feed"`, true},
		{"<html><body>hello", "an HTML page", true},
		{"<h1>404</h1>", "an HTML page", true},
		{`<?xml version="1.0"?><opml version="2.0"><body/></opml>`, "an OPML document", false},
		{`<urlset xmlns="x"></urlset>`, "a sitemap", false},
		{`<?xml version="1.0"?><foo><bar/></foo>`, "an XML document with the root element <foo>", false},
		{`<CHANNEL HREF="http://example.com/"><ITEM HREF="x"><TITLE>y</TITLE></ITEM></CHANNEL>`, "a CDF channel", false},
		{`<Channel href="http://example.com/"><Item href="x"/></Channel>`, "a CDF channel", false},
		{"just text", "text without a feed", false},
		{"a < b", "text without a feed", false},
		{"\x89PNG\r\n\x1a\n", "", false},
		{" \n", "an empty document", false},
		{"", "an empty document", false},
		{"<rs", "", false},
	} {
		_, err := tidyXML([]byte(c.doc), Options{})
		var nf *NotFeedError
		if !errors.As(err, &nf) {
			t.Errorf("%.40q: error %v", c.doc, err)
			continue
		}
		if !strings.Contains(nf.What, c.what) || nf.What == "" || nf.HTML != c.html {
			t.Errorf("%.40q: %q, HTML %v", c.doc, nf.What, nf.HTML)
		}
	}
}

func TestTidyRule5CommentsAndDoctype(t *testing.T) {
	doctype := `<!DOCTYPE rss PUBLIC "-//x" "http://example.com/x.dtd" [
		<!ENTITY hello "Hi &#33; >">
		<!ENTITY lt2 "&hello;">
		<!ENTITY ext SYSTEM "file:///etc/passwd">
		<!ENTITY % parm "x">
		<!ENTITY long "` + strings.Repeat("x", 1025) + `">
		<!-- <!ENTITY no "no"> ]> -->
	]>`
	f, d := tidyRSS(t, "<?xml version='1.0'?>"+doctype+item(
		"<!-- a -- b --><title>&hello; &lt2; &ext; &parm; &long; &no;</title><?php echo ?><!----><description><!-- x -->a<!-- y -->b</description>"), Options{})
	if got, want := f.Items[0].Title, "Hi ! > &lt2; &ext; &parm; &long; &no;"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
	if f.Items[0].Description != "ab" {
		t.Errorf("description %q", f.Items[0].Description)
	}
	wantClean(t, d)

	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `<!ENTITY e%d "v%d">`, i, i)
	}
	f, _ = tidyRSS(t, "<!DOCTYPE rss ["+many.String()+"]>"+item("<title>&e0; &e63; &e64;</title>"), Options{})
	if got := f.Items[0].Title; got != "v0 v63 &e64;" {
		t.Errorf("64 entities: %q", got)
	}

	// The billion laughs do not nest, and what little there is has an end.
	lol := `<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;"><!ENTITY big "` + strings.Repeat("x", 1024) + `">]>`
	_, d = tidyRSS(t, lol+item("<title>&lol2;</title><description>"+strings.Repeat("&big;", 100000)+"</description>"), Options{})
	if len(d.xml) > 3<<20 {
		t.Errorf("100,000 references to a kilobyte make %d bytes", len(d.xml))
	}

	// Unclosed markup does not swallow the document.
	for _, broken := range []string{"<!DOCTYPE rss [ <!ENTITY a 'b' ", `<!DOCTYPE rss "x`, "<!DOCTYPE rss ", "<!-- x ", "<? x "} {
		f, _ := tidyRSS(t, broken+">"+item("<title>x</title>"), Options{})
		if len(f.Items) != 1 {
			t.Errorf("%q: %d items", broken, len(f.Items))
		}
	}
	f, d = tidyRSS(t, item("<title>1</title>")[:60]+"<!-- never closed ><title>1</title></item><item><title>2</title></item></channel></rss>", Options{})
	if len(f.Items) != 2 {
		t.Errorf("unclosed comment: %d items", len(f.Items))
	}
	wantWarning(t, d, "comment is not closed")
}

func TestTidyRule6Characters(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\x08b\x00c\x1bd", "abcd"},
		{"&#8;a&#x1F;&#0;b", "ab"},
		{"a\uFFFEb\uFFFFc", "a\uFFFDb\uFFFDc"},
		{"&#xFFFE;&#55296;&#x110000;&#99999999999999999999;", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"it\u0092s &#150; &#x80;", "it’s – €"},
		{"caf&eacute;&nbsp;&hellip;&Auml;&NotEqualTilde;", "café\u00a0…Ä≂̸"},
		{"&amp;amp; &lt;b&gt; &quot;&apos;", `&amp; <b> "'`},
		{"AT&T & Co &copy 2 &unknown; &notit; &; &#; &#x; &#xZ; &a b;", "AT&T & Co &copy 2 &unknown; &notit; &; &#; &#x; &#xZ; &a b;"},
		{"if(a<b && c>d) <x|y>", "if(a<b && c>d) <x|y>"},
		{"a < b <3 <1abc> <> x<y <", "a < b <3 <1abc> <> x<y <"},
		{"<me@example.com> <http://example.com/>", "<me@example.com> <http://example.com/>"},
		{"a]]>b", "a]]>b"},
		{"&#13;&#10;a&#13;b\r\nc\rd", "a\nb\nc\nd"},
		{"<![CDATA[&amp; <b> \x01]]>", "&amp; <b> "},
		{"<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"},
		{"a&#13;&#13;&#10;b&#13;&#13;c&#13;\nd", "a\n\nb\n\nc\nd"},
		{"tab\there", "tab\there"},
	} {
		for _, doc := range []string{item("<title>" + c.in + "</title>")} {
			f, _ := tidyRSS(t, doc, Options{})
			if got := f.Items[0].Title; got != c.want {
				t.Errorf("%q: %q, want %q", c.in, got, c.want)
			}
		}
		x, _ := tidyRSS(t, item("<dc:title>"+c.in+"</dc:title>"), Options{})
		if got := value1(x.Items[0].Extensions, "dc", "title"); got != strings.TrimSpace(c.want) {
			t.Errorf("dc, %q: %q, want %q", c.in, got, c.want)
		}
		a, _ := tidyAtom(t, entry("<title type='html'>"+c.in+"</title>"), Options{})
		if got := a.Entries[0].Title; got != c.want {
			t.Errorf("atom, %q: %q, want %q", c.in, got, c.want)
		}
	}
	_, d := tidyRSS(t, "\n"+item("\n<title>a\x08</title>"), Options{})
	wantWarning(t, d, "line 3: control characters were dropped or read as windows-1252, 1 in all")

	// Attributes: any quoting, the first of a duplicate wins.
	for _, c := range []struct{ in, url, typ string }{
		{`<enclosure url="http://e/a" type="t"/>`, "http://e/a", "t"},
		{`<enclosure url='http://e/a"' type='t' />`, `http://e/a"`, "t"},
		{`<enclosure url=http://e/a?b=c type=t/>`, "http://e/a?b=c", "t"},
		{`<enclosure url = "http://e/a" url="http://e/b" type = t></enclosure>`, "http://e/a", "t"},
		{`<enclosure disabled url="http://e/a&b&amp;c" type="t">`, "http://e/a&b&c", "t"},
		{`<enclosure url="http://e/a type="t">x</enclosure>`, "http://e/a type=", ""},
		{`<ENCLOSURE URL="http://e/a" TYPE="t"/>`, "http://e/a", "t"},
		{`<enclosure url="http://e/a"type="t"/>`, "http://e/a", "t"},
		{`<enclosure url="http://e/<a>" type="t"/>`, "http://e/<a>", "t"},
	} {
		f, _ := tidyRSS(t, item(c.in+"<title>x</title>"), Options{})
		if len(f.Items[0].Enclosures) != 1 {
			t.Errorf("%s: %d enclosures", c.in, len(f.Items[0].Enclosures))
			continue
		}
		if e := f.Items[0].Enclosures[0]; e.URL != c.url || e.Type != c.typ {
			t.Errorf("%s: got %q %q, want %q %q", c.in, e.URL, e.Type, c.url, c.typ)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, " a%d=''", i)
	}
	f, d := tidyRSS(t, item("<x:y"+many.String()+"/><title>x</title>"), Options{})
	if n := len(kept(d, 0, "undeclared:x", "y").Attributes); n != scan.MaxAttrs || f.Items[0].Title != "x" {
		t.Errorf("%d attributes of 1000, title %q", n, f.Items[0].Title)
	}
	wantWarning(t, d, "more than 256 attributes")
}

func TestTidyRule7Balance(t *testing.T) {
	const head, foot = `<rss version="2.0"><channel><title>T</title>`, `</channel></rss>`
	for _, c := range []struct {
		name, doc string
		titles    string
		warning   string
	}{
		{"stray end tag", head + `<item><title>1</title></b></item><item><title>2</title></item>` + foot, "1 2", "</b>"},
		{"stray end tag in title", head + `<item><title>1</b></title></item><item><title>2</title></item>` + foot, "1 2", "</b>"},
		{"item not closed", head + `<item><title>1</title><item><title>2</title></item>` + foot, "1 2", "<item> is not closed"},
		{"items never closed", head + `<item><title>1</title><item><title>2</title>` + foot, "1 2", "<item> is not closed"},
		{"p in description", head + `<item><title>1</title><description><p>a<p>b</description></item><item><title>2</title></item>` + foot, "1 2", ""},
		{"description not closed", head + `<item><title>1</title><description>a</item><item><title>2</title></item>` + foot, "1 2", "<description> is not closed"},
		{"title not closed", head + `<item><title>1<link>http://e/</link></item><item><title>2</title></item>` + foot, "1 2", "<title> is not closed"},
		{"item in description", head + `<item><title>1</title><description>a<item><title>2</title></item>` + foot, "1 2", ""},
		{"media group not closed", head + `<item><title>1</title><media:group><media:title>m</media:title></item><item><title>2</title></item>` + foot, "1 2", "<media:group> is not closed"},
		{"cdata not closed", head + `<item><title>1</title><description><![CDATA[a</description></item><item><title>2</title></item>` + foot, "1 2", "CDATA"},
		{"cdata not closed, another follows", head + `<item><title>1</title><description><![CDATA[a</description></item><item><title><![CDATA[2]]></title></item>` + foot, "1 2", "CDATA"},
		{"cdata about cdata", head + `<item><title><![CDATA[1 <![CDATA[ x]]></title></item>` + foot, "1 <![CDATA[ x", ""},
		{"truncated in item", head + `<item><title>1</title></item><item><title>2</title><desc`, "1", "the document ends inside <item>"},
		{"truncated in text", head + `<item><title>1</title></item><item><title>2</title><description>ab`, "1", "ends inside <description>"},
		{"truncated in cdata", head + `<item><title>1</title></item><item><title>2</title><description><![CDATA[ab`, "1", "ends inside <description>"},
		{"truncated in an attribute", head + `<item><title>1</title></item><item><title>2</title><enclosure url="ab`, "1", "ends inside <item>"},
		{"truncated between items", head + `<item><title>1</title></item>`, "1", "ends inside <channel>"},
		{"truncated in an end tag", head + `<item><title>1</title></item></chan`, "1", "ends inside <channel>"},
		{"truncated in a comment", head + `<item><title>1</title></item><!-- x`, "1", "ends inside <channel>"},
		{"early end", head + `<item><title>1</title></item></channel></rss><item><title>2</title></item>`, "1 2", "goes on after its end"},
		{"two documents", head + `<item><title>1</title></item></channel></rss>` + head + `<item><title>2</title></item></channel></rss>`, "1 2", "goes on after its end"},
		{"two channels", head + `<item><title>1</title></item></channel><channel><item><title>2</title></item></channel></rss>`, "1 2", ""},
		{"tags in another case", head + `<item><Title>1</title></Item><item><title>2</title></item>` + foot, "1 2", ""},
		{"unclosed end tags", head + `<item><title>1</title</item><item><title>2</title></item>` + foot, "1 2", ""},
		{"items in a list", head + `<items><item><title>1</title></item></items>` + foot, "1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, d := tidyRSS(t, c.doc, Options{})
			var titles []string
			for _, i := range f.Items {
				titles = append(titles, i.Title)
			}
			if got := strings.Join(titles, " "); got != c.titles {
				t.Errorf("titles %q, want %q\n%s", got, c.titles, d.xml)
			}
			if c.warning != "" {
				wantWarning(t, d, c.warning)
			} else if strings.HasPrefix(c.name, "tags") {
				wantClean(t, d)
			}
			if cut := strings.HasPrefix(c.name, "truncated"); cut != d.Cut {
				t.Errorf("cut %v", d.Cut)
			}
		})
	}
	f, _ := tidyAtom(t, `<feed><entry><title>1</title><entry><title>2</title></entry></feed>`, Options{})
	if len(f.Entries) != 2 {
		t.Errorf("atom: %d entries", len(f.Entries))
	}
	// Prefixes of a document: never an error, never more entries, and those
	// there are are whole.
	doc := head + strings.Repeat(`<item><title>t</title><description><![CDATA[<b>x</b>]]></description></item>`, 3) + foot
	last := 0
	for n := len(`<rss >`) + 14; n <= len(doc); n++ {
		f, d := tidyRSS(t, doc[:n], Options{})
		if len(f.Items) < last || len(f.Items) > 3 {
			t.Fatalf("%d bytes: %d items after %d", n, len(f.Items), last)
		}
		last = len(f.Items)
		for _, i := range f.Items {
			if i.Title != "t" || i.Description != "<b>x</b>" {
				t.Fatalf("%d bytes: item %q %q", n, i.Title, i.Description)
			}
		}
		if complete := n >= len(doc)-len("ss>"); d.Cut && complete && n == len(doc) {
			t.Fatalf("%d bytes of %d: cut %v", n, len(doc), d.Cut)
		}
	}
	if last != 3 {
		t.Fatalf("%d items in the whole document", last)
	}
}

func TestTidyRule8Namespaces(t *testing.T) {
	f, d := tidyRSS(t, `<rss xmlns:ITunes="HTTPS://www.iTunes.com/dtds/podcast-1.0.DTD/" xmlns:x="http://unknown.example/ns"
		xmlns:dc="urn:not-dublin" xmlns:m="http://search.yahoo.com/mrss" xmlns:a="http://www.w3.org/2005/Atom"><channel><item>
		<ITunes:author>I</ITunes:author><x:thing x:attr="v">X</x:thing><dc:creator>other</dc:creator>
		<m:title>M</m:title><a:link rel="self" href="http://e/"/><content:encoded>C</content:encoded><foo:bar>F</foo:bar>
		<dc2:subject xmlns:dc2="http://purl.org/dc/elements/1.1/">S</dc2:subject>
		<creator xmlns="http://purl.org/dc/elements/1.1/">D</creator>
		<sx:sync id="1"><sx:history sequence="1"/></sx:sync>
		</item></channel></rss>`, Options{})
	x := f.Items[0].Extensions
	for _, c := range []struct{ prefix, name, want string }{
		{"itunes", "author", "I"}, {"media", "title", "M"}, {"dc", "subject", "S"}, {"dc", "creator", "D"},
	} {
		if got := value1(x, c.prefix, c.name); got != c.want {
			t.Errorf("%s:%s = %q, want %q\n%s", c.prefix, c.name, got, c.want, d.xml)
		}
	}
	if f.Items[0].Content != "C" {
		t.Errorf("content %q", f.Items[0].Content)
	}
	for _, c := range []struct{ namespace, name, want string }{
		{"http://unknown.example/ns", "thing", "X"}, {"urn:not-dublin", "creator", "other"}, {"undeclared:foo", "bar", "F"},
	} {
		if got := kept(d, 0, c.namespace, c.name).Text; got != c.want {
			t.Errorf("%s %s = %q, want %q", c.namespace, c.name, got, c.want)
		}
	}
	if a := kept(d, 0, "http://unknown.example/ns", "thing").Attributes; len(a) != 1 || a[0] != (Attribute{"http://unknown.example/ns", "attr", "v"}) || strings.TrimSpace(x["atom"]["link"][0].Attrs["href"]) != "http://e/" {
		t.Errorf("attributes: %v %v", a, x)
	}
	if c := kept(d, 0, "http://www.microsoft.com/schemas/rss/sse", "sync").Children; len(c) != 1 || c[0].Name != "history" {
		t.Errorf("nested extension: %v", c)
	}

	for name, doc := range map[string]string{
		"unknown":       `<feed xmlns="urn:unknown"><entry><title>x</title></entry></feed>`,
		"none":          `<feed><entry><title>x</title></entry></feed>`,
		"prefixed":      `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:title>x</a:title></a:entry></a:feed>`,
		"undeclared":    `<atom:feed><atom:entry><atom:title>x</atom:title></atom:entry></atom:feed>`,
		"https":         `<feed xmlns="https://www.w3.org/2005/atom/"><entry><title>x</title></entry></feed>`,
		"on the entry":  `<feed><entry xmlns="urn:x"><title>x</title></entry></feed>`,
		"prefixed unkn": `<q:feed xmlns:q="urn:q"><q:entry><q:title>x</q:title></q:entry></q:feed>`,
	} {
		f, d := tidyAtom(t, doc, Options{})
		if len(f.Entries) != 1 || f.Entries[0].Title != "x" || d.Atom03 {
			t.Errorf("atom, namespace %s: %s", name, d.xml)
		}
	}
	for name, doc := range map[string]string{
		"atom default": `<rss xmlns="http://www.w3.org/2005/Atom"><channel><item><title>x</title></item></channel></rss>`,
		"unknown":      `<rss xmlns="http://example.com/rss"><channel><item><title>x</title></item></channel></rss>`,
		"userland":     `<rss xmlns="http://backend.userland.com/rss2"><channel><item><title>x</title></item></channel></rss>`,
		"on channel":   `<rss><channel xmlns="urn:x"><item><title>x</title></item></channel></rss>`,
		"rss 1.0":      `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel/><item><title>x</title></item></rdf:RDF>`,
		"rss 1.0 pfx":  `<RDF xmlns="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:r="http://purl.org/rss/1.0/"><r:channel/><r:item><r:title>x</r:title></r:item></RDF>`,
		"rss 0.9":      `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel/><item><title>x</title></item></rdf:RDF>`,
		"rdf bare":     `<rdf:RDF><channel/><item><title>x</title></item></rdf:RDF>`,
		"rss 1.1":      `<Channel xmlns="http://purl.org/net/rss1.1#" rdf:about="u"><title>c</title><items><item><title>x</title></item></items></Channel>`,
	} {
		f, d := tidyRSS(t, doc, Options{})
		if len(f.Items) != 1 || f.Items[0].Title != "x" {
			t.Errorf("rss, namespace %s: %s", name, d.xml)
		}
		want := map[string]string{"rss 1.0": "1.0", "rss 1.0 pfx": "1.0", "rss 0.9": "0.9", "rss 1.1": "1.0"}[name]
		if f.Version != want && name != "rdf bare" {
			t.Errorf("rss, namespace %s: version %q", name, f.Version)
		}
	}
	if _, d := tidyAtom(t, `<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><modified>2004</modified></entry></feed>`, Options{}); !d.Atom03 {
		t.Errorf("Atom 0.3 is not recognised: %s", d.xml)
	}
	// The rest of a document does not see what an element declares.
	_, d = tidyRSS(t, item(`<a:x xmlns:a="urn:1"><b/></a:x><a:x xmlns:a="urn:2"/><a:x/>`), Options{})
	if kept(d, 0, "urn:1", "x").Name == "" || kept(d, 0, "urn:2", "x").Name == "" || kept(d, 0, "undeclared:a", "x").Name == "" {
		t.Errorf("scopes: %v", d.Entries[0].Children)
	}
	// FeedSync keeps copies of an item in it, which are no items of the feed.
	f, d = tidyRSS(t, `<rss xmlns:sx="http://www.microsoft.com/schemas/rss/sse"><channel><item><sx:sync id="1"><sx:conflicts><item><title>old</title></item>
		<item><title>older</title></item></sx:conflicts></sx:sync><title>new</title></item><item><title>2</title></item></channel></rss>`, Options{})
	if len(f.Items) != 2 || f.Items[0].Title != "new" {
		t.Errorf("conflicts: %s", d.xml)
	}
	wantClean(t, d)
	// Elements that a document puts into our own namespace are not ours.
	_, d = tidyRSS(t, item(`<l:meta xmlns:l="urn:lektor:tidy" about="evil"/><lektor:meta about="evil"/><title>x</title>`), Options{})
	if got := note(d, 0, "about"); got != "" {
		t.Errorf("forged meta: %q", got)
	}
}

func TestTidyRule9TextConstructs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`<description>a <b>c</b> &amp; d &lt;e&gt;<br/><a name="x"/></description>`, `a <b>c</b> &amp; d &lt;e&gt;<br /><a name="x"></a>`},
		{`<description>&lt;p&gt;a &amp;amp; b&lt;/p&gt;</description>`, `<p>a &amp; b</p>`},
		{`<description><![CDATA[<p>a &amp; b</p>]]></description>`, `<p>a &amp; b</p>`},
		{`<description><xhtml:p xmlns:xhtml="http://www.w3.org/1999/xhtml" xml:lang="en" x:y='a"b'>a</xhtml:p></description>`, `<p lang="en" y="a&quot;b">a</p>`},
		{`<description><description>in</description>out</description>`, `<description>in</description>out`},
		{`<description></description>`, ``},
		{`<description/>`, ``},
		{"<description>\n  a\n </description>", `a`},
	} {
		f, d := tidyRSS(t, item(c.in+"<guid>g</guid>"), Options{})
		if got := f.Items[0].Description; got != c.want || f.Items[0].GUID.Value != "g" {
			t.Errorf("%s: %q, want %q\n%s", c.in, got, c.want, d.xml)
		}
	}
	for _, c := range []struct{ in, want, typ string }{
		{`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>a &lt; b</p></div></content>`, `<p>a &lt; b</p>`, "xhtml"},
		{`<content type="xhtml"> <h:div xmlns:h="http://www.w3.org/1999/xhtml"><h:p>a</h:p><h:div>b</h:div></h:div> </content>`, `<p>a</p><div>b</div>`, "xhtml"},
		{`<content type="xhtml"><div>a</div><div>b</div></content>`, `<div>a</div><div>b</div>`, "xhtml"},
		{`<content type="xhtml"><p>a</p></content>`, `<p>a</p>`, "xhtml"},
		{`<content type="html">&lt;div&gt;a&lt;/div&gt;</content>`, `<div>a</div>`, "html"},
		{`<content type="html"><![CDATA[<div>a</div>]]></content>`, `<div>a</div>`, "html"},
		{`<content type="text">a &lt; b</content>`, `a < b`, "text"},
		{`<content>a &lt; b</content>`, `a < b`, ""},
		{`<content type="html"><b>a</b></content>`, `<b>a</b>`, "xhtml"},
		{`<content type="text/plain">a</content>`, `a`, "text/plain"},
		{`<content type="image/svg+xml"><svg:svg><svg:g/></svg:svg></content>`, `<svg xmlns="http://www.w3.org/2000/svg"><g></g></svg>`, "image/svg+xml"},
		{`<content type="application/octet-stream">aGVsbG8gd29ybGQ=</content>`, `hello world`, "application/octet-stream"},
		{`<content type="image/png">iVBORw0KGgo=</content>`, `iVBORw0KGgo=`, "image/png"},
		{`<content type="text/html">test</content>`, `test`, "text/html"},
	} {
		f, d := tidyAtom(t, entry(c.in), Options{})
		if got := f.Entries[0].Content; got == nil || got.Value != c.want || got.Type != c.typ {
			t.Errorf("%s: %+v, want %q\n%s", c.in, got, c.want, d.xml)
		}
		if got := note(d, 0, "type-content"); got != c.typ {
			t.Errorf("%s: type in meta %q", c.in, got)
		}
	}
	for _, c := range []struct{ in, want, typ string }{
		{`<content mode="xml" type="application/xhtml+xml"><div><p>a</p></div></content>`, `<div><p>a</p></div>`, "application/xhtml+xml"},
		{`<content mode="escaped" type="text/html">&lt;p&gt;a</content>`, `<p>a`, "text/html"},
		{`<content mode="escaped">&lt;p&gt;a</content>`, `<p>a`, "text/html"},
		{"<content mode='base64' type='text/html'>PHA+\nYTwvcD4=</content>", `<p>a</p>`, "text/html"},
		{`<content mode="base64" type="text/plain">dGVzdA==</content>`, `test`, "text/plain"},
	} {
		f, d := tidyAtom(t, `<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry>`+c.in+`</entry></feed>`, Options{})
		if got := f.Entries[0].Content; got == nil || got.Value != c.want || got.Type != c.typ {
			t.Errorf("0.3, %s: %+v, want %q\n%s", c.in, got, c.want, d.xml)
		}
	}
	f, d := tidyAtom(t, entry(`<title type="html">a &lt;b&gt;</title><summary type="xhtml"><div>s</div></summary><rights>r</rights>`), Options{})
	e := f.Entries[0]
	if e.Title != "a <b>" || e.Summary != "s" || e.Rights != "r" ||
		note(d, 0, "type-title") != "html" || note(d, 0, "type-summary") != "xhtml" || note(d, 0, "type-rights") != "" {
		t.Errorf("types: %+v", e)
	}
	r, rd := tidyRSS(t, item(`<dc:description>a <b>c</b></dc:description><xhtml:body><p>x</p></xhtml:body><itunes:summary>i <b/></itunes:summary>
		<itunes:owner><itunes:name>N</itunes:name></itunes:owner><media:group><media:title>M <i>i</i></media:title></media:group>
		<atom:author><atom:name>A</atom:name></atom:author><atom:content type="xhtml"><div>c</div></atom:content>`), Options{})
	x := r.Items[0].Extensions
	if value1(x, "dc", "description") != "a <b>c</b>" || value1(x, "xhtml", "body") != "<p>x</p>" || value1(x, "itunes", "summary") != "i <b></b>" ||
		kept(rd, 0, "http://www.itunes.com/dtds/podcast-1.0.dtd", "owner").Children[0].Text != "N" || x["media"]["group"][0].Children["title"][0].Value != "M <i>i</i>" ||
		x["atom"]["author"][0].Children["name"][0].Value != "A" || value1(x, "atom", "content") != "c" {
		t.Errorf("modules: %+v", x)
	}
}

func TestTidyRule10Base(t *testing.T) {
	opts := Options{URL: "http://example.com/dir/feed.xml", ContentLocation: "/other/feed.xml"}
	f, _ := tidyRSS(t, `<rss><channel xml:base="sub/"><link>home</link><docs>docs</docs><image><url>i.png</url><link>/</link></image>
		<item xml:base="deep/"><link> a b?c=é </link><comments>#c</comments><guid isPermaLink="false"> rel </guid>
		<enclosure url="e.mp3"/><itunes:image href="p q.png"/><description>&lt;img src="x.png"&gt;</description></item>
		<item><link>HTTP://Example.COM/%7ea/../b c|d</link><guid><![CDATA[ spaced ]]></guid></item></channel></rss>`, opts)
	i := f.Items[0]
	for _, c := range [][2]string{
		{f.Link, "http://example.com/other/sub/home"}, {f.Docs, "http://example.com/other/sub/docs"},
		{f.Image.URL, "http://example.com/other/sub/i.png"}, {f.Image.Link, "http://example.com/"},
		{i.Link, "http://example.com/other/sub/deep/a b?c=é"}, {i.Comments, "http://example.com/other/sub/deep/#c"},
		{i.GUID.Value, "rel"}, {i.GUID.IsPermalink, "false"}, {i.Enclosures[0].URL, "http://example.com/other/sub/deep/e.mp3"},
		{strings.TrimSpace(i.Extensions["itunes"]["image"][0].Attrs["href"]), "http://example.com/other/sub/deep/p q.png"},
		{i.Description, `<img src="http://example.com/other/sub/deep/x.png">`},
		{f.Items[1].Link, "HTTP://Example.COM/%7ea/../b c|d"}, {f.Items[1].GUID.Value, " spaced "},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
	id := "http://Example.com/ü b/%7e|x?#"
	a, _ := tidyAtom(t, `<feed xml:base="http://b.example/x/" xmlns="http://www.w3.org/2005/Atom"><id>`+id+`</id><icon>ic ö</icon>
		<entry><id>relative id</id><link href="l?ö"/><author><name>n</name><uri>u|v</uri></author>
		<content type="html" xml:base="c/">&lt;a href="d"&gt;</content></entry>
		<entry><id>TAG:Example.com,2005:%41</id><content src="s.pdf" type="application/pdf"/></entry></feed>`, opts)
	for _, c := range [][2]string{
		{a.ID, id}, {a.Icon, "http://b.example/x/ic ö"}, {a.Entries[0].ID, "relative id"},
		{a.Entries[0].Links[0].Href, "http://b.example/x/l?ö"}, {a.Entries[0].Authors[0].URI, "http://b.example/x/u|v"},
		{a.Entries[0].Content.Value, `<a href="http://b.example/x/c/d">`}, {a.Entries[1].ID, "TAG:Example.com,2005:%41"},
		{a.Entries[1].Content.Src, "http://b.example/x/s.pdf"},
	} {
		if strings.TrimPrefix(c[0], "\n") != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
	x, _ := tidyAtom(t, entry(`<content type="xhtml" xml:base="http://e/1/"><div xml:base="2/"><p xml:base="3/"><a href="x">x</a><p/></p><a href="y">y</a><img xml:base="4/" src="z"/></div><i/></content>`), opts)
	if got, want := x.Entries[0].Content.Value, `<div><p><a href="http://e/1/2/3/x">x</a><p></p></p><a href="http://e/1/2/y">y</a><img src="http://e/1/2/4/z" /></div><i></i>`; got != want {
		t.Errorf("xml:base in xhtml: %s", got)
	}
	// Without a base nothing is guessed.
	f, _ = tidyRSS(t, item(`<link>a/b</link><description>&lt;a href=x&gt;</description>`), Options{})
	if f.Items[0].Link != "a/b" || f.Items[0].Description != "<a href=x>" {
		t.Errorf("no base: %q %q", f.Items[0].Link, f.Items[0].Description)
	}
}

func TestTidyRule12NothingLost(t *testing.T) {
	a, d := tidyAtom(t, `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><link>http://e/text</link><author>Just Me</author>
		<entry xml:lang="fr"><link rel="alternate"> /rel </link><category>term</category></entry></feed>`, Options{URL: "http://e/"})
	if strings.TrimSpace(a.Links[0].Href) != "http://e/text" || a.Authors[0].Name != "Just Me" || strings.TrimSpace(a.Entries[0].Links[0].Href) != "http://e/rel" ||
		a.Entries[0].Categories[0].Term != "term" || d.Feed.AttrNS(vocab.XML, "lang") != "de" || note(d, 0, "lang") != "fr" {
		t.Errorf("atom: %+v %+v", a, a.Entries[0])
	}
	f, d := tidyRSS(t, `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
		<channel rdf:about="http://e/c"><title>C</title><author>Ann</author><items><rdf:Seq><rdf:li rdf:resource="x"/></rdf:Seq></items></channel>
		<item rdf:about="urn:1"><title>1</title></item><item rdf:about="urn:2 &amp; 3"><title>2</title></item></rdf:RDF>`, Options{})
	if d.Feed.AttrNS(vocab.RDF, "about") != "http://e/c" || note(d, 0, "about") != "urn:1" ||
		note(d, 1, "about") != "urn:2 & 3" || value1(f.Extensions, "dc", "author") != "Ann" {
		t.Errorf("rdf: %s", d.xml)
	}
	wantClean(t, d)
	f, _ = tidyRSS(t, item(`<author><name>N</name><email>m@e</email></author><link href="http://e/h"/><link rel="self" href="http://e/s" type="x"/>
		<image><url>http://e/i.png</url><title>t</title></image><categories><category>c1</category><category domain="d">c2</category></categories>
		<enclosure>http://e/f.mp3</enclosure><unknown>kept</unknown><pubdate>Mon</pubdate>
		<rssCloud:item><title>sub</title><link>http://e/sub</link></rssCloud:item>`), Options{})
	i := f.Items[0]
	if i.Author != "N <m@e>" || i.Link != "http://e/h" || strings.TrimSpace(i.Extensions["atom"]["link"][0].Attrs["href"]) != "http://e/s" ||
		i.Custom["image"] != "http://e/i.png" || len(i.Categories) != 2 || i.Categories[1].Domain != "d" ||
		i.Enclosures[0].URL != "http://e/f.mp3" || i.Custom["unknown"] != "kept" || i.PubDate != "Mon" ||
		i.Extensions["rssCloud"]["item"][0].Children["title"][0].Value != "sub" {
		t.Errorf("rss: %+v", i)
	}
}

// bombs are documents that are small for what they make a naive reader do.
func bombs() map[string]string {
	rep := func(s string, n int) string { return strings.Repeat(s, max(n/bombScale, 1)) }
	nested := func(n int) string {
		var b strings.Builder
		b.WriteString("<rss><channel>")
		for i := range n {
			fmt.Fprintf(&b, `<a%d:b xmlns:a%d="urn:%d">`, i, i, i)
		}
		return b.String()
	}
	var decls strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&decls, ` xmlns:p%d="u:%d"`, i, i)
	}
	var prefixes strings.Builder
	for i := range 200000 / bombScale {
		fmt.Fprintf(&prefixes, "<x:n p%d:a='' q%d:b=''/>", i, i)
	}
	var names strings.Builder
	for i := range 300000 / bombScale {
		fmt.Fprintf(&names, "<x:n%d/>", i)
	}
	inItem := func(s string) string { return "<rss><channel><item><title>t</title>" + s + "</item></channel></rss>" }
	return map[string]string{
		"nested, each declaring":    nested(10000),
		"declarations and children": "<rss" + decls.String() + "><channel>" + rep("<p1:c/>", 20000) + "</channel></rss>",
		"declarations in items":     "<rss" + decls.String() + "><channel>" + rep("<item><p1:c/><p1999:c/></item>", 20000) + "</channel></rss>",
		"deep default":              `<rss xmlns="urn:x"><channel>` + rep("<a>", 2000000),
		"deep extension":            inItem(rep("<x:a>", 1000000)),
		"deep structure":            `<rss><channel>` + rep("<media:group>", 500000),
		"deep feeds":                rep("<feed>", 500000),
		"many items":                "<rss><channel>" + rep("<item/>", 1000000) + "</channel></rss>",
		"many extensions":           inItem(rep("<x:a/>", 1000000)),
		"many attributes":           inItem("<x:a " + rep("b='' ", 1000000) + "/>"),
		"extensions and attributes": inItem(rep("<x:a b='' c='' d=''/>", 400000)),
		"many names":                inItem(names.String()),
		"many prefixes":             inItem(prefixes.String()),
		"text between extensions":   inItem("<x:a>" + rep("t<x:b/>", 1000000) + "</x:a>"),
		"cdata ends in extension":   inItem("<x:a><![CDATA[" + rep("]]]]><![CDATA[>", 500000) + "]]></x:a>"),
		"cdata ends in text":        inItem("<description>" + rep("]]&gt;", 1000000) + "</description>"),
		"one long text":             inItem("<description>" + rep("x", 8<<20) + "</description>"),
		"entities":                  inItem("<description>" + rep("&lt;", 2000000) + "</description>"),
		"comments not closed":       inItem(rep("<!--", 2000000)),
		"cdata not closed":          inItem(rep("<![CDATA[", 1000000)),
		"cdata not closed 2":        inItem(rep("<b><![CDATA[</b>", 500000) + "]]>"),
		"cdata not closed 3":        "<rss><channel>" + rep("<item><title><![CDATA[</title></item>", 200000) + "]]>",
		"PIs not closed":            inItem(rep("<?", 2000000)),
		"tags not closed":           inItem(rep("<a ", 2000000)),
		"tags not closed 2":         inItem(rep("<", 8000000)),
		"end tags not closed":       inItem(rep("</a", 2000000)),
		"stray end tags":            inItem(rep("</a>", 2000000)),
		"quotes not closed":         inItem(rep(`<a x="`, 1000000)),
		"quotes not closed 2":       inItem(rep(`<a x="<a y='`, 1000000)),
		"quotes not closed 3":       inItem(rep(`<a x=">`, 1000000)),
		"doctypes":                  rep("<!DOCTYPE a [ <!ENTITY ", 200000) + inItem(""),
		"doctypes 2":                rep("<!DOCTYPE '", 500000) + inItem(""),
		"scripts":                   rep("<script>", 200000) + inItem(""),
		"relative references":       `<rss xml:base="http://e/` + rep("x", 1900) + `/"><channel>` + inItem("<description>"+rep("&lt;a href=x&gt;", 300000)+"</description>") + "",
		"relative links":            `<rss xml:base="http://e/` + rep("x", 1900) + `/"><channel>` + rep("<item><link>a</link></item>", 20000),
		"bases":                     "<rss><channel>" + rep(`<media:group xml:base="http://e/`+rep("y/", 900)+`">`, 300) + rep(`<x:a xml:base="b/">`, 200000),
		"xhtml":                     inItem("<description>" + rep("<p>", 2000000) + "</description>"),
		"xhtml same name":           inItem(rep("<description>", 500000)),
		"carriage returns":          inItem("<description>" + rep("&#13;", 1000000) + "</description>"),
		"ampersands":                inItem("<description>" + rep("&", 4000000) + "</description>"),
		"junk":                      rep("<x>", 1000000) + inItem(""),
		"html attributes not ended": inItem("<description><![CDATA[" + rep(`<a href="`, 500000) + "]]></description>"),
		"html comments":             inItem("<description><![CDATA[" + rep("<!--", 500000) + "]]></description>"),
		"html scripts":              inItem("<description><![CDATA[" + rep("<script>", 500000) + "]]></description>"),
		"person markup":             inItem("<author>" + rep("<name <email", 300000) + rep("<name>", 300000) + "</author>"),
	}
}

// TestTidyBombs bounds the work by what it allocates and by what comes out,
// not by time; what is not linear does not end before the test's deadline.
func TestTidyBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes for seconds")
	}
	for name, doc := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			read, err := tidyXML([]byte(doc), Options{URL: "http://example.com/"})
			runtime.ReadMemStats(&after)
			if err != nil {
				var nf *NotFeedError
				if !errors.As(err, &nf) {
					t.Fatal(err)
				}
				return
			}
			if total := after.TotalAlloc - before.TotalAlloc; total > uint64(24*len(doc)+64<<20) {
				t.Errorf("%d bytes allocate %d MB", len(doc), total>>20)
			}
			text, err := io.ReadAll(read.XML())
			if err != nil {
				t.Fatal(err)
			}
			d := &tidied{read, text}
			if len(d.xml) > 6*len(doc)+4<<20 {
				t.Errorf("%d bytes make %d", len(doc), len(d.xml))
			}
			if len(d.Warnings) > 20*30 {
				t.Errorf("%d warnings", len(d.Warnings))
			}
			checkTidied(t, d)
			runtime.ReadMemStats(&before)
			f, err := parseXML(d.Document, Options{})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if live := int64(after.HeapAlloc) - int64(before.HeapAlloc); live > 256<<20 {
				t.Errorf("a feed of %d entries holds %d MB", len(f.Entries), live>>20)
			}
		})
	}
}

func TestTidyLimits(t *testing.T) {
	f, d := tidyRSS(t, "<rss><channel>"+strings.Repeat("<item><title>x</title></item>", 10)+"</channel></rss>", Options{MaxEntries: 4})
	if len(f.Items) != 4 {
		t.Errorf("%d items of at most 4", len(f.Items))
	}
	wantWarning(t, d, "more than 4 entries")
	_, d = tidyRSS(t, item(strings.Repeat("</x>", 100)), Options{})
	if len(d.Warnings) != 21 {
		t.Errorf("%d warnings", len(d.Warnings))
	}
	wantWarning(t, d, "and 80 more")
	// Elements after those that are too deep are read.
	f, d = tidyRSS(t, "<rss><channel><item>"+strings.Repeat("<x:a>", 500)+strings.Repeat("</x:a>", 500)+"<title>1</title></item><item><title>2</title></item></channel></rss>", Options{})
	if len(f.Items) != 2 || f.Items[0].Title != "1" {
		t.Errorf("after deep elements: %s", d.xml)
	}
	wantWarning(t, d, "more than 254 deep")
}

// TestTidyRealFeeds: documents that are fine are not mended.
func TestTidyRealFeeds(t *testing.T) {
	files, _ := filepath.Glob("../../shared/feeds/*")
	if len(files) == 0 {
		t.Skip("no ../../shared/feeds")
	}
	n := 0
	for _, name := range files {
		if e := filepath.Ext(name); e != ".rss" && e != ".atom" && e != ".rdf" {
			continue
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text, warnings, err := decodeBytes(raw, Options{})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: got %v %v; want err == nil and len(warnings) == 0", name, err, warnings)
			continue
		}
		d, err := readTidied(text, Options{URL: "http://example.com/"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkTidied(t, d)
		wantClean(t, d)
		if want := bytes.Count(raw, []byte("</item>")) + bytes.Count(raw, []byte("</entry>")); len(d.Entries) != want || want == 0 {
			t.Errorf("%s: %d entries, want %d", name, len(d.Entries), want)
		}
		n++
	}
	if n == 0 {
		t.Error("no document was read")
	}
}

// TestTidyFixtures reads documents as they are found; each says in its name
// how many entries it has: NAME.N.xml.
func TestTidyFixtures(t *testing.T) {
	files, _ := filepath.Glob("testdata/tidy/*.xml")
	if len(files) == 0 {
		t.Fatal("no fixtures in testdata/tidy")
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := -1
		parts := strings.Split(filepath.Base(name), ".")
		if _, err := fmt.Sscan(parts[len(parts)-2], &want); err != nil {
			t.Fatalf("%s: no number of entries in the name", name)
		}
		text, _, err := decodeBytes(raw, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d, err := readTidied(text, Options{URL: "http://example.com/feed"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if checkTidied(t, d) != want {
			t.Errorf("%s: %d entries, want %d", name, len(d.Entries), want)
		}
	}
}

// TestTidyFuzzSeeds: Go reads the seeds that are kept as files by itself, and
// says nothing when there are none.
func TestTidyFuzzSeeds(t *testing.T) {
	for _, target := range []string{"FuzzTidy", "FuzzDecodeBytes"} {
		files, _ := filepath.Glob("testdata/fuzz/" + target + "/*")
		if len(files) == 0 {
			t.Errorf("no seeds for %s", target)
		}
	}
}

func FuzzTidy(f *testing.F) {
	f.Add([]byte(item("<title>a &amp; b</title><description><p>x</description>")))
	f.Add([]byte(entry(`<title type="html">&lt;b&gt;</title><content type="xhtml"><div>x</div></content>`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		opts := Options{URL: "http://example.com/a/b", MaxEntries: 50}
		d, err := readTidied(doc, opts)
		if err != nil {
			var nf *NotFeedError
			if !errors.As(err, &nf) || nf.What == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		n := checkTidied(t, d)
		again, err := readTidied(d.xml, opts)
		if err != nil {
			t.Fatalf("tidied twice: %v\n%q", err, d.xml)
		}
		if m := checkTidied(t, again); m != n {
			t.Fatalf("%d entries, tidied twice %d\n%q\n%q", n, m, d.xml, again.xml)
		}
		if again.Cut {
			t.Fatalf("tidied twice it is cut: %q", d.xml)
		}
	})
}

// benchDoc is a clean RSS document as blogs have them.
func benchDoc() []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Bench</title><link>http://example.com/</link>`)
	for i := range 1000 {
		fmt.Fprintf(&b, `
	<item>
		<title>Entry &amp; number %d</title>
		<link>http://example.com/%d</link>
		<dc:creator><![CDATA[Somebody]]></dc:creator>
		<pubDate>Mon, 26 Jun 2017 12:20:05 GMT</pubDate>
		<category>one</category><category>two</category>
		<guid isPermaLink="false">urn:%d</guid>
		<description>A short description &lt;b&gt;with&lt;/b&gt; escaped markup, as many have.</description>
		<content:encoded><![CDATA[%s]]></content:encoded>
	</item>`, i, i, i, strings.Repeat(`<p>Some text with a <a href="http://example.com/x">link</a> in it, and more text so that it is a paragraph.</p>`+"\n", 12))
	}
	b.WriteString("</channel></rss>")
	return b.Bytes()
}

func BenchmarkTidy(b *testing.B) {
	doc := benchDoc()
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := readTidied(doc, Options{URL: "http://example.com/feed"})
		if err != nil || len(d.Entries) != 1000 || len(d.Warnings) > 0 {
			b.Fatal(err, d)
		}
	}
}

func BenchmarkDecodeBytes(b *testing.B) {
	doc := benchDoc()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, _, err := decodeBytes(doc, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Long texts do not go through gofeed, and one that looks like what stands for
// them is none.
func TestAside(t *testing.T) {
	long := strings.Repeat("long &amp;lt;b>text&amp;lt;/b> ", 20)
	for _, doc := range []string{
		`<rss version="2.0"><channel><item><guid>1</guid><description>` + long + `</description></item></channel></rss>`,
		`<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><item><guid>1</guid><content:encoded><![CDATA[` + long + `]]></content:encoded></item></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>a:1</id><content type="html">` + long + `</content></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>a:1</id><summary>` + long + `</summary></entry></feed>`,
	} {
		if d := mustTidy(t, doc, Options{}); bytes.Contains(d.xml, []byte("text")) {
			t.Errorf("the text is in %s", d.xml)
		}
		feed := mustParse(t, doc, Options{})
		if len(feed.Entries) != 1 || !strings.Contains(feed.Entries[0].Content, "text") {
			t.Errorf("%s: got %+v; want an entry with the text", doc, feed)
		}
	}
	const mark = "\uE000"
	for _, space := range []string{"", "\u00a0", "\u2003", "\u3000", "\u0085"} {
		for _, text := range []string{mark, mark + "0", mark + "-1", mark + "99"} {
			feed := mustParse(t, `<rss version="2.0"><channel><item><guid>1</guid><description>`+long+`</description></item><item><guid>2</guid><description>`+space+text+`</description></item></channel></rss>`, Options{})
			if got := feed.Entries[1].Content; !strings.HasSuffix(got, text) {
				t.Errorf("%q: content %q, want %q", space, got, text)
			}
		}
	}
}

// Real feeds declare the same namespaces again and again.
func TestManyDeclarations(t *testing.T) {
	var rss strings.Builder
	rss.WriteString(`<rss version="2.0"><channel><title>t</title>`)
	for i := range 2200 {
		fmt.Fprintf(&rss, `<item><guid>%d</guid><encoded xmlns="http://purl.org/rss/1.0/modules/content/">c%[1]d</encoded><m:title xmlns:m="http://search.yahoo.com/mrss/">m</m:title></item>`, i)
	}
	f := mustParse(t, rss.String()+"</channel></rss>", Options{})
	if len(f.Entries) != 2200 || len(f.Warnings) != 0 {
		t.Fatalf("%d entries, %v", len(f.Entries), f.Warnings)
	}
	for i, e := range f.Entries {
		if e.Content != fmt.Sprintf("c%d", i) || e.Title != "m" {
			t.Fatalf("entry %d: %q %q", i, e.Content, e.Title)
		}
	}
	// Declarations past the limit are ignored, with a warning.
	var decls strings.Builder
	for i := range 4096 + 200 {
		fmt.Fprintf(&decls, `<a%d:x xmlns:a%[1]d="urn:%[1]d"/>`, i%2000+i/4000)
		fmt.Fprintf(&decls, `<b:x xmlns:b="urn:b%d"/>`, i)
	}
	f = mustParse(t, item(decls.String()+`<d:creator xmlns:d="urn:d">evil</d:creator><dc:creator xmlns:dc="http://purl.org/dc/elements/1.1/">A</dc:creator><title xmlns="urn:z">evil</title>`), Options{})
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Text, fmt.Sprint(4096)) || f.Entries[0].Title != "" ||
		len(f.Entries[0].Authors) != 1 || f.Entries[0].Authors[0].Name != "A" {
		t.Errorf("%+v %v", f.Entries[0].Authors, f.Warnings)
	}
}
