package feedconv

import "bytes"

type attr struct{ key, val []byte }

// scanner makes tokens of a document.
type scanner struct {
	warns *warnings
	src   []byte
	pos   int
	ents  entitySet
	attrs []attr // of the last start tag

	noComment, noPI, noDQ, noSQ bool // no such end is left
	cdEnd                       int  // the next "]]>" at or after the last place asked for
}

func newScanner(src []byte, w *warnings) *scanner {
	return &scanner{warns: w, src: src, cdEnd: -1}
}

type tokenKind uint8

const (
	tokenNone  tokenKind = iota // markup that says nothing
	tokenEnd                    // of the document
	tokenText                   // with references in it
	tokenCDATA                  // text as it is
	tokenOpen                   // a start tag; its attributes are scanner.attrs
	tokenClose                  // an end tag
	tokenCut                    // an end tag that the end of the document cuts off
)

// token is a piece of a document.
type token struct {
	kind tokenKind
	self bool   // <name/>
	at   int    // where it starts
	data []byte // a name, or text
}

// next gives the next token. inside is the name of the innermost open element,
// at whose end tag a CDATA section ends that is not closed.
func (s *scanner) next(inside []byte) token {
	src := s.src
	for s.pos < len(src) {
		i := s.pos
		n := bytes.IndexByte(src[i:], '<')
		if n < 0 {
			n = len(src) - i
		}
		if n > 0 {
			s.pos = i + n
			return token{kind: tokenText, at: i, data: src[i : i+n]}
		}
		if i+1 >= len(src) {
			break
		}
		var tk token
		switch src[i+1] {
		case '/':
			tk = s.endTagAt(i)
		case '!', '?':
			tk = s.markupDecl(i, inside)
		default:
			name, next, self, status := s.parseTag(i)
			s.pos = next
			switch status {
			case tagOK:
				tk = token{kind: tokenOpen, data: name, self: self}
			case tagText:
				s.warns.warn(warnText, i, nil)
				tk = token{kind: tokenText, data: src[i:next]}
			case tagCut:
				s.pos = len(src)
			}
		}
		if tk.kind != tokenNone {
			tk.at = i
			return tk
		}
	}
	s.pos = len(src)
	return token{kind: tokenEnd, at: len(src)}
}

type tagStatus uint8

const (
	tagOK   tagStatus = iota
	tagText           // no plausible tag: text up to next
	tagCut            // the document ends inside
)

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNameByte(c byte) bool { return nameBytes[c] }

var nameBytes = func() (t [256]bool) {
	for i := range t {
		c := byte(i)
		t[i] = isNameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == ':'
	}
	return
}()

// parseTag reads the start tag at i into s.attrs. It never looks at a byte
// more often than a few times, whatever is missing: a tag that meets another
// one is text up to there, and quotes that are not closed are remembered.
func (s *scanner) parseTag(i int) (name []byte, next int, self bool, st tagStatus) {
	src := s.src
	s.attrs = s.attrs[:0]
	j := i + 1
	if j >= len(src) {
		return nil, j, false, tagCut
	}
	if !isNameStart(src[j]) {
		return nil, j, false, tagText
	}
	for j < len(src) && isNameByte(src[j]) {
		j++
	}
	name = src[i+1 : j]
	if j >= len(src) {
		return nil, j, false, tagCut
	}
	if c := src[j]; c != '>' && !isSpace(c) {
		if c != '/' {
			return nil, j, false, tagText
		}
		if j+1 < len(src) && src[j+1] != '>' && !isSpace(src[j+1]) {
			return nil, j, false, tagText
		}
	}
	if name[len(name)-1] == ':' {
		return nil, j, false, tagText
	}
	count := 0
	for {
		for j < len(src) && isSpace(src[j]) {
			j++
		}
		if j >= len(src) {
			return nil, j, false, tagCut
		}
		switch src[j] {
		case '>':
			if count > maxAttrs {
				s.warns.warn(warnAttrs, i, name)
			}
			return name, j + 1, self, tagOK
		case '/':
			self = j+1 < len(src) && src[j+1] == '>'
			j++
			continue
		case '<', '&', '(', ')', '{', '}', '[', ']', '+', '*', ';', '|', '!', ',':
			return nil, j, false, tagText // as in "a<b && c>d"
		}
		k := j
		j++
		for j < len(src) && !isSpace(src[j]) && src[j] != '=' && src[j] != '>' && src[j] != '<' &&
			!(src[j] == '/' && j+1 < len(src) && src[j+1] == '>') {
			j++
		}
		key := src[k:j]
		var val []byte
		k = j
		for k < len(src) && isSpace(src[k]) {
			k++
		}
		if k < len(src) && src[k] == '=' {
			k++
			for k < len(src) && isSpace(src[k]) {
				k++
			}
			var ok bool
			if val, j, ok = s.attrText(k); !ok {
				return nil, len(src), false, tagCut
			}
		}
		if count++; count > maxAttrs {
			continue
		}
		if !s.has(key) {
			s.attrs = append(s.attrs, attr{key, val})
		}
	}
}

