package feedsync

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// SyntaxError is the error for a document that is not well-formed XML, or uses XML that is
// not supported.
type SyntaxError struct {
	Line   int // from 1
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// element is an element with resolved names. Its attributes declare no namespaces.
type element struct {
	name  xml.Name
	line  int // line of the start tag
	attrs []xml.Attr
	kids  []node
}

// node is an element, a text, or raw XML that [element.append] made.
type node struct {
	*element
	text string
	raw  []byte
}

// reader reads elements with encoding/xml, but is stricter: one root, no declarations in a
// DOCTYPE, no undeclared prefix, no duplicate attribute.
type reader struct {
	*xml.Decoder
	root   string          // namespace of the root element; it is treated as none
	spaces map[string]bool // namespaces that the document declares
	rooted bool
}

func newReader(data []byte) *reader {
	r := &reader{Decoder: xml.NewDecoder(bytes.NewReader(data)), spaces: map[string]bool{"": true, namespaceXML: true}}
	// The text was converted to UTF-8 before, so the declared charset is ignored.
	r.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return r
}

func (r *reader) fail(line int, format string, args ...any) error {
	return &SyntaxError{Line: line, Reason: fmt.Sprintf(format, args...)}
}

// check converts an error of encoding/xml.
func (r *reader) check(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return &SyntaxError{syntax.Line, strings.Replace(syntax.Msg, "unexpected EOF", "it ends within an element", 1)}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		line, _ := r.InputPos()
		return r.fail(line, "%v", err)
	}
	return err
}

