package htmlsafe

import (
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "a &lt; b", "a &lt; b"},
		{"paragraphs", "<p>one<p>two", "<p>one</p><p>two</p>"},
		{"script", `<p>a<script>alert(1)</script>b</p>`, "<p>ab</p>"},
		{"style", `<style>p{color:red}</style><p style="x">a</p>`, "<p>a</p>"},
		{"handler", `<p onclick="x()">a <b onmouseover=y>b</b></p>`, "<p>a <b>b</b></p>"},
		{"link", `<a href="https://e.example/a?b=1&c=2">x</a>`, `<a href="https://e.example/a?b=1&amp;c=2" rel="noopener noreferrer">x</a>`},
		{"relative link", `<a href="../x">x</a>`, `<a href="https://base.example/x" rel="noopener noreferrer">x</a>`},
		{"javascript", `<a href="javascript:alert(1)">x</a>`, `x`},
		{"javascript with a tab", "<a href=\"java\tscript:alert(1)\">x</a>", `x`},
		{"data", `<a href="data:text/html,x">x</a>`, `x`},
		{"mail", `<a href="mailto:a@b.example">x</a>`, `<a href="mailto:a@b.example" rel="noopener noreferrer">x</a>`},
		{"password", `<a href="https://kim:secret@e.example/">x</a>`, `<a href="https://e.example/" rel="noopener noreferrer">x</a>`},
		{"characters no URL has", `<a href='https://e.example/?q=a|b"'>x</a>`, `<a href="https://e.example/?q=a%7Cb%22" rel="noopener noreferrer">x</a>`},
		{"brackets", `<a href='https://[::1]:80/a[1]?b[]=1#c[d]'>x</a>`, `<a href="https://[::1]:80/a%5B1%5D?b%5B%5D=1#c%5Bd%5D" rel="noopener noreferrer">x</a>`},
		{"percent signs", `<a href='https://e.example/a%20b?q=5%&amp;r=%zz&amp;s=%41'>x</a>`, `<a href="https://e.example/a%20b?q=5%25&amp;r=%25zz&amp;s=%41" rel="noopener noreferrer">x</a>`},
		{"port that none is", `<a href="https://e.example:99999/">x</a>`, `x`},
		{"image", `<img src="/i.png" alt="An &quot;i&quot;" width=10 height=20 srcset="x 2x" onerror=x>`,
			`<img src="https://base.example/i.png" alt="An &#34;i&#34;" width="10" height="20" loading="lazy" decoding="async" referrerpolicy="no-referrer">`},
		{"pixel", `<p>a<img src="https://t.example/p.gif" width="1" height="1"></p>`, "<p>a</p>"},
		{"pixel in a link", `<p>a <a href="https://e.example/"><img src="https://t.example/p.gif" width="1" height="1"></a></p>`, "<p>a </p>"},
		{"pixel in a link by itself", `<p>a</p><p><a href="https://e.example/"><b><img src="https://pixel.wp.com/b.gif"></b></a></p><h2><img width=1 src="https://t.example/p.gif"></h2>`, "<p>a</p>"},
		{"image without an address in a link", `<p>a <a href="https://e.example/"><img src="" alt=" "></a></p>`, "<p>a  </p>"},
		{"image with a name in a link", `<a href="https://e.example/"><img src="javascript:x" alt="i"></a>`, `<a href="https://e.example/" rel="noopener noreferrer">i</a>`},
		{"a box that scrolls has the focus", "<pre>a\n  b</pre>", "<pre tabindex=\"0\">a\n  b</pre>"},
		{"a box that scrolls in a link", `<a href="https://e.example/"><pre>a</pre></a>`, `<a href="https://e.example/" rel="noopener noreferrer"><pre>a</pre></a>`},
		{"pixel by name", `<p>a<img src="https://pixel.wp.com/b.gif?host=x"></p>`, "<p>a</p>"},
		{"image of data", `<img src="data:image/png;base64,AAAA" alt="dot">`, "dot"},
		{"block in inline", `<b><p>x</p></b>`, "<p>x</p>"},
		{"block in link", `<a href="https://e.example/"><div>x</div></a>`, `<a href="https://e.example/" rel="noopener noreferrer"><div>x</div></a>`},
		{"block in heading", `<h1><div>x</div></h1>`, "<h2>x<br></h2>"},
		{"headings keep their steps", `<h3>a</h3><h4>b</h4><h3></h3>`, "<h2>a</h2><h3>b</h3>"},
		{"list of strays", `<ul>a<li>b</li><p>c</p></ul>`, "<ul><li>a</li><li>b</li><li><p>c</p></li></ul>"},
		{"ordered", `<ol start=3><li value=7>x</ol>`, `<ol start="3"><li value="7">x</li></ol>`},
		{"terms", `<dl><dt>a<dd>b</dl>`, "<dl><dt>a</dt><dd>b</dd></dl>"},
		{"terms without meaning", `<dl><dd>b</dl>`, "<div><div>b</div></div>"},
		{"table", `<table><tr><th>a<td colspan=2>b<tr><td>1<td>2<td>3</table>`,
			`<table tabindex="0"><tbody><tr><th>a</th><td colspan="2">b</td></tr><tr><td>1</td><td>2</td><td>3</td></tr></tbody></table>`},
		{"figure", `<figure><img src="https://e.example/i.png" alt="i"><figcaption>c</figcaption></figure>`,
			`<figure><img src="https://e.example/i.png" alt="i" loading="lazy" decoding="async" referrerpolicy="no-referrer"><figcaption>c</figcaption></figure>`},
		{"details", `<details open><summary>s</summary>t</details>`, "<details><summary>s</summary>t</details>"},
		{"player", `<iframe src="https://v.example/e/1">old browser</iframe>`, `<a href="https://v.example/e/1" rel="noopener noreferrer">[embedded: v.example]</a>`},
		{"video", `<video><source src="/v.mp4">no video</video>`, `<a href="https://base.example/v.mp4" rel="noopener noreferrer">[video: base.example]</a>`},
		{"ruby", `<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>`, "漢(kan)"},
		{"ruby without parentheses", `<ruby>漢<rt>kan</rt>字<rp>(</rp><rt></rt><rp>)</rp></ruby>`, "漢(kan)字"},
		{"lazy image", `<img src="data:image/gif;base64,AAAA" data-src="/i.png" alt="i"><noscript><img src="/i.png" alt="i"></noscript>`,
			`<img src="https://base.example/i.png" alt="i" loading="lazy" decoding="async" referrerpolicy="no-referrer">`},
		{"picture of sources", `<picture><source srcset="/s.png 1x, /i.png 2x"></picture>`,
			`<img src="https://base.example/i.png" alt="" loading="lazy" decoding="async" referrerpolicy="no-referrer">`},
		{"noscript", `<noscript><p title="</noscript><img src=x onerror=x>">a</p></noscript>`, `<img src="https://base.example/dir/x" alt="" loading="lazy" decoding="async" referrerpolicy="no-referrer">&#34;&gt;a`},
		{"lazy frame", `<iframe src="about:blank" data-src="https://v.example/e/1"></iframe>`, `<a href="https://v.example/e/1" rel="noopener noreferrer">[embedded: v.example]</a>`},
		{"hidden", `<p hidden>a</p><div style="display: none">b</div>c`, "c"},
		{"formula", `<span class="katex"><span><math xmlns="http://www.w3.org/1998/Math/MathML" onclick="x"><semantics><mrow><mfrac linethickness="0"><mn>1</mn><mi>a</mi></mfrac></mrow><annotation encoding="application/x-tex">\frac{1}{a}</annotation></semantics></math></span><span aria-hidden="true">1a</span></span>`,
			"<math><semantics><mrow><mfrac><mn>1</mn><mi>a</mi></mfrac></mrow></semantics></math>"},
		{"HTML in a formula", `<math><mtext><b onclick=x>a</b><img src="/i.png"></mtext><q>b</q><mi></mi><p>c</p></math>`, "<math><mtext>a</mtext>b<mi></mi></math><p>c</p>"},
		{"svg", `<svg><a xlink:href="javascript:x"><text>t</text></a><script>x</script></svg>`, "t"},
		{"math that breaks out", `<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>`, ""},
		{"refresh", `<meta http-equiv=refresh content="0;url=https://evil.example/">a`, "a"},
		{"form", `<form action="https://evil.example/"><input name=p><button>b</button>a</form>`, "ba"},
		{"base", `<base href="https://evil.example/"><a href="x">a</a>`, `<a href="https://base.example/dir/x" rel="noopener noreferrer">a</a>`},
		{"names", `<p id=forms class=x name=y>a</p>`, "<p>a</p>"},
		{"controls", "<p>a\x1b[2Jb\u202ec</p>", "<p>a[2Jbc</p>"},
		{"direction", `<p dir=RTL>a</p>`, `<p dir="rtl">a</p>`},
		{"comment", `a<!-- <p> -->b<![CDATA[c]]>`, "ab"},
		{"closing what is not open", `</article></body></html>a`, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Clean([]byte(tt.in), "text/html", Options{Base: "https://base.example/dir/page"})
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	got := Clean([]byte("a <b>\r\nc\n\n\nd"), "", Options{})
	if want := "<p>a &lt;b&gt;<br>\nc</p>\n<p>d</p>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Clean([]byte{0, 1, 2}, "image/png", Options{}); got != "" {
		t.Errorf("of an image: %q", got)
	}
}

