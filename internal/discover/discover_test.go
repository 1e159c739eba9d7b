package discover

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const page = "https://www.example.com/blog/post.html?x=1"

func TestPage(t *testing.T) {
	for _, tc := range []struct{ name, html, want string }{
		{"rss", `<link rel="alternate" type="application/rss+xml" title="R &amp; S" href="/rss">`, "https://www.example.com/rss|R & S"},
		{"atom, relative", `<link rel=alternate type=application/atom+xml href=feed.atom>`, "https://www.example.com/blog/feed.atom|"},
		{"json", `<LINK REL="Alternate" TYPE="Application/Feed+JSON" HREF="//cdn.example/f.json?a=1&amp;b=2">`, "https://cdn.example/f.json?a=1&b=2|"},
		{"text/xml with a charset", `<link rel='alternate nofollow' type='text/xml; charset=utf-8' href='a'>`, "https://www.example.com/blog/a|"},
		{"rel feed", `<link rel="feed" href="f">`, "https://www.example.com/blog/f|"},
		{"base", `<base href="http://other.example/d/"><base href="http://no/"><link rel=alternate type=application/rss+xml href=x>`, "http://other.example/d/x|"},
		{"relative base", `<base href="/d/"><link rel=alternate type=application/rss+xml href=x>`, "https://www.example.com/d/x|"},
		{"white space", "<link rel='alternate' type='application/rss+xml' href=' /a\n b '>", "https://www.example.com/a%20b|"},
		{"absolute stays", `<link rel=alternate type=application/rss+xml href="HTTP://Ex.example:80/A%7eb?q=|x#frag">`, "HTTP://Ex.example:80/A%7eb?q=|x|"},
		{"several, one twice", `<link rel=alternate type=application/rss+xml href=a title=A><link rel=alternate type=application/atom+xml href=b title=B><link rel=alternate type=application/rss+xml href=a>`,
			"https://www.example.com/blog/a|A https://www.example.com/blog/b|B"},
		{"feed scheme", `<link rel=alternate type=application/rss+xml href="feed://h.example/f"><link rel=alternate type=application/rss+xml href="feed:https://h.example/g">`,
			"http://h.example/f| https://h.example/g|"},
		{"in the body", `<body><p><link rel=alternate type=application/rss+xml href=a>`, "https://www.example.com/blog/a|"},
		{"not feeds", `<link rel=stylesheet type=text/css href=x><link rel="alternate stylesheet" type=text/xml href=x><link rel=alternate hreflang=fr href=y>
			<link rel=alternate type=application/json href=/wp-json/><link rel=icon href=z><link rel=alternate type=application/rss+xml href="javascript:x">
			<link rel=alternate type=application/rss+xml href=""><link rel=alternate type=application/activity+json href=me>`, ""},
		{"in a comment, a script, a textarea", `<!-- <link rel=alternate type=application/rss+xml href=a> --><script>"<link rel=alternate type=application/rss+xml href=a>"</script><textarea><link rel=alternate type=application/rss+xml href=a></textarea>`, ""},
		{"anchors", `<a href="/feed/">Sub<b>scribe</b></a> <a href=about.html>x</a> <a href=all.atom>All</a><a href=/sitemap.xml>m</a>`,
			"https://www.example.com/feed/|Subscribe https://www.example.com/blog/all.atom|All"},
		{"anchors only without a link", `<a href=/feed>Feed</a><link rel=alternate type=application/rss+xml href=a>`, "https://www.example.com/blog/a|"},
		{"unfinished", `<link rel=alternate type=application/rss+xml href=a><link rel=alternate type="application/rss+xml" href="b`, "https://www.example.com/blog/a|"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Page([]byte("<html><head><title>T\n x</title>"+tc.html), page, "text/html")
			if got := show(r.Feeds); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if r.Title != "T x" {
				t.Errorf("title %q", r.Title)
			}
			if want := strings.HasPrefix(tc.name, "anchors") && !strings.Contains(tc.name, "only"); r.Guessed != want {
				t.Errorf("guessed: %v", r.Guessed)
			}
		})
	}
}

func show(links []Link) string {
	var s []string
	for _, l := range links {
		s = append(s, l.URL+"|"+l.Title)
	}
	return strings.Join(s, " ")
}

func TestCharset(t *testing.T) {
	want := []Link{{URL: "https://www.example.com/a", Type: "application/rss+xml", Title: "Příliš"}}
	for typ, body := range map[string]string{
		"text/html; charset=iso-8859-2": "<link rel=alternate type=application/rss+xml href=/a title='P\xf8\xedli\xb9'>",
		"text/html":                     "<meta charset=utf-8><link rel=alternate type=application/rss+xml href=/a title='Příliš'>",
	} {
		if got := Page([]byte(body), page, typ).Feeds; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", typ, got)
		}
	}
}

func TestESS(t *testing.T) {
	r := Page([]byte(`<link rel=alternate type=application/rss+xml href=a><link rel=alternate type=application/ess href=/e><link rel=nno href=/n>`), page, "")
	if len(r.Feeds) != 1 || show(r.ESS) != "https://www.example.com/e|" || show(r.NNO) != "https://www.example.com/n|" {
		t.Errorf("%+v", r)
	}
}

func TestBounded(t *testing.T) {
	r := Page([]byte(strings.Repeat("<a href=/feed>x<link rel=feed href=a?"+strings.Repeat("x", 99)+">", 10000)), page, "")
	if len(r.Feeds) > MaxLinks {
		t.Errorf("%d links", len(r.Feeds))
	}
}

func TestSamplePages(t *testing.T) {
	for name, want := range map[string]string{
		"inessential.html": "http://inessential.com/xml/rss.xml",
		"sixcolors.html":   "http://feedpress.me/sixcolors",
	} {
		body, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "feeds", name))
		if err != nil {
			t.Skip("the sample documents are not here")
		}
		if r := Page(body, "http://example.com/", "text/html"); len(r.Feeds) != 1 || r.Feeds[0].URL != want || r.Guessed {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A link longer than servers take is none.
func TestLongLinks(t *testing.T) {
	r := Page([]byte(`<link rel=alternate type=application/rss+xml href="/`+strings.Repeat("a", 100_000)+`"><a href="/`+strings.Repeat("a", 100_000)+`.xml">x</a>`), page, "text/html")
	if len(r.Feeds) != 0 || r.Guessed {
		t.Errorf("%d feeds", len(r.Feeds))
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(`<title>x</title><base href=/x><link rel=alternate type=application/rss+xml href="a#b" title="&amp;">`), page, "text/html; charset=utf-16")
	f.Add([]byte(`<a href="feed:http://x/feed">x</a><link rel=ess href=::>`), "%", "x")
	f.Add([]byte("\xff\xfe<\x00a\x00"), "", "")
	f.Fuzz(func(t *testing.T, body []byte, pageURL, contentType string) {
		r := Page(body, pageURL, contentType)
		if r.Title != fold(r.Title) || len(r.Feeds) > MaxLinks || len(r.ESS) > MaxLinks || len(r.NNO) > MaxLinks {
			t.Errorf("%+v", r)
		}
		for _, l := range append(r.Feeds, append(r.ESS, r.NNO...)...) {
			if l.URL == "" || len(l.URL) > maxURL || len(l.Title) > 500 || l.Title != fold(l.Title) || strings.ContainsAny(l.URL, "\n\t") && strings.HasPrefix(pageURL, "http") {
				t.Errorf("%q", l.URL)
			}
		}
	})
}
