package feedconv

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/lazy"
)

// construct is the text construct that is being read.
type construct struct {
	active    bool
	ext       bool
	buf       []byte
	firstCD   bool    // it begins with a CDATA section
	keepEnd   int     // what of it came from CDATA and is not trimmed
	markup    bool    // a child tag was seen: buf is HTML
	inner     []int32 // the names of open child elements that are closed, too
	typ       string
	mode      string
	src       bool // has a src or href attribute
	rel       bool
	href      string // the href of a native RSS link
	permalink uint8  // what the isPermaLink of a guid says
	base      *url.URL
	divs      int // open <div>
	div       uint8
	innerAt   int
	innerEnd  int
	bases     []innerBase
}

// innerBase is an xml:base on an element inside of a text construct: it holds
// until the element ends.
type innerBase struct {
	name int32
	open int // elements of that name in it, itself included
	base *url.URL
}

const (
	permalinkYes uint8 = 1 + iota
	permalinkNo
)

const (
	divNone  uint8 = iota // nothing yet
	divOpen               // inside of the first <div>
	divDone               // behind it
	divOther              // something else is at the top
)

// charData takes text with references in it.
func (t *tidier) charData(raw []byte) {
	f := t.top()
	switch {
	case t.txt.active || f.class.kind == kForeign:
	case f.class.kind != kStruct:
		return
	case blank(raw):
		if f.runs > 0 && f.class.ext && t.out[len(t.out)-1] != '>' {
			t.out = append(t.out, ' ')
		}
		return
	}
	if bytes.IndexByte(raw, '&') >= 0 {
		t.scratch = t.ents.decode(t.scratch[:0], raw)
		raw = t.scratch
	}
	t.addText(raw)
}

// addText takes text whose references are resolved.
func (t *tidier) addText(text []byte) {
	switch {
	case t.txt.active:
		t.txt.add(text)
	case t.top().class.kind == kForeign:
		t.foreignText(text)
	case !blank(text):
		t.structText(text)
	}
}

// structText takes text that stands between the children of an element. Only
// extensions have a use for it; gofeed joins it piece by piece, so the pieces
// are limited.
func (t *tidier) structText(text []byte) {
	f := t.top()
	if f.class.kind != kStruct {
		return
	}
	if f.person {
		if !f.hasKids && f.runs == 0 {
			f.runs++
			f.said = append(f.said, "name")
			open, end := "<name>", "</name>"
			if f.class.ext {
				open, end = "<atom:name>", "</atom:name>"
			}
			t.out = append(t.out, open...)
			t.out = appendEscaped(t.out, bytes.TrimSpace(text), false)
			t.out = append(t.out, end...)
		}
		return
	}
	if !f.class.ext {
		return
	}
	if f.runs == 0 || t.out[len(t.out)-1] == '>' {
		if f.runs++; f.runs > maxTextRuns {
			t.warn(warnRuns, t.pos, f.raw)
			return
		}
	}
	t.out = appendEscaped(t.out, text, false)
}

// addCDATA takes text as it is.
func (t *tidier) addCDATA(text []byte) {
	x := &t.txt
	x.firstCD = x.firstCD || len(x.buf) == 0
	t.addText(text)
	x.keepEnd = len(x.buf)
}

// add adds text to a construct, escaped if that is markup.
func (x *construct) add(text []byte) {
	if !x.markup {
		x.buf = append(x.buf, text...)
		return
	}
	if x.div == divDone && !blank(text) {
		x.div = divOther
	}
	x.buf = appendEscaped(x.buf, text, false)
}

// innerTag takes a start tag inside a text construct: the construct is markup
// from now on, and what was text before must be escaped in it.
func (t *tidier) innerTag(name []byte, id int32, self bool) {
	x := &t.txt
	if r := t.top().class.role; r == roleDrop || r == roleAttributes {
		return
	}
	if !x.markup {
		before := x.buf
		if blank(before) {
			x.div = divNone
		} else {
			x.div = divOther
		}
		if bytes.ContainsAny(before, "&<>") {
			x.buf = appendEscaped(make([]byte, 0, len(before)+len(before)/8), before, false)
		}
		x.markup = true
	}
	local := name
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		local = name[i+1:]
	}
	isDiv := len(local) == 3 && strings.EqualFold(string(local), "div")
	switch {
	case x.div == divNone && isDiv && !self:
		x.div = divOpen
	case x.div == divNone, x.div == divDone:
		x.div = divOther
	}
	x.buf = append(x.buf, '<')
	x.buf = append(x.buf, local...)
	if n := len(x.bases); n > 0 && !self && x.bases[n-1].name == id {
		x.bases[n-1].open++
	}
	bases := len(x.bases)
	for _, a := range t.attrs {
		if string(a.key) == "xml:base" && bases < maxDepth {
			x.bases = append(x.bases, innerBase{id, 1, childBase(x.innermost(), t.attrValue(a.val))})
		}
	}
	if len(t.attrs) > 0 {
		t.innerAttrs()
	}
	if self {
		x.bases = x.bases[:bases]
	}
	switch {
	case !self:
		x.buf = append(x.buf, '>')
	case isVoid(local):
		x.buf = append(x.buf, " />"...)
	default: // HTML knows no <a/>
		x.buf = append(x.buf, "></"...)
		x.buf = append(x.buf, local...)
		x.buf = append(x.buf, '>')
	}
	if isDiv && !self {
		if x.divs++; x.divs == 1 && x.div == divOpen {
			x.innerAt = len(x.buf)
		}
	}
}

