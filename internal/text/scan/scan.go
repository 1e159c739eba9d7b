// Package scan splits an XML document into tokens, even if it is malformed.
package scan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/text/markup"
)

// MaxAttrs is the maximum number of attributes of an element that are read.
const MaxAttrs = 256

// Defect is a fault of a token.
type Defect uint8

// The defects that a Scanner reports.
const (
	StrayText      Defect = iota // a < that starts no tag
	OpenComment                  // one that is not closed
	OpenCDATA                    // a section in an element that is not closed
	ManyAttributes               // more than MaxAttrs, of an element
	Defects                      // number of defects
)

// Attr is an attribute as written.
type Attr struct{ Key, Val []byte }

// Scanner splits a document into tokens.
type Scanner struct {
	Src      []byte
	Pos      int // behind the last token
	Entities markup.Entities
	Attrs    []Attr // attributes of the last start tag

	report func(d Defect, pos int, name []byte)
	ends   markup.Ends
	cdEnd  int // the next "]]>" at or after the last place asked for
}

// New returns a scanner of a document, which must not contain control characters. It calls report
// for each defect.
func New(src []byte, report func(d Defect, pos int, name []byte)) *Scanner {
	return &Scanner{Src: src, report: report, cdEnd: -1}
}

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	None    Kind = iota // markup without content
	End                 // end of the document
	Text                // with references in it
	CDATA               // text as it is
	Open                // a start tag; its attributes are [Scanner.Attrs]
	Close               // an end tag
	Cut                 // an end tag that the end of the document cuts off
	Aside               // a comment or a processing instruction, as written
	Doctype             // a document type declaration, as written, whose internal entities are in [Scanner.Entities]
)

// Token is a piece of a document.
type Token struct {
	Kind Kind
	Self bool   // <name/>
	At   int    // where it starts
	Data []byte // a name, text, or an aside
}

// Next returns the next token. inside is the name of the innermost open element: a CDATA section
// that is not closed ends at the end tag of that element.
func (s *Scanner) Next(inside []byte) Token {
	src := s.Src
	for s.Pos < len(src) {
		i := s.Pos
		n := bytes.IndexByte(src[i:], '<')
		if n < 0 {
			n = len(src) - i
		}
		if n > 0 {
			s.Pos = i + n
			return Token{Kind: Text, At: i, Data: src[i : i+n]}
		}
		if i+1 >= len(src) {
			break
		}
		var tk Token
		switch src[i+1] {
		case '/':
			tk = s.endTag(i)
		case '!', '?':
			tk = s.declaration(i, inside)
		default:
			tk = s.startTag(i)
			if tk.Kind == Text {
				s.report(StrayText, i, nil)
			}
		}
		if tk.Kind != None {
			tk.At = i
			return tk
		}
	}
	s.Pos = len(src)
	return Token{Kind: End, At: len(src)}
}

// IsNameStart reports whether a name may begin with c.
func IsNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

// IsNameByte reports whether c may stand in a name.
func IsNameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = IsNameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == ':'
	}
	return
}()

// endOfName returns the index behind the name at j.
func endOfName(src []byte, j int) int {
	for j < len(src) && IsNameByte(src[j]) {
		j++
	}
	return j
}

// startTag reads the start tag at i. If there is no plausible tag, the token is Text, up to the
// next place where a tag may begin. If the end of the document cuts the tag off, the token is None,
// and the scanner is at the end. Scanning takes linear time even in malformed documents: a tag that
// meets another tag is text up to there, and unclosed quotes are remembered.
func (s *Scanner) startTag(i int) Token {
	s.Attrs = s.Attrs[:0]
	end := i + 1
	if end < len(s.Src) && IsNameStart(s.Src[end]) {
		end = endOfName(s.Src, end)
	}
	name := s.Src[i+1 : end]
	kind, self := s.tagKind(name, end), false
	if kind == Open {
		end, self, kind = s.attributes(name, end)
	}
	s.Pos = end
	switch kind {
	case Open:
		return Token{Kind: Open, At: i, Data: name, Self: self}
	case Text:
		return Token{Kind: Text, At: i, Data: s.Src[i:end]}
	}
	s.Pos = len(s.Src)
	return Token{}
}

// tagKind returns Open if the name that ends at j begins a tag, else Text or None.
func (s *Scanner) tagKind(name []byte, j int) Kind {
	switch {
	case j >= len(s.Src):
		return None
	case len(name) == 0, name[len(name)-1] == ':':
		return Text
	}
	c := s.Src[j]
	if c == '/' {
		if j+1 >= len(s.Src) {
			return None
		}
		c = s.Src[j+1]
	}
	if c == '>' || markup.IsSpace(c) {
		return Open
	}
	return Text
}

