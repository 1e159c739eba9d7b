package opml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/text/charset"
	"github.com/lektordir/lektor/internal/text/scan"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// The limits of [Parse], beyond any list that a person made.
const (
	MaxBytes    = 16 << 20
	MaxDepth    = 64
	MaxElements = 200_000
)

// NotOPMLError is returned by [Parse] for a document that is not OPML.
type NotOPMLError struct{ Reason string }

func (e *NotOPMLError) Error() string { return "not OPML: " + e.Reason }

// Parse parses a document. It tolerates many errors, as lists pass through many programs: names in
// any case, a missing head or body, bare ampersands and less-than signs, unquoted attributes, HTML
// entities, any charset, a missing end. The error is a [*NotOPMLError].
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, &NotOPMLError{fmt.Sprintf("it has more than %d bytes", MaxBytes)}
	}
	top := &Node{}
	r := &reader{Scanner: scan.New(toUTF8(data), func(scan.Defect, int, []byte) {}), names: map[string]bool{},
		open: []*Node{top}}
	if err := r.read(); err != nil {
		return nil, err
	}
	d := &Document{}
	for _, n := range top.Children {
		switch {
		case n.is("opml") && d.root == nil:
			d.root = n
		case n.Raw != "" && d.root == nil:
			d.prolog = append(d.prolog, n)
		}
	}
	if d.root == nil {
		// Fragments: a body, or outlines alone.
		if !r.outline {
			reason := "it has no <opml> and no <outline>"
			for _, n := range top.Children {
				if n.Name != "" {
					reason += "; it begins with <" + n.Name + ">"
					break
				}
			}
			return nil, &NotOPMLError{reason}
		}
		d.root = &Node{Name: "opml", Children: top.Children}
	}
	d.normalize()
	return d, nil
}

// toUTF8 returns the document as valid UTF-8, without control characters and carriage returns. It closes a
// tag that the end of the document cuts off.
func toUTF8(data []byte) []byte {
	text, _ := charset.Decode(data, "")
	text = bytes.Map(xmltext.Writable, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	if bytes.LastIndexByte(text, '<') > bytes.LastIndexByte(text, '>') {
		text = append(text, '>')
	}
	return text
}

// reader reads the tokens of a document into a tree.
type reader struct {
	*scan.Scanner
	count   int
	outline bool            // there is one
	names   map[string]bool // whether they are valid
	open    []*Node         // the open elements, the document first
	text    []byte          // text that is not in the tree yet
}

func (r *reader) top() *Node { return r.open[len(r.open)-1] }

// add adds a node to the innermost open element.
func (r *reader) add(n *Node) {
	r.flush()
	r.count++
	r.top().Children = append(r.top().Children, n)
}

// flush adds the text so far to the innermost open element.
func (r *reader) flush() {
	if len(r.text) > 0 {
		r.top().Children = append(r.top().Children, &Node{Text: string(r.text)})
		r.text = r.text[:0]
	}
}

func (r *reader) read() error {
	defer r.flush()
	for r.count <= MaxElements {
		switch tk := r.Next([]byte(r.top().Name)); tk.Kind {
		case scan.End:
			return nil
		case scan.Text:
			r.text = r.Entities.Decode(r.text, tk.Data)
		case scan.CDATA:
			r.text = append(r.text, tk.Data...)
		case scan.Aside:
			r.aside(string(tk.Data))
		case scan.Open:
			if len(r.open) > MaxDepth && !tk.Self {
				return &NotOPMLError{fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)}
			}
			r.start(string(tk.Data), tk.Self)
		case scan.Close, scan.Cut:
			r.end(string(tk.Data))
		}
	}
	return &NotOPMLError{fmt.Sprintf("it has more than %d elements", MaxElements)}
}

// aside adds a comment, which it makes valid XML, or a processing instruction.
func (r *reader) aside(raw string) {
	if body, ok := strings.CutPrefix(raw, "<!--"); ok {
		body = strings.TrimSuffix(body, "-->")
		for strings.Contains(body, "--") {
			body = strings.ReplaceAll(body, "--", "- -")
		}
		raw = "<!--" + strings.TrimSuffix(body, "-") + "-->"
	} else if name, _, _ := strings.Cut(raw[2:len(raw)-2], " "); !r.validName(name) || strings.EqualFold(name, "xml") {
		return
	}
	r.add(&Node{Raw: raw})
}

// start adds an element, unless its name is not valid.
func (r *reader) start(name string, self bool) {
	if !r.validName(name) {
		return
	}
	n := &Node{Name: name}
	r.outline = r.outline || n.is("outline")
	for _, a := range r.Attrs {
		if key := string(a.Key); r.validName(key) && n.attr(key) == nil {
			n.Attrs = append(n.Attrs, Attr{key, string(r.Entities.DecodeAttr(a.Val))})
		}
	}
	if r.add(n); !self {
		r.open = append(r.open, n)
	}
}

// end closes the innermost element with a name.
func (r *reader) end(name string) {
	for i := len(r.open) - 1; i > 0; i-- {
		if strings.EqualFold(r.open[i].Name, name) {
			r.flush()
			r.open = r.open[:i]
			return
		}
	}
}

// validName reports whether a name is valid in XML, with at most one prefix.
func (r *reader) validName(name string) bool {
	valid, known := r.names[name]
	if !known && len(name) <= 200 {
		token, err := xml.NewDecoder(strings.NewReader("<" + name + "/>")).RawToken()
		e, _ := token.(xml.StartElement)
		valid = err == nil && len(e.Attr) == 0 && strings.TrimPrefix(e.Name.Space+":"+e.Name.Local, ":") == name &&
			strings.Trim(name, ":") == name
		r.names[name] = valid
	}
	return valid
}