func TestNoImages(t *testing.T) {
	in := []byte(`<p><img src="https://e.example/i.png" alt="i"> <a href="https://e.example/"><img src="https://e.example/j.png"></a></p>`)
	got := Clean(in, "text/html", Options{NoImages: true})
	want := `<p><a href="https://e.example/i.png" rel="noopener noreferrer">[image: i]</a> <a href="https://e.example/" rel="noopener noreferrer">[image]</a></p>`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDeep(t *testing.T) {
	got := Clean([]byte(strings.Repeat("<div>", 100_000)+"deep"), "text/html", Options{})
	if !strings.Contains(got, "deep") || len(got) > 1000 {
		t.Errorf("got %d bytes: %.100s", len(got), got)
	}
}

// FuzzClean checks the result with a parser: it has only the elements and attributes named here,
// all elements are closed, and cleaning it again changes nothing visible.
func FuzzClean(f *testing.F) {
	for _, s := range []string{
		`<p>a<b>c</p>d`, `<a href=//x.example>y<table><td><a href=z>`, "<svg><style><!--</style><img src=x onerror=y>-->",
		`<math><annotation-xml encoding="text/html"><script>`, `<noscript><p title="</noscript><img src=x onerror=x>">`,
		`<select><option><iframe src=https://x.example>`, `<math><mtext><p><math><mi><q>x</math><mglyph><style>y`, `<math alttext=x><none/><annotation encoding=tex>y`, `<dl><dt><dl><dd><ul>x`, `<table><caption><table><tr><td rowspan=9>`,
	} {
		f.Add(s)
	}
	allowed := map[string]string{
		"a": " href rel ", "img": " src alt title width height loading decoding referrerpolicy ", "ol": " start ", "li": " value ",
		"td": " colspan rowspan ", "th": " colspan rowspan ", "abbr": " title ", "dfn": " title ", "pre": " tabindex ", "table": " tabindex ",
	}
	for name := range strings.FieldsSeq(mathElements + " b bdi bdo cite code del em i ins kbd mark q s samp small strong sub sup u var br wbr p pre hr blockquote ul dl dt dd table caption thead tbody tfoot tr figure figcaption details summary div h2 h3 h4 h5 h6") {
		allowed[name] += ""
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Clean([]byte(s), "text/html", Options{Base: "https://base.example/"})
		var open []string
		z := nethtml.NewTokenizer(strings.NewReader(out))
		for {
			switch z.Next() {
			case nethtml.ErrorToken:
				if len(open) > 0 {
					t.Fatalf("%v stay open in %q of %q", open, out, s)
				}
				return
			case nethtml.StartTagToken, nethtml.SelfClosingTagToken:
				token := z.Token()
				may, ok := allowed[token.Data]
				if !ok {
					t.Fatalf("%s in %q of %q", token.Data, out, s)
				}
				for _, a := range token.Attr {
					if !strings.Contains(may+" dir ", " "+a.Key+" ") {
						t.Fatalf("%s has %s in %q of %q", token.Data, a.Key, out, s)
					}
					if (a.Key == "href" || a.Key == "src") && !strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://") && !strings.HasPrefix(a.Val, "mailto:") {
						t.Fatalf("%s=%s in %q of %q", a.Key, a.Val, out, s)
					}
				}
				switch token.Data {
				case "br", "wbr", "hr", "img":
				default:
					open = append(open, token.Data)
				}
			case nethtml.EndTagToken:
				name := z.Token().Data
				if len(open) == 0 || open[len(open)-1] != name {
					t.Fatalf("</%s> closes %v in %q of %q", name, open, out, s)
				}
				open = open[:len(open)-1]
			case nethtml.CommentToken, nethtml.DoctypeToken:
				t.Fatalf("markup in %q of %q", out, s)
			}
		}
	})
}

// TestURL: the links of an entry are treated like the links in its text.
func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://e.example/100%?a[]=b%":     "http://e.example/100%25?a%5B%5D=b%25",
		"http://e.example?x[1]":            "http://e.example?x%5B1%5D",
		"https://kim:pw@[2001:db8::1]/[1]": "https://[2001:db8::1]/%5B1%5D",
		"http://e.example":                 "http://e.example",
		"http://e.example:65536/":          "",
		"http://[::1/":                     "",
		"javascript:alert(1)":              "",
		"mailto:a@b.example":               "",
	} {
		if got := URL(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
