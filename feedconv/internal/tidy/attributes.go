package tidy

import (
	"net/url"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

// openTag reads the attributes of an element, and begins its text.
func (t *tidier) openTag(f *frame) {
	if f.class.kind == kText {
		t.txt.begin(f.base)
	}
	if f.node == nil || f.class.kind == kTransparent {
		return
	}
	for _, a := range t.Attrs {
		t.attribute(f, a)
	}
}

// splitAttr returns the prefix and the local name of an attribute; ok is false if the name is too
// long or not an ASCII name.
func splitAttr(key []byte) (prefix, local []byte, ok bool) {
	if len(key) == 0 || len(key) > maxNameLen {
		return nil, nil, false
	}
	colon := -1
	for i, c := range key {
		if !scan.IsNameByte(c) || c >= 0x80 || c == ':' && colon >= 0 {
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
	if colon == 0 || len(local) == 0 || !scan.IsNameStart(local[0]) || len(local) == 5 &&
		strings.EqualFold(string(local), "xmlns") {
		return nil, nil, false
	}
	return prefix, local, true
}

// attribute reads an attribute of an element that has a field.
func (t *tidier) attribute(f *frame, a scan.Attr) {
	prefix, local, ok := splitAttr(a.Key)
	if !ok {
		return
	}
	ns := vocab.None
	if len(prefix) > 0 {
		switch strings.ToLower(string(prefix)) {
		case "xmlns":
			return
		case "xml":
			if string(local) == "lang" {
				t.language(f, strings.TrimSpace(t.attrValue(a.Val)))
			}
			return
		}
		ns = t.names.resolve(t.names.prefixID(string(prefix)))
	}
	switch f.class.kind {
	case kEntry:
		if ns == vocab.None { // the status of a liveItem is that of its vocabulary
			ns = f.class.ns
		}
		t.entryAttribute(f.node, &t.ext.entry, ns, local, a.Val)
		return
	case kFeed:
		t.entryAttribute(f.node, &t.ext.feed, ns, local, a.Val)
		return
	}
	if ns != vocab.None && ns != f.class.ns && !t.names.native(ns, -1) {
		return
	}
	name := strings.ToLower(t.ext.name(local))
	value := t.attrValue(a.Val)
	if isURLAttr(name) {
		value = t.resolved(f.base, value)
	}
	f.node.set(vocab.None, name, value)
}

// entryAttribute reads an attribute of an entry or the channel.
func (t *tidier) entryAttribute(n *Node, into *budget, ns vocab.NS, local, val []byte) {
	switch {
	case ns == vocab.RDF && string(local) == "about":
		n.replace(ns, "about", t.attrValue(val))
	case ns >= vocab.XHTML && !t.names.native(ns, -1):
		t.keepAttribute(n, into, ns, local, val)
	}
}

// language keeps xml:lang on the entry or feed. If an entry has no language, it gets that of a text
// construct in it.
func (t *tidier) language(f *frame, lang string) {
	switch f.class.kind {
	case kEntry, kFeed:
		f.node.replace(vocab.XML, "lang", lang)
	case kText:
		if parent := t.stack.parent(); parent.level == inEntry && lang != "" {
			parent.node.set(vocab.XML, "lang", lang)
		}
	}
}

// resolved is [markup.Resolve], limited by the number of bytes that the document may grow by.
func (t *tidier) resolved(base *url.URL, ref string) string {
	if t.grow <= 0 {
		return markup.TrimURL(ref)
	}
	abs := markup.Resolve(base, ref)
	if n := len(abs) - len(ref); n > 0 {
		if t.grow -= n; t.grow <= 0 {
			t.warnings.warn(warnGrow, t.Pos, nil)
			return markup.TrimURL(ref)
		}
	}
	return abs
}

// attrValue decodes an attribute.
func (t *tidier) attrValue(val []byte) string { return string(t.Entities.DecodeAttr(val)) }