// attributes reads the attributes of a tag, from j to the end of the tag.
func (s *Scanner) attributes(name []byte, j int) (next int, self bool, kind Kind) {
	src, start := s.Src, j-len(name)-1
	for count := 0; ; {
		if j = markup.SkipSpace(src, j); j >= len(src) {
			return j, false, None
		}
		switch src[j] {
		case '>':
			if count > MaxAttrs {
				s.report(ManyAttributes, start, name)
			}
			return j + 1, self, Open
		case '/':
			self = j+1 < len(src) && src[j+1] == '>'
			j++
			continue
		case '<', '&', '(', ')', '{', '}', '[', ']', '+', '*', ';', '|', '!', ',':
			return j, false, Text // as in "a<b && c>d"
		}
		var a Attr
		var ok bool
		if a, j, ok = s.attribute(j); !ok {
			return len(src), false, None
		}
		if count++; count <= MaxAttrs && !slices.ContainsFunc(s.Attrs,
			func(b Attr) bool { return bytes.Equal(a.Key, b.Key) }) {
			s.Attrs = append(s.Attrs, a)
		}
	}
}

// attribute reads the attribute at j; ok is false if the document ends in it.
func (s *Scanner) attribute(j int) (a Attr, next int, ok bool) {
	next = s.endOfWord(j+1, "=")
	a.Key = s.Src[j:next]
	k := markup.SkipSpace(s.Src, next)
	if k >= len(s.Src) || s.Src[k] != '=' {
		return a, next, true
	}
	a.Val, next, ok = s.value(markup.SkipSpace(s.Src, k+1))
	return a, next, ok
}

// endOfWord returns the index, from j on, where a name or an unquoted value ends: at white space, <
// or >, or a byte of stops.
func (s *Scanner) endOfWord(j int, stops string) int {
	for ; j < len(s.Src); j++ {
		switch c := s.Src[j]; {
		case c == '>', c == '<', markup.IsSpace(c), strings.IndexByte(stops, c) >= 0:
			return j
		case c == '/' && j+1 < len(s.Src) && s.Src[j+1] == '>':
			return j
		}
	}
	return j
}

// value reads an attribute's value at k: quoted, not quoted, or with a
// closing quote missing, which shows when the next one stands where none can.
func (s *Scanner) value(k int) (val []byte, next int, ok bool) {
	src := s.Src
	if k >= len(src) {
		return nil, k, false
	}
	if src[k] != '"' && src[k] != '\'' {
		next = s.endOfWord(k, "")
		return src[k:next], next, true
	}
	if n := s.ends.IndexBytes(src[k+1:], string(src[k:k+1])); n >= 0 {
		val, next = src[k+1:k+1+n], k+1+n+1
		if next >= len(src) || strings.IndexByte(markup.Spaces+">/?", src[next]) >= 0 || bytes.IndexByte(val, '<') < 0 {
			return val, next, true
		}
	}
	n := bytes.IndexByte(src[k+1:], '>')
	if n < 0 {
		return nil, len(src), false
	}
	return src[k+1 : k+1+n], k + 1 + n, true
}

// endTag reads the end tag at i.
func (s *Scanner) endTag(i int) Token {
	src := s.Src
	j := i + 2
	if j < len(src) && !IsNameStart(src[j]) {
		s.report(StrayText, i, nil)
		s.Pos = j
		return Token{Kind: Text, Data: src[i:j]}
	}
	name := src[i+2 : endOfName(src, j)]
	j = markup.Until(src, j+len(name), "<>")
	if j >= len(src) {
		s.Pos = len(src)
		if len(name) == 0 {
			return Token{}
		}
		return Token{Kind: Cut, Data: name}
	}
	s.Pos = j
	if src[j] == '>' {
		s.Pos++
	}
	return Token{Kind: Close, Data: name}
}

