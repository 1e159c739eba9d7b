package feedsync

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError tells that a document is not well-formed XML, or of a kind of XML
// that is not read.
type SyntaxError struct {
	Line   int // from 1
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// tokenKind is what a token is.
type tokenKind uint8

const (
	startTag    tokenKind = iota + 1 // <a b="c"> or <a/>
	endTag                           // </a>, and after <a/>, of no length
	charData                         // text, with references as they stand
	cdata                            // <![CDATA[…]]>
	comment                          // <!--…-->
	instruction                      // <?…?>, the declaration among them
	doctype                          // <!DOCTYPE …> without a subset
)

// token is a piece of a document: data[begin:end].
type token struct {
	kind       tokenKind
	begin, end int
	name       []byte // of a tag, with its prefix
	attrs      []attr // of a start tag; good until the next token
	empty      bool   // <a/>
}

// attr is an attribute as it stands in the document.
type attr struct{ name, value []byte } // value with references, without quotes

// scanner reads well-formed XML, token by token, and gives each as the bytes that it
// is. It exists beside encoding/xml, and is tested against it, as a set of a hundred
// thousand items is read at every synchronisation: it makes no copies. Documents are
// UTF-8; entities beyond the five of XML are not known, and a DOCTYPE that
// declares some is refused.
type scanner struct {
	data []byte
	pos  int
	open [][]byte // names of the elements that are open
	rooted,
	pendingEnd bool // an end tag of <a/> is due
	attrs []attr
	line  lines
}

// lines counts lines, from the last place asked about.
type lines struct{ offset, n int }

// at gives the line of an offset, from 1.
func (l *lines) at(data []byte, offset int) int {
	offset = min(offset, len(data))
	if offset < l.offset {
		l.n -= bytes.Count(data[offset:l.offset], []byte{'\n'})
	} else {
		l.n += bytes.Count(data[l.offset:offset], []byte{'\n'})
	}
	l.offset = offset
	return l.n + 1
}

const (
	maxAttributes = 256
	maxNameLength = 1000
)

func (s *scanner) fail(offset int, format string, args ...any) error {
	return &SyntaxError{Line: s.line.at(s.data, offset), Reason: fmt.Sprintf(format, args...)}
}

// characters is the error for what is no character of XML 1.0, and where that stands.
func (s *scanner) characters() (int, error) {
	for i := 0; i < len(s.data); {
		for i < len(s.data) && plain[s.data[i]] {
			i++
		}
		if i == len(s.data) {
			break
		}
		r, n := utf8.DecodeRune(s.data[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return i, s.fail(i, "it is not UTF-8")
		case !isChar(r):
			return i, s.fail(i, "U+%04X may not stand in XML", r)
		}
		i += n
	}
	return len(s.data), nil
}

// plain are the bytes that are characters by themselves.
var plain = func() (p [256]bool) {
	for c := range utf8.RuneSelf {
		p[c] = isChar(rune(c))
	}
	return p
}()

// trim takes white space off the beginning.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

func isChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}

// depth is the number of elements that are open.
func (s *scanner) depth() int { return len(s.open) }

// next gives the next token, io.EOF behind a whole document, or a [*SyntaxError].
func (s *scanner) next() (token, error) {
	if s.pendingEnd {
		s.pendingEnd = false
		name := s.pop()
		return token{kind: endTag, begin: s.pos, end: s.pos, name: name}, nil
	}
	if s.pos >= len(s.data) {
		switch {
		case len(s.open) > 0:
			return token{}, s.fail(s.pos, "it ends within <%s>", brief(s.open[len(s.open)-1]))
		case !s.rooted:
			return token{}, s.fail(s.pos, "it has no element")
		}
		return token{}, io.EOF
	}
	rest := s.data[s.pos:]
	if rest[0] != '<' {
		return s.text(rest)
	}
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		return s.comment(rest)
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		if len(s.open) == 0 {
			return token{}, s.fail(s.pos, "there is text outside of the root element")
		}
		return s.until(cdata, rest, 9, "]]>", "CDATA")
	case bytes.HasPrefix(rest, []byte("<?")):
		return s.instruction(rest)
	case bytes.HasPrefix(rest, []byte("<!DOCTYPE")):
		return s.doctype(rest)
	case bytes.HasPrefix(rest, []byte("</")):
		return s.endTag(rest)
	}
	return s.startTag(rest)
}

func (s *scanner) pop() []byte {
	name := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	return name
}

// take makes a token of the next n bytes.
func (s *scanner) take(kind tokenKind, n int) token {
	t := token{kind: kind, begin: s.pos, end: s.pos + n}
	s.pos += n
	return t
}

func (s *scanner) until(kind tokenKind, rest []byte, skip int, end, what string) (token, error) {
	n := bytes.Index(rest[skip:], []byte(end))
	if n < 0 {
		return token{}, s.fail(s.pos, "a %s does not end", what)
	}
	return s.take(kind, skip+n+len(end)), nil
}

