package opml

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// The limits of [Parse]. A list of subscriptions that passes them is no list
// that a person made.
const (
	MaxBytes    = 16 << 20
	MaxDepth    = 64
	MaxElements = 200_000
	maxAttrs    = 256
)

// NotOPMLError is returned by [Parse] for a document that is none.
type NotOPMLError struct{ Reason string }

func (e *NotOPMLError) Error() string { return "not OPML: " + e.Reason }

// Parse reads a document. It is tolerant, as lists of subscriptions have
// passed through many hands: names in any case, a missing head or body, bare
// ampersands and less-than signs, unquoted attributes, HTML entities, any
// charset, a missing end. The error is a [*NotOPMLError].
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, &NotOPMLError{fmt.Sprintf("it has more than %d bytes", MaxBytes)}
	}
	p := &parser{s: toUTF8(data)}
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

// toUTF8 gives the document as valid UTF-8 without control characters. What is
// valid UTF-8 is taken for that whatever it declares: lists are transcoded by
// tools that leave the declaration alone.
func toUTF8(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		data, _ = unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Bytes(data)
	case bytes.HasPrefix(data, []byte("<\x00")):
		data, _ = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder().Bytes(data)
	case bytes.HasPrefix(data, []byte("\x00<")):
		data, _ = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder().Bytes(data)
	}
	if !utf8.Valid(data) {
		data = decode(data)
	}
	s := strings.ToValidUTF8(string(data), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, s)
}

var declared = regexp.MustCompile(`^\s*<\?xml[^>]*?encoding\s*=\s*["']?([-\w.:]+)`)

func decode(data []byte) []byte {
	if m := declared.FindSubmatch(data[:min(len(data), 1024)]); m != nil {
		if enc, _ := charset.Lookup(string(m[1])); enc != nil {
			if out, err := enc.NewDecoder().Bytes(data); err == nil && bytes.Count(out, []byte("\uFFFD")) == 0 {
				return out
			}
		}
	}
	out, _ := charmap.Windows1252.NewDecoder().Bytes(data)
	return out
}

// parser reads one document into a tree.
type parser struct {
	s     string
	pos   int
	count int
}

func (p *parser) parse(top *Node) error {
	stack := []*Node{top}
	// Text comes in pieces, as many as there are stray less-than signs; they
	// are joined when something else follows.
	var pieces []byte
	flush := func() {
		if len(pieces) > 0 {
			parent := stack[len(stack)-1]
			parent.Children = append(parent.Children, &Node{Text: string(pieces)})
			pieces = nil
		}
	}
	defer flush()
	add := func(n *Node) {
		flush()
		parent := stack[len(stack)-1]
		parent.Children = append(parent.Children, n)
	}
	text := func(s string) { pieces = append(pieces, s...) }
	for p.pos < len(p.s) {
		rest := p.s[p.pos:]
		lt := strings.IndexByte(rest, '<')
		if lt < 0 {
			text(unescape(rest))
			return nil
		}
		if lt > 0 {
			text(unescape(rest[:lt]))
			p.pos += lt
			continue
		}
		if !strings.HasPrefix(rest, "</") {
			p.count++
		}
		if p.count > MaxElements {
			return &NotOPMLError{fmt.Sprintf("it has more than %d elements", MaxElements)}
		}
		switch {
		case strings.HasPrefix(rest, "<!--"):
			body, ok := p.until(4, "-->")
			if ok {
				for strings.Contains(body, "--") {
					body = strings.ReplaceAll(body, "--", "- -")
				}
				body = strings.TrimSuffix(body, "-")
				add(&Node{Raw: "<!--" + body + "-->"})
			}
		case strings.HasPrefix(rest, "<![CDATA["):
			body, _ := p.until(9, "]]>")
			text(body)
		case strings.HasPrefix(rest, "<?"):
			body, ok := p.until(2, "?>")
			name, _, _ := strings.Cut(body, " ")
			if ok && validName(name) && !strings.EqualFold(name, "xml") {
				add(&Node{Raw: "<?" + body + "?>"})
			}
		case strings.HasPrefix(rest, "<!"):
			p.doctype()
		case strings.HasPrefix(rest, "</"):
			name, _ := p.until(2, ">")
			name = strings.TrimSpace(name)
			for i := len(stack) - 1; i > 0; i-- {
				if strings.EqualFold(stack[i].Name, name) {
					flush()
					stack = stack[:i]
					break
				}
			}
		default:
			n, closed := p.tag()
			if n == nil {
				text("<")
				p.pos++
				continue
			}
			add(n)
			if !closed {
				if len(stack) > MaxDepth {
					return &NotOPMLError{fmt.Sprintf("it is nested deeper than %d levels", MaxDepth)}
				}
				stack = append(stack, n)
			}
		}
	}
	return nil
}