// declaration reads what starts with <! or <? at i. It never looks at external entities.
func (s *Scanner) declaration(i int, inside []byte) Token {
	src := s.Src
	rest := src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		if n := s.ends.IndexBytes(rest[4:], "-->"); n >= 0 {
			s.Pos = i + 4 + n + 3
			return Token{Kind: Aside, Data: src[i:s.Pos]}
		}
		s.report(OpenComment, i, nil)
		s.Pos = pastTag(src, i)
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		return s.cdata(i, inside)
	case rest[1] == '?':
		if n := s.ends.IndexBytes(rest[2:], "?>"); n >= 0 {
			s.Pos = i + 2 + n + 2
			return Token{Kind: Aside, Data: src[i:s.Pos]}
		}
		s.Pos = pastTag(src, i)
	case len(rest) > 9 && bytes.EqualFold(rest[:9], []byte("<!DOCTYPE")):
		s.Pos = i + doctype(&s.Entities, rest)
		return Token{Kind: Doctype, Data: src[i:s.Pos]}
	case len(rest) > 2 && (IsNameStart(rest[2]) || rest[2] == '['):
		if s.Pos = markup.Until(src, i+2, "<>"); s.Pos < len(src) && src[s.Pos] == '>' {
			s.Pos++
		}
	default:
		s.report(StrayText, i, nil)
		s.Pos = i + 2
		return Token{Kind: Text, Data: src[i : i+2]}
	}
	return Token{}
}

// cdata reads the CDATA section at i. An unclosed section ends at the end tag of its element. A
// section is unclosed if no "]]>" follows, or if the end tag and then another section come before
// it.
func (s *Scanner) cdata(i int, inside []byte) Token {
	src := s.Src
	start := i + len("<![CDATA[")
	if s.cdEnd < start && s.cdEnd != len(src) {
		s.cdEnd = len(src)
		if n := bytes.Index(src[start:], []byte("]]>")); n >= 0 {
			s.cdEnd = start + n
		}
	}
	end, closed := s.cdEnd, s.cdEnd < len(src)
	limit := end
	if closed {
		limit = start
		if n := bytes.Index(src[start:end], []byte("<![CDATA[")); n >= 0 {
			limit = start + n
		}
	}
	if limit > start && len(inside) > 0 {
		if n := indexEndTag(src[start:limit], inside); n >= 0 {
			s.report(OpenCDATA, i, inside)
			s.Pos = start + n
			return Token{Kind: CDATA, Data: src[start : start+n]}
		}
	}
	s.Pos = len(src)
	if closed {
		s.Pos = end + len("]]>")
	}
	return Token{Kind: CDATA, Data: src[start:end]}
}

func indexEndTag(s, name []byte) int {
	for i := 0; ; {
		n := bytes.Index(s[i:], []byte("</"))
		if n < 0 {
			return -1
		}
		i += n
		rest := s[i+2:]
		if bytes.HasPrefix(rest, name) && (len(rest) == len(name) || !IsNameByte(rest[len(name)])) {
			return i
		}
		i += 2
	}
}

// doctype reads the document type declaration that s starts with, keeps its internal entities in e
// and returns its length. The function is long because it handles every part of a declaration, also
// malformed ones.
func doctype(e *markup.Entities, s []byte) int {
	i := len("<!DOCTYPE")
	subset := false
	for i < len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			j := bytes.IndexByte(s[i+1:], c)
			if j < 0 || !subset && bytes.IndexByte(s[i+1:i+1+j], '>') >= 0 {
				// An unclosed quote must not swallow the document.
				return pastTag(s, i)
			}
			i += j + 2
		case c == '[' && !subset:
			subset = true
			i++
		case c == ']' && subset:
			subset = false
			i++
		case c == '>' && !subset:
			return i + 1
		case c == '<' && !subset:
			return i
		case c == '<' && bytes.HasPrefix(s[i:], []byte("<!--")):
			n := bytes.Index(s[i:], []byte("-->"))
			if n < 0 {
				return pastTag(s, i)
			}
			i += n + 3
		case c == '<' && bytes.HasPrefix(s[i:], []byte("<!ENTITY")):
			i += entityDecl(e, s[i:])
		case c == '<' && i+1 < len(s) && s[i+1] != '!' && s[i+1] != '?':
			return i // the subset was never closed
		default:
			i++
		}
	}
	return len(s)
}

// entityDecl reads an entity declaration up to, not including, its end.
func entityDecl(e *markup.Entities, s []byte) int {
	start := markup.SkipSpace(s, len("<!ENTITY"))
	i := markup.Until(s, start, markup.Spaces+"<>\"'")
	name := s[start:i]
	i = markup.SkipSpace(s, i)
	if i < len(s) && (s[i] == '"' || s[i] == '\'') && string(name) != "%" {
		if j := bytes.IndexByte(s[i+1:], s[i]); j >= 0 {
			e.Define(name, s[i+1:i+1+j])
			return i + j + 2
		}
	}
	return i
}

// pastTag returns the index behind the next > in s from i on, or len(s).
func pastTag(s []byte, i int) int {
	if j := bytes.IndexByte(s[i:], '>'); j >= 0 {
		return i + j + 1
	}
	return len(s)
}