// innermost is the base inside of a text construct.
func (x *construct) innermost() *url.URL {
	if n := len(x.bases); n > 0 {
		return x.bases[n-1].base
	}
	return x.base
}

// innerAttrs writes the attributes of a tag in a text construct.
func (t *tidier) innerAttrs() {
	x := &t.txt
	for _, a := range t.attrs {
		key := a.key
		if len(key) > maxNameLen || bytes.ContainsAny(key, "\"'<>&=/") {
			continue
		}
		if j := bytes.IndexByte(key, ':'); j >= 0 {
			prefix := asciiLower(string(key[:j]))
			if prefix == "xmlns" || prefix == "xml" && string(key[j+1:]) != "lang" {
				continue
			}
			key = key[j+1:]
		} else if string(key) == "xmlns" {
			continue
		}
		if len(key) == 0 {
			continue
		}
		val := t.ents.decodeAttr(a.val)
		if len(x.bases) > 0 && isHTMLURLAttr(asciiLower(string(key))) {
			if abs, changed := resolveAttr(x.innermost(), asciiLower(string(key)), html.EscapeString(string(val))); changed && t.grow > 0 {
				t.grow -= max(len(abs)-len(val), 0)
				val = []byte(abs)
			}
		}
		x.buf = append(x.buf, ' ')
		x.buf = append(x.buf, key...)
		x.buf = append(x.buf, '=', '"')
		x.buf = append(x.buf, htmlAttrEscapes.Replace(string(val))...)
		x.buf = append(x.buf, '"')
	}
}

// htmlAttrEscapes escapes the value of an HTML attribute.
var htmlAttrEscapes = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;")

// innerEnd takes an end tag inside a text construct.
func (t *tidier) innerEnd(id int32) {
	x := &t.txt
	if !x.markup {
		return
	}
	local := t.infos[id].local
	if id == otherName || isVoid([]byte(local)) {
		return
	}
	if n := len(x.bases); n > 0 && x.bases[n-1].name == id {
		if x.bases[n-1].open--; x.bases[n-1].open == 0 {
			x.bases = x.bases[:n-1]
		}
	}
	if local == "div" || strings.EqualFold(local, "div") {
		if x.divs--; x.divs == 0 && x.div == divOpen {
			x.div = divDone
			x.innerEnd = len(x.buf)
		}
	}
	x.buf = append(x.buf, '<', '/')
	x.buf = append(x.buf, local...)
	x.buf = append(x.buf, '>')
}

