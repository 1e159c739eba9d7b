package feedconv

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/markup"
)

func TestPlainText(t *testing.T) {
	for _, test := range []struct{ in, mime, want string }{
		{"", markup.TypeHTML, ""},
		{"one  two\n\tthree ", markup.TypeHTML, "one two three"},
		{"<p>one</p><p>two</p>", markup.TypeHTML, "one two"},
		{"on<b>e</b> tw<i>o", markup.TypeHTML, "one two"},
		{"one<br>two<hr/>three", markup.TypeHTML, "one two three"},
		{"<ul><li>one<li>two</ul>", markup.TypeHTML, "one two"},
		{"<table><tr><td>one<td>two</table>", markup.TypeHTML, "one two"},
		{"one<script>alert('<p>no</p>')</script>two", markup.TypeHTML, "onetwo"},
		{"one<SCRIPT type='x'>no</ScRiPt >two", markup.TypeHTML, "onetwo"},
		{"one<style>p{}</style> two", markup.TypeHTML, "one two"},
		{"one<script>never closed", markup.TypeHTML, "one"},
		{"one<script src=x />two", markup.TypeXHTML, "onetwo"},
		{"one<!-- no <b> > -->two", markup.TypeHTML, "onetwo"},
		{"one<!-- never closed", markup.TypeHTML, "one<!-- never closed"},
		{"one<!doctype html>two<?xml ?>", markup.TypeHTML, "onetwo"},
		{"<![CDATA[a < b]]>c", markup.TypeXHTML, "a < bc"},
		{`<a title="a > b">x</a>`, markup.TypeHTML, "x"},
		{`<a title='a > b' href=x>y</a>`, markup.TypeHTML, "y"},
		{`<a title="never closed>x</a>`, markup.TypeHTML, "x"},
		{`<a href=it's>x</a> it's`, markup.TypeHTML, "x it's"},
		{"<unknown-thing>x</unknown-thing>y", markup.TypeHTML, "xy"},
		{"AT&amp;T &lt;b&gt; &#8217; &#x2019; &eacute;&nbsp;&hellip;", markup.TypeHTML, "AT&T <b> ’ ’ é …"},
		{"&amp;amp; &copy=2; &copy 2004 &nosuch; & && &; &#; &#xZ;", markup.TypeHTML, "&amp; &copy=2; &copy 2004 &nosuch; & && &; &#; &#xZ;"},
		{"a < b && c > d", markup.TypeHTML, "a < b && c > d"},
		{"1<2", markup.TypeHTML, "1<2"},
		{"a <", markup.TypeHTML, "a <"},
		{"a <b", markup.TypeHTML, "a <b"},
		{"a </", markup.TypeHTML, "a </"},
		{"non\u00a0breaking\u2028line\u3000wide\u200bzero", markup.TypeHTML, "non breaking line wide\u200bzero"},
		{"a\x00b\x08c\x7fd &#8;e&#0;", markup.TypeHTML, "abcd e"},
		{"<b>x</b> &amp;  y", markup.TypePlain, "<b>x</b> &amp; y"},
		{"<b>x</b> &amp;  y", "", "<b>x</b> &amp; y"},
		{"<b>x</b>", "text/html; charset=utf-8", "x"},
		{"<b>x</b>", "application/atom+xml", "x"},
		{"日本語 テキスト", markup.TypeHTML, "日本語 テキスト"},
	} {
		if got := PlainText(test.in, test.mime); got != test.want {
			t.Errorf("%q as %q: got %q, want %q", test.in, test.mime, got, test.want)
		}
	}
}

// Text of several lines that has no markup is plain text, and keeps them.
func TestPlainTextKeepsItsLines(t *testing.T) {
	for _, test := range []struct{ in, mime, want string }{
		{"Tracks:\n1. Foo\n2. Bar &amp;amp; co <3", "text/plain", "Tracks:\n1. Foo\n2. Bar &amp; co <3"},
		{"\n\t\tShow notes  \r\n\t\t- one\n\t\t  - deep &#8217;\n\n\t\t- two\n\t", "text/plain", "Show notes\n- one\n  - deep ’\n\n- two"},
		{"See <https://example.org/>\nor <me@example.org>", "text/plain", "See <https://example.org/>\nor <me@example.org>"},
		{"one line &amp;amp; no more\n", "text/html", "one line &amp;amp; no more\n"},
		{"a<br>\nb", "text/html", "a<br>\nb"},
		{"a\n</P>\nb", "text/html", "a\n</P>\nb"},
		{"a\n<!-- x -->b", "text/html", "a\n<!-- x -->b"},
	} {
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(strings.ReplaceAll(test.in, "&amp;amp;", "&amp;"))
		if test.mime == "text/html" {
			test.want = strings.ReplaceAll(test.want, "&amp;amp;", "&amp;")
		} else {
			test.want = strings.ReplaceAll(test.want, "&amp;", "&")
		}
		for _, element := range []string{"description", "itunes:summary"} {
			f, err := ParseBytes([]byte(`<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>t</title><item><guid>1</guid><`+
				element+`>`+escaped+`</`+element+`></item></channel></rss>`), Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := f.Entries[0]
			if strings.TrimSpace(got.Content) != strings.TrimSpace(test.want) || got.Type != test.mime {
				t.Errorf("%s %q: got %q, %s; want %q", element, test.in, got.Content, got.Type, test.want)
			}
			if is := PlainText(got.Content, got.Type); !strings.Contains(test.in, "<") && is != PlainText(strings.ReplaceAll(test.in, "&amp;amp;", "&amp;"), markup.TypeHTML) {
				t.Errorf("%q says something else: %q", test.in, is)
			}
		}
	}
}

// Scanning is linear: with a search repeated from every tag these would take
// longer than a test may.
func TestPlainTextIsLinear(t *testing.T) {
	const n = 1 << 20
	for _, piece := range []string{"<", "<a", "<a ", "<a b=\"", "<a b='", "<!--", "<![CDATA[", "<!", "&", "&amp", "&#",
		"<script", "<script>", "</", "<a b='>", "<a b=\" '>", "&a;", "<p>", "<a =\"'"} {
		PlainText(strings.Repeat(piece, n/len(piece)), markup.TypeHTML)
	}
}

func FuzzPlainText(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		for _, mime := range []string{markup.TypeHTML, markup.TypePlain} {
			got := PlainText(s, mime)
			if strings.ContainsAny(got, "\n\t\r\x00") || strings.Contains(got, "  ") || strings.TrimSpace(got) != got {
				t.Fatalf("%q as %s: %q is not folded", s, mime, got)
			}
			if !utf8.ValidString(got) {
				t.Fatalf("%q as %s: %q is not valid", s, mime, got)
			}
			if again := PlainText(got, markup.TypePlain); again != got {
				t.Fatalf("%q as %s: folding %q again gives %q", s, mime, got, again)
			}
		}
		title := titleText(s)
		if again := titleText(rssTitle(title)); again != title {
			t.Fatalf("%q: the title %q comes back as %q", s, title, again)
		}
	})
}

func BenchmarkPlainText(b *testing.B) {
	for name, s := range map[string]string{
		"plain": strings.Repeat("The quick brown fox jumps over the lazy dog. ", 2000),
		"html":  strings.Repeat("<p>The quick <b>brown</b> fox jumps over <a href=\"http://example.com/\">the lazy</a> dog&#8217;s.</p>\n", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				PlainText(s, markup.TypeHTML)
			}
		})
	}
}
