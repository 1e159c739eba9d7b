package opml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"regexp"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/text/charset"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// The limits of [Parse], beyond any list that a person made.
const (
	MaxBytes    = 16 << 20
	MaxDepth    = 64
	MaxElements = 200_000
	maxAttrs    = 256
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
	p := &parser{s: toUTF8(data), names: map[string]bool{}}
	top := &Node{}
	if err := p.parse(top); err != nil {
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
		if top.find("outline") == nil {
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

// toUTF8 returns the document as valid UTF-8 without control characters.
func toUTF8(data []byte) string {
	text, _ := charset.Decode(data, "")
	return string(bytes.Map(xmltext.Writable, text))
}

// parser parses one document into a tree.
type parser struct {
	s     string
	pos   int
	count int
	names map[string]bool // whether they are valid
	open  []*Node         // the open elements, the document first
	text  []byte          // parsed text that is not in the tree yet: a stray less-than sign splits it
}

func (p *parser) rest() string { return p.s[p.pos:] }

// add adds a node to the innermost open element.
func (p *parser) add(n *Node) {
	p.flush()
	parent := p.open[len(p.open)-1]
	parent.Children = append(parent.Children, n)
}

// flush adds the text so far to the innermost open element.
func (p *parser) flush() {
	if text := p.text; len(text) > 0 {
		p.text = nil
		p.add(&Node{Text: string(text)})
	}
}

func (p *parser) parse(top *Node) error {
	p.open = []*Node{top}
	defer p.flush()
	for p.pos < len(p.s) {
		if text := p.take("<"); text != "" {
			p.text = append(p.text, unescape(text)...)
			continue
		}
		rest := p.rest()
		if !strings.HasPrefix(rest, "</") {
			p.count++
		}
		if p.count > MaxElements {
			return &NotOPMLError{fmt.Sprintf("it has more than %d elements", MaxElements)}
		}
		switch {
		case strings.HasPrefix(rest, "<!--"):
			p.comment()
		case strings.HasPrefix(rest, "<![CDATA["):
			body, _ := p.until(9, "]]>")
			p.text = append(p.text, body...)
		case strings.HasPrefix(rest, "<?"):
			body, ok := p.until(2, "?>")
			name, _, _ := strings.Cut(body, " ")
			if ok && p.validName(name) && !strings.EqualFold(name, "xml") {
				p.add(&Node{Raw: "<?" + body + "?>"})
			}
		case strings.HasPrefix(rest, "<!"):
			p.doctype()
		case strings.HasPrefix(rest, "</"):
			p.end()
		default:
			if err := p.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// comment parses a comment, and makes it valid XML.
func (p *parser) comment() {
	body, ok := p.until(4, "-->")
	if !ok {
		return
	}
	for strings.Contains(body, "--") {
		body = strings.ReplaceAll(body, "--", "- -")
	}
	p.add(&Node{Raw: "<!--" + strings.TrimSuffix(body, "-") + "-->"})
}

// start parses a start tag. A less-than sign that does not begin a tag is text.
func (p *parser) start() error {
	n, closed := p.tag()
	switch {
	case n == nil:
		p.text = append(p.text, '<')
		p.pos++
		return nil
	case !closed && len(p.open) > MaxDepth:
		return &NotOPMLError{fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)}
	}
	p.add(n)
	if !closed {
		p.open = append(p.open, n)
	}
	return nil
}

// end parses an end tag, which closes the innermost element with its name.
func (p *parser) end() {
	name, _ := p.until(2, ">")
	name = strings.TrimSpace(name)
	for i := len(p.open) - 1; i > 0; i-- {
		if strings.EqualFold(p.open[i].Name, name) {
			p.flush()
			p.open = p.open[:i]
			return
		}
	}
}

// until returns the text from skip bytes ahead to the mark end, and moves behind the mark; without
// a mark, it returns the rest.
func (p *parser) until(skip int, end string) (string, bool) {
	body, _, ok := strings.Cut(p.rest()[skip:], end)
	p.pos += skip + len(body)
	if ok {
		p.pos += len(end)
	}
	return body, ok
}

// doctype skips a declaration, with the internal subset of a DOCTYPE.
func (p *parser) doctype() {
	depth := 0
	for ; p.pos < len(p.s); p.pos++ {
		switch p.s[p.pos] {
		case '[':
			depth++
		case ']':
			depth--
		case '>':
			if depth <= 0 {
				p.pos++
				return
			}
		}
	}
}

// take returns the text up to the first byte in stop, and moves to that byte.
func (p *parser) take(stop string) string {
	n := strings.IndexAny(p.s[p.pos:], stop)
	if n < 0 {
		n = len(p.s) - p.pos
	}
	p.pos += n
	return p.s[p.pos-n : p.pos]
}

// skip skips white space.
func (p *parser) skip() { p.pos += len(p.rest()) - len(strings.TrimLeft(p.rest(), space)) }

const space = " \t\r\n"

// tag parses a start tag; it returns nil if there is none.
func (p *parser) tag() (n *Node, closed bool) {
	begin := p.pos
	p.pos++
	n = &Node{Name: p.take(space + "/>=<\"'")}
	if !p.validName(n.Name) {
		p.pos = begin
		return nil, false
	}
	for {
		p.skip()
		switch rest := p.rest(); {
		case rest == "", rest[0] == '<': // the end of the tag is missing
			return n, false
		case rest[0] == '>':
			p.pos++
			return n, false
		case strings.HasPrefix(rest, "/>"):
			p.pos += 2
			return n, true
		case rest[0] == '/':
			p.pos++
			continue
		}
		name := p.unquoted("=<")
		p.skip()
		value := ""
		if strings.HasPrefix(p.rest(), "=") {
			p.pos++
			p.skip()
			value = p.value()
		}
		if len(n.Attrs) < maxAttrs && p.validName(name) && n.attr(name) == nil {
			n.Attrs = append(n.Attrs, Attr{name, unescape(value)})
		}
	}
}

// value parses the value of an attribute, with or without quotes.
func (p *parser) value() string {
	if quote := p.rest(); quote != "" && (quote[0] == '"' || quote[0] == '\'') {
		value, _ := p.until(1, quote[:1])
		return value
	}
	return p.unquoted("")
}

// unquoted returns the text up to white space, the end of the tag, or a byte in stop.
func (p *parser) unquoted(stop string) string {
	begin := p.pos
	p.take(space + ">" + stop)
	if p.pos > begin && p.s[p.pos-1] == '/' && strings.HasPrefix(p.rest(), ">") {
		p.pos--
	}
	return p.s[begin:p.pos]
}

// validName reports whether a name is valid in XML, with at most one prefix.
func (p *parser) validName(name string) bool {
	valid, known := p.names[name]
	if !known && len(name) <= 200 {
		token, err := xml.NewDecoder(strings.NewReader("<" + name + "/>")).RawToken()
		e, _ := token.(xml.StartElement)
		valid = err == nil && len(e.Attr) == 0 && strings.TrimPrefix(e.Name.Space+":"+e.Name.Local, ":") == name &&
			strings.Trim(name, ":") == name
		p.names[name] = valid
	}
	return valid
}

// reference matches a reference with a semicolon. Without one it is text: in a URL, "&copy=1" is a
// parameter.
var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`&#?[0-9A-Za-z]{1,38};`) })

func unescape(s string) string {
	return reference().ReplaceAllStringFunc(s, func(ref string) string {
		text := html.UnescapeString(ref)
		if len(text) > 1 && strings.HasSuffix(text, ";") {
			return ref // unknown, or only its beginning is known
		}
		return strings.Map(xmltext.Writable, text)
	})
}
