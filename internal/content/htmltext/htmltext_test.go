package htmltext

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

func TestRender(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		width          int
	}{
		{name: "paragraphs", in: "<p>One\n  two</p><p>three<br>four</p>", want: "One two\n\nthree\nfour\n"},
		{name: "wrapped", in: "<p>The quick brown fox jumps over the lazy dog", width: 20,
			want: "The quick brown fox\njumps over the lazy\ndog\n"},
		{name: "a long word is left whole", in: "see https://example.com/a/very/long/path ok", width: 16,
			want: "see\nhttps://example.com/a/very/long/path\nok\n"},
		{name: "links are footnotes, each URL once",
			in:   `<p>See <a href="/a">this</a>, <a href="http://b.example/">that</a> and <a href="/a">this again</a>.`,
			want: "See this[1], that[2] and this again[1].\n\n[1] http://h.example/a\n[2] http://b.example/\n"},
		{name: "a link that shows its URL has no footnote", in: `<a href="https://b.example/">b.example</a> <a href="mailto:x@y.example">x@y.example</a>`,
			want: "b.example x@y.example\n"},
		{name: "links that lead nowhere", in: `<a href="#top">up</a> <a href="javascript:alert(1)">run</a> <a name=x></a><a href="http://e.example"></a>end`, want: "up run end\n"},
		{name: "links that are none", in: `<a href="file:///etc/passwd">disk</a> <a href="&#1;JavaScript:alert(1)">run</a> <a href="view-source:http://e.example/">view</a> <img src="file:///x.png" alt=pic> <iframe src="ms-help:x"></iframe>end`,
			want: "disk run view [image: pic] end\n"},
		{name: "link around a block", in: `<a href="http://e.example/x"><h3>Title</h3><p>More</p></a>`, want: "Title[1]\n\nMore[1]\n\n[1] http://e.example/x\n"},
		{name: "link that is never closed", in: `<p><a href="http://e.example/x">one<p>two <a href="http://e.example/y">three`,
			want: "one[1]\n\ntwo[1] three[2]\n\n[1] http://e.example/x\n[2] http://e.example/y\n"},
		{name: "space before the end of a link", in: `<a href="http://e.example/x">one </a>two`, want: "one[1] two\n\n[1] http://e.example/x\n"},
		{name: "headings", in: "<h1>Big</h1><h2>Less</h2>text<h3>Small</h3>text", want: "Big\n===\n\nLess\n----\n\ntext\n\nSmall\n\ntext\n"},
		{name: "lists", in: "before<ul><li>one<li>two<ul><li>inner</ul></li></ul>after",
			want: "before\n\n• one\n• two\n  • inner\n\nafter\n"},
		{name: "numbers", in: `<ol start=9><li>nine</li><li><p>ten</p><p>more</p></li><li value=20>twenty</ol>`,
			want: "9. nine\n10. ten\n\n    more\n\n20. twenty\n"},
		{name: "hanging indentation", in: "<ul><li>The quick brown fox jumps</ul>", width: 14, want: "• The quick\n  brown fox\n  jumps\n"},
		{name: "quotes", in: "a<blockquote><p>one two three</p><p>four<blockquote>deep</blockquote></blockquote>b", width: 9,
			want: "a\n\n> one two\n> three\n>\n> four\n>\n> > deep\n\nb\n"},
		{name: "pre", in: "<pre>\nif x {\n\treturn  1\n}\n\n</pre>after", width: 10, want: "    if x {\n            return  1\n    }\n\nafter\n"},
		{name: "definitions", in: "<dl><dt>term<dd>what it is<dt>other<dd>that</dl>", want: "term\n    what it is\nother\n    that\n"},
		{name: "tables", in: "<table><tr><th>Name<th>Age</tr><tr><td>Ann</td> <td>42</td></table>", want: "Name | Age\nAnn  | 42\n"},
		{name: "aligned tables", in: "<p>x<table><caption>Scores</caption><thead><tr><th>Name<th>Points<th>Note</thead><tbody><tr><td colspan=3>Group A<tr><td>日本<td>1<td><a href=/x>ok</a><tr><td><td>12<td></table>y",
			want: "x\n\nScores\nName | Points | Note\nGroup A\n日本 | 1      | ok[1]\n     | 12     |\n\ny\n\n[1] http://h.example/x\n"},
		{name: "a table that is too wide", in: "<table><tr><td>The quick brown<td>fox<tr><td>jumps<td>over</table>", width: 20, want: "The quick brown |\nfox\njumps | over\n"},
		{name: "a table with blocks in its cells", in: "<table><tr><td>a<td>b<tr><td><a href=/x>c</a><td>d<p>e</table>f", want: "a | b\nc[1] | d\n\ne\n\nf\n\n[1] http://h.example/x\n"},
		{name: "a table within a table", in: "<table><tr><td>a<td>b<tr><td>c<td><table><tr><td>1<td>2<tr><td>333<td>4</table></table>", want: "a | b\nc |\n\n1   | 2\n333 | 4\n"},
		{name: "a table in a list", in: "<ul><li>x<table><tr><td>aa<td>b<tr><td>c<td>d</table></ul>", want: "• x\n\n  aa | b\n  c  | d\n"},
		{name: "a table that never ends", in: "<table><tr><td>a<td>b<tr><td>c<td>d", want: "a | b\nc | d\n"},
		{name: "deleted", in: "It costs <del>10</del> <s> 11 </s>12 <strike></strike>€. <del>One<p>two</p></del>three", want: "It costs ~~10~~ ~~11~~ 12 €. ~~One~~\n\n~~two~~\n\nthree\n"},
		{name: "ruby", in: "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</ruby>を<ruby>読<rt></rt></ruby>む", want: "漢(かん)字(じ)を読む\n"},
		{name: "letters", in: "<ol type=a start=26><li>z<li>aa</ol><ol type=A><li>A</ol><ol type=i start=3><li>iii<li value=9>ix</ol><ol type=I><li>I</ol><ol type=i start=0><li>0</ol>",
			want: "z. z\naa. aa\n\nA. A\n\niii. iii\nix. ix\n\nI. I\n\n0. 0\n"},
		{name: "reversed", in: "<ol reversed><li>three<li>two<ul><li>x<li>y</ul><li>one</ol><ol reversed start=9><li>nine<li>eight</ol>",
			want: "• three\n• two\n  • x\n  • y\n• one\n\n• nine\n• eight\n"},
		{name: "images that say nothing", in: `a <img src=/x.png alt=""> b <img src=/y.png alt=" " title=t> <a href=/z><img src=/z.png alt=""></a> <a href=/w>w <img src=/w.png alt=""></a>`,
			want: "a b [image: t][1] [image: z.png][2][3] w[4]\n\n[1] http://h.example/y.png\n[2] http://h.example/z.png\n[3] http://h.example/z\n[4] http://h.example/w\n"},
		{name: "layout tables", in: "<table><tr><td><p>One</p></td><td><p>Two</p></td></tr></table>", want: "One\n\nTwo\n"},
		{name: "images", in: `<img src="/i/cat.png" alt="A cat"> <img src=x.jpg alt=a title=b> <img src=/y/z.gif> <img src=p width=1 height=1>`,
			want: "[image: A cat][1] [image: a — b][2] [image: z.gif][3]\n\n[1] http://h.example/i/cat.png\n[2] http://h.example/x.jpg\n[3] http://h.example/y/z.gif\n"},
		{name: "image in a link", in: `<a href=/page><img src=/a.png alt=x></a> <a href=/b.png><img src=/b.png alt=y></a>`,
			want: "[image: x][1][2] [image: y][3]\n\n[1] http://h.example/a.png\n[2] http://h.example/page\n[3] http://h.example/b.png\n"},
		{name: "media", in: `<video src=/v.mp4></video><audio><source src=/a.mp3><source src=/a.ogg></audio><iframe src="//t.example/e">no</iframe>`,
			want: "[video][1] [audio][2] [embedded page][3]\n\n[1] http://h.example/v.mp4\n[2] http://h.example/a.mp3\n[3] http://t.example/e\n"},
		{name: "scripts and styles", in: "a<script>if (a < b) x('</p>')</script><style>p{}</style>b<!-- c --><noscript>n<b>o</b></noscript>", want: "abno\n"},
		{name: "nothing reads as markup", in: "1 * 2 * 3_a_b # c [d](e) \\ `f` &lt;b&gt; &amp;amp; <b>bold</b> <i>it</i>", want: "1 * 2 * 3_a_b # c [d](e) \\ `f` <b> &amp; bold it\n"},
		{name: "superscripts", in: "10<sup>6</sup>, 10<sup>th</sup>, H<sub>2</sub>O", want: "10^6, 10th, H2O\n"},
		{name: "quotation", in: "He said <q>yes</q>.", want: "He said “yes”.\n"},
		{name: "rule", in: "a<hr>b", width: 5, want: "a\n\n-----\n\nb\n"},
		{name: "CDATA within", in: "a <![CDATA[b < c]]> d", want: "a b < c d\n"},
		{name: "controls", in: "a&#27;[31mb\x9b &#x202e;c&#x9b;2J", want: "a[31mb\uFFFD c›2J\n"},
		{name: "wide characters", in: "<p>日本語の文章、折り返し。", width: 10, want: "日本語の文\n章、折り返\nし。\n"},
		{name: "self-closing", in: "<p>a<br/>b<script/>c<hr/>d", want: "a\nbc\n\n----------------------------------------\n\nd\n"},
		{name: "bare text", in: "no tags & no end", want: "no tags & no end\n"},
		{name: "unbalanced ends", in: "</ul></li></blockquote></pre>x</a></dl>y", want: "x\n\ny\n"},
		{name: "empty", in: " <p> </p><ul><li></ul>", want: ""},
		{name: "many breaks", in: "a<br><br><br><br>b", want: "a\n\nb\n"},
		{name: "full document", in: "<html><head><title>T</title><style>x</style></head><body><p>b</p></body></html>", want: "T\n\nb\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Render([]byte(tc.in), "text/html", Options{Width: tc.width, Base: "http://h.example/"}); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestTypes(t *testing.T) {
	for _, tc := range []struct{ mime, in, want string }{
		{"", "a <b>\n", "a <b>\n"},
		{"text/plain; charset=utf-8", "a\r\nb\n\n", "a\nb\n"},
		{"text/markdown", "# a", "# a\n"},
		{"", "The quick brown fox\n  jumps over the dog\n\tcode", "The quick\nbrown fox\n  jumps over\n  the dog\n\tcode\n"},
		{"application/xhtml+xml", `<div xmlns="http://www.w3.org/1999/xhtml"><p>a &amp; b</p><br/></div>`, "a & b\n"},
		{"TEXT/HTML; charset=x", "<b>a</b>", "a\n"},
		{"html", "<b>a</b>", "a\n"},
		{"application/json", `{"a": 1}`, "{\"a\": 1}\n"},
		{"image/png", "\x89PNG\r\n\x1a\n\x00\x00", "[image/png, 10 bytes: not text, not shown]\n"},
		{"application/x-\x1b[2Jy", "\x00", "[application/x-[2jy, 1 byte: not text, not shown]\n"},
		{"", "a\x00b", "[data of no known type, 3 bytes: not text, not shown]\n"},
		{"audio/mpeg", strings.Repeat("\xff", 123456), "[audio/mpeg, 123 kB: not text, not shown]\n"},
		{"text/plain", "caf\xe9", "caf\uFFFD\n"},
		{"text/html", "", ""},
		{"", "\n", ""},
	} {
		if got := Render([]byte(tc.in), tc.mime, Options{Width: 12}); got != tc.want {
			t.Errorf("%s %.40q: got %q, want %q", tc.mime, tc.in, got, tc.want)
		}
	}
	if got := Text([]byte("\x00"), "image/png"); got != "" {
		t.Errorf("text of an image: %q", got)
	}
}

func TestExcerpt(t *testing.T) {
	for _, tc := range []struct {
		in, mime string
		width    int
		want     string
	}{
		{"<h1>Hello</h1><p>big <a href=x>wide</a> world", "text/html", 40, "Hello big wide world"},
		{"<ul><li>one<li>two</ul>", "text/html", 40, "one two"},
		{"Hello big wide world", "", 10, "Hello big…"},
		{strings.Repeat("ü", 10000), "", 5, "üüüü…"},
		{strings.Repeat("日", 10000), "text/plain", 5, "日日…"},
	} {
		if got := Excerpt([]byte(tc.in), tc.mime, tc.width); got != tc.want {
			t.Errorf("%.40q: got %q", tc.in, got)
		}
	}
}

// TestBombs: hostile markup is converted in linear time and size.
func TestBombs(t *testing.T) {
	const n = 100_000
	for name, in := range map[string]string{
		"quotes":      strings.Repeat("<blockquote>", n) + "text" + strings.Repeat("</blockquote>", n) + "after",
		"lists":       strings.Repeat("<ul><li>", n) + "text" + strings.Repeat("</li></ul>", n) + "after",
		"items":       "<ol>" + strings.Repeat("<li>", n) + "text</ol>after",
		"links":       strings.Repeat("<a href=x>a", n) + "text</a>after",
		"other links": manyLinks(n) + "text after",
		"formatting":  strings.Repeat("<b><i><font>", n) + "text after",
		"tables":      strings.Repeat("<table><tr><td>", n) + "text</table>after",
		"rows":        "<table>" + strings.Repeat("<tr><td>a<td>b", n) + "<tr><td>text</table>after",
		"reversed":    strings.Repeat("<ol reversed>", n) + "<li>text</ol>after",
		"deleted":     strings.Repeat("<del>a", n) + "text</del>after",
		"pre":         strings.Repeat("<pre>", n) + "text</pre>after",
		"noscript":    strings.Repeat("<noscript>", n) + "text</noscript>after",
		"in noscript": "<noscript>" + strings.Repeat("<noscript><p hidden>", n) + "text</noscript>after",
		"fallbacks":   strings.Repeat("<noscript><img src=a.png></noscript>", n) + "text after",
		"lazy":        "<picture><source srcset='" + strings.Repeat("a.png,", n) + " 2x'>" + strings.Repeat("<img>", n) + "</picture>text after",
		"candidates":  "<img srcset='" + strings.Repeat("a.png 2x, ", n) + "'>text after",
		"hidden":      strings.Repeat("<p hidden>", n) + "text after",
		"hiding":      strings.Repeat("<b hidden>", n) + strings.Repeat("</b>", n) + "text after",
		"formulas":    strings.Repeat("<math alttext=text>", n) + "x" + strings.Repeat("</math>", n) + "after",
		"annotations": "<math>" + strings.Repeat("<annotation encoding=tex>", n) + "x" + strings.Repeat("</annotation>", n) + "</math>text after",
		"asides":      strings.Repeat("<b aria-hidden=true>x</b><math>y</math>", n) + "text after",
		"ends":        strings.Repeat("</li></ul></blockquote>", n) + "text after",
		"breaks":      strings.Repeat("<br>", n) + "text<br>after",
		"word":        strings.Repeat("a", 10*n) + " text after",
		"wide":        strings.Repeat("日", 3*n) + " text after",
		"accents":     "e" + strings.Repeat("\u0301", 3*n) + " text after",
		"attributes":  "<p " + strings.Repeat("a=b ", n) + ">text after",
		"unclosed":    "text after" + strings.Repeat("<", n),
		"definitions": strings.Repeat("<dl><dd>", n) + "text</dl>after",
	} {
		t.Run(name, func(t *testing.T) {
			start := processor(t)
			out := Render([]byte(in), "text/html", Options{Width: 72, Base: "http://h.example/" + strings.Repeat("x", 900)})
			if took := processor(t) - start; took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if !strings.Contains(out, "text") || !strings.Contains(out, "after") {
				t.Errorf("text is lost: %.200q", out)
			}
			if len(out) > 20*len(in)+1<<24 {
				t.Errorf("%d bytes of %d", len(out), len(in))
			}
		})
	}
}

func manyLinks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<a href=%d>a</a>", i)
	}
	return b.String()
}

