package feedsync

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// seeds are documents that are good, odd, or nearly good.
var seeds = []string{
	rss(exampleCreated), rss(exampleUpdated), rss(exampleConflict), exampleSharing, tree("a(b(c))d", "b"),
	outlines(`<outline text="x" xmlns:lektor="` + LektorNamespace + `" lektor:parent="b"><sx:sync id="a" version="2" conflict="true"><sx:history by="x"/><lektor:settled by="y"/></sx:sync></outline><outline><outline><sx:sync id="b" version="1"><sx:history by="q"/></sx:sync></outline></outline>`),
	`<rss xmlns:sx="` + Namespace + `"><channel><item xmlns:sx="urn:x" xmlns:s="` + namespaceHTTP + `"><s:sync id="a" version="1"><s:history by="b"/><s:conflicts><s:conflict version="1" by="z"><item xmlns="urn:y"/><s:update by="q"/></s:conflict></s:conflicts></s:sync></item></channel></rss>`,
	"<?xml version='1.0' encoding='utf-16'?><rss/>", "<rss><channel><![CDATA[]]]]></channel></rss>", "<a b='&#x41;&amp;'/>", "\xef\xbb\xbf<rss><channel/></rss>", "<!-- -- --><rss/>",
}

// FuzzParse: what is read can be written and is read again as the same; merging it
// with itself changes nothing; and what it writes encoding/xml reads, too.
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
		// What it says of settled conflicts, others may have written without heeding it.
		again.Merge(d, Rules{})
		d, _ = Parse(slices.Clone(text))
		before := state(again)
		if c := again.Merge(d, Rules{}); before != state(again) {
			t.Fatalf("merged with itself, %q changes: %+v", data, c[0].Item)
		}
		// All of it, in a document whose prefixes are others.
		fresh := New(d.Kind, "t", "", "")
		d, _ = Parse(slices.Clone(data))
		fresh.Merge(d, Rules{})
		next := New(d.Kind, "t", "", "")
		for _, it := range fresh.Items() {
			if u, err := it.Resolve(nil, false, day0, "me"); err == nil {
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

// tokens gives what the scanner reads, in the terms of encoding/xml.
func tokens(data []byte) (string, error) {
	var b strings.Builder
	s := &scanner{data: data}
	if _, err := s.characters(); err != nil {
		return "", err
	}
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = ""
	}
	for {
		t, err := s.next()
		if errors.Is(err, io.EOF) {
			flush()
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		if t.kind == charData || t.kind == cdata {
			text += s.textOf(t)
			continue
		}
		flush()
		switch t.kind {
		case startTag:
			fmt.Fprintf(&b, "<%s", t.name)
			for _, a := range t.attrs {
				fmt.Fprintf(&b, " %s=%q", a.name, unescape(a.value, true))
			}
			b.WriteString("\n")
		case endTag:
			fmt.Fprintf(&b, "</%s\n", t.name)
		}
	}
}

// oracle reads with encoding/xml.
func oracle(data []byte) (string, error) {
	var b strings.Builder
	dec := xml.NewDecoder(strings.NewReader(string(data)))
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	name := func(n xml.Name) string {
		if n.Space != "" {
			return n.Space + ":" + n.Local
		}
		return n.Local
	}
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&b, "text %q\n", text)
		}
		text = ""
	}
	var open []string
	for {
		tok, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			flush()
			if len(open) > 0 {
				return "", errors.New("open")
			}
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		if c, ok := tok.(xml.CharData); ok {
			text += string(c)
			continue
		}
		flush()
		switch tok := tok.(type) {
		case xml.StartElement:
			open = append(open, name(tok.Name))
			fmt.Fprintf(&b, "<%s", name(tok.Name))
			for _, a := range tok.Attr {
				// It leaves white space in values as it is.
				fmt.Fprintf(&b, " %s=%q", name(a.Name), strings.NewReplacer("\n", " ", "\t", " ").Replace(a.Value))
			}
			b.WriteString("\n")
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != name(tok.Name) {
				return "", errors.New("no match")
			}
			open = open[:len(open)-1]
			fmt.Fprintf(&b, "</%s\n", name(tok.Name))
		}
	}
}

// FuzzScan: what the scanner takes, encoding/xml takes, and reads the same in it.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := tokens(data)
		if err != nil {
			return
		}
		// References to white space in values cannot be told apart there.
		if strings.Contains(string(data), "&#") {
			return
		}
		want, err := oracle(data)
		if err != nil {
			// Names beyond ASCII we take for names, and processing instructions
			// without looking into them.
			if strings.IndexFunc(string(data), func(r rune) bool { return r > '~' }) >= 0 || strings.Contains(string(data), "<?") || strings.Contains(string(data), "<!DOCTYPE") {
				return
			}
			t.Fatalf("encoding/xml refuses %q: %v", data, err)
		}
		if got != want {
			t.Fatalf("%q is read as\n%s\nand by encoding/xml as\n%s", data, got, want)
		}
	})
}
