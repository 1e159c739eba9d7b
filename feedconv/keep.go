package feedconv

import (
	"slices"
	"strings"
	"sync"
)

// places says where an element has a field.
type places uint8

const (
	ofFeed places = 1 << iota
	ofEntry
	anywhere = ofFeed | ofEntry
)

// mapped are the elements of other vocabularies that have a field. A change
// here is one of the documentation of Extension, too.
var mapped = sync.OnceValue(func() map[nsID]map[string]places {
	return map[nsID]map[string]places{
		nsAtom10: {
			"author": anywhere, "id": anywhere, "link": anywhere, "published": anywhere, "updated": anywhere,
			"category": ofEntry, "content": ofEntry, "contributor": ofEntry, "issued": ofEntry, "modified": ofEntry, "summary": ofEntry, "title": ofEntry,
			"logo": ofFeed,
		},
		nsDC: {
			"author": anywhere, "creator": anywhere, "date": anywhere, "description": anywhere, "language": anywhere,
			"subject": anywhere, "title": anywhere, "rights": anywhere, "contributor": ofEntry,
		},
		nsDCTerms: {"issued": anywhere, "modified": anywhere, "created": ofEntry},
		nsITunes: {
			"author": anywhere, "category": anywhere, "image": anywhere, "keywords": anywhere, "link": anywhere, "subtitle": anywhere,
			"summary": anywhere, "title": anywhere, "duration": ofEntry, "episode": ofEntry, "season": ofEntry,
		},
		nsMedia: {
			"category": anywhere, "keywords": anywhere, "title": anywhere,
			"content": ofEntry, "description": ofEntry, "group": ofEntry, "thumbnail": ofEntry, "copyright": ofFeed,
		},
		nsContent:  {"encoded": ofEntry},
		nsXHTML:    {"body": ofEntry},
		nsRSSCloud: {"item": ofEntry},
		nsSY:       {"updateperiod": ofFeed, "updatefrequency": ofFeed},
		nsFH:       {"archive": ofFeed, "complete": ofFeed},
		nsSource:   {"cloud": ofFeed},
	}
})

// hasField reports whether an element, its name in lower case, is read into a
// field where it stands.
func hasField(ns nsID, name string, place places, atom bool) bool {
	switch {
	case ns == nsAtom03:
		ns = nsAtom10
	case ns == nsRSSCloud && atom:
		return false
	}
	return mapped()[ns][name]&place != 0
}

// extras are what gofeed has no place for of an entry or of the feed.
type extras struct {
	list       []Extension
	attributes []Attribute
	count      int
	bytes      int
	// notes are about (rdf:about), lang (xml:lang), permalink (the URL that a guid stands for),
	// and type-title, type-summary … (the types of text constructs).
	notes map[string]string
}

// note sets one of the notes.
func (x *extras) note(name, value string) {
	if value == "" {
		return
	}
	if x.notes == nil {
		x.notes = make(map[string]string, 4)
	}
	if _, ok := x.notes[name]; ok || len(x.notes) <= 16 {
		x.notes[name] = value
	}
}

// room takes a number of bytes for one more element, and tells whether there
// was room.
func (x *extras) room(bytes int) bool {
	x.count++
	x.bytes += bytes
	return x.count <= maxExtensions && x.bytes <= maxExtensionBytes
}

// openExtension is an extension whose end has not been read.
type openExtension struct {
	Extension
	text  []byte // since the last child
	mixed bool   // text stands between the children
}

// keeper builds extensions from what is read of them.
type keeper struct {
	entry, feed extras
	entries     []extras // by entry; shorter where the last have none
	into        *extras  // where the one goes that is open
	open        []openExtension
	depth       int  // of what is open, left out or not
	full        bool // the one that is open passes a limit
	names       map[string]string
}

// name returns one string for bytes that come again and again.
func (k *keeper) name(b []byte) string {
	if s, ok := k.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if k.names == nil {
		k.names = map[string]string{}
	}
	if len(k.names) < maxNames {
		k.names[s] = s
	}
	return s
}

// push begins an element, inside of the one that is open.
func (k *keeper) push(e Extension) {
	if n := len(k.open); n > 0 {
		k.flush(&k.open[n-1])
	}
	if n := len(k.open); n < cap(k.open) {
		k.open = k.open[:n+1]
		k.open[n] = openExtension{Extension: e, text: k.open[n].text[:0]}
		return
	}
	k.open = append(k.open, openExtension{Extension: e})
}

// flush makes a child of the text that was read.
func (k *keeper) flush(o *openExtension) {
	if len(o.text) > 0 {
		o.mixed = o.mixed || !blank(o.text)
		o.Children = append(o.Children, Extension{Text: string(o.text)})
		o.text = o.text[:0]
	}
}

