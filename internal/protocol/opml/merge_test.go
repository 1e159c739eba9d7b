package opml

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// FuzzMerge: a merged list has the feeds of both lists, and paths of limited length. If the list
// is merged again, nothing changes, and the written list is read as the same.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(odd), []byte(`<opml><head><title>x</title></head><body><outline text="a/b"><outline xmlUrl="http://a.example/"/></outline></body></opml>`))
	f.Add([]byte(`<outline text="a"><outline text="a"/></outline><!-- x -->`), []byte(`<!-- x --><opml><x/><x/><y a="b">t</y></opml>`))
	f.Add([]byte(`<opml><body><outline xmlUrl="x"><outline xmlUrl="x"/></outline></body></opml>`), []byte(`<opml><body><outline xmlUrl="x" text="y" a="b"/></body></opml>`))
	f.Add([]byte("<opml><body>"+strings.Repeat("<outline text='"+strings.Repeat("n", 300)+"'>", 10)+"<outline xmlUrl='x'/>"), []byte("<opml>a < b < c"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		d, err := Parse(a)
		if err != nil {
			return
		}
		o, err := Parse(b)
		if err != nil {
			return
		}
		want := map[string]bool{}
		for _, f := range append(d.Feeds(), o.Feeds()...) {
			want[f.URL] = true
		}
		d.Merge(o)
		for _, f := range d.Feeds() {
			delete(want, f.URL)
			if len(f.Categories) > maxCategories {
				t.Errorf("%d categories", len(f.Categories))
			}
			for _, c := range f.Categories {
				if len(c) > 2*maxPath+1 || JoinPath(SplitPath(c)) != c {
					t.Errorf("the path %q", c)
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("lost: %v", want)
		}
		out := d.Bytes()
		again, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		d.Merge(again)
		if twice := d.Bytes(); !bytes.Equal(twice, out) {
			t.Fatalf("merged %q, then %q", out, twice)
		}
		if len(out) > MaxBytes || len(a)+len(b) > 1<<16 {
			return
		}
		read, err := Parse(out)
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if twice := read.Bytes(); !bytes.Equal(twice, out) {
			t.Fatalf("written %q, then %q", out, twice)
		}
	})
}

// TestBombs: lists that are built to take long take time in proportion to their size.
func TestBombs(t *testing.T) {
	const n = 20_000
	for name, in := range map[string]string{
		"less-than signs":   "<opml><body>" + strings.Repeat("<", 5*n) + "</body></opml>",
		"a long folder":     "<opml><body><outline text='" + strings.Repeat("a", 100*n) + "'>" + strings.Repeat("<outline text='b'><outline xmlUrl='x'/></outline>", n) + "</outline></body></opml>",
		"deep folders":      "<opml><body>" + strings.Repeat(strings.Repeat("<outline text='a'>", 50)+"<outline xmlUrl='x'/>"+strings.Repeat("</outline>", 50), n/50) + "</body></opml>",
		"elements anywhere": strings.Repeat("<!-- -->", n) + "<opml><head>" + strings.Repeat("<!-- -->", n) + "</head>" + strings.Repeat("<x/>", n) + "<body/></opml>",
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			d := parse(t, in)
			d.Merge(parse(t, in))
			d.Update(d.Feeds(), same).Bytes()
			// This takes a tenth of a second. A quadratic algorithm takes many minutes.
			if took := time.Since(begin); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
