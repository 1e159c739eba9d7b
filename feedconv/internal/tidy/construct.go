package tidy

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

// textState is the state of reading a text construct.
type textState uint8

const (
	textNone   textState = iota // none is open
	textPlain                   // text alone
	textMarkup                  // also a child: the text is HTML
)

// construct is the text construct being read.
type construct struct {
	state textState
	buf   []byte
	base  *url.URL
	inner []innerElement // open child elements that are closed, too
	xml   bool           // XML, but not XHTML: elements keep their namespaces
	first int            // the end in buf of the first tag

	// White space at the ends that is in a CDATA section is not trimmed.
	beginsCDATA bool
	endsCDATA   int // the end in buf of the last one
}

// innerElement is an element inside a text construct.
type innerElement struct {
	name int32
	ns   vocab.NS // in XML; until it is read, that of the element around
	undo int      // len(names.undo) before its declarations
	base *url.URL // until it is read, that of the element around
}

// begin begins a text construct.
func (x *construct) begin(base *url.URL) {
	*x = construct{state: textPlain, base: base, buf: x.buf[:0], inner: x.inner[:0]}
}

// charData reads text, and resolves its references.
func (t *tidier) charData(raw []byte) {
	f := t.stack.top()
	switch {
	case t.txt.state != textNone || f.class.kind == kForeign:
	case f.class.kind != kStruct:
		return
	case markup.Blank(raw):
		if n := len(f.text); n > 0 && f.class.ext {
			f.text = append(f.text, ' ')
		}
		return
	}
	if bytes.IndexByte(raw, '&') >= 0 {
		t.scratch = t.Entities.Decode(t.scratch[:0], raw)
		raw = t.scratch
	}
	t.addText(raw)
}

// addText adds text whose references are resolved.
func (t *tidier) addText(text []byte) {
	switch f := t.stack.top(); {
	case t.txt.state != textNone:
		t.txt.add(text)
	case f.class.kind == kForeign:
		t.foreignText(text)
	case f.class.kind != kStruct || markup.Blank(text):
	case f.class.role == rolePerson:
		// Text before its children is the name of a person.
		if !f.says && f.node != nil {
			f.node.Children = append(f.node.Children,
				&Node{NS: f.class.ns, Name: "name", Text: string(bytes.TrimSpace(text))})
			f.said = append(f.said, "name")
		}
		f.says = true
	case f.class.ext:
		f.says = true
		f.text = append(f.text, text...)
	}
}

// addCDATA adds the text of a CDATA section.
func (t *tidier) addCDATA(text []byte) {
	x := &t.txt
	x.beginsCDATA = x.beginsCDATA || len(x.buf) == 0
	t.addText(text)
	x.endsCDATA = len(x.buf)
}

// add adds text to a construct, escaped if the construct is markup.
func (x *construct) add(text []byte) {
	if x.state == textPlain {
		x.buf = append(x.buf, text...)
		return
	}
	x.buf = appendEscaped(x.buf, text)
}

// textEscapes are the escapes of characters in the text of HTML.
var textEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"}

// appendEscaped escapes characters.
func appendEscaped(dst, s []byte) []byte {
	start := 0
	for i, c := range s {
		if escape := textEscapes[c]; escape != "" {
			dst = append(dst, s[start:i]...)
			dst = append(dst, escape...)
			start = i + 1
		}
	}
	return append(dst, s[start:]...)
}

// becomeMarkup turns a construct into markup, at its first child: it escapes the text read so far.
func (x *construct) becomeMarkup() {
	if x.state == textMarkup {
		return
	}
	x.state = textMarkup
	if bytes.ContainsAny(x.buf, "&<>") {
		x.buf = appendEscaped(make([]byte, 0, len(x.buf)+len(x.buf)/8), x.buf)
	}
}