func isVoid(name []byte) bool {
	switch strings.ToLower(string(name)) {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// closeText writes the text construct that ends, and reports whether it says
// something.
func (t *tidier) closeText(f *frame) bool {
	x := &t.txt
	x.active = false
	c := f.class
	if c.role == roleDrop {
		return false
	}
	s := x.buf
	if !x.markup {
		s = x.trim(s)
	}
	lvl := inRoot
	if len(t.stack) > 1 {
		lvl = t.stack[len(t.stack)-2].level
	}
	switch c.role {
	case roleURL:
		s = []byte(t.resolved(x.base, leadingText(s, x.markup)))
		if t.isAtom && !c.ext {
			s = []byte(guardURL(string(s)))
		}
	case roleID:
		if t.isAtom && !c.ext {
			s = []byte(guardURL(string(s)))
		} else if lvl == inEntry && !c.ext && !f.repeats {
			t.permalink(bytes.TrimSpace(s))
		}
	case roleHTML:
		s = t.resolveMarkup(s, x.base)
	case roleAtomText:
		t.closeAtomText(f, s, lvl)
		return len(s) > 0 || x.src
	case roleAtomLink, roleTerm, roleEnclosure, roleAttributes:
		t.closeEmpty(c.role, leadingText(s, x.markup))
		return true
	case roleRSSLink:
		s = []byte(t.resolved(x.base, leadingText(s, x.markup)))
		if len(s) == 0 && x.href != "" {
			href := t.resolved(x.base, x.href)
			if x.rel {
				// An Atom link that lost its namespace.
				rest := append([]byte(nil), t.out[f.outAt+len("<"+c.out):]...)
				t.out = append(t.out[:f.outAt], "<atom:link"...)
				t.out = append(t.out, rest...)
				t.attr("href", []byte(guardURL(href)))
				t.endEmpty()
				t.ns[nsAtom10].used = true
				return true
			}
			s = []byte(href)
		}
	case roleItemImage:
		s = []byte(t.resolved(x.base, cmp.Or(x.href, imageURL(string(s), x.markup))))
	case rolePerson:
		if x.markup {
			s = []byte(personText(string(s)))
		}
	}
	if x.markup && lvl == inStruct && (f.single == "name" || f.single == "email" || f.single == "uri") {
		// The parts of a person are text (RFC 4287, section 3.2); elements in them are not.
		s = []byte(strings.TrimSpace(leadingText(s, x.markup)))
	}
	if f.repeats {
		return false
	}
	if x.typ != "" && !c.ext {
		t.noteType(c.out, x.typ, lvl)
	}
	t.endOpen()
	t.text(s, c.ext, t.mayAside(c, lvl), false)
	t.end(c.out)
	return len(s) > 0
}

// closeEmpty ends an element that has attributes only. Its text stands for the one that is
// missing.
func (t *tidier) closeEmpty(r role, text string) {
	switch {
	case t.txt.src:
	case r == roleTerm:
		t.attrIf("term", strings.TrimSpace(text))
	case r == roleAtomLink:
		t.attrIf("href", guardURL(t.resolved(t.txt.base, text)))
	case r == roleEnclosure:
		t.attrIf("url", t.resolved(t.txt.base, text))
	}
	t.endEmpty()
}

// trim drops white space at the ends, except what was in a CDATA section.
func (x *construct) trim(s []byte) []byte {
	end := len(s)
	for end > x.keepEnd && end > 0 && isSpace(s[end-1]) {
		end--
	}
	s = s[:end]
	if !x.firstCD {
		for len(s) > 0 && isSpace(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// resolveMarkup resolves the URLs in HTML.
func (t *tidier) resolveMarkup(s []byte, base *url.URL) []byte {
	if base == nil || bytes.IndexByte(s, '<') < 0 {
		return s
	}
	before := t.grow
	str := string(s)
	res := resolveHTML(str, base, &t.grow)
	if before > 0 && t.grow <= 0 {
		t.warn(warnGrow, t.pos, nil)
	}
	if res == str {
		return s
	}
	return []byte(res)
}

// closeAtomText writes a text construct with a type.
func (t *tidier) closeAtomText(f *frame, s []byte, lvl level) {
	x := &t.txt
	typ, mode := x.typ, x.mode
	lower := strings.ToLower(typ)
	if x.markup {
		mode = ""
		inline := strings.Contains(lower, "xml") && !strings.Contains(lower, "xhtml") || strings.HasPrefix(lower, "image/")
		if !inline {
			typ = "xhtml"
			if t.atom03 || strings.Contains(lower, "/") {
				typ = "application/xhtml+xml"
			}
		}
		if !t.atom03 && (x.div == divDone || x.div == divOpen) {
			if x.div == divOpen {
				x.innerEnd = len(s)
			}
			s = s[x.innerAt:x.innerEnd]
		}
	} else if len(s) > 0 && (mode == "base64" || !t.atom03 && isBinaryType(lower) && !x.src) {
		if dec, ok := decodeBase64(s); ok {
			s = dec
			mode = ""
		} else if mode == "base64" {
			t.warn(warnBase64, f.srcAt, f.raw)
		}
	} else if mode == "escaped" && lower == "" {
		typ = "text/html" // nobody escapes plain text and says so
	}
	lower = strings.ToLower(typ)
	if x.markup || strings.Contains(lower, "html") {
		s = t.resolveMarkup(s, x.base)
	}
	if f.repeats {
		return
	}
	if typ != "" {
		t.attr("type", []byte(typ))
		if !f.class.ext {
			t.noteType(f.class.out, typ, lvl)
		}
	}
	if mode != "" {
		t.attr("mode", []byte(mode))
	}
	t.endOpen()
	t.text(s, f.class.ext, t.mayAside(f.class, lvl), typ != "" && lower != "text" || mode != "")
	t.end(f.class.out)
}

// isBinaryType tells the types whose content is base64 (RFC 4287, section
// 4.1.3.3).
func isBinaryType(typ string) bool {
	typ, _, _ = strings.Cut(typ, ";")
	typ = strings.TrimSpace(typ)
	return strings.Contains(typ, "/") && !strings.HasPrefix(typ, "text/") && !strings.HasSuffix(typ, "xml") &&
		!strings.HasPrefix(typ, "multipart/") && !strings.HasPrefix(typ, "message/")
}

// decodeBase64 decodes what is text.
func decodeBase64(s []byte) ([]byte, bool) {
	compact := bytes.TrimRight(slices.DeleteFunc(slices.Clone(s), isSpace), "=")
	dec := make([]byte, base64.RawStdEncoding.DecodedLen(len(compact)))
	n, err := base64.RawStdEncoding.Decode(dec, compact)
	if err != nil || !utf8.Valid(dec[:n]) {
		return nil, false
	}
	clean, mended, _ := cleanChars(dec[:n])
	if mended > len(clean)/16 {
		return nil, false // not text
	}
	return clean, true
}

// plainOf gives the text of a construct that has no business with markup.
func plainOf(s []byte, markup bool) string {
	if !markup {
		return string(s)
	}
	return html.UnescapeString(withoutTags(string(s)))
}

// leadingText is plainOf for a construct that is one value: text that stands before
// the first child is all of it.
func leadingText(s []byte, markup bool) string {
	if i := bytes.IndexByte(s, '<'); markup && i > 0 && !blank(s[:i]) {
		s = s[:i]
	}
	return plainOf(s, markup)
}

// withoutTags puts a space in the place of every tag.
func withoutTags(s string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		end := strings.IndexByte(s[start:], '>')
		if end < 0 {
			break
		}
		b.WriteString(s[:start])
		b.WriteByte(' ')
		s = s[start+end+1:]
	}
	b.WriteString(s)
	return b.String()
}

// personText makes one line of an author with children, as Atom has them.
func personText(s string) string {
	parts := childTexts(s, "", "name", "email", "mbox")
	if parts["name"] == "" && parts["email"] == "" && parts["mbox"] == "" && !structured().MatchString(s) {
		return strings.Join(strings.Fields(plainOf([]byte(s), true)), " ")
	}
	name, email := cmp.Or(parts[""], parts["name"]), cmp.Or(parts["email"], parts["mbox"])
	if name != "" && email != "" {
		return name + " <" + email + ">"
	}
	return name + email
}

// structured matches markup that describes a person.
var structured = lazy.Regexp(`(?i)<(?:name|email|mbox)\b`)

// imageURL finds the URL of an item's image.
func imageURL(s string, markup bool) string {
	if markup {
		if parts := childTexts(s, "url"); parts["url"] != "" {
			return parts["url"]
		}
	}
	return strings.TrimSpace(leadingText([]byte(s), markup))
}

// childTexts returns the text of the children of these names in markup, of each the
// first that has any; "" is the text before the first child. What is nested deeper
// does not count.
func childTexts(s string, names ...string) map[string]string {
	found := map[string]string{}
	depth, name := 0, ""
	for first := true; s != ""; first = false {
		text, tag, isTag := strings.Cut(s, "<")
		text = strings.TrimSpace(html.UnescapeString(text))
		if text != "" && (first || depth == 1) && found[name] == "" && slices.Contains(names, name) {
			found[name] = text
		}
		if !isTag {
			break
		}
		tag, s, _ = strings.Cut(tag, ">")
		switch local := strings.ToLower(strings.Trim(strings.Fields(tag + " /")[0], "/")); {
		case strings.HasPrefix(tag, "/"):
			depth = max(depth-1, 0)
			name = "/" // behind a child
		case !strings.HasSuffix(tag, "/") && !isVoid([]byte(local)):
			if depth++; depth == 1 {
				name = local
			} else {
				name = "/"
			}
		}
	}
	return found
}

// permalink keeps the URL that a guid stands for, when it is a relative
// reference: one with a path, or one that says to be a permalink.
func (t *tidier) permalink(guid []byte) {
	rooted := len(guid) > 0 && guid[0] == '/'
	if t.txt.base == nil || t.txt.permalink == permalinkNo || !rooted && t.txt.permalink != permalinkYes {
		return
	}
	if s := string(guid); !hasScheme(s) && !strings.ContainsAny(s, " \t\n") && strings.ContainsAny(s, "/?") {
		t.kept.entry.note("permalink", t.resolved(t.txt.base, s))
	}
}

// noteType keeps the type of a text construct of an entry, its source or the feed.
func (t *tidier) noteType(name, typ string, lvl level) {
	if len(typ) > 100 {
		return
	}
	switch n := len(t.stack); {
	case lvl == inEntry:
		t.kept.entry.note("type-"+name, typ)
	case lvl == inFeed:
		t.kept.feed.note("type-"+name, typ)
	case lvl == inStruct && n > 1 && t.stack[n-2].class.out == "source":
		t.kept.entry.note("type-source-"+name, typ)
	}
}

// mayAside tells texts that gofeed need not see.
func (t *tidier) mayAside(c class, lvl level) bool {
	return lvl == inEntry && !c.ext && asideElements[t.isAtom][c.out]
}