// next returns the next start tag, end tag or text, and its line. The error is [io.EOF] at
// the end of a document, or a [*SyntaxError]. outside is true outside the root element.
func (r *reader) next(outside bool) (xml.Token, int, error) {
	for {
		line, _ := r.InputPos()
		tok, err := r.Token()
		if errors.Is(err, io.EOF) && !r.rooted {
			return nil, line, r.fail(line, "it has no element")
		}
		if err != nil {
			return nil, line, r.check(err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if outside && r.rooted {
				return nil, line, r.fail(line, "it has a second root element")
			}
			r.rooted = true
			return tok, line, nil
		case xml.EndElement:
			return tok, line, nil
		case xml.CharData:
			if !outside {
				return tok, line, nil
			}
			if len(bytes.Trim(t, space)) > 0 {
				return nil, line, r.fail(line, "there is text outside of the root element")
			}
		case xml.Directive:
			if r.rooted || !bytes.HasPrefix(t, []byte("DOCTYPE")) || bytes.IndexByte(t, '[') >= 0 {
				return nil, line, r.fail(line, "its DOCTYPE has declarations or is not at the beginning")
			}
		}
	}
}

// element returns the element of a start tag, with its attributes sorted by name.
func (r *reader) element(t xml.StartElement, line int) (*element, error) {
	e := &element{name: t.Name, line: line, attrs: t.Attr[:0]}
	declares := func(a xml.Attr) bool { return a.Name.Space == "xmlns" || a.Name == xml.Name{Local: "xmlns"} }
	for _, a := range t.Attr {
		switch {
		case !declares(a):
			continue
		case a.Value == namespaceFeedSync:
			return nil, errFeedSync
		case a.Name.Space != "" && a.Value == "" || a.Value == "xmlns":
			return nil, r.fail(line, "the prefix %s: is declared as %q", brief(a.Name.Local), a.Value)
		}
		r.spaces[a.Value] = true
	}
	if err := r.resolve(&e.name, true, line); err != nil {
		return nil, err
	}
	for _, a := range t.Attr {
		if declares(a) {
			continue
		}
		if err := r.resolve(&a.Name, false, line); err != nil {
			return nil, err
		}
		e.attrs = append(e.attrs, a)
	}
	if len(e.attrs) < 2 {
		return e, nil
	}
	slices.SortFunc(e.attrs, func(a, b xml.Attr) int {
		return cmp.Or(strings.Compare(a.Name.Space, b.Name.Space), strings.Compare(a.Name.Local, b.Name.Local))
	})
	for i, a := range e.attrs[1:] {
		if a.Name == e.attrs[i].Name {
			return nil, r.fail(line, "<%s> has the attribute %s twice", brief(e.name.Local), brief(a.Name.Local))
		}
	}
	return e, nil
}

// resolve checks a name, and replaces equivalent namespaces.
func (r *reader) resolve(n *xml.Name, element bool, line int) error {
	switch {
	case strings.IndexByte(n.Local, ':') >= 0:
		return r.fail(line, "%s is not a name", brief(n.Local))
	case !r.spaces[n.Space]:
		// encoding/xml leaves the prefix where the namespace would be.
		return r.fail(line, "the prefix %s: is not declared", brief(n.Space))
	case n.Space == namespaceHTTP:
		n.Space = Namespace
	case element && n.Space == r.root:
		n.Space = ""
	}
	return nil
}

// is reports whether an element has a name.
func (e *element) is(space, local string) bool { return e.name.Local == local && e.name.Space == space }

// attr returns the value of an attribute, "" if there is none.
func (e *element) attr(space, local string) string {
	for _, a := range e.attrs {
		if a.Name.Local == local && a.Name.Space == space {
			return a.Value
		}
	}
	return ""
}

// value returns the value of an attribute without namespace, without white space around it.
func (e *element) value(name string) string { return strings.Trim(e.attr("", name), space) }

// tidy removes white space between elements. With all, it removes every text that is only
// white space.
func (e *element) tidy(all bool) {
	all = all || slices.ContainsFunc(e.kids, func(k node) bool { return k.element != nil })
	if all {
		e.kids = slices.DeleteFunc(e.kids, func(k node) bool {
			return k.element == nil &&
				strings.Trim(k.text, space) == ""
		})
	}
}

// text returns the direct text of an element.
func (e *element) text() string {
	text := ""
	for _, k := range e.kids {
		text += k.text
	}
	return text
}

// foreign adds to list the namespaces of the element that are not bound at the root, in the
// order of their first use.
func (e *element) foreign(list []string) []string {
	add := func(space string) {
		if bound := []string{"", Namespace, LektorNamespace, namespaceXML}; !slices.Contains(bound, space) &&
			!slices.Contains(list, space) {
			list = append(list, space)
		}
	}
	add(e.name.Space)
	for _, a := range e.attrs {
		add(a.Name.Space)
	}
	for _, k := range e.kids {
		if k.element != nil {
			list = k.foreign(list)
		}
	}
	return list
}

// append appends the element in the form of a document. Equal elements have equal bytes.
func (e *element) append(b []byte) []byte {
	foreign := e.foreign(nil)
	return e.write(b, foreign, foreign)
}

// write appends the element. declare are the namespaces that its start tag declares.
func (e *element) write(b []byte, foreign, declare []string) []byte {
	b = e.start(b, foreign, declare)
	if len(e.kids) == 0 {
		return append(b, "/>"...)
	}
	b = append(b, '>')
	for _, k := range e.kids {
		if k.element != nil {
			b = k.write(b, foreign, nil)
		} else {
			b = append(append(b, xmltext.Text(k.text)...), k.raw...)
		}
	}
	return append(appendName(append(b, "</"...), e.name, foreign), '>')
}

// start appends the start tag without its end.
func (e *element) start(b []byte, foreign, declare []string) []byte {
	b = appendName(append(b, '<'), e.name, foreign)
	for i, space := range declare {
		b = fmt.Appendf(b, ` xmlns:ns%d="%s"`, i+1, xmltext.Attr(space))
	}
	for _, a := range e.attrs {
		b = append(appendName(append(b, ' '), a.Name, foreign), `="`...)
		b = append(append(b, xmltext.Attr(a.Value)...), '"')
	}
	return b
}

func appendName(b []byte, n xml.Name, foreign []string) []byte {
	switch n.Space {
	case "":
	case Namespace:
		b = append(b, "sx:"...)
	case LektorNamespace:
		b = append(b, "lektor:"...)
	case namespaceXML:
		b = append(b, "xml:"...)
	default:
		b = append(strconv.AppendInt(append(b, "ns"...), int64(slices.Index(foreign, n.Space)+1), 10), ':')
	}
	return append(b, n.Local...)
}

// content returns the bytes of an element that always has an end tag.
func (e *element) content() []byte {
	if len(e.kids) == 0 {
		e = &element{name: e.name, attrs: e.attrs, kids: []node{{}}}
	}
	return e.append(nil)
}

// bindings are the namespace declarations at the root of each document.
const bindings = ` xmlns:sx="` + Namespace + `" xmlns:lektor="` + LektorNamespace + `"`

// readElement parses one element. The prefixes sx and lektor are bound.
func readElement(text []byte) (*element, error) {
	p := &parser{reader: newReader(slices.Concat([]byte("<r"+bindings+">"), text, []byte("</r>")))}
	if err := p.document(); err != nil {
		return nil, err
	}
	p.root.tidy(true)
	if k := p.root.kids; len(k) == 1 && k[0].element != nil {
		k[0].tidy(true)
		return k[0].element, nil
	}
	return nil, errors.New("a content must be one element")
}

const space = " \t\r\n"

// brief shortens a text from a document for a message.
func brief[S string | []byte](s S) string {
	return humanize.Cut(strings.ToValidUTF8(string(s), "…"), 60)
}
