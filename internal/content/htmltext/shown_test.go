package htmltext

import (
	"strings"
	"testing"
)

// gif is a placeholder, as lazy loading puts it into src.
const gif = `data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7`

// TestShownImages: each image has its true source once. The shapes are those of the programs that
// are named.
func TestShownImages(t *testing.T) {
	const one, two = "https://i.example/1.jpg", "https://i.example/2.jpg"
	for _, tc := range []struct {
		name, in string
		want     []string // sources in their order
	}{
		{"plain", `<img src="https://i.example/1.jpg">`, []string{one}},
		{"lazysizes", `<img class="lazyload" src="` + gif + `" data-src="https://i.example/1.jpg"><noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"a blank file", `<img src="/img/blank.gif" data-original="https://i.example/1.jpg">`, []string{one}},
		{"no source", `<img data-src="https://i.example/1.jpg">`, []string{one}},
		{"a3 Lazy Load", `<img src="//w.example/lazy_placeholder.gif" data-lazy-type="image" data-src="https://i.example/1.jpg" class="lazy lazy-hidden" srcset="" data-srcset="https://i.example/1-s.jpg 300w"><noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"WP Rocket", `<img src="data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%3E%3C/svg%3E" data-lazy-src="https://i.example/1.jpg" data-lazy-srcset="https://i.example/2.jpg 9w"><noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"Jetpack", `<img src="https://i.example/1.jpg" srcset="` + gif + `" data-lazy-src="https://i.example/1.jpg?is-pending-load=1"><noscript><img data-lazy-fallback="1" src="https://i.example/1.jpg"></noscript>`, []string{one + "?is-pending-load=1"}},
		{"Jetpack, its carousel", `<img data-orig-file="https://i.example/2.jpg" data-large-file="https://i.example/3.jpg" src="https://i.example/1.jpg">`, []string{one}},
		{"Cloudflare Mirage", `<img data-cfsrc="https://i.example/1.jpg" style="display:none;visibility:hidden;"><noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"NitroPack", `<img nitro-lazy-src="https://i.example/1.jpg" class="lazyloading" src="data:image/svg+xml;nitro-empty-id=Mg==">`, []string{one}},
		{"no twin has a source", `<img src="` + gif + `" alt="x"> <noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"Squarespace, the twin first", `<div><noscript><img src="https://i.example/1.jpg" /></noscript> <img class="thumb-image" data-src="https://i.example/1.jpg?x" data-load="false"/></div><div><noscript><img src="https://i.example/2.jpg"/></noscript><img data-src="https://i.example/2.jpg?x"/></div>`, []string{one + "?x", two + "?x"}},
		{"pictures beside each other", `<img data-src="https://i.example/1.jpg"><noscript><img src="https://i.example/1.jpg"></noscript><img data-src="https://i.example/2.jpg"><noscript><img src="https://i.example/2.jpg"></noscript>`, []string{one, two}},
		{"noscript that is no twin", `<img src="https://i.example/1.jpg"><noscript><img src="https://i.example/2.jpg"></noscript>`, []string{one, two}},
		{"noscript after text", `<img data-src="https://i.example/1.jpg">text<noscript><img src="https://i.example/2.jpg"></noscript>`, []string{one, two}},
		{"noscript alone", `<noscript><img src="https://i.example/1.jpg"></noscript>`, []string{one}},
		{"noscript with more", `<img data-src="https://i.example/1.jpg"><noscript>More: <img src="https://i.example/2.jpg"></noscript>`, []string{one, two}},
		{"an element that stays open in noscript", `<noscript><div hidden><p></noscript><img src="https://i.example/1.jpg"></div>`, []string{one}},
		{"markup that stays open in noscript", `<noscript><style>p{}</noscript><noscript><!-- x</noscript><noscript><textarea></noscript><noscript><img src="</noscript><img src="https://i.example/1.jpg">`, []string{one}},
		{"Gatsby", `<img src="` + gif + `"><noscript><picture><source srcset="https://i.example/2.webp 800w" type="image/webp"><img src="https://i.example/1.jpg"></picture></noscript>`, []string{one}},
		{"srcset alone", `<img srcset="https://i.example/s.jpg 300w, https://i.example/1.jpg 900w,https://i.example/m.jpg 600w">`, []string{one}},
		{"Substack", `<picture><source type="image/webp" srcset="https://i.example/w_4,c_limit/1.webp 4w"><img src="https://i.example/w_9,c_limit/1.jpg" data-attrs="{&quot;src&quot;:&quot;https://i.example/2.jpg&quot;}" srcset="https://i.example/w_4,c_limit/1.jpg 4w"></picture>`, []string{"https://i.example/w_9,c_limit/1.jpg"}},
		{"commas in URLs", `<img srcset="https://i.example/w_4,c_limit/1.jpg 4w, https://i.example/w_9,c_limit/1.jpg 9w">`, []string{"https://i.example/w_9,c_limit/1.jpg"}},
		{"densities", `<img srcset="https://i.example/s.jpg, https://i.example/1.jpg 2x, https://i.example/m.jpg 1.5x" src="">`, []string{one}},
		{"data-srcset", `<img src="` + gif + `" srcset="` + gif + `" data-srcset="https://i.example/s.jpg 3w, https://i.example/1.jpg 9w" data-lowsrc="https://i.example/s.jpg">`, []string{one}},
		{"Medium", `<picture><source srcset="https://i.example/1.webp 9w" type="image/webp"><source srcset="https://i.example/s.jpg 3w, https://i.example/1.jpg 9w"><img alt="" width="700" loading="eager"></picture>`, []string{one}},
		{"sources only", `<picture><source srcset="https://i.example/1.webp"><source data-srcset="https://i.example/1.jpg"></picture><img src="` + gif + `">`, []string{one, gif}},
		{"a picture, and no image for the rest", `<picture><source srcset="https://i.example/1.jpg"><img><img></picture>`, []string{one, ""}},
		{"a flag is no source", `<img src="https://i.example/1.jpg" data-src="true" data-lazy="1" data-original="{{x.jpg}}">`, []string{one}},
		{"a video has no picture", `<video><source src="/v.mp4"></video><img src="` + gif + `">`, []string{gif}},
		{"pixel for analysis", `<noscript><img height="1" width="1" style="display:none" src="https://t.example/tr?id=1"></noscript>`, nil},
		{"frame", `<iframe src="about:blank" data-lazy-src="https://v.example/1"></iframe><noscript><iframe src="https://v.example/1"></iframe></noscript>`, []string{"https://v.example/1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, tag := range strings.Split(string(Shown([]byte(tc.in))), "<")[1:] {
				name, rest, _ := strings.Cut(strings.TrimRight(tag, ">/"), " ")
				if name == "img" || name == "iframe" {
					_, src, _ := strings.Cut(" "+rest, ` src="`)
					src, _, _ = strings.Cut(src, `"`)
					got = append(got, src)
				}
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got %q of %s", got, Shown([]byte(tc.in)))
			}
		})
	}
}

