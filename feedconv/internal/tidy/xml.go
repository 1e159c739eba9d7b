package tidy

import (
	"bytes"
	"io"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// XML returns the elements that gofeed maps as one clean XML document in UTF-8. The n-th entry is that
// of d.Entries. Text is in CDATA sections, since gofeed decodes other text by rules that depend on the
// element.
func (d *Document) XML() io.Reader {
	var w xmlWriter
	entry, mapped, end := "item", ofRSS, "</rss>"
	if d.Root == "feed" {
		entry, mapped, end = "entry", ofAtom, "</feed>"
		w.write("<feed")
		w.attr("xmlns", vocab.Atom10.URI())
		w.attr("xml:lang", d.Feed.AttrNS(vocab.XML, "lang"))
		w.write(">")
	} else {
		w.write("<rss")
		w.attr("version", d.Version)
		w.write("><channel>")
	}
	for _, c := range d.Feed.Children {
		w.element(c)
	}
	for _, n := range d.Entries {
		w.write("<", entry, ">")
		for _, c := range n.Children {
			if among(c.Name, mapped) {
				w.element(c)
			}
		}
		w.write("</", entry, ">")
	}
	if d.Root != "feed" {
		w.write("</channel>")
		if d.Image != nil {
			w.element(d.Image)
		}
	}
	w.write(end)
	return bytes.NewReader(w)
}

// xmlWriter is the text that has been written.
type xmlWriter []byte

// The elements of entries that gofeed maps. Dates and contents it reads slowly, and most elements of Atom
// may stand in RSS, too.
const (
	ofAtom = "title rights copyright source"
	ofRSS  = "title link comments guid source category enclosure url image"
)

// element writes a native element with its content.
func (w *xmlWriter) element(n *Node) {
	if n.Foreign || n.NS != vocab.None {
		return
	}
	w.write("<", n.Name)
	for _, a := range n.Attrs {
		w.attr(attrName(a.Name), a.Value)
	}
	w.write(">")
	if n.Text != "" {
		w.write("<![CDATA[", strings.ReplaceAll(n.Text, "]]>", "]]]]><![CDATA[>"), "]]>")
	}
	for _, c := range n.Children {
		w.element(c)
	}
	w.write("</", n.Name, ">")
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
func (w *xmlWriter) attr(name, value string) {
	if value != "" {
		w.write(" ", name, `="`, xmltext.Attr(value), `"`)
	}
}

func (w *xmlWriter) write(list ...string) {
	for _, s := range list {
		*w = append(*w, s...)
	}
}
