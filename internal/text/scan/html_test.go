package scan

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTidyRule11HTML(t *testing.T) {
	base := mustURL(t, "http://e/d/f?q")
	same := []string{
		"", "no tags", `<p>a <b>c</b>`, `<a href="http://x/y">`, `<a href="#fn1">`, `<a href="mailto:x@y">`, `<a href='tag:x'>`, `<a href>`, `<a href="">`,
		`<img alt="src=x">`, `<a title="<a href=x>">`, `<!-- <a href="x"> -->`, `<script>document.write("<a href='x'>")</script>`, `<style>a[href=x]</style>`,
		`a < b <a`, `<a href="x`, `<a href=`, `</a href="x">`, `<a href="java&#115;cript:alert(1)">`, `<img usemap="#m">`, `<p data-src="x">`, `<img src="data:image/png;base64,xx">`,
		`<textarea><a href="x"></textarea>`, `<script><a href=x>`, `<!-- <a href=x>`,
	}
	for _, s := range same {
		if got := resolvedHTML(s, base); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, c := range [][2]string{
		{`<a href="x">`, `<a href="http://e/d/x">`},
		{`<A  HREF = 'x?a&amp;b'  >y</A>`, `<A  HREF = 'http://e/d/x?a&amp;b'  >y</A>`},
		{`<a href=x>`, `<a href="http://e/d/x">`},
		{`<img src=/a/b.png alt="a<b" />`, `<img src="http://e/a/b.png" alt="a<b" />`},
		{`<img srcset="a.png 1x, /b,c.png 2x,d.png" src="s">`, `<img srcset="http://e/d/a.png 1x, http://e/b,c.png 2x,http://e/d/d.png" src="http://e/d/s">`},
		{`<form action="?x"><blockquote cite="c"><video poster="p" src="//h/v"><img longdesc="l"><object data="o">`,
			`<form action="http://e/d/f?x"><blockquote cite="http://e/d/c"><video poster="http://e/d/p" src="http://h/v"><img longdesc="http://e/d/l"><object data="http://e/d/o">`},
		{`<a href="x"><script>"<a href='y'>"</script><a href="z">`, `<a href="http://e/d/x"><script>"<a href='y'>"</script><a href="http://e/d/z">`},
		{"é<a\nhref=\"ü \">", "é<a\nhref=\"http://e/d/ü\">"},
		{`<a class="a" href="x" id=b>`, `<a class="a" href="http://e/d/x" id=b>`},
		{`<a href='a"b'>`, `<a href='http://e/d/a&quot;b'>`},
		{`<<a href=x>`, `<<a href="http://e/d/x">`},
	} {
		if got := resolvedHTML(c[0], base); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
		if again := resolvedHTML(c[1], base); again != c[1] {
			t.Errorf("%q, resolved again: %q", c[1], again)
		}
	}
	if got := resolvedHTML(`<a href=x>`, nil); got != `<a href=x>` {
		t.Errorf("no base: %q", got)
	}
	long := mustURL(t, "http://e/"+strings.Repeat("x", 2000)+"/")
	s := strings.Repeat("<a href=y>", 10000)
	if got := resolvedHTML(s, long); len(got) > 3*len(s)+128<<10 {
		t.Errorf("%d bytes became %d", len(s), len(got))
	}
}

func FuzzResolveHTML(f *testing.F) {
	f.Add(`<a href="x">`, "http://e/")
	f.Fuzz(func(t *testing.T, s, b string) {
		base, err := url.Parse(b)
		if err != nil || len(b) > 2048 || base.Scheme != "http" && base.Scheme != "https" {
			return
		}
		got := resolvedHTML(s, base)
		if len(got) > 8*len(s)+64<<10+8*64<<10 {
			t.Fatalf("%d bytes became %d", len(s), len(got))
		}
		if got == s {
			return
		}
		if again := resolvedHTML(got, base); again != got && base.Host != "" {
			t.Fatalf("not stable: %q, %q, %q", s, got, again)
		}
		// In a value, < may become a reference; with what stands before "..", it goes.
		if strings.Count(got, "<")+strings.Count(got, "&lt;") < strings.Count(s, "<") && !strings.Contains(html.UnescapeString(s), "..") {
			t.Fatalf("tags were lost: %q %q", s, got)
		}
	})
}

// resolvedHTML resolves with the budget of a document that is no longer than s.
func resolvedHTML(s string, base *url.URL) string {
	budget := len(s) + 64<<10
	return ResolveHTML(s, base, false, &budget)
}
