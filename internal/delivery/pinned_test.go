package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// pinned returns the entries of a document. They are identified in all possible ways.
func pinned() []feedconv.Entry {
	day := time.Date(2024, 5, 6, 7, 8, 9, 0, time.FixedZone("", 7200))
	return []feedconv.Entry{
		{GUID: "urn:a", Link: "http://example.com/a", Title: "Änderung", Content: "<p>One,<br>two &amp; <b>thr</b>ee</p>\n<script>no</script>", ContentType: "text/html", Published: day},
		{Link: "http://example.com/b", Title: "b", Content: "plain  <text>\n\tof lines", ContentType: "text/plain", PublishedRaw: "the other day"},
		{Title: "c", Content: "neither guid nor link"},
		{GUID: "urn:d", Link: "http://example.com/d1", Title: "d1", Content: "d", ContentType: "text/html"},
		{GUID: "urn:d", Link: "http://example.com/d2", Title: "d2", Content: "d", ContentType: "text/html"},
		{GUID: "urn:e", Link: "http://example.com/e", Title: "e1", Content: "e"},
		{GUID: "urn:e", Link: "http://example.com/e", Title: "e2", Content: "e"},
		{Link: "http://example.com/f", Title: "f1", Content: "f"},
		{Link: "http://example.com/f", Title: "f2", Content: "f"},
		{GUID: "urn:g", Title: "g", Content: "\x00\x01  bytes  ", ContentType: "image/png"},
	}
}

// journal is the journal of the pinned entries, in the format of older versions.
const journal = `4f96e624f7c8fae52d7e173382129e33 0000000000000000901dd61fb12ddbe5 57806d245453d36079328efcc48cc203 1700000060.M0P1Q1I4f96e624f7c8fae5.h - 1700000060 5f7d31c5
e419c291b7b975004afc7ede65ec7f3a 722a5a4abe526023e2966cc25792672c 9622ca4da4065568eee5faee3bf89fe3 1700000060.M0P1Q2Ie419c291b7b97500.h - 1700000060 45925745
c45326c58c5d2b4b7a977df060930306 722a5a4abe5260233484146168a270b5 c86286e4d3b6847028a27019c6227cef 1700000060.M0P1Q3Ic45326c58c5d2b4b.h - 1700000060 c030cd0b
a0f9b6f37aad8127f32aa609f3eaad67 2aa77401754f1e2a3aec51bea5d4b227 60d50cf3380e4aed7ef625ca7ef2628a 1700000060.M0P1Q4Ia0f9b6f37aad8127.h - 1700000060 9a3fb022
63dd0d6bbbc1b83650c2ed9b1146a47d 2aa77401754f1e2a3926854a65f0f43f bc420f571de46479c42eeb219a3a0530 1700000060.M0P1Q5I63dd0d6bbbc1b836.h - 1700000060 890f7532
db6a24ab13b1a3b7d71dbcbe5ac3b6ae 447bd4579d4a7ddaf68ff35b93235c51 ce6020ac51f3f080f8c7b6daca0e9295 1700000060.M0P1Q6Idb6a24ab13b1a3b7.h - 1700000060 9e045d9b
0c7469f1f80097113c141f9f583ecdc4 2d2a271fdc86279352356b2592ddff86 e1ce754764923f29120c3ff359e1e4db 1700000060.M0P1Q7I0c7469f1f8009711.h - 1700000060 2eb03d18
298aeac5b3535f4f2574d1a9b6e98e73 0000000000000000f39f98efe86bf9cd 32fa2b289e363ff124d65e7912bd53c7 1700000060.M0P1Q8I298aeac5b3535f4f.h - 1700000060 450e3462
f5fb6715fe29b662c2fdb75779c1e224 f5fb6715fe29b662548b632b0ff6d05b 34a48d19a2ad76e72469bbecdc98300a 1700000060.M0P1Q9If5fb6715fe29b662.h - 1700000060 40941957
40d9c0951d25e4c86c7ee4395d82b9dc c8c43b5180179dde7992148dd113237f d0b96e3c1328453da3ea9e2b3eca169b 1700000060.M0P1Q10I40d9c0951d25e4c8.h - 1700000060 c377fdf8
`

func seen(wo *world) string { return wo.d.Join("src", hash, "etc/fetch/seen") }

// The digests of identity, key and content never change, so that later versions recognise the entries
// of a journal.
func TestPinned(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	wo.fetch(pinned()...)
	b, err := os.ReadFile(seen(wo))
	if err != nil {
		t.Fatal(err)
	}
	got, want := slices.Collect(strings.Lines(string(b))), slices.Collect(strings.Lines(journal))
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range got {
		// Present lines have only the beginnings of these digests; the second field has those of
		// two.
		g, w := strings.Fields(got[i]), strings.Fields(want[i])
		if g[0] != w[0][:16] || g[1] != w[1][:8]+w[1][16:24] || g[2] != w[2][:16] {
			t.Errorf("line %d: %q, want %q", i, g, w)
		}
	}
}

func TestDeliveredByAnEarlierProgram(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	if err := os.MkdirAll(filepath.Dir(seen(wo)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(seen(wo), []byte(journal), 0o666); err != nil {
		t.Fatal(err)
	}
	doc := pinned()
	if res := wo.fetch(doc...); res.Unchanged != len(doc) || len(res.New) > 0 {
		t.Errorf("%+v", res)
	}
	doc[2].Title = "another"
	if res := wo.fetch(doc...); len(res.New) != 1 {
		t.Errorf("%+v", res)
	}
}

// A fetcher, which uses feedconv.PlainText, and another program, which calls lektordir's Deliver,
// compare the same text of a content.
func TestTextOfOthers(t *testing.T) {
	contents := []string{
		"<p>One,<br>two &amp; <b>thr</b>ee</p>\n<script>no</script>", "a<br/>b <i>c</i>d<!-- no -->&nbsp;&hellip;&#8212;&quot;",
		"<ul><li>x<li>y</ul><style>p{}</style><table><tr><td>1<td>2</table>", "no markup\n\tat all ", "", "<img src='x' alt='y'>",
		"<pre>a\n  b</pre><![CDATA[c]]>", "a < b & c", "\x01control\x7f", "<x-y>new</x-y>",
	}
	wo := newWorld(t, lektordir.UpdateNew)
	var doc []feedconv.Entry
	var own []lektordir.Entry
	for i, content := range contents {
		for _, mimeType := range []string{"text/html", "application/xhtml+xml", "text/plain", "", "image/png"} {
			id := fmt.Sprint("urn:", i, mimeType)
			doc = append(doc, feedconv.Entry{ID: id, GUID: id, Title: content, Content: content, ContentType: mimeType})
			own = append(own, lektordir.Entry{ID: id, Title: content, Content: []byte(content), Type: mimeType})
		}
	}
	wo.fetch(doc...)
	res, err := wo.d.Deliver(t.Context(), &lektordir.Feed{ID: feedID, Name: "Example"}, lektordir.UpdateNew, own...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Updated {
		e, _ := wo.d.ReadEntry(r, lektordir.AllFields)
		t.Errorf("%q of type %q: the texts differ", e.Content, e.Type)
	}
	if res.Unchanged != len(doc) {
		t.Errorf("%d unchanged of %d", res.Unchanged, len(doc))
	}
}
