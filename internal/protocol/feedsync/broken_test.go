package feedsync

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// cuttable are the documents that TestCutOff cuts off at each byte.
var cuttable = []string{
	rss(`<title>é</title><item><title>A</title><sx:sync id="a" version="2"><sx:history by="x"><sx:update by="y"/></sx:history></sx:sync></item>
<item/><item><sx:sync id="b" version="1" deleted="true"><sx:history by="x"/></sx:sync><title>B &amp; é</title></item>
<item><sx:sync id="c" version="3" conflict="true"><sx:history by="x"/><sx:conflicts><sx:conflict by="y" version="3"><item><title>C</title></item></sx:conflict></sx:conflicts></sx:sync></item>`),
	// The sx:sync of the second folder, g, comes after its item.
	outlines(`<outline text="f"><sx:sync id="f" version="1"><sx:history by="x"/></sx:sync>
<outline text="a"><sx:sync id="a" version="1"><sx:history by="x"/></sx:sync></outline>
<outline text="g"><outline text="b"><sx:sync id="b" version="1"><sx:history by="x"/></sx:sync></outline><sx:sync id="g" version="1"><sx:history by="x"/></sx:sync></outline>
<outline text="none"><outline text="c"><sx:sync id="c" version="1"><sx:history by="x"/></sx:sync></outline></outline>
</outline><outline text="d"><sx:sync id="d" version="1"><sx:history by="x"/></sx:sync></outline>`),
}

// ends returns where the element of an item ends.
func ends(text, id string) int {
	begin := strings.Index(text, ` id="`+id+`"`)
	depth := 1 // around the sx:sync
	for at := begin; ; at++ {
		switch tail := text[at:]; {
		case strings.HasPrefix(tail, "<item>"), strings.HasPrefix(tail, "<outline"):
			depth++
		case strings.HasPrefix(tail, "</item>"), strings.HasPrefix(tail, "</outline>"):
			if depth--; depth == 0 {
				return at + strings.IndexByte(tail, '>') + 1
			}
		}
	}
}

// If a document is cut off at any byte, Parse returns the items before the cut, as they are
// in the whole document, and no others.
func TestCutOff(t *testing.T) {
	for _, text := range cuttable {
		whole := parse(t, text)
		for n := range text {
			doc, err := Parse([]byte(text[:n]))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			if want := strings.Count(text[:n], "\n") + 1; syntax.Line > want {
				t.Errorf("cut at %d: %v, in a document of %d lines", n, err, want)
			}
			items := doc.Items()
			if len(items) != doc.Len() {
				t.Errorf("cut at %d: Len is %d, but Items returns %d", n, doc.Len(), len(items))
			}
			for _, it := range items {
				want := whole.Item(it.ID)
				if want == nil || Compare(it, want) != 0 || !sameContent(it, want) || it.Deleted != want.Deleted || it.Conflict != want.Conflict || len(it.Conflicts) != len(want.Conflicts) {
					t.Errorf("cut at %d, item %s is %+v, want %+v", n, it.ID, it, want)
				}
			}
			// Items that end before the cut are returned. An outline may be missing if
			// the cut hides whether its parent is an item.
			for _, it := range whole.Items() {
				end := ends(text, it.ID)
				if found := doc.Item(it.ID) != nil; found != (end <= n) && !(strings.Contains("bc", it.ID) && whole.Kind == OPML && !found) {
					t.Errorf("cut at %d, item %s ends at %d; returned: %v", n, it.ID, end, found)
				}
			}
		}
	}
}

// If a syntax error is in the middle, as after an unfinished write, Parse returns its line
// and the items before it, but no later items.
func TestBrokenInTheMiddle(t *testing.T) {
	item := func(id string) string {
		return "<item><sx:sync id=\"" + id + "\" version=\"1\"><sx:history by=\"x\"/></sx:sync></item>\n"
	}
	for _, bad := range []string{"\x00\x00\x00\x00", "\xff", "</item>", "<item", "<item><sx:sync", "a & b", "<q:x/>", "<![CDATA[", "<!--", "\ufffe", "<<<<<<< mine\n"} {
		doc, err := Parse([]byte(rss("\n" + item("a") + bad + item("b"))))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Line < 4 || doc == nil {
			t.Errorf("%q: %v", bad, err)
			continue
		}
		if doc.Len() != 1 || doc.Item("a") == nil {
			t.Errorf("%q: %d items", bad, doc.Len())
		}
		d := New(RSS, "t", "", "")
		if c := d.Merge(doc, Rules{}); len(c) != 1 {
			t.Errorf("%q: %d items are merged", bad, len(c))
		}
		c14n(t, string(d.Bytes()))
	}
}

// Unknown attributes and elements of updates are written unchanged, also in a new sx:sync
// after an edit and among the conflicts of another item.
func TestUnknownInUpdates(t *testing.T) {
	doc := `<rss version="2.0" xmlns:z="` + Namespace + `" xmlns:q="urn:q"><channel><item xmlns:r="urn:r"><title>T</title>` +
		`<z:sync xmlns:s="urn:s" id="a" version="3" s:x="0"><z:history by="x" xmlns:sx="urn:not" sx:y="1"><z:update by="y" q:on="phone" r:z='2' s:deep="3"><q:why>&amp;<!-- c --></q:why></z:update><z:update by="w" xmlns:t="urn:t" t:u="4"/></z:history></z:sync></item></channel></rss>`
	kept := []string{`{urn:q}on="phone"`, `{urn:r}z="2"`, `{urn:s}deep="3"`, "<{urn:q}why >\n&\n</>", `{urn:t}u="4"`}
	it := parse(t, doc).Item("a")
	next, err := updated(it, nil, false, time.Now(), "me")
	if err != nil {
		t.Fatal(err)
	}
	edited := document(t, next)
	winner := item(t, 3, "other", "9z")
	winner.ID = "a"
	out := Merge(it, winner, Rules{})
	if !out.Detected {
		t.Fatal("the items are in conflict")
	}
	lost := document(t, out.Item)
	for what, text := range map[string]string{"edited": edited, "lost": lost} {
		for _, k := range kept {
			if !strings.Contains(c14n(t, text), k) {
				t.Errorf("%s: %s is lost: %s", what, k, text)
			}
		}
		again := parse(t, text).Item("a")
		if again == nil {
			t.Fatalf("%s: %s", what, text)
		}
		once, err := updated(again, nil, false, time.Now(), "me")
		if err != nil {
			t.Fatal(err)
		}
		if what == "edited" && !strings.Contains(c14n(t, document(t, once)), kept[3]) {
			t.Errorf("the next edit lost it: %s", document(t, once))
		}
	}
	for _, k := range []string{`{urn:s}x="0"`, `{urn:not}y="1"`} {
		if !strings.Contains(c14n(t, edited), k) {
			t.Errorf("%s is lost: %s", k, edited)
		}
	}
	if h := next.History; len(h) != 4 || fmt.Sprint(h[1].By, h[2].By, h[3].By) != "xyw" {
		t.Errorf("%v", h)
	}
}
