package tidy

import (
	"io"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// XML returns the elements that gofeed maps as one clean XML document in UTF-8. The n-th entry is that
// of d.Entries. It is written while it is read. Text is in CDATA sections, since gofeed decodes other
// text by rules that depend on the element.
func (d *Document) XML() io.Reader { return &xmlReader{doc: d, atom: d.Root == "feed", next: -1} }

// xmlReader writes the document as it is read.
type xmlReader struct {
	doc  *Document
	atom bool
	next int    // the entry that is written next, or -1 for the head
	out  []byte // the piece that was written last
	rest []byte // the unread part of out
}

func (r *xmlReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next > len(r.doc.Entries) {
			return 0, io.EOF
		}
		r.out = r.out[:0]
		r.piece(r.next)
		r.next++
		r.rest = r.out
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// piece writes the head, an entry or the end.
func (r *xmlReader) piece(number int) {
	entry, mapped := "item", ofRSS
	if r.atom {
		entry, mapped = "entry", ofAtom
	}
	switch {
	case number < 0:
		r.head()
	case number < len(r.doc.Entries):
		r.write("<", entry, ">")
		for _, c := range r.doc.Entries[number].Children {
			if among(c.Name, mapped) {
				r.element(c)
			}
		}
		r.write("</", entry, ">")
	case r.atom:
		r.write("</feed>")
	default:
		r.write("</channel>")
		if r.doc.Image != nil {
			r.element(r.doc.Image)
		}
		r.write("</rss>")
	}
}

// The elements of entries that gofeed maps. Dates and contents it reads slowly, and most elements of Atom
// may stand in RSS, too.
const (
	ofAtom = "title rights copyright source"
	ofRSS  = "title link comments guid source category enclosure url image"
)

// head writes the part of the document before the entries.
func (r *xmlReader) head() {
	if r.atom {
		r.write("<feed")
		r.attr("xmlns", vocab.Atom10.URI())
		r.attr("xml:lang", r.doc.Feed.AttrNS(vocab.XML, "lang"))
	} else {
		r.write("<rss")
		r.attr("version", r.doc.Version)
	}
	r.write(">")
	if !r.atom {
		r.write("<channel>")
	}
	for _, c := range r.doc.Feed.Children {
		r.element(c)
	}
}

// element writes a native element with its content.
func (r *xmlReader) element(n *Node) {
	if n.Foreign || n.NS != vocab.None {
		return
	}
	r.write("<", n.Name)
	for _, a := range n.Attrs {
		r.attr(attrName(a.Name), a.Value)
	}
	r.write(">")
	if n.Text != "" {
		r.write("<![CDATA[", strings.ReplaceAll(n.Text, "]]>", "]]]]><![CDATA[>"), "]]>")
	}
	for _, c := range n.Children {
		r.element(c)
	}
	r.write("</", n.Name, ">")
}

// attrName returns the name of an attribute as gofeed looks for it.
func attrName(name string) string {
	switch name {
	case "ispermalink":
		return "isPermaLink"
	case "registerprocedure":
		return "registerProcedure"
	}
	return name
}

// attr writes an attribute that has a value.
func (r *xmlReader) attr(name, value string) {
	if value == "" {
		return
	}
	r.write(" ", name, `="`)
	r.out = appendEscaped(r.out, value, &xmlEscapes)
	r.write(`"`)
}

func (r *xmlReader) write(list ...string) {
	for _, s := range list {
		r.out = append(r.out, s...)
	}
}

// xmlEscapes are the escapes of characters in the text of XML, and in its attributes.
var xmlEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\n': "&#10;", '\r': "&#13;",
	'\t': "&#9;"}