// pop ends the innermost element.
func (k *keeper) pop() {
	if k.depth--; k.full {
		if k.depth == 0 {
			k.full = false
			k.open = k.open[:0]
		}
		return
	}
	n := len(k.open) - 1
	o := &k.open[n]
	if len(o.Children) == 0 {
		o.Text = strings.TrimSpace(string(o.text))
	} else if k.flush(o); !o.mixed {
		o.Children = slices.DeleteFunc(o.Children, func(c Extension) bool { return c.Name == "" })
	}
	list := &k.into.list
	if n > 0 {
		list = &k.open[n-1].Children
	}
	*list = append(*list, o.Extension)
	k.open = k.open[:n]
}

// endEntry takes what was read since the last entry as that of the entry of a
// number, or drops it.
func (k *keeper) endEntry(number int, keep bool) {
	if keep && len(k.entry.list)+len(k.entry.attributes)+len(k.entry.notes) > 0 {
		for len(k.entries) < number {
			k.entries = append(k.entries, extras{})
		}
		k.entries = append(k.entries, k.entry)
	}
	k.entry = extras{}
}

// of returns what was kept of an entry.
func (k *keeper) of(entry int) extras {
	if entry < len(k.entries) {
		return k.entries[entry]
	}
	return extras{}
}

// foreignTag takes the start tag of an element that has no field.
func (t *tidier) foreignTag(f *frame, ns nsID, parent level) {
	k := &t.kept
	if k.depth++; k.full {
		return
	}
	if k.depth == 1 {
		k.into = &k.feed
		if parent == inEntry {
			k.into = &k.entry
		}
	}
	local := f.raw
	if i := strings.IndexByte(string(local), ':'); i >= 0 {
		local = local[i+1:]
	}
	e := Extension{Namespace: t.uriOf(ns), Name: cleanName(k.name(local)), Attributes: t.foreignAttributes(f)}
	size := len(e.Namespace) + len(e.Name)
	for _, a := range e.Attributes {
		size += len(a.Namespace) + len(a.Name) + len(a.Value)
	}
	switch {
	case f.drop: // said already
	case k.depth > maxExtensionDepth:
		t.warn(warnExtDepth, f.srcAt, f.raw)
	case !k.into.room(size):
		t.warn(warnExtSize, f.srcAt, f.raw)
	default:
		k.push(e)
		return
	}
	k.full = true
}

// foreignText takes text in such an element.
func (t *tidier) foreignText(text []byte) {
	k := &t.kept
	if k.full || len(k.open) == 0 || len(text) == 0 {
		return
	}
	o := &k.open[len(k.open)-1]
	if len(o.text) == 0 {
		k.into.count++
	}
	o.text = append(o.text, text...)
	if k.into.bytes += len(text); k.into.bytes > maxExtensionBytes || k.into.count > maxExtensions {
		t.warn(warnExtSize, t.pos, t.top().raw)
		k.full = true
	}
}

// foreignAttributes returns the attributes of such an element.
func (t *tidier) foreignAttributes(f *frame) []Attribute {
	var out []Attribute
	for _, a := range t.attrs {
		prefix, local, ok := splitAttr(a.key)
		if !ok || strings.EqualFold(string(prefix), "xmlns") || string(a.key) == "xml:base" {
			continue
		}
		at := Attribute{Name: t.kept.name(local)}
		if len(prefix) > 0 {
			at.Namespace = t.uriOf(t.resolve(t.prefixID(string(prefix))))
		}
		if at.Value = t.attrValue(a.val); isURLAttr(at.Name) {
			at.Value = t.resolved(f.base, at.Value)
		}
		out = addAttribute(out, at)
	}
	return out
}

// addAttribute adds an attribute unless there is one of the name: prefixes that
// differ may stand for one namespace.
func addAttribute(list []Attribute, a Attribute) []Attribute {
	for i := range list {
		if list[i].Name == a.Name && list[i].Namespace == a.Namespace {
			return list
		}
	}
	if list == nil {
		list = make([]Attribute, 0, 4)
	}
	return append(list, a)
}

// keepAttribute keeps an attribute of another vocabulary on the element of the
// feed or of an entry.
func (t *tidier) keepAttribute(into *extras, ns nsID, local, val []byte) {
	a := Attribute{Namespace: t.uriOf(ns), Name: t.kept.name(local), Value: t.attrValue(val)}
	if !into.room(len(a.Namespace) + len(a.Name) + len(a.Value)) {
		t.warn(warnExtSize, t.pos, local)
		return
	}
	into.attributes = addAttribute(into.attributes, a)
}
