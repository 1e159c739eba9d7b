package htmlsafe

import (
	"strings"
	"testing"

	"github.com/lektordir/lektor/lektordir"
)

// TestPodcast: HTML has nothing that runs, and no link that a reader must not follow.
func TestPodcast(t *testing.T) {
	const bad = `<script>alert(1)</script>`
	e := &lektordir.Entry{Elements: lektordir.Elements{
		lektordir.Element{Name: "podcast:person", Text: bad, Attributes: []lektordir.Attribute{{Name: "href", Value: "javascript:alert(1)"}}}, lektordir.Element{Name: "podcast:license", Text: "by", Attributes: []lektordir.Attribute{{Name: "url", Value: "https://l.example/?a&b"}}},
		lektordir.Element{Name: "podcast:chapters", Text: "", Attributes: []lektordir.Attribute{{Name: "url", Value: "c"}}}, lektordir.Element{Name: "podcast:transcript", Text: "", Attributes: []lektordir.Attribute{{Name: "url", Value: "t"}, {Name: "type", Value: "text/html"}}},
	}}
	got := Podcast(e, func(url string) []byte {
		if url == "c" {
			return []byte(`{"chapters":[{"startTime":61,"title":"` + bad + `"}]}`)
		}
		return []byte("<p onclick=x>Said</p>" + bad)
	})
	for _, no := range []string{"<script", "javascript:", "onclick"} {
		if strings.Contains(got, no) {
			t.Errorf("%s in\n%s", no, got)
		}
	}
	for _, want := range []string{"<li>Person: &lt;script&gt;", `https://l.example/?a&amp;b`, "<li>1:01 &lt;script&gt;", "<p>Said</p>", "<summary>Transcript"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if got := Podcast(&lektordir.Entry{}, func(string) []byte { return nil }); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}