func (s *scanner) text(rest []byte) (token, error) {
	n := bytes.IndexByte(rest, '<')
	if n < 0 {
		n = len(rest)
	}
	text := rest[:n]
	if len(s.open) == 0 && len(trim(text)) > 0 {
		return token{}, s.fail(s.pos, "there is text outside of the root element")
	}
	if i := bytes.Index(text, []byte("]]>")); i >= 0 {
		return token{}, s.fail(s.pos+i, "]]> stands in a text")
	}
	if err := s.references(text, s.pos); err != nil {
		return token{}, err
	}
	return s.take(charData, n), nil
}

const space = " \t\r\n"

// references is the error for an ampersand that begins no reference.
func (s *scanner) references(text []byte, offset int) error {
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '&')
		if i < 0 {
			return nil
		}
		from += i
		end := bytes.IndexByte(text[from:min(len(text), from+12)], ';')
		if end < 0 {
			return s.fail(offset+from, "an & begins no reference; it is written &amp;")
		}
		if _, ok := reference(text[from+1 : from+end]); !ok {
			return s.fail(offset+from, "&%s; is no reference that XML knows", brief(text[from+1:from+end]))
		}
		from += end
	}
}

// reference gives what stands between & and ;.
func reference(name []byte) (rune, bool) {
	switch string(name) {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, base := string(bytes.TrimPrefix(name, []byte("#"))), 10
	if len(digits) == len(name) || digits == "" {
		return 0, false
	}
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n > utf8.MaxRune || !isChar(rune(n)) {
		return 0, false
	}
	return rune(n), true
}

func (s *scanner) comment(rest []byte) (token, error) {
	n := bytes.Index(rest[4:], []byte("--"))
	switch {
	case n < 0:
		return token{}, s.fail(s.pos, "a comment does not end")
	case !bytes.HasPrefix(rest[4+n+2:], []byte(">")):
		return token{}, s.fail(s.pos+4+n, "-- stands in a comment")
	}
	return s.take(comment, 4+n+3), nil
}

func (s *scanner) instruction(rest []byte) (token, error) {
	n := nameLength(rest[2:])
	target := rest[2 : 2+n]
	if n == 0 {
		return token{}, s.fail(s.pos, "a <? has no name")
	}
	if strings.EqualFold(string(target), "xml") && (s.pos > 0 || string(target) != "xml") {
		return token{}, s.fail(s.pos, "the declaration <?xml stands elsewhere than at the beginning")
	}
	t, err := s.until(instruction, rest, 2+n, "?>", "<?")
	if err == nil && t.end-t.begin > 2+n+2 && !bytes.ContainsRune([]byte(space), rune(rest[2+n])) {
		return token{}, s.fail(t.begin, "a <? has no name")
	}
	return t, err
}

func (s *scanner) doctype(rest []byte) (token, error) {
	n := bytes.IndexAny(rest, ">[")
	switch {
	case s.rooted || len(s.open) > 0:
		return token{}, s.fail(s.pos, "a DOCTYPE stands behind the beginning")
	case n < 0:
		return token{}, s.fail(s.pos, "a DOCTYPE does not end")
	case rest[n] == '[':
		return token{}, s.fail(s.pos, "its DOCTYPE has declarations, which are not read")
	}
	return s.take(doctype, n+1), nil
}

func (s *scanner) endTag(rest []byte) (token, error) {
	n := nameLength(rest[2:])
	name := rest[2 : 2+n]
	after := trim(rest[2+n:])
	switch {
	case n == 0 || len(after) == 0 || after[0] != '>':
		return token{}, s.fail(s.pos, "an end tag has no end")
	case len(s.open) == 0:
		return token{}, s.fail(s.pos, "</%s> ends nothing", brief(name))
	case !bytes.Equal(name, s.open[len(s.open)-1]):
		return token{}, s.fail(s.pos, "</%s> stands where <%s> ends", brief(name), brief(s.open[len(s.open)-1]))
	}
	s.pop()
	t := s.take(endTag, len(rest)-len(after)+1)
	t.name = name
	return t, nil
}

func (s *scanner) startTag(rest []byte) (token, error) {
	if s.rooted && len(s.open) == 0 {
		return token{}, s.fail(s.pos, "it has a second root element")
	}
	n := nameLength(rest[1:])
	if n == 0 && bytes.IndexByte(rest, '>') < 0 {
		return token{}, s.fail(s.pos, "it ends within a tag")
	}
	if n == 0 {
		return token{}, s.fail(s.pos, "a < begins no tag; it is written &lt;")
	}
	name := rest[1 : 1+n]
	at := 1 + n
	s.attrs = s.attrs[:0]
	for {
		gap := len(rest[at:]) - len(trim(rest[at:]))
		at += gap
		switch tail := rest[at:]; {
		case len(tail) == 0:
			return token{}, s.fail(s.pos, "<%s has no end", brief(name))
		case tail[0] == '>', len(tail) > 1 && tail[0] == '/' && tail[1] == '>':
			empty := tail[0] == '/'
			s.rooted = true
			s.open = append(s.open, name)
			s.pendingEnd = empty
			if empty {
				at++
			}
			t := s.take(startTag, at+1)
			t.name, t.attrs, t.empty = name, s.attrs, empty
			return t, nil
		case gap == 0:
			return token{}, s.fail(s.pos+at, "no space stands between the attributes of <%s>", brief(name))
		}
		n, err := s.attribute(rest, at, name)
		if err != nil {
			return token{}, err
		}
		at += n
	}
}

// attribute reads an attribute of a tag that begins at s.pos.
func (s *scanner) attribute(rest []byte, at int, tag []byte) (int, error) {
	tail := rest[at:]
	n := nameLength(tail)
	if n == 0 {
		return 0, s.fail(s.pos+at, "<%s> has an attribute that is none", brief(tag))
	}
	name := tail[:n]
	after := trim(tail[n:])
	if len(after) == 0 || after[0] != '=' {
		return 0, s.fail(s.pos+at, "the attribute %s has no value", brief(name))
	}
	after = trim(after[1:])
	if len(after) == 0 || after[0] != '"' && after[0] != '\'' {
		return 0, s.fail(s.pos+at, "the value of the attribute %s has no quotes", brief(name))
	}
	end := bytes.IndexByte(after[1:], after[0])
	if end < 0 {
		return 0, s.fail(s.pos+at, "the value of the attribute %s does not end", brief(name))
	}
	value := after[1 : 1+end]
	offset := s.pos + len(rest) - len(after) + 1
	if bytes.IndexByte(value, '<') >= 0 {
		return 0, s.fail(offset, "a < stands in the attribute %s; it is written &lt;", brief(name))
	}
	if err := s.references(value, offset); err != nil {
		return 0, err
	}
	for _, a := range s.attrs {
		if bytes.Equal(a.name, name) {
			return 0, s.fail(s.pos+at, "<%s> has the attribute %s twice", brief(tag), brief(name))
		}
	}
	if len(s.attrs) == maxAttributes {
		return 0, s.fail(s.pos, "<%s> has more than %d attributes", brief(tag), maxAttributes)
	}
	s.attrs = append(s.attrs, attr{name, value})
	return len(tail) - len(after) + end + 2, nil
}

// nameLength gives the length of the name at the beginning of b, at most one colon
// within; 0 for none. Beyond ASCII every letter is one: who else reads the document
// may be stricter.
func nameLength(b []byte) int {
	n, colons := 0, 0
	for n < len(b) && n <= maxNameLength {
		switch c := b[n]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= utf8.RuneSelf:
		case n > 0 && (c >= '0' && c <= '9' || c == '-' || c == '.'):
		case n > 0 && c == ':':
			colons++
		default:
			if colons > 1 || b[max(n-1, 0)] == ':' {
				return 0
			}
			return n
		}
		n++
	}
	return 0
}

