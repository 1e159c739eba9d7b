package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/text/xmltext"
)

// Document is the part of an Atom or RSS 2.0 document that the publisher needs. It must have been
// written by lektor; feedconv parses other documents.
type Document struct {
	Links   map[string]string // links of the head, by relation; the first of each
	Archive bool              // the head has fh:archive
	Entries []Entry           // in the order of the document; without Origin
}

const (
	atomNamespace    = "http://www.w3.org/2005/Atom"
	historyNamespace = "http://purl.org/syndication/history/1.0"
	termsNamespace   = "http://purl.org/dc/terms/"
)

// Read parses a document.
func Read(data []byte) (*Document, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	doc := &Document{Links: map[string]string{}}
	depth, head := 0, 0 // number of open elements, and of those around the head
	for {
		start := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) && head > 0 {
			return doc, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			switch {
			case depth == 0 && t.Name.Local == "feed":
				head = 1
			case depth == 0 && t.Name.Local == "rss":
				head = 2
			case depth == 0:
				return nil, fmt.Errorf("%s is neither Atom nor RSS", t.Name.Local)
			case depth == head && (t.Name.Local == "entry" || t.Name.Local == "item"):
				e, err := readEntry(d, &t)
				if err != nil {
					return nil, err
				}
				e.Digest = digest(data[start:d.InputOffset()])
				doc.Entries = append(doc.Entries, *e)
				continue
			case depth == head:
				doc.head(t)
			}
			depth++
		}
	}
}

// head handles an element of the head.
func (doc *Document) head(t xml.StartElement) {
	switch t.Name {
	case xml.Name{Space: historyNamespace, Local: "archive"}:
		doc.Archive = true
	case xml.Name{Space: atomNamespace, Local: "link"}:
		var rel, href string
		for _, a := range t.Attr {
			switch a.Name.Local {
			case "rel":
				rel = a.Value
			case "href":
				href = a.Value
			}
		}
		if _, ok := doc.Links[rel]; !ok {
			doc.Links[rel] = href
		}
	}
}

// readEntry parses an entry with a start tag, up to its end.
func readEntry(d *xml.Decoder, start *xml.StartElement) (*Entry, error) {
	var element struct {
		Children []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
		} `xml:",any"`
	}
	if err := d.DecodeElement(&element, start); err != nil {
		return nil, err
	}
	e := &Entry{}
	var published time.Time
	for _, c := range element.Children {
		var err error
		switch c.XMLName {
		case xml.Name{Space: atomNamespace, Local: "id"}, xml.Name{Local: "guid"}:
			e.ID = c.Text
		case xml.Name{Space: atomNamespace, Local: "updated"}, xml.Name{Space: termsNamespace, Local: "modified"}:
			e.Updated, err = time.Parse(time.RFC3339, c.Text)
		case xml.Name{Local: "pubDate"}:
			published, err = time.Parse(time.RFC1123, c.Text)
		}
		if err != nil {
			return nil, err
		}
	}
	if e.ID == "" {
		return nil, errors.New("an entry has no id")
	}
	if e.Updated.IsZero() {
		e.Updated = published
	}
	e.Updated = e.Updated.UTC()
	return e, nil
}

// printed is the prefix of a digest of an element.
const printed = "~"

// digest returns a digest of the element of an entry, to distinguish versions. It ignores the id,
// the time of the update, which differs whenever the version does, and the source feed, which may
// be renamed.
func digest(element []byte) string {
	h := sha256.New()
	id, update := "id", "updated"
	if bytes.HasPrefix(element, []byte("<item")) {
		id, update = "guid", "dcterms:modified"
	}
	// The text before these elements is escaped.
	rest := cut(h, element, id, bytes.Index)
	rest = cut(h, rest, update, bytes.Index)
	// source is the last one, as the content before it may have elements of that name.
	rest = cut(h, rest, "source", bytes.LastIndex)
	h.Write(rest)
	return fmt.Sprintf("%s%.16x", printed, h.Sum(nil))
}

// cut writes the text before an element, without trailing white space, and returns the text after
// it; all of b if there is no such element.
func cut(to io.Writer, b []byte, name string, index func(s, sep []byte) int) []byte {
	i, end := index(b, []byte("<"+name)), []byte("</"+name+">")
	if i < 0 {
		return b
	}
	n := index(b[i:], end)
	if n < 0 {
		return b
	}
	_, _ = to.Write(bytes.TrimRight(b[:i], " \n"))
	return b[i+n+len(end):]
}

// Printed returns [Entry.Printed] of the only entry in a document that feedconv wrote.
func Printed(doc []byte) string {
	for _, name := range []string{"entry", "item"} {
		// The text before the entry is escaped and has no such tag.
		i := bytes.Index(doc, []byte("<"+name))
		j := bytes.LastIndex(doc, []byte("</"+name+">"))
		if i >= 0 && j > i {
			return digest(doc[i : j+len(name)+3])
		}
	}
	return ""
}

// mark is in the head of an archive that feedconv wrote; a link is inserted before it.
var mark = []byte("<fh:archive/>\n")

// WithNext returns an archive with a link to the next one; all other bytes are unchanged. It
// returns an error if lektor has not written the document.
func WithNext(doc []byte, url string) ([]byte, error) {
	i := bytes.Index(doc, mark)
	if i < 0 {
		return nil, errors.New("it is not an archive that lektor wrote")
	}
	indent := doc[bytes.LastIndexByte(doc[:i], '\n')+1 : i]
	name := "link"
	if len(indent) > 2 {
		name = "atom:link" // RSS
	}
	link := fmt.Sprintf("<%s rel=\"next-archive\" href=\"%s\"/>\n%s", name, xmltext.Attr(url), indent)
	return slices.Insert(bytes.Clone(doc), i, []byte(link)...), nil
}
