package discover

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const page = "https://www.example.com/blog/post.html?x=1"

func TestLooksLikeFeed(t *testing.T) {
	for href, want := range map[string]bool{
		"http://x.example/feed/": true, "/blog/rss2": true, "/a.atom": true, "feed:x": true, "/rss.php": true,
		"/?feed=rss2": true, "/index.php?option=x&format=feed&type=atom": true, "/feeds/posts/default": true,
		"/posts?alt=rss": true, "/?q=rss": false, "/?feed=1": false, "/tag/x": false, "/feed.html": false, "/sitemap.xml": false,
	} {
		if got := LooksLikeFeed(href); got != want {
			t.Errorf("%s: %t", href, got)
		}
	}
}

func TestPage(t *testing.T) {
	for _, tc := range []struct{ name, html, want string }{
		{"rss", `<link rel="alternate" type="application/rss+xml" title="R &amp; S" href="/rss">`, "https://www.example.com/rss|R & S"},
		{"atom, relative", `<link rel=alternate type=application/atom+xml href=feed.atom>`, "https://www.example.com/blog/feed.atom|"},
		{"json", `<LINK REL="Alternate" TYPE="Application/Feed+JSON" HREF="//cdn.example/f.json?a=1&amp;b=2">`, "https://cdn.example/f.json?a=1&b=2|"},
		{"json without a type of its own", `<link rel=alternate type=application/json href=/feed.json title=J><link rel=alternate type=application/json href=/wp-json/wp/v2/posts/1><link rel="feed alternate" type=application/json href=/f>`,
			"https://www.example.com/feed.json|J https://www.example.com/f|"},
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
		{"in a noscript", `<noscript><link rel=alternate type=application/rss+xml href=/a title=A></noscript><noscript>no <b>script</noscript>`, "https://www.example.com/a|A"},
		{"behind a long script", "<script>" + strings.Repeat("x", 2<<20) + "</script><link rel=alternate type=application/rss+xml href=/a>", "https://www.example.com/a|"},
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
			t.Errorf("%s: got %+v, want %+v", typ, got, want)
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
	for _, tc := range []struct {
		link, limit string
		n, want     int
	}{
		{"<link rel=feed href=a%d>", "", MaxLinks, MaxLinks},
		{"<link rel=feed href=a%d>", "1000 links", MaxLinks + 1, MaxLinks},
		{"<a href=%d.xml>x</a>", "", MaxLinks, MaxLinks},
		{"<a href=%d.xml>x</a>", "1000 links", MaxLinks + 1, MaxLinks},
		{"<a href=%d.xml>x</a><!--" + strings.Repeat("x", 1<<16) + "-->", "4 MB", 100, 64},
	} {
		var body strings.Builder
		for i := range tc.n {
			fmt.Fprintf(&body, tc.link, i)
			fmt.Fprintf(&body, tc.link, i/2) // each link twice; duplicates do not count
		}
		body.WriteString(strings.Repeat("<link rel=ess href=e>", 2*MaxLinks))
		if r := Page([]byte(body.String()), page, ""); len(r.Feeds) > tc.want || tc.n >= MaxLinks && len(r.Feeds) != tc.want || r.Limit != tc.limit {
			t.Errorf("%.30s, %d: %d links, limit %q", tc.link, tc.n, len(r.Feeds), r.Limit)
		}
	}
}

func TestGuesses(t *testing.T) {
	for page, want := range map[string]string{
		"https://example.org/2024/01/a-title/?x=1#y": "https://example.org/feed https://example.org/feed.xml https://example.org/rss.xml https://example.org/atom.xml https://example.org/feed.json https://example.org/index.xml",
		"http://example.org:8080":                    "http://example.org:8080/feed http://example.org:8080/feed.xml http://example.org:8080/rss.xml http://example.org:8080/atom.xml http://example.org:8080/feed.json http://example.org:8080/index.xml",
		"https://tilde.example/~ann/blog/":           "https://tilde.example/~ann/feed https://tilde.example/~ann/feed.xml https://tilde.example/~ann/rss.xml https://tilde.example/~ann/atom.xml https://tilde.example/~ann/feed.json https://tilde.example/~ann/index.xml",
		"file:///home/ann/page.html":                 "",
		"example.org":                                "",
		"::":                                         "",
	} {
		if got := strings.Join(Guesses(page), " "); got != want {
			t.Errorf("%s: got %s, want %s", page, got, want)
		}
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
			t.Errorf("%s: got %+v; want len(r.Feeds) == 1 and r.Feeds[0].URL == want and !r.Guessed", name, r)
		}
	}
}

// TestLongLinks: a link that is longer than servers accept is ignored.
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

