package lektordir

import (
	"errors"
	"strings"
	"testing"
)

func TestFeedHash(t *testing.T) {
	if got := FeedHash("http://example.com/rss.xml"); got != "80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd" {
		t.Error(got)
	}
}

func TestNormalizeID(t *testing.T) {
	for _, c := range [][2]string{
		{"HTTP://Example.COM/A%2fb?Q=é#frag", "http://example.com/A%2fb?Q=é"},
		{"https://example.com:443/", "https://example.com/"},
		{"http://example.com:80", "http://example.com"},
		{"http://example.com:443/", "http://example.com:443/"},
		{"https://[::1]:443/x", "https://[::1]/x"},
		{"http://User:Pass@Example.com/", "http://User:Pass@example.com/"},
		{"http://example.com?X#y", "http://example.com?X"},
		{"http://example.com/a b", "http://example.com/a b"},
		{" http://example.com/ \n", "http://example.com/"},
		{"tag:Example.com,2020:X#y", "tag:Example.com,2020:X#y"},
		{"exec:/bin/echo HI", "exec:/bin/echo HI"},
		{"file:///A#b", "file:///A#b"},
		{"", ""},
	} {
		if got := NormalizeID(c[0]); got != c[1] {
			t.Errorf("NormalizeID(%q) = %q, want %q", c[0], got, c[1])
		}
		if got := NormalizeID(c[1]); got != c[1] {
			t.Errorf("NormalizeID(%q) = %q, not the same again", c[1], got)
		}
	}
}

func TestParseRef(t *testing.T) {
	for _, c := range []struct {
		place  Place
		name   string
		ok     bool
		flags  string
		unread bool
	}{
		{New, "1700000000.M1P2Q3I0123456789abcdef.host", true, "", true},
		{New, "1700000000.123_4.host", true, "", true},
		{New, "1700000000.x;2,S", false, "", false},
		{New, "hello", true, "", true},
		{New, "1700000000", true, "", true},
		{New, "", false, "", false},
		{New, ".hello", false, "", false},
		{New, ";2,S", false, "", false},
		{Cur, ";2,S", false, "", false},
		{Cur, "hello;2,FS", true, "FS", false},
		{Cur, "1700000000", true, "S", false},
		{Cur, "1700000000.1.h;2,FS", true, "FS", false},
		{Cur, "1700000000.1.h;2,", true, "", true},
		{Cur, "1700000000.1.h", true, "S", false},
		{Cur, "1700000000.1.h;1,x", true, "S", false},
		{Cur, "1700000000.1.h;", true, "S", false},
		{Cur, "1700000000.1.h;2,Fa", true, "Fa", true},
		{Cur, "1700000000.1.h;2,\x1b]0;x\aF1é\x9b\n\u202eS", true, "xFS", false},
	} {
		r, err := parseRef(c.place, "f", c.name)
		if (err == nil) != c.ok {
			t.Errorf("%v %s: %v", c.place, c.name, err)
			continue
		}
		if err != nil {
			continue
		}
		if r.Flags() != c.flags || r.Unread() != c.unread {
			t.Errorf("%v %s: flags %q unread %v", c.place, c.name, r.Flags(), r.Unread())
		}
		if want := c.place.String() + "/f/" + c.name; r.Path() != want {
			t.Errorf("path %s, want %s", r.Path(), want)
		}
	}
}

func TestParsePath(t *testing.T) {
	if r, err := ParsePath("cur/f/1700000000.1.h;2,FT"); err != nil || r != (Ref{Feed: "f", Unique: "1700000000.1.h", Info: "2,FT", Place: Cur}) || !r.Trashed() {
		t.Error(r, err)
	}
	for _, rel := range []string{
		"", "new", "new/f", "new/f/", "new//1700000000.1.h", "new/f/1700000000.1.h/", "tmp/f/1700000000.1.h", "/new/f/1700000000.1.h",
		"new/../1700000000.1.h", "new/./1700000000.1.h", "cur/f/..", "cur/f/../1700000000.1.h", "src/f/1700000000.1.h", "new/f/1700000000.1.h;2,",
	} {
		var bad *MalformedError
		if r, err := ParsePath(rel); !errors.As(err, &bad) || !bad.NoEntry {
			t.Errorf("%q is %v, %v", rel, r, err)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("1700000000.M1P2Q3I0123456789abcdef.host;2,S")
	f.Fuzz(func(t *testing.T, name string) {
		for _, place := range []Place{New, Cur} {
			r, err := parseRef(place, "feed", name)
			if err != nil {
				continue
			}
			if r.Name() != name {
				t.Errorf("%q is written %q", name, r.Name())
			}
			if again, err := ParsePath(r.Path()); !strings.Contains(name, "/") && (err != nil || again != r) {
				t.Errorf("%q is read as %v, %v", r.Path(), again, err)
			}
			r.Delivered()
			r.Unread()
		}
	})
}
