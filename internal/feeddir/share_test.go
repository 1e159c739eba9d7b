package feeddir

import (
	"testing"

	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

func TestShareable(t *testing.T) {
	td := dir.New(t)
	d, err := lektordir.Open(td.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, tc := range map[string]struct {
		files  []string
		shared bool
	}{
		"http://a.example/":             {nil, true},
		"http://b.example/":             {[]string{"etc/fetch/url=https://b.example/@user"}, true},
		"urn:x:1":                       {nil, true},
		"http://c.example/":             {[]string{"etc/fetch/url=https://ann:s3cret@c.example/"}, false},
		"http://d.example/":             {[]string{"etc/fetch/url=https://ann@d.example/"}, false},
		"http://ann:s3cret@e.example/":  {[]string{"etc/fetch/url=https://e.example/"}, false},
		"http://f.example/":             {[]string{"etc/fetch/headers=Authorization: Bearer s3cret"}, false},
		"http://g.example/":             {[]string{"etc/fetch/filter=sed s/x/y/"}, false},
		"http://h.example/":             {[]string{"etc/fetch/private="}, false},
		"http://i.example/":             {[]string{"etc/fetch/url=exec:cat /etc/passwd"}, false},
		"exec:cat /etc/passwd":          {nil, false},
		"file:///home/ann/feed.xml":     {nil, false},
		"http://ann:s3 cret@j.example/": {nil, false},
	} {
		hash, err := td.Feed(id, "A feed", tc.files...)
		if err != nil {
			t.Fatal(err)
		}
		if reason, err := Shareable(d, hash); err != nil || (reason == "") != tc.shared {
			t.Errorf("%s %q: %q, %v", id, tc.files, reason, err)
		}
	}
}
