package tidy

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// XML returns the document as one clean XML document in UTF-8, for gofeed to map: the
// native elements and those of other vocabularies that have a field, which have fixed
// prefixes. The n-th entry is that of d.Entries. It is written while it is read.
//
// The document is made for four habits of gofeed. Native text is in CDATA sections, since gofeed
// decodes other text by rules that depend on the element. Other text is one escaped piece, since
// gofeed joins pieces in quadratic time. A URL or an Atom id that gofeed would encode anew has a
// newline before it: gofeed leaves it alone then, and finish trims it. A long text is replaced by a
// number, see [Document.Text].
func (d *Document) XML() io.Reader { return &xmlReader{doc: d, atom: d.Root == "feed", next: -1} }

// asideFrom is the length in bytes from which contents and summaries of entries bypass gofeed,
// which would return them unchanged but slowly.
const asideFrom = 64

// asideMark begins the placeholder of such a text; the rest is its number.
const asideMark = "\uE000"

// Text returns the text for the content or the summary that gofeed returned, which may be a
// placeholder.
func (d *Document) Text(s string) string {
	if number, ok := strings.CutPrefix(s, asideMark); ok {
		if i, err := strconv.Atoi(number); err == nil {
			return d.aside[i]
		}
	}
	return s
}

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
	entry := "item"
	if r.atom {
		entry = "entry"
	}
	switch {
	case number < 0:
		r.head()
	case number < len(r.doc.Entries):
		r.write("<", entry, ">")
		for _, c := range r.doc.Entries[number].Children {
			if r.isDate(c) {
				continue
			}
			r.element(c, r.hasAside(c), c.NS != vocab.None && (r.atom || c.NS != vocab.Content))
		}
		r.write("</", entry, ">")
	case r.atom:
		r.write("</feed>")
	default:
		r.write("</channel>")
		if r.doc.Image != nil {
			r.element(r.doc.Image, false, false)
		}
		r.write("</rss>")
	}
}

// prefixes are the vocabularies of elements, for their declarations.
type prefixes map[vocab.NS]bool

// add adds the vocabularies of an element and of the elements in it that are written.
func (p prefixes) add(n *Node) {
	if n == nil || n.Foreign {
		return
	}
	if n.NS != vocab.None {
		p[n.NS] = true
	}
	for _, c := range n.Children {
		p.add(c)
	}
}

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
	// gofeed's parser copies the declarations for each element, so declare only those in use.
	used := prefixes{}
	for _, n := range append([]*Node{r.doc.Feed, r.doc.Image}, r.doc.Entries...) {
		used.add(n)
	}
	for _, ns := range slices.Sorted(maps.Keys(used)) {
		r.attr("xmlns:"+ns.Prefix(), ns.URI())
	}
	r.write(">")
	if !r.atom {
		r.write("<channel>")
	}
	for _, c := range r.doc.Feed.Children {
		r.element(c, false, c.NS != vocab.None)
	}
}

// hasAside reports whether the text of an element of an entry can bypass gofeed.
func (r *xmlReader) hasAside(n *Node) bool {
	name := n.Name == "content" || n.Name == "summary"
	if !r.atom {
		name = n.Name == "description" && n.NS == vocab.None || n.Name == "encoded" && n.NS == vocab.Content
	}
	return name && (len(n.Text) >= asideFrom || strings.HasPrefix(n.Text, asideMark))
}

// isDate reports whether an element of an entry is one of its dates. They are left out, since
// gofeed tries its layouts on them one by one, and their text is in the tree.
func (r *xmlReader) isDate(n *Node) bool {
	if n.NS != vocab.None || n.Foreign {
		return false
	}
	if r.atom {
		return among(n.Name, "published issued updated modified")
	}
	return n.Name == "pubdate"
}

// element writes an element that has a field, with its content.
func (r *xmlReader) element(n *Node, aside, extension bool) {
	if n.Foreign {
		return
	}
	name := n.Name
	if n.NS != vocab.None {
		name = n.NS.Prefix() + ":" + name
	}
	r.write("<", name)
	for _, a := range n.Attrs {
		r.attr(attrName(a.Name), a.Value)
	}
	r.write(">")
	text := n.Text
	if aside {
		r.doc.aside = append(r.doc.aside, text)
		text = asideMark + strconv.Itoa(len(r.doc.aside)-1)
	}
	switch {
	case extension:
		r.out = appendEscaped(r.out, text, &xmlEscapes)
	case text != "":
		r.write("<![CDATA[")
		if r.atom && among(n.Name, "icon id logo uri url") {
			r.write("\n")
		}
		r.write(strings.ReplaceAll(text, "]]>", "]]]]><![CDATA[>"), "]]>")
	}
	for _, c := range n.Children {
		r.element(c, false, extension)
	}
	r.write("</", name, ">")
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
	switch name {
	case "href", "scheme", "src", "uri":
		r.write("&#10;")
	}
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