// innerTag reads a start tag inside a text construct, which becomes markup, and the namespace and base of e.
func (t *tidier) innerTag(name []byte, id int32, self bool, e *innerElement) {
	x := &t.txt
	r := t.stack.top().class.role
	if r == roleDrop || r == roleAttributes {
		return
	}
	if x.state != textMarkup {
		x.becomeMarkup()
		x.xml = r == roleAtomText && !strings.Contains(t.doc.inlineType(t.stack.top().node.Attr("type")), "xhtml")
	}
	local := name[bytes.IndexByte(name, ':')+1:]
	x.buf = append(x.buf, '<')
	x.buf = append(x.buf, local...)
	if x.xml {
		around := e.ns
		t.names.declare(t.Attrs, &t.Entities, t.Pos)
		if e.ns = t.names.resolve(t.names.infos[id].prefix); e.ns != around {
			t.bind("xmlns", e.ns)
		}
	}
	if len(x.inner) < MaxDepth {
		e.base = t.baseOf(e.base)
	}
	t.innerAttrs(e.base)
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
	if self {
		t.names.unwind(e.undo)
	}
	if x.first == 0 {
		x.first = len(x.buf)
	}
}

// bind writes the declaration of a namespace.
func (t *tidier) bind(attr string, ns vocab.NS) {
	uri := htmlAttrEscapes.Replace(t.names.ns[ns].uri)
	if t.grow -= len(uri); t.grow <= 0 {
		t.warnings.warn(warnGrow, t.Pos, nil)
		return
	}
	t.txt.buf = append(t.txt.buf, ` `+attr+`="`+uri+`"`...)
}

// unwrap returns the text of XHTML without the <div> around it.
func (x *construct) unwrap(s []byte) []byte {
	tag := bytes.TrimSpace(s[:x.first])
	inside, ends := bytes.CutSuffix(bytes.TrimRight(s[x.first:], markup.Spaces), []byte("</div>"))
	if !ends || !bytes.HasPrefix(tag, []byte("<div ")) && !bytes.HasPrefix(tag, []byte("<div>")) {
		return s
	}
	open := 1
	for part := range bytes.SplitAfterSeq(inside, []byte("</div>")) {
		open += bytes.Count(part, []byte("<div ")) + bytes.Count(part, []byte("<div>"))
		if bytes.HasSuffix(part, []byte("</div>")) {
			if open--; open == 0 {
				return s
			}
		}
	}
	return inside
}