// TestShownPictures: the picture that a reader fetches is the true source.
func TestShownPictures(t *testing.T) {
	d := Lay([]byte(`<img src="`+gif+`" alt="x" data-src="/1.png"><noscript><img src="/1.png" alt="x"></noscript>`), "text/html", Options{Base: "https://i.example/"})
	if want := "[image: x][1]\n\n[1] https://i.example/1.png\n"; d.Text != want || len(d.Pictures) != 1 || d.Pictures[0] != "https://i.example/1.png" {
		t.Errorf("%q %q", d.Text, d.Pictures)
	}
}

// The outputs of KaTeX and MathJax, shortened: layers for the eye, and MathML for the ear.
const (
	katex     = `<span class="katex"><span class="katex-mathml"><math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><msup><mi>a</mi><mn>2</mn></msup></mrow><annotation encoding="application/x-tex">a^2 &lt; "b"</annotation></semantics></math></span><span class="katex-html" aria-hidden="true"><span class="base"><span class="mord">a</span><span class="vlist">2</span></span></span></span>`
	katexHTML = `<span class="katex"><span class="katex-html" aria-hidden="true"><span class="base"><span class="mord">a</span><span class="vlist">2</span></span></span></span>`
	mathjax   = `<mjx-container class="MathJax" jax="SVG"><svg aria-hidden="true"><g><text>ä</text></g></svg><mjx-assistive-mml unselectable="on" display="inline"><math xmlns="http://www.w3.org/1998/Math/MathML"><msup><mi>a</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container>`
	mathjax2  = `<span class="MathJax_Preview" style="color: inherit; display: none;">a2</span><span class="MathJax"><nobr aria-hidden="true"><span class="math">a2</span></nobr><span class="MJX_Assistive_MathML" role="presentation"><math><mi>a</mi><mn>2</mn></math></span></span><script type="math/tex">a^2</script>`
	wikipedia = `<span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none;"><math alttext="{\displaystyle a}"><semantics><mi>a</mi><annotation encoding="application/x-tex">{\displaystyle a}</annotation></semantics></math></span><img src="https://m.example/1" aria-hidden="true" alt="{\displaystyle a}"></span>`
	latexml   = `<math alttext="a^{2}" display="block"><semantics><msup><mi>a</mi><mn>2</mn></msup><annotation-xml encoding="MathML-Content"><apply><ci>a</ci><cn>2</cn></apply></annotation-xml><annotation encoding="application/x-llamapun">power</annotation></semantics></math>`
)

