package fetch

import (
	"fmt"
	"net/textproto"
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   string
	}{
		{nil, ""},
		{[]string{`<http://a.example/hub>; rel="hub", <http://a.example/feed>; rel="self"`}, "hub http://a.example/hub, self http://a.example/feed"},
		{[]string{`</feed>; title="a, b; rel=hub"; REL="Alternate self"`}, "alternate http://a.example/feed, self http://a.example/feed"},
		{[]string{`<x>; rel=next`, `<broken`, `garbage; rel=hub`, ``, `<a>;rel`, `<b>;;=,;"`, `<%zz>;rel=hub`}, "next http://a.example/x/x"},
		// Section 3.3: the first one counts.
		{[]string{`<h>; rel=hub; rel=self`}, "hub http://a.example/x/h"},
		{[]string{`<h>; rel="h\ub"`}, "hub http://a.example/x/h"},
		// Section 3.2: what is said of another document.
		{[]string{`<h>; anchor="http://b.example/"; rel=hub, <i>; rel=hub`}, "hub http://a.example/x/i"},
		{[]string{`<h>; rel=hub; anchor="#part"`}, ""},
		{[]string{`<h>; rel=hub; anchor="%zz"`}, ""},
		{[]string{`<h>; rel=hub; Anchor=y`}, "hub http://a.example/x/h"},
		{[]string{`<h>; rel=hub; anchor=""`}, "hub http://a.example/x/h"},
		{[]string{strings.Repeat(`<h>; rel=hub, `, 1000)}, strings.TrimSuffix(strings.Repeat("hub http://a.example/x/h, ", maxLinks), ", ")},
	} {
		var got []string
		for _, l := range Links(textproto.MIMEHeader{"Link": c.header}, "http://a.example/x/y#z") {
			got = append(got, fmt.Sprint(l.Rel, " ", l.URL))
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%.200q:\n got %s\nwant %s", c.header, got, c.want)
		}
	}
}

func FuzzLinks(f *testing.F) {
	f.Add(`<http://a.example/hub>; rel="hub"`, "http://a.example/")
	f.Fuzz(func(t *testing.T, header, base string) {
		if got := Links(textproto.MIMEHeader{"Link": {header, header}}, base); len(got) > 2*maxLinks+len(header) {
			t.Fatal(len(got))
		}
	})
}