// A page may send a browser elsewhere (HTML, "Refresh state").
func TestRefresh(t *testing.T) {
	for content, want := range map[string]string{
		"0; url=/blog/":              "https://www.example.com/blog/",
		"0;URL='https://h.example/'": "https://h.example/",
		`5 , url = "next"x`:          "https://www.example.com/blog/next",
		"0;/bare":                    "https://www.example.com/bare",
		"0; urls.html":               "https://www.example.com/blog/urls.html",
		"300":                        "", // reloads the page
		"0; url=" + page:             "",
		"0; url=javascript:x":        "",
		"0; url=/" + strings.Repeat("a", 100_000): "",
		"": "",
	} {
		r := Page([]byte(`<meta name=refresh content="0;url=/no"><meta HTTP-EQUIV=Refresh content="`+strings.ReplaceAll(content, `"`, "&quot;")+`">`), page, "text/html")
		if r.Refresh != want {
			t.Errorf("%.50s: %.80q, want %q", content, r.Refresh, want)
		}
	}
}

func TestChallenge(t *testing.T) {
	for title, want := range map[string]bool{
		"Just a moment...": true, "Making sure you&#39;re not a bot!": true, "Attention Required! | Cloudflare": true,
		"Just a moment of peace": false, "": false,
	} {
		if r := Page([]byte("<title>"+title+"</title>"), page, "text/html"); r.Challenge != want {
			t.Errorf("%s: %v", title, r.Challenge)
		}
	}
}

func TestFirst(t *testing.T) {
	for _, tc := range []struct {
		page string
		urls []string // with a title, behind a space
		want int
	}{
		{"https://e.example/", []string{"https://e.example/a", "https://e.example/b"}, 0},
		{"https://e.example/", []string{"https://e.example/comments/feed/", "https://e.example/b"}, 1},
		{"https://e.example/", []string{"https://e.example/c S » Kommentar-Feed", "https://e.example/b S » Feed"}, 1},
		{"https://e.example/", []string{"https://e.example/comments/feed/"}, 0},
		{"https://e.example/blog", []string{"https://e.example/feed", "https://e.example/blog/feed"}, 1},
		{"https://e.example/blog/", []string{"https://e.example/feed", "https://other.example/blog/feed", "https://e.example/blog/1", "https://e.example/blog/2"}, 2},
		{"https://e.example/blog/index.html", []string{"https://e.example/feed", "https://e.example/blog/feed"}, 1},
		{"https://e.example/", []string{"https://other.example/feed", "https://e.example/feed"}, 0},
		{"https://e.example/index.html", []string{"https://e.example/feed", "https://e.example/blog/feed"}, 0},
		{"https://e.example/blog", []string{"https://e.example/feed", "https://e.example/blogroll.xml"}, 0},
		{"https://e.example/blog", []string{"https://e.example/feed", "https://e.example/blog/comments/feed"}, 0},
	} {
		if got := (&Result{Feeds: links(tc.urls)}).First(tc.page); got != tc.want {
			t.Errorf("%s, %q: %d, want %d", tc.page, tc.urls, got, tc.want)
		}
	}
}

func links(urls []string) (list []Link) {
	for _, s := range urls {
		url, title, _ := strings.Cut(s, " ")
		list = append(list, Link{URL: url, Title: title})
	}
	return list
}

func TestOneFeed(t *testing.T) {
	const rss, atom, json = "application/rss+xml", "application/atom+xml", "application/feed+json"
	for _, tc := range []struct {
		links []Link
		want  int // index, or -1
	}{
		{[]Link{{Type: rss, Title: "Blog"}, {Type: atom, Title: "Blog"}}, 1},
		{[]Link{{Type: rss, Title: "Blog (RSS 2.0)"}, {Type: json, Title: "Blog – JSON Feed"}}, 1},
		{[]Link{{Type: rss, Title: "RSS"}, {Type: json, Title: "JSON Feed"}, {Type: atom, Title: "Atom 1.0"}}, 2},
		{[]Link{{Type: rss, Title: "Blog"}}, -1},
		{[]Link{{Type: rss, Title: "Posts"}, {Type: atom, Title: "Notes"}}, -1},
		{[]Link{{Type: rss, Title: "Blog » Feed"}, {Type: rss, Title: "Blog » Comments Feed"}}, -1},
		{[]Link{{Type: rss, Title: "Blog"}, {Type: rss, Title: "Blog"}}, -1}, // two feeds with one title
		{[]Link{{Type: rss}, {Type: atom}}, -1},                              // nothing says that they are one
		{nil, -1},
	} {
		got, ok := (&Result{Feeds: tc.links}).OneFeed()
		if !ok {
			got = -1
		}
		if got != tc.want {
			t.Errorf("%+v: %d, want %d", tc.links, got, tc.want)
		}
	}
}