// unescape gives the text of raw character data, or with inAttribute of a value.
func unescape(raw []byte, inAttribute bool) string {
	if bytes.IndexByte(raw, '&') < 0 && bytes.IndexByte(raw, '\r') < 0 && (!inAttribute || !bytes.ContainsAny(raw, "\t\n")) {
		return string(raw)
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '&':
			end := bytes.IndexByte(raw[i:], ';')
			if end < 0 {
				b.WriteByte(c)
				continue
			}
			r, _ := reference(raw[i+1 : i+end])
			b.WriteRune(r)
			i += end
		case c == '\r':
			if i+1 < len(raw) && raw[i+1] == '\n' {
				continue
			}
			c = '\n'
			fallthrough
		default:
			if inAttribute && (c == '\n' || c == '\t') {
				c = ' '
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// textOf gives the text of a token of text or CDATA.
func (s *scanner) textOf(t token) string {
	if t.kind == cdata {
		return strings.ReplaceAll(strings.ReplaceAll(string(s.data[t.begin+9:t.end-3]), "\r\n", "\n"), "\r", "\n")
	}
	return unescape(s.data[t.begin:t.end], false)
}

var (
	escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	escapeAttr = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\t", "&#9;", "\n", "&#10;", "\r", "&#13;")
)

// writable drops what no XML document may hold.
func writable(r rune) rune {
	if !isChar(r) || r == 0x7F {
		return -1
	}
	return r
}

// Text gives text as it stands between tags, and Attr as between quotes: escaped, and
// without what XML cannot hold.
func Text(s string) string {
	if asItIs(s) {
		return s
	}
	return escapeText.Replace(strings.Map(writable, s))
}

// asItIs tells whether text can stand anywhere as it is.
func asItIs(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '&' || c == '<' || c == '>' || c == '"' {
			return false
		}
	}
	return true
}

// Attr is [Text] for the value of an attribute.
func Attr(s string) string {
	if asItIs(s) {
		return s
	}
	return escapeAttr.Replace(strings.Map(writable, s))
}

// brief cuts a stranger's word for a message.
func brief[S string | []byte](s S) string {
	const most = 60
	if len(s) <= most {
		return string(s)
	}
	return strings.ToValidUTF8(string(s[:most]), "") + "…"
}
