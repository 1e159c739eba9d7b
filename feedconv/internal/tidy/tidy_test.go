package tidy

import (
	"math/rand/v2"
	"testing"
)

// A document that is read as well-formed has no defect.
func TestWellFormedAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"<a>", "</a>", "<b:c x='1' y=\"<\">", "<b:c x='>'>", "</b:c>", "<a/>", "<a x=1>", "text", "<![CDATA[</a>]]>", "<!-- <a> -->", "<?p <a>?>", "< ", "</A>", "<a", "<!D>"}
	well := 0
	for range 20000 {
		doc := "<rss>"
		for range r.IntN(8) {
			doc += pieces[r.IntN(len(pieces))]
		}
		doc += "</rss>"
		begin := func() *tidier {
			td := newTidier([]byte(doc), Options{MaxEntries: 10}, nil)
			if _, err := td.openRoot(); err != nil {
				t.Fatalf("%q: %v", doc, err)
			}
			return td
		}
		if !begin().run() {
			continue
		}
		well++
		if td := begin(); len(td.findDefects([]byte("rss"), 0).list) > 0 {
			t.Fatalf("%q has defects", doc)
		}
	}
	if well < 500 {
		t.Errorf("only %d were well-formed", well)
	}
}
