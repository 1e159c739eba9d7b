package feedsync

import (
	"slices"
	"testing"
)

// seeds are documents that are valid, unusual, or nearly valid.
var seeds = []string{
	rss(exampleCreated), rss(exampleUpdated), rss(exampleConflict), exampleSharing, tree("a(b(c))d", "b"),
	outlines(`<outline text="x" xmlns:lektor="` + LektorNamespace + `" lektor:parent="b"><sx:sync id="a" version="2" conflict="true"><sx:history by="x"/><lektor:settled by="y"/></sx:sync></outline><outline><outline><sx:sync id="b" version="1"><sx:history by="q"/></sx:sync></outline></outline>`),
	`<rss xmlns:sx="` + Namespace + `"><channel><item xmlns:sx="urn:x" xmlns:s="` + namespaceHTTP + `"><s:sync id="a" version="1"><s:history by="b"/><s:conflicts><s:conflict version="1" by="z"><item xmlns="urn:y"/><s:update by="q"/></s:conflict></s:conflicts></s:sync></item></channel></rss>`,
	`<rss xmlns:s="` + Namespace + `"><channel><item><s:sync id="0" version="1"><s:history by="0"/><s:conflicts><s:conflict version="1" by="0"><s:update by=" "/></s:conflict></s:conflicts></s:sync></item></channel></rss>`,
	"<rss xmlns:s='" + Namespace + "'><channel><item><s:sync id='\x7f0' version='1'><s:history by='0'/></s:sync></item></channel></rss>",
	"<?xml version='1.0' encoding='utf-16'?><rss/>", "<rss><channel><![CDATA[]]]]></channel></rss>", "<a b='&#x41;&amp;'/>", "\xef\xbb\xbf<rss><channel/></rss>", "<!-- -- --><rss/>",
}

// FuzzParse checks that a document that was read can be written and read again as the same
// document, that encoding/xml reads it, and that merging it with itself changes nothing.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(slices.Clone(data))
		if err != nil {
			return
		}
		text := d.Bytes()
		again, err := Parse(slices.Clone(text))
		if err != nil {
			t.Fatalf("%v in %q, from %q", err, text, data)
		}
		if state(d) != state(again) {
			t.Fatalf("%q becomes\n%s\n%s", data, state(d), state(again))
		}
		// The first merge may settle conflicts that another program left in the document.
		again.Merge(d, Rules{})
		d, _ = Parse(slices.Clone(text))
		before := state(again)
		if c := again.Merge(d, Rules{}); before != state(again) {
			t.Fatalf("merged with itself, %q changes: %+v", data, c[0].Item)
		}
		// Append all items to a document with other prefixes.
		fresh := New(d.Kind, "t", "", "")
		d, _ = Parse(slices.Clone(data))
		fresh.Merge(d, Rules{})
		next := New(d.Kind, "t", "", "")
		for _, it := range fresh.Items() {
			if u, err := resolve(it, nil, false, day0, "me"); err == nil {
				next.Append(u)
			}
		}
		for _, doc := range []*Document{fresh, next} {
			back, err := Parse(slices.Clone(doc.Bytes()))
			if err != nil || back.Len() != doc.Len() || len(back.Problems) > 0 {
				t.Fatalf("%v, %d of %d items in %q, from %q", err, back.Len(), doc.Len(), doc.Bytes(), data)
			}
		}
	})
}