// letters writes the letters and digits that a browser would show of a document.
func letters(n *html.Node, b *strings.Builder) {
	switch {
	case n.Type == html.TextNode:
		for _, r := range n.Data {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				b.WriteRune(r)
			}
		}
	case n.Type == html.ElementNode && (n.Data == "script" || n.Data == "style" || n.Data == "noscript" || n.Data == "iframe" || n.Data == "template"):
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		letters(c, b)
	}
}

// TestRealDocuments: no breakable line of a real document is too wide, and no letter is missing,
// compared with another parser.
func TestRealDocuments(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.html")
	if len(files) == 0 {
		t.Fatal("no documents")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		letters(doc, &want)
		out := Render(data, "text/html", Options{Bare: true})
		got := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, out)
		// Our text also has the alternative texts of images, so look for the other text in it, in
		// order.
		at := 0
		rest := []rune(got)
		for _, r := range want.String() {
			for at < len(rest) && rest[at] != r {
				at++
			}
			if at == len(rest) {
				t.Errorf("%s: text is lost", file)
				break
			}
			at++
		}
		for line := range strings.Lines(Render(data, "text/html", Options{Width: 60})) {
			line = strings.TrimRight(line, "\n")
			if termsafe.Width(line) > 60 && strings.Contains(strings.TrimLeft(line, "> •[]0123456789"), " ") && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: too wide: %s", file, line)
			}
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"<p>a<ul><li>b</ul>", "<pre>\n x", "<a href=x>y", "<table><td>1<td>2", "<blockquote><ol><li>a<blockquote>b", "<img alt=x src=y>",
		"<h1>日本</h1><sup>2</sup>", "<noscript><p>x</noscript>", "<![CDATA[x]]>", "a\x00b", "<plaintext>a<b>", "<dl><dt>a<dd>b", "\x1b[0m&#155;",
		"<ul><pre></ul>x</pre>", "<audio><source src=a></audio>",
		"<table><caption>c<tr><td>a<td><a href=x>b<tr><td>c<p>d", "<table><tr><td>a<tr><td>b<td>c</table>", "<del>a<p>b<s>c</del>", "<ruby>a<rt>b<rp>c", "<ol reversed type=i><li>x<ol type=A><li>y",
		"<b hidden>a<i aria-hidden=true>b</b>c</i><math alttext=x>d<annotation encoding=tex>e</annotation></math>", "<img data-src=a.b><noscript><img src=a.b><style></noscript>",
		"<picture><source srcset='a.b 2x,c.d'><template></picture>e</template><xmp></noscript><noscript><xmp><plaintext>",
	} {
		f.Add(s, "text/html", 40)
		f.Add(s, "", 7)
	}
	f.Fuzz(func(t *testing.T, s, mime string, width int) {
		if width > 1000 || width < 0 {
			return
		}
		out := Render([]byte(s), mime, Options{Width: width, Base: "http://h.example/x"})
		if termsafe.Unsafe(out) {
			t.Errorf("unsafe: %q", out)
		}
		if out != "" && !strings.HasSuffix(out, "\n") {
			t.Errorf("no newline at the end: %q", out)
		}
		if len(out) > 200*(len(s)+1)+200*len(mime) {
			t.Errorf("%d bytes from %d", len(out), len(s))
		}
		Excerpt([]byte(s), mime, width)
	})
}

func BenchmarkRender(b *testing.B) {
	data, err := os.ReadFile("testdata/article.html")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Render(data, "text/html", Options{Width: 80})
	}
}

// processor returns the processor time of this process, which does not depend on other processes.
func processor(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
