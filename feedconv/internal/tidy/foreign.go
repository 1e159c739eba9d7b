package tidy

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
)

// budget counts the foreign elements and attributes, and their bytes, of a feed or an entry.
type budget struct{ count, bytes int }

// reserve counts one more element of a number of bytes, and reports whether it is within the
// limits.
func (b *budget) reserve(bytes int) bool {
	b.count++
	b.bytes += bytes
	return b.count <= MaxExtensions && b.bytes <= maxExtensionBytes
}

// extensions is the state of reading a foreign element. An element that exceeds a limit is left out
// as a whole.
type extensions struct {
	entry, feed budget
	into        *budget // one of these
	depth       int     // depth of the open elements, left out or not
	full        bool    // the outermost that is open is left out
	names       map[string]string
}

// name interns names, so that a repeated name is in memory once.
func (x *extensions) name(b []byte) string {
	if s, ok := x.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if x.names == nil {
		x.names = map[string]string{}
	}
	if len(x.names) < maxNames {
		x.names[s] = s
	}
	return s
}

// openForeign reads the start tag of an element that has no field. kept is false if a limit leaves
// it out.
func (t *tidier) openForeign(f, parent *frame, kept bool) {
	x := &t.ext
	if x.depth++; x.full {
		return
	}
	if x.depth == 1 {
		x.into = &x.feed
		if parent.level == inEntry {
			x.into = &x.entry
		}
	} else {
		parent.flush()
	}
	local := f.raw[bytes.IndexByte(f.raw, ':')+1:]
	n := &Node{NS: f.class.ns, Foreign: true, Name: cleanName(x.name(local))}
	t.foreignAttributes(f, n)
	size := len(t.names.ns[n.NS].uri) + len(n.Name)
	for _, a := range n.Attrs {
		size += len(t.names.ns[a.NS].uri) + len(a.Name) + len(a.Value)
	}
	switch {
	case !kept, parent.node == nil: // said already
	case x.depth > MaxExtensionDepth:
		t.warnings.warn(warnExtDepth, f.srcAt, f.raw)
	case !x.into.reserve(size):
		t.warnings.warn(warnExtSize, f.srcAt, f.raw)
	default:
		f.node = n
		return
	}
	x.full = true
}

// flush adds the text read so far as a child.
func (f *frame) flush() {
	if len(f.text) > 0 {
		f.node.Children = append(f.node.Children, &Node{Foreign: true, Text: string(f.text)})
		f.text = f.text[:0]
	}
}

// foreignText reads text in a foreign element.
func (t *tidier) foreignText(text []byte) {
	x := &t.ext
	if x.full || len(text) == 0 {
		return
	}
	f := t.stack.top()
	if len(f.text) == 0 {
		x.into.count++
	}
	f.text = append(f.text, text...)
	if x.into.bytes += len(text); x.into.bytes > maxExtensionBytes || x.into.count > MaxExtensions {
		t.warnings.warn(warnExtSize, t.Pos, f.raw)
		x.full = true
	}
}

// closeForeign ends a foreign element, and adds it to its parent.
func (t *tidier) closeForeign(f, parent *frame) {
	x := &t.ext
	if x.depth--; x.full {
		x.full = x.depth > 0
		return
	}
	n := f.node
	if len(n.Children) == 0 {
		n.Text = strings.TrimSpace(string(f.text))
	} else {
		f.flush()
		if isText := func(c *Node) bool { return c.Name == "" }; !slices.ContainsFunc(n.Children,
			func(c *Node) bool { return isText(c) && !markup.Blank([]byte(c.Text)) }) {
			n.Children = slices.DeleteFunc(n.Children, isText)
		}
	}
	into := parent.node
	if x.depth == 0 && x.into == &x.feed {
		into = t.doc.Feed // also of what stands beside the channel
	}
	if into != nil { // else that of an entry that is cut off
		into.Children = append(into.Children, n)
	}
}

// foreignAttributes adds the attributes of a foreign element.
func (t *tidier) foreignAttributes(f *frame, n *Node) {
	for _, a := range t.Attrs {
		prefix, local, ok := splitAttr(a.Key)
		if !ok || strings.EqualFold(string(prefix), "xmlns") || string(a.Key) == "xml:base" {
			continue
		}
		ns, name, value := vocab.None, t.ext.name(local), t.attrValue(a.Val)
		if len(prefix) > 0 {
			ns = t.names.resolve(t.names.prefixID(string(prefix)))
		}
		if isURLAttr(name) {
			value = t.resolved(f.base, value)
		}
		n.set(ns, name, value)
	}
}

// keepAttribute keeps an attribute of another vocabulary on the element of the
// feed or of an entry.
func (t *tidier) keepAttribute(n *Node, into *budget, ns vocab.NS, local, val []byte) {
	name, value := t.ext.name(local), t.attrValue(val)
	if !into.reserve(len(t.names.ns[ns].uri) + len(name) + len(value)) {
		t.warnings.warn(warnExtSize, t.Pos, local)
		return
	}
	n.set(ns, name, value)
}
