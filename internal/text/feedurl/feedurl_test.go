package feedurl

import "testing"

// TestArticle: links to one page are equal without scheme, www., slash at the end and utm_*, and no others are.
func TestArticle(t *testing.T) {
	same := []string{
		"http://x.example/a?p=1", "https://x.example/a?p=1", " https://WWW.x.example/a/?p=1 ", "http://x.example:80/a?p=1", "https://x.example:443/a?p=1",
		"https://x.example/a?utm_source=rss&p=1&UTM_Medium=feed", "https://me:secret@x.example/a?p=1",
	}
	for _, link := range same {
		if got := Article(link); got != Article(same[0]) {
			t.Errorf("%s: %s, not %s", link, got, Article(same[0]))
		}
	}
	for _, link := range []string{"http://x.example/a", "http://x.example/a?p=2", "http://x.example/A?p=1", "http://y.x.example/a?p=1", "http://x.example:8080/a?p=1", "http://x.example/a?p=1#c", "http://x.example/a?p=1&q=utm_x"} {
		if Article(link) == Article(same[0]) || Article(link) == "" {
			t.Errorf("%s: %s", link, Article(link))
		}
	}
	if Article("http://x.example") != Article("https://x.example/?utm_campaign=c") {
		t.Error("the root has two forms")
	}
	for _, link := range []string{"", "urn:x", "/a", "mailto:a@x.example", "http://", "https://x.example/%zz"} {
		if got := Article(link); got != "" {
			t.Errorf("%q: %s", link, got)
		}
	}
}