// until gives what stands between an offset from here and the end mark, and
// goes behind that; without one, behind everything.
func (p *parser) until(skip int, end string) (string, bool) {
	rest := p.s[p.pos+skip:]
	body, _, ok := strings.Cut(rest, end)
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

// tag reads a start tag; nil when what is here is none.
func (p *parser) tag() (n *Node, closed bool) {
	s := p.s
	i := p.pos + 1
	for i < len(s) && !strings.ContainsRune(" \t\r\n/>=<\"'", rune(s[i])) {
		i++
	}
	name := s[p.pos+1 : i]
	if !validName(name) {
		return nil, false
	}
	n = &Node{Name: name}
	for {
		for i < len(s) && (isSpace(s[i]) || s[i] == '/' && !strings.HasPrefix(s[i:], "/>")) {
			i++
		}
		switch {
		case i >= len(s):
			p.pos = i
			return n, false
		case s[i] == '>':
			p.pos = i + 1
			return n, false
		case strings.HasPrefix(s[i:], "/>"):
			p.pos = i + 2
			return n, true
		case s[i] == '<':
			// The tag's end is missing.
			p.pos = i
			return n, false
		}
		start := i
		for i < len(s) && !isSpace(s[i]) && s[i] != '=' && s[i] != '>' && s[i] != '<' && !strings.HasPrefix(s[i:], "/>") {
			i++
		}
		attr := s[start:i]
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		value := ""
		if i < len(s) && s[i] == '=' {
			i++
			for i < len(s) && isSpace(s[i]) {
				i++
			}
			if i < len(s) && (s[i] == '"' || s[i] == '\'') {
				quote := s[i]
				i++
				end := strings.IndexByte(s[i:], quote)
				if end < 0 {
					end = len(s) - i
				}
				value = s[i : i+end]
				i = min(i+end+1, len(s))
			} else {
				start = i
				for i < len(s) && !isSpace(s[i]) && s[i] != '>' && !strings.HasPrefix(s[i:], "/>") {
					i++
				}
				value = s[start:i]
			}
		}
		if len(n.Attrs) < maxAttrs && validName(attr) && n.attr(attr) == nil {
			n.Attrs = append(n.Attrs, Attr{attr, unescape(value)})
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// validName reports whether a name may stand in XML. Of the letters beyond ASCII
// it knows those that all parsers agree on, and people use.
func validName(name string) bool {
	if name == "" || len(name) > 200 {
		return false
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' ||
			r >= 0xC0 && r <= 0xFF && r != 0xD7 && r != 0xF7 || // Latin-1
			r >= 0x410 && r <= 0x44F || r >= 0x4E00 && r <= 0x9FA5 // Cyrillic, Han
		other := r >= '0' && r <= '9' || r == '-' || r == '.' || r == ':'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return !strings.HasSuffix(name, ":") && strings.Count(name, ":") <= 1
}

// unescape replaces references that end in a semicolon. Others are text: in a
// URL, "&copy=1" is a parameter.
func unescape(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	var b strings.Builder
	for {
		amp := strings.IndexByte(s, '&')
		if amp < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:amp])
		s = s[amp:]
		end := strings.IndexByte(s[:min(len(s), 40)], ';')
		if end < 2 || strings.ContainsAny(s[1:end], "& \t\n<") {
			b.WriteByte('&')
			s = s[1:]
			continue
		}
		ref := html.UnescapeString(s[:end+1])
		if strings.HasPrefix(ref, "&") && strings.HasSuffix(ref, ";") && len(ref) > 1 {
			ref = s[:end+1] // unknown
		}
		for _, r := range ref {
			if r >= ' ' && r != 0x7f && r != 0xFFFE && r != 0xFFFF || r == '\t' || r == '\n' || r == '\r' {
				b.WriteRune(r)
			}
		}
		s = s[end+1:]
	}
}
