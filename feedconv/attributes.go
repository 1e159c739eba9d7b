package feedconv

import (
	"bytes"
	"net/url"
	"strings"
)

// openTag writes the start tag of an element. A text construct's is left open
// until its text is known.
func (t *tidier) openTag(f *frame) {
	c := f.class
	if c.kind == kTransparent || c.kind == kForeign {
		return
	}
	parent := inRoot
	if len(t.stack) > 1 {
		parent = t.stack[len(t.stack)-2].level
	}
	if c.kind == kText {
		t.txt = construct{active: true, ext: c.ext, base: f.base, buf: t.txt.buf[:0], inner: t.txt.inner[:0]}
		if c.role == roleDrop {
			return
		}
	}
	t.open(c.out)
	for _, a := range t.attrs {
		t.attribute(f, parent, a)
	}
	if c.kind != kText {
		t.endOpen()
	}
}

// splitAttr gives the prefix and the local name of an attribute; false for one
// that cannot be written.
func splitAttr(key []byte) (prefix, local []byte, ok bool) {
	if len(key) == 0 || len(key) > maxNameLen {
		return nil, nil, false
	}
	colon := -1
	for i, c := range key {
		if !isNameByte(c) || c >= 0x80 || c == ':' && colon >= 0 {
			return nil, nil, false
		}
		if c == ':' {
			colon = i
		}
	}
	local = key
	if colon >= 0 {
		prefix, local = key[:colon], key[colon+1:]
	}
	if colon == 0 || len(local) == 0 || !isNameStart(local[0]) || len(local) == 5 && strings.EqualFold(string(local), "xmlns") {
		return nil, nil, false
	}
	return prefix, local, true
}

// attribute writes an attribute, or keeps it for where it is needed.
func (t *tidier) attribute(f *frame, parent level, a attr) {
	prefix, local, ok := splitAttr(a.key)
	if !ok {
		return
	}
	ns := nsNone
	if len(prefix) > 0 {
		switch strings.ToLower(string(prefix)) {
		case "xmlns":
			return
		case "xml":
			if string(local) == "lang" {
				t.language(f, parent, t.attrValue(a.val))
			}
			return
		}
		ns = t.resolve(t.prefixID(string(prefix)))
	}
	if k := f.class.kind; k == kEntry || k == kFeed {
		into := &t.kept.entry
		if k == kFeed {
			into = &t.kept.feed
		}
		switch {
		case ns == nsRDF && string(local) == "about":
			into.note("about", t.attrValue(a.val))
			return
		case ns >= nsXHTML && !t.native(ns, -1):
			t.keepAttribute(into, ns, local, a.val)
			return
		}
	}
	if ns != nsNone && ns != f.class.ns && !t.native(ns, -1) {
		return // gofeed would take it for one without a prefix
	}
	name := asciiLower(string(local))
	switch name { // gofeed's spelling
	case "ispermalink":
		name = "isPermaLink"
	case "registerprocedure":
		name = "registerProcedure"
	}
	val := t.ents.decodeAttr(a.val)
	if f.class.kind == kText && ns == nsNone && t.txt.attribute(f.class.role, name, val) {
		return
	}
	if isURLAttr(name) {
		abs := t.resolved(f.base, string(val))
		if parent != inExt && (name == "href" || name == "src" || name == "uri") {
			abs = guardURL(abs)
		}
		val = []byte(abs)
	} else if name == "scheme" && parent != inExt {
		val = []byte(guardURL(string(val)))
	}
	t.attr(name, val)
}

// attribute takes an attribute of the construct's element, and tells whether it
// is written when the text is known, or not at all.
func (x *construct) attribute(r role, name string, val []byte) bool {
	switch name {
	case "type":
		x.typ = strings.TrimSpace(string(val))
		return r == roleAtomText
	case "mode":
		x.mode = strings.ToLower(strings.TrimSpace(string(val)))
		return r == roleAtomText
	case "rel":
		x.rel = true
	case "isPermaLink":
		switch val = bytes.TrimSpace(val); {
		case bytes.EqualFold(val, []byte("true")):
			x.permalink = permalinkYes
		case bytes.EqualFold(val, []byte("false")):
			x.permalink = permalinkNo
		}
	case "term":
		x.src = x.src || r == roleTerm
	case "url":
		x.src = x.src || r == roleEnclosure
		if r == roleItemImage {
			x.href = string(val)
			return true
		}
	case "href", "src":
		if r == roleRSSLink || r == roleItemImage {
			x.href = string(val)
			return true
		}
		x.src = len(bytes.TrimSpace(val)) > 0
		return r == roleAtomLink && !x.src
	}
	return false
}

// language keeps xml:lang where the finished entry or feed finds it. What a
// text construct says stands for an entry that says nothing.
func (t *tidier) language(f *frame, parent level, lang string) {
	lang = strings.TrimSpace(lang)
	switch f.class.kind {
	case kEntry:
		t.kept.entry.note("lang", lang)
	case kFeed:
		t.kept.feed.note("lang", lang)
	case kText:
		if parent == inEntry && t.kept.entry.notes["lang"] == "" {
			t.kept.entry.note("lang", lang)
		}
	}
}

// resolved is resolveURL within what a document may grow by.
func (t *tidier) resolved(base *url.URL, ref string) string {
	if t.grow <= 0 {
		return trimURL(ref)
	}
	abs := resolveURL(base, ref)
	if n := len(abs) - len(ref); n > 0 {
		if t.grow -= n; t.grow <= 0 {
			t.warn(warnGrow, t.pos, nil)
			return trimURL(ref)
		}
	}
	return abs
}

// guardURL keeps gofeed from re-encoding a URL: one with a newline before it
// (after it is not enough, that may be a fragment) it cannot parse, and leaves
// alone.
func guardURL(s string) string {
	if s == "" {
		return ""
	}
	return "\n" + s
}