// innerAttrs writes the attributes of a tag in a text construct.
func (t *tidier) innerAttrs(base *url.URL) {
	x := &t.txt
	tag := len(x.buf)
	for _, a := range t.Attrs {
		key := a.Key
		if len(key) > maxNameLen || bytes.ContainsAny(key, "\"'<>&=/") {
			continue
		}
		if j := bytes.IndexByte(key, ':'); j >= 0 {
			prefix := strings.ToLower(string(key[:j]))
			if prefix == "xmlns" || prefix == "xml" && string(key[j+1:]) != "lang" {
				continue
			}
			if !x.xml {
				key = key[j+1:]
			} else if attr := "xmlns:" + string(key[:j]); prefix != "xml" &&
				!bytes.Contains(x.buf[tag:], []byte(" "+attr+"=")) {
				t.bind(attr, t.names.resolve(t.names.prefixID(prefix)))
			}
		} else if string(key) == "xmlns" {
			continue
		}
		if len(key) == 0 {
			continue
		}
		val := t.Entities.DecodeAttr(a.Val)
		if base != x.base && markup.IsURLAttr(strings.ToLower(string(key))) {
			if abs, changed := markup.ResolveAttr(base, strings.ToLower(string(key)),
				html.EscapeString(string(val))); changed && t.grow > 0 {
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

// innerEnd reads an end tag inside a text construct.
func (t *tidier) innerEnd(id int32) {
	x := &t.txt
	if x.state != textMarkup {
		return
	}
	local := t.names.infos[id].local
	if id == otherName || !x.xml && isVoid([]byte(local)) {
		return
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

// closeText sets the text of the construct that ends, and reports whether it is not empty.
func (t *tidier) closeText(f *frame) bool {
	x := &t.txt
	isMarkup := x.state == textMarkup
	x.state = textNone
	n := f.node
	if n == nil {
		return false
	}
	s := x.buf
	if !isMarkup {
		s = x.trim(s)
	}
	switch r := f.class.role; r {
	case roleAtomText:
		return t.closeAtomText(f, s, isMarkup)
	case roleAtomLink, roleTerm, roleEnclosure, roleAttributes:
		t.closeEmpty(n, r, leadingText(s, isMarkup))
		return true
	case roleRSSLink:
		s = t.rssLink(n, leadingText(s, isMarkup))
	case roleURL:
		s = []byte(t.resolved(x.base, leadingText(s, isMarkup)))
	case roleID:
		t.permalink(n, bytes.TrimSpace(s))
	case roleHTML:
		s = t.resolveMarkup(s)
	case roleItemImage:
		s = []byte(cmp.Or(n.Attr("url"), n.Attr("href"), n.Attr("src"),
			t.resolved(x.base, imageURL(string(s), isMarkup))))
	case rolePerson:
		if isMarkup {
			s = []byte(personText(string(s)))
		}
	}
	if isMarkup && t.stack.parent().level == inStruct && among(f.single, "name email uri") {
		// The parts of a person are text (RFC 4287, section 3.2); elements in them are not.
		s = []byte(strings.TrimSpace(leadingText(s, isMarkup)))
	}
	n.Text = f.class.string(s)
	return len(s) > 0
}

// closeEmpty ends an element that has attributes only. If its main attribute is missing, its text
// takes the place of the attribute.
func (t *tidier) closeEmpty(n *Node, r role, text string) {
	switch {
	case r == roleTerm && !n.has(vocab.None, "term"):
		n.set(vocab.None, "term", strings.TrimSpace(text))
	case r == roleAtomLink && strings.TrimSpace(n.Attr("href")+n.Attr("src")) == "":
		n.replace(vocab.None, "href", t.resolved(t.txt.base, text))
	case r == roleEnclosure && !n.has(vocab.None, "url"):
		n.set(vocab.None, "url", t.resolved(t.txt.base, text))
	}
}

// rssLink returns the URL of an RSS link. A link with Atom's attributes lacks its namespace, and
// gets that of Atom.
func (t *tidier) rssLink(n *Node, text string) []byte {
	s := t.resolved(t.txt.base, text)
	href := cmp.Or(n.Attr("href"), n.Attr("src"))
	switch {
	case s != "" || href == "":
	case n.has(vocab.None, "rel"):
		n.NS = vocab.Atom10
		n.replace(vocab.None, "href", href)
	default:
		s = href
	}
	return []byte(s)
}

// string returns the text of an element. Unicode white space at its ends is removed, unless the
// text may be markup.
func (c class) string(s []byte) string {
	if c.ext || len(s) > 0 && !bytes.ContainsAny(s, "<>&") && !markup.IsSpace(s[0]) && !markup.IsSpace(s[len(s)-1]) {
		s = bytes.TrimSpace(s)
	}
	return string(s)
}

// permalink stores the absolute URL of a guid that is a relative reference. The guid must begin
// with a path, or have isPermaLink="true".
func (t *tidier) permalink(n *Node, guid []byte) {
	is := strings.TrimSpace(n.Attr("ispermalink"))
	rooted := len(guid) > 0 && guid[0] == '/'
	if n.Name != "guid" || t.txt.base == nil || strings.EqualFold(is, "false") || !rooted &&
		!strings.EqualFold(is, "true") {
		return
	}
	if s := string(guid); !markup.HasScheme(s) && !strings.ContainsAny(s, " \t\n") && strings.ContainsAny(s, "/?") {
		n.set(vocab.None, "resolved", t.resolved(t.txt.base, s))
	}
}

// trim drops white space at the ends, except what was in a CDATA section.
func (x *construct) trim(s []byte) []byte {
	end := len(s)
	for end > x.endsCDATA && end > 0 && markup.IsSpace(s[end-1]) {
		end--
	}
	s = s[:end]
	if !x.beginsCDATA {
		s = s[markup.SkipSpace(s, 0):]
	}
	return s
}

// resolveMarkup resolves the URLs in HTML that has an xml:base.
func (t *tidier) resolveMarkup(s []byte) []byte {
	if t.txt.base == t.opts.Base || bytes.IndexByte(s, '<') < 0 {
		return s
	}
	before := t.grow
	resolved := scan.ResolveHTML(string(s), t.txt.base, true, &t.grow)
	if before > 0 && t.grow <= 0 {
		t.warnings.warn(warnGrow, t.Pos, nil)
	}
	return []byte(resolved)
}

// closeAtomText sets a text construct with a type.
func (t *tidier) closeAtomText(f *frame, s []byte, isMarkup bool) bool {
	n := f.node
	elsewhere := strings.TrimSpace(n.Attr("href")+n.Attr("src")) != ""
	says := len(s) > 0 || elsewhere
	typ, mode := strings.TrimSpace(n.Attr("type")), strings.ToLower(strings.TrimSpace(n.Attr("mode")))
	switch lower := strings.ToLower(typ); {
	case isMarkup:
		mode, typ = "", t.doc.inlineType(typ)
		if !t.doc.Atom03 && !t.txt.xml {
			s = t.txt.unwrap(s)
		}
	case len(s) > 0 && (mode == "base64" || !t.doc.Atom03 && isBinaryType(lower) && !elsewhere):
		if dec, ok := decodeBase64(s); ok {
			s = dec
			mode = ""
		} else if mode == "base64" {
			t.warnings.warn(warnBase64, f.srcAt, f.raw)
		}
	case mode == "escaped" && lower == "":
		typ = "text/html" // plain text is not labelled as escaped
	}
	lower := strings.ToLower(typ)
	if isMarkup || strings.Contains(lower, "html") {
		s = t.resolveMarkup(s)
	}
	n.replace(vocab.None, "type", typ)
	if verbatim := typ != "" && lower != "text" || mode != ""; verbatim && !f.class.ext {
		n.Text = string(s)
	} else {
		n.Text = f.class.string(s)
	}
	return says
}

// inlineType returns the type of a text construct that has children, based on its type attribute.
func (d *Document) inlineType(typ string) string {
	switch lower := strings.ToLower(typ); {
	case strings.Contains(lower, "xml") && !strings.Contains(lower, "xhtml"), strings.HasPrefix(lower, "image/"):
		return typ
	case d.Atom03, strings.Contains(lower, "/"):
		return "application/xhtml+xml"
	}
	return "xhtml"
}

// isBinaryType reports whether content of a type is base64 (RFC 4287, section
// 4.1.3.3).
func isBinaryType(typ string) bool {
	typ, _, _ = strings.Cut(typ, ";")
	typ = strings.TrimSpace(typ)
	return strings.Contains(typ, "/") && !strings.HasPrefix(typ, "text/") && !strings.HasSuffix(typ, "xml") &&
		!strings.HasPrefix(typ, "multipart/") && !strings.HasPrefix(typ, "message/")
}

// decodeBase64 decodes base64; ok is false if the result is not text.
func decodeBase64(s []byte) ([]byte, bool) {
	compact := bytes.TrimRight(slices.DeleteFunc(slices.Clone(s), markup.IsSpace), "=")
	dec := make([]byte, base64.RawStdEncoding.DecodedLen(len(compact)))
	n, err := base64.RawStdEncoding.Decode(dec, compact)
	if err != nil || !utf8.Valid(dec[:n]) {
		return nil, false
	}
	clean, mended, _ := markup.CleanChars(dec[:n])
	if mended > len(clean)/16 {
		return nil, false // not text
	}
	return clean, true
}

// plainOf returns the text of a construct that should not contain markup.
func plainOf(s []byte, isMarkup bool) string {
	if !isMarkup {
		return string(s)
	}
	return html.UnescapeString(aTag().ReplaceAllString(string(s), " "))
}

// aTag matches a tag.
var aTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<[^>]*>`) })

// leadingText is plainOf for a construct with one value: if there is text before the first child,
// it returns only this.
func leadingText(s []byte, isMarkup bool) string {
	if i := bytes.IndexByte(s, '<'); isMarkup && i > 0 && !markup.Blank(s[:i]) {
		s = s[:i]
	}
	return plainOf(s, isMarkup)
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
var structured = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(?:name|email|mbox)\b`) })

// imageURL finds the URL of an item's image.
func imageURL(s string, isMarkup bool) string {
	if isMarkup {
		if parts := childTexts(s, "url"); parts["url"] != "" {
			return parts["url"]
		}
	}
	return strings.TrimSpace(leadingText([]byte(s), isMarkup))
}

// childTexts returns the text of children in markup by name: for each of names, the first that is
// not empty, and for "" the text before the first child. Elements nested deeper are ignored.
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