// TestShownOnce: text stands once, and only the text that a browser shows.
func TestShownOnce(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"KaTeX", "<p>x " + katex + " y", `x a^2 < "b" y`},
		{"KaTeX without MathML", "<p>x " + katexHTML + " y", "x a2 y"},
		{"MathJax", "<p>x " + mathjax + " y", "x a2 y"},
		{"MathJax 2", "<p>x " + mathjax2 + " y", "x a2 y"},
		{"Wikipedia", "<p>x " + wikipedia + " y", `x [image: {\displaystyle a}] y`},
		{"LaTeXML", "<p>x " + latexml + " y", "x a^{2} y"},
		{"MathML alone", "<p>x <math><mi>a</mi><mn>2</mn></math> y", "x a2 y"},
		{"a formula that stays open", `<p>x <math alttext="z"><mi>a</mi><annotation encoding="TeX">b</annotation><p>y`, "x a\n\ny"},
		{"annotation without a formula", `<annotation encoding="TeX">b</annotation>`, "b"},
		{"text that only screen readers skip", `<p><span aria-hidden="true">★★</span> two <math><mi>a</mi></math></p><p aria-hidden="true">* * *</p>`, "★★ two a\n\n* * *"},
		{"hidden", `a<span hidden>b<span>c</span>d</span>e<i style="color:red; DISPLAY : none !important">f</i>g<div hidden=""><p>h</div>`, "aeg"},
		{"hidden until a search finds it", `a<span hidden="until-found">b</span>`, "ab"},
		{"templates", `a<template><p>b</template>c`, "ac"},
		{"hidden in hidden", `a<b hidden>b<i hidden>c</i></b><i>d</i>`, "ad"},
		{"hidden and never closed", `a<div hidden>b<p>c`, "a\nb\n\nc"},
		{"hidden and wrongly closed", `a<b hidden>b<i>c</b>d</i>e`, "ade"},
		{"noscript", `a<noscript>b<b>c</b></noscript>d`, "abcd"},
		{"ruby", "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>", "漢(かん)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.TrimSpace(Text([]byte(tc.in), "text/html")); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
