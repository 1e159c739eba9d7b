package fetcher

import (
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/fulltext"
)

func TestJudge(t *testing.T) {
	const story = "The council voted on Tuesday to close the bridge across the river for repairs until spring. Engineers found cracks in the pillars during their inspection, and the mayor said that waiting was out of the question."
	const consent = "We value your privacy. We and our partners store and access information on your device, such as unique identifiers, to personalise advertising, to measure audiences and to develop services. With your consent we use precise location data."
	for _, c := range []struct {
		name, article string
		own           ownText
		refused       string
	}{
		{"longer", "<p>" + story, ownText{"Bridge", "The council voted on Tuesday to close the bridge.", "", ""}, ""},
		{"no text in the feed", "<p>" + story, ownText{title: "Bridge"}, ""},
		{"a play on words", "<p>" + story, ownText{title: "Troubled water"}, ""},
		{"markup counts for nothing", "<p>Short.<span></span><span></span><span></span><span></span>", ownText{content: "<b>Not that short.</b>", mime: "text/html"}, "no longer"},
		{"the same", "<div> " + story, ownText{content: story}, "no longer"},
		{"none", "<img src=x>", ownText{}, "no article"},
		{"consent", consent, ownText{"Bridge closed", "The council voted on Tuesday to close the bridge across the river for repairs until spring.", "", ""}, "something else"},
		{"consent, by the summary", consent, ownText{"Bridge closed", "", "", "The council voted on Tuesday to close the bridge across the river for repairs until spring."}, "something else"},
		{"inflected", "Der Stadtrat beschloss, dass die alten Brücken über den Fluss gesperrt werden. Bei der Prüfung fanden Ingenieure Risse in den Pfeilern, und die Bürgermeisterin warnte davor, zu warten. Die Reparaturen dauern Monate.",
			ownText{title: "Brücke gesperrt", content: "Stadträtin warnt: Reparatur der Brücke dauert; Ingenieurin prüfte Pfeiler monatelang, Bürgermeister abwesend, Gespräche vertagt."}, ""},
		{"without spaces", strings.Repeat("市議会は火曜日に古い橋を閉鎖することを決定した。", 5), ownText{title: "橋の閉鎖", content: "市の橋、春まで通行止め。交通への影響は大きいとみられ、住民は説明を求めている。"}, ""},
		{"few words", strings.Repeat("An entirely different text. ", 10), ownText{title: "Bridge closed", content: "Read more"}, ""},
		{"broken UTF-8", "caf\xe9 " + story, ownText{content: "\xff\xfe"}, ""},
	} {
		got := whyUnusable(&fulltext.Article{Content: c.article}, c.own)
		if (got == "") != (c.refused == "") || !strings.Contains(got, c.refused) {
			t.Errorf("%s: %q, want %q", c.name, got, c.refused)
		}
	}
}
