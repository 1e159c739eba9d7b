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
		{GUID: "urn:a", Link: "http://example.com/a", Title: "Änderung", Content: "<p>One,<br>two &amp; <b>thr</b>ee</p>\n<script>no</script>", Type: "text/html", PubDate: day},
		{Link: "http://example.com/b", Title: "b", Content: "plain  <text>\n\tof lines", Type: "text/plain", PubDateRaw: "the other day"},
		{Title: "c", Content: "neither guid nor link"},
		{GUID: "urn:d", Link: "http://example.com/d1", Title: "d1", Content: "d", Type: "text/html"},
		{GUID: "urn:d", Link: "http://example.com/d2", Title: "d2", Content: "d", Type: "text/html"},
		{GUID: "urn:e", Link: "http://example.com/e", Title: "e1", Content: "e"},
		{GUID: "urn:e", Link: "http://example.com/e", Title: "e2", Content: "e"},
		{Link: "http://example.com/f", Title: "f1", Content: "f"},
		{Link: "http://example.com/f", Title: "f2", Content: "f"},
		{GUID: "urn:g", Title: "g", Content: "\x00\x01  bytes  ", Type: "image/png"},
	}
}

// journal is the journal of the pinned entries.
const journal = `4f96e624f7c8fae5 00000000901dd61f 57806d245453d360 1700000060.M0P1Q1I4f96e624f7c8fae5.h - d14d653e
e419c291b7b97500 722a5a4ae2966cc2 9622ca4da4065568 1700000060.M0P1Q2Ie419c291b7b97500.h - 2a17c9b7
c45326c58c5d2b4b 722a5a4a34841461 c86286e4d3b68470 1700000060.M0P1Q3Ic45326c58c5d2b4b.h - 96710d0c
a0f9b6f37aad8127 2aa774013aec51be 60d50cf3380e4aed 1700000060.M0P1Q4Ia0f9b6f37aad8127.h - 3e20c818
63dd0d6bbbc1b836 2aa774013926854a bc420f571de46479 1700000060.M0P1Q5I63dd0d6bbbc1b836.h - e3e5c3bf
db6a24ab13b1a3b7 447bd457f68ff35b ce6020ac51f3f080 1700000060.M0P1Q6Idb6a24ab13b1a3b7.h - 97ad0da2
0c7469f1f8009711 2d2a271f52356b25 e1ce754764923f29 1700000060.M0P1Q7I0c7469f1f8009711.h - b99d8789
298aeac5b3535f4f 00000000f39f98ef 32fa2b289e363ff1 1700000060.M0P1Q8I298aeac5b3535f4f.h - a6a4cb8d
f5fb6715fe29b662 f5fb6715548b632b 34a48d19a2ad76e7 1700000060.M0P1Q9If5fb6715fe29b662.h - c9112adb
40d9c0951d25e4c8 c8c43b517992148d d0b96e3c1328453d 1700000060.M0P1Q10I40d9c0951d25e4c8.h - 84dec28e
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
		g, w := strings.Fields(got[i]), strings.Fields(want[i])
		if !slices.Equal(g[:3], w[:3]) {
			t.Errorf("line %d: %q, want %q", i, g, w)
		}
	}
}

// The entries of the journal are known.
func TestDeliveredBefore(t *testing.T) {
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
			doc = append(doc, feedconv.Entry{ID: id, GUID: id, Title: content, Content: content, Type: mimeType})
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
