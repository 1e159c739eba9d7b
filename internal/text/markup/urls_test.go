package markup

import (
	"net/url"
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

// TestResolveURLReference has the examples of RFC 3986, section 5.4, in which
// the reference is not empty.
func TestResolveURLReference(t *testing.T) {
	base := mustURL(t, "http://a/b/c/d;p?q")
	for _, c := range [][2]string{
		{"g:h", "g:h"}, {"g", "http://a/b/c/g"}, {"./g", "http://a/b/c/g"}, {"g/", "http://a/b/c/g/"}, {"/g", "http://a/g"},
		{"//g", "http://g"}, {"?y", "http://a/b/c/d;p?y"}, {"g?y", "http://a/b/c/g?y"}, {"#s", "http://a/b/c/d;p?q#s"},
		{"g#s", "http://a/b/c/g#s"}, {"g?y#s", "http://a/b/c/g?y#s"}, {";x", "http://a/b/c/;x"}, {"g;x", "http://a/b/c/g;x"},
		{".", "http://a/b/c/"}, {"./", "http://a/b/c/"}, {"..", "http://a/b/"}, {"../", "http://a/b/"}, {"../g", "http://a/b/g"},
		{"../..", "http://a/"}, {"../../", "http://a/"}, {"../../g", "http://a/g"}, {"../../../g", "http://a/g"},
		{"/./g", "http://a/g"}, {"/../g", "http://a/g"}, {"g.", "http://a/b/c/g."}, {".g", "http://a/b/c/.g"}, {"g..", "http://a/b/c/g.."},
		{"..g", "http://a/b/c/..g"}, {"./../g", "http://a/b/g"}, {"./g/.", "http://a/b/c/g/"}, {"g/./h", "http://a/b/c/g/h"},
		{"g/../h", "http://a/b/c/h"}, {"g;x=1/../y", "http://a/b/c/y"}, {"g?y/./x", "http://a/b/c/g?y/./x"}, {"g#s/../x", "http://a/b/c/g#s/../x"},
	} {
		if got := Resolve(base, c[0]); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
}

// TestTidyRule10Textual: what a reference says is never re-encoded.
func TestTidyRule10Textual(t *testing.T) {
	for _, c := range []struct{ base, ref, want string }{
		{"http://e/", "HTTP://Example.COM/%7e/../ü b|c", "HTTP://Example.COM/%7e/../ü b|c"},
		{"http://e/", "http://e/a?b=c&d#", "http://e/a?b=c&d#"},
		{"http://e/", " \n http://e/a\n b \t", "http://e/a b"},
		{"http://e/x", "ü b|c%7e", "http://e/ü b|c%7e"},
		{"http://u:p@e:81/x%20y/z", "w", "http://u:p@e:81/x%20y/w"},
		{"http://e", "a", "http://e/a"},
		{"http://e/a?x/y", "b", "http://e/b"},
		{"http://e/", "", ""},
		{"http://e/", "  ", ""},
		{"http://e/", "mailto:x@y", "mailto:x@y"},
		{"http://e/", "tag:e,2005:x", "tag:e,2005:x"},
		{"mailto:x@y", "a", "a"},
		{"", "a", "a"},
		{"http://e/", "1:2", "http://e/1:2"},
	} {
		if got := Resolve(mustURL(t, c.base), c.ref); got != c.want {
			t.Errorf("%q under %q: %q, want %q", c.ref, c.base, got, c.want)
		}
	}
	if got := Resolve(nil, " a "); got != "a" {
		t.Errorf("no base: %q", got)
	}
}

func TestDocumentBase(t *testing.T) {
	for _, c := range []struct{ url, location, want string }{
		{"http://e/a/b", "", "http://e/a/b"}, {"http://e/a/b", "c", "http://e/a/c"}, {"http://e/a/b", "https://f/", "https://f/"},
		{"http://e/a/b", "cid:x", "http://e/a/b"}, {"", "http://f/x", "http://f/x"}, {"", "x", ""}, {"", "", ""},
		{"http://e/", "file:///etc/", "http://e/"}, {"::", "", ""},
	} {
		got := ""
		if u := DocumentBase(c.url, c.location); u != nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.url, c.location, got, c.want)
		}
	}
}