// attrText reads an attribute's value at k: quoted, not quoted, or with a
// closing quote missing, which shows when the next one stands where none can.
func (s *scanner) attrText(k int) (val []byte, next int, ok bool) {
	src := s.src
	if k >= len(src) {
		return nil, k, false
	}
	q := src[k]
	if q != '"' && q != '\'' {
		j := k
		for j < len(src) && !isSpace(src[j]) && src[j] != '>' && src[j] != '<' &&
			!(src[j] == '/' && j+1 < len(src) && src[j+1] == '>') {
			j++
		}
		return src[k:j], j, true
	}
	gone := &s.noDQ
	if q == '\'' {
		gone = &s.noSQ
	}
	if !*gone {
		n := bytes.IndexByte(src[k+1:], q)
		if n >= 0 {
			end := k + 1 + n
			if end+1 >= len(src) || isSpace(src[end+1]) || src[end+1] == '>' || src[end+1] == '/' || src[end+1] == '?' ||
				bytes.IndexByte(src[k+1:end], '<') < 0 {
				return src[k+1 : end], end + 1, true
			}
		} else {
			*gone = true
		}
	}
	n := bytes.IndexByte(src[k+1:], '>')
	if n < 0 {
		return nil, len(src), false
	}
	return src[k+1 : k+1+n], k + 1 + n, true
}

// has reports whether an attribute of this name is there already.
func (s *scanner) has(key []byte) bool {
	for _, a := range s.attrs {
		if bytes.Equal(a.key, key) {
			return true
		}
	}
	return false
}

// endTagAt reads the end tag at i.
func (s *scanner) endTagAt(i int) token {
	src := s.src
	j := i + 2
	if j < len(src) && !isNameStart(src[j]) {
		s.warns.warn(warnText, i, nil)
		s.pos = j
		return token{kind: tokenText, data: src[i:j]}
	}
	for j < len(src) && isNameByte(src[j]) {
		j++
	}
	name := src[i+2 : j]
	for j < len(src) && src[j] != '>' && src[j] != '<' {
		j++
	}
	if j >= len(src) {
		s.pos = len(src)
		if len(name) == 0 {
			return token{}
		}
		return token{kind: tokenCut, data: name}
	}
	s.pos = j
	if src[j] == '>' {
		s.pos++
	}
	return token{kind: tokenClose, data: name}
}

// markupDecl reads what starts with <! or <? at i.
func (s *scanner) markupDecl(i int, inside []byte) token {
	src := s.src
	rest := src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		if !s.noComment {
			if n := bytes.Index(rest[4:], []byte("-->")); n >= 0 {
				s.pos = i + 4 + n + 3
				return token{}
			}
			s.noComment = true
		}
		s.warns.warn(warnComment, i, nil)
		s.pos = pastTag(src, i)
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		return s.cdata(i, inside)
	case rest[1] == '?':
		if !s.noPI {
			if n := bytes.Index(rest[2:], []byte("?>")); n >= 0 {
				s.pos = i + 2 + n + 2
				return token{}
			}
			s.noPI = true
		}
		s.pos = pastTag(src, i)
	case len(rest) > 9 && bytes.EqualFold(rest[:9], []byte("<!DOCTYPE")):
		var ignored entitySet
		s.pos = i + ignored.doctype(rest)
	case len(rest) > 2 && (isNameStart(rest[2]) || rest[2] == '['):
		j := i + 2
		for j < len(src) && src[j] != '>' && src[j] != '<' {
			j++
		}
		if j < len(src) && src[j] == '>' {
			j++
		}
		s.pos = j
	default:
		s.warns.warn(warnText, i, nil)
		s.pos = i + 2
		return token{kind: tokenText, data: src[i : i+2]}
	}
	return token{}
}

// cdata reads the CDATA section at i. One that is not closed ends at the end
// tag of its element: there is no "]]>" left, or another section begins before
// it and the end tag stands between.
func (s *scanner) cdata(i int, inside []byte) token {
	src := s.src
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
			s.warns.warn(warnCDATA, i, inside)
			s.pos = start + n
			return token{kind: tokenCDATA, data: src[start : start+n]}
		}
	}
	s.pos = len(src)
	if closed {
		s.pos = end + len("]]>")
	}
	return token{kind: tokenCDATA, data: src[start:end]}
}

func indexEndTag(s, name []byte) int {
	for i := 0; ; {
		n := bytes.Index(s[i:], []byte("</"))
		if n < 0 {
			return -1
		}
		i += n
		rest := s[i+2:]
		if bytes.HasPrefix(rest, name) && (len(rest) == len(name) || !isNameByte(rest[len(name)])) {
			return i
		}
		i += 2
	}
}

// attrValue decodes an attribute.
func (s *scanner) attrValue(val []byte) string { return string(s.ents.decodeAttr(val)) }

// decodeAttr decodes an attribute's value; white space that is written as such
// becomes spaces, as XML says.
func (e *entitySet) decodeAttr(val []byte) []byte {
	if bytes.IndexByte(val, '\n') >= 0 || bytes.IndexByte(val, '\t') >= 0 {
		val = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\t' {
				return ' '
			}
			return r
		}, val)
	}
	if bytes.IndexByte(val, '&') < 0 {
		return val
	}
	return e.decode(make([]byte, 0, len(val)), val)
}
