package feedsync

import (
	"bytes"
	"io"
	"slices"
	"strconv"
)

// writer writes a document.
type writer struct {
	b       []byte
	out     io.Writer
	err     error
	sharing *Sharing
	raw     []byte // the sx:sharing as it was read
}

// flush passes on what is written, once it is much.
func (w *writer) flush(least int) {
	if w.out == nil || len(w.b) < least {
		return
	}
	if w.err == nil {
		_, w.err = w.out.Write(w.b)
	}
	w.b = w.b[:0]
}

func (w *writer) attr(name, value string) {
	if value != "" {
		w.b = append(append(append(append(append(w.b, ' '), name...), `="`...), Attr(value)...), '"')
	}
}

// declare writes the bindings that are not in scope, and gives the scope with them.
func (w *writer) declare(ns, scope []binding) []binding {
	for _, b := range ns {
		if resolve(scope, b.prefix) == b.uri {
			continue
		}
		name := "xmlns"
		if b.prefix != "" {
			name += ":" + b.prefix
		}
		w.b = append(append(append(append(append(w.b, ' '), name...), `="`...), Attr(b.uri)...), '"')
		scope = append(slices.Clip(scope), b)
	}
	return scope
}

// resolve gives what a prefix is bound to; of several bindings the last counts.
func resolve(scope []binding, prefix string) string {
	for _, b := range slices.Backward(scope) {
		if b.prefix == prefix {
			return b.uri
		}
	}
	return ""
}

// element writes a start tag by itself.
func (w *writer) element(open []byte, ns []binding) {
	w.b = append(w.b, bytes.TrimRight(open, space)...)
	w.declare(ns, nil)
	w.b = append(w.b, '>')
}

// WriteTo writes the document.
func (d *Document) WriteTo(to io.Writer) (int64, error) {
	n := &counter{w: to}
	w := &writer{out: n, sharing: d.Sharing, raw: d.sharing}
	d.write(w)
	w.flush(0)
	return n.n, w.err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// Bytes gives the document as it is written.
func (d *Document) Bytes() []byte {
	w := &writer{sharing: d.Sharing, raw: d.sharing}
	d.write(w)
	return w.b
}

func (d *Document) write(w *writer) {
	scope := d.outward()
	for _, kids := range [][]kid{d.head, d.kids, d.tail} {
		for _, k := range kids {
			w.kid(k, nil, scope)
		}
	}
}

// kid writes what stands in an element.
func (w *writer) kid(k kid, parent *Item, scope []binding) {
	switch {
	case k.item == nil:
		w.b = append(w.b, k.raw...)
	case k.item == syncMark:
		w.itemSync(parent, scope)
	case k.item == sharingMark:
		w.itemSharing(scope)
	default:
		w.item(k.item, scope)
	}
	w.flush(1 << 20)
}

func (w *writer) item(it *Item, scope []binding) {
	w.b = append(w.b, it.open...)
	if it.extra != nil {
		scope = append(slices.Clip(scope), it.extra.declares...)
	}
	if it.placed {
		lektor := free("lektor", LektorNamespace, it.ns, scope[len(scope)-it.declares():])
		scope = w.declare([]binding{lektor}, scope)
		parent := it.Parent
		if parent == "" {
			parent = rootParent
		}
		w.attr(lektor.prefix+":parent", parent)
	}
	scope = w.declare(it.ns, scope)
	w.b = append(w.b, '>')
	for _, k := range it.kids {
		w.kid(k, it, scope)
	}
	w.b = append(w.b, it.end...)
}

// itemSync writes an sx:sync, as it was read if nothing of it was changed.
func (w *writer) itemSync(it *Item, scope []binding) {
	if it.sync != nil && !it.placed {
		w.b = append(w.b, it.sync...)
		return
	}
	var x extra
	if it.extra != nil {
		x = *it.extra
	}
	sx := freeSX(it.ns, x.inside)
	tag := func(end, name string) {
		w.b = append(append(append(append(append(w.b, '<'), end...), sx.prefix...), ':'), name...)
	}
	tag("", "sync")
	scope = w.declare([]binding{sx}, scope)
	w.attr("id", it.ID)
	w.attr("version", strconv.FormatUint(it.Version, 10))
	if it.Deleted {
		w.attr("deleted", "true")
	}
	if it.Conflict || it.circle {
		w.attr("conflict", "true")
	}
	w.b = append(append(w.b, x.sync...), '>')
	scope = append(slices.Clip(scope), x.inside...)
	tag("", "history")
	w.update(it.Head())
	w.b = append(w.b, x.history...)
	if len(it.History) < 2 && len(x.inHistory) == 0 {
		w.b = append(w.b, "/>"...)
	} else {
		w.b = append(w.b, '>')
		w.updates(sx.prefix, it.History[min(1, len(it.History)):], x.updates)
		w.b = append(w.b, x.inHistory...)
		tag("/", "history")
		w.b = append(w.b, '>')
	}
	if len(it.Conflicts) > 0 {
		tag("", "conflicts>")
		for _, c := range it.Conflicts {
			w.conflict(c, scope)
		}
		tag("/", "conflicts>")
	}
	if len(it.Settled) > 0 {
		lektor := free("lektor", LektorNamespace, it.ns, scope)
		for _, u := range it.Settled {
			w.b = append(append(append(w.b, '<'), lektor.prefix...), ":settled"...)
			w.declare([]binding{lektor}, scope)
			w.update(u)
			w.b = append(w.b, "/>"...)
		}
	}
	w.b = append(w.b, x.inSync...)
	tag("/", "sync>")
}

func (w *writer) update(u Update) {
	w.attr("when", FormatDate(u.When))
	w.attr("by", u.By)
}

// updates writes those before the last one, each with what another endpoint noted of it.
func (w *writer) updates(prefix string, list []Update, notes []noted) {
	name := prefix + ":update"
	for _, u := range list {
		w.b = append(append(w.b, '<'), name...)
		w.update(u)
		var n noted
		if i := slices.IndexFunc(notes, func(n noted) bool { return n.Update == u }); i >= 0 {
			n = notes[i]
		}
		if w.b = append(w.b, n.attrs...); n.within == nil {
			w.b = append(w.b, "/>"...)
			continue
		}
		w.b = append(append(append(w.b, '>'), n.within...), "</"+name+">"...)
	}
}

func (w *writer) conflict(c *Conflict, scope []binding) {
	sx, lektor := free("sx", Namespace, c.ns), free("lektor", LektorNamespace, c.ns)
	name := sx.prefix + ":conflict"
	w.b = append(append(w.b, '<'), name...)
	scope = w.declare(c.ns, scope)
	scope = w.declare([]binding{sx}, scope)
	if c.Parent != "" || c.Deleted {
		w.declare([]binding{lektor}, scope)
	}
	w.update(c.Update)
	w.attr("version", strconv.FormatUint(c.Version, 10))
	w.attr(lektor.prefix+":parent", c.Parent)
	if c.Deleted {
		w.attr(lektor.prefix+":deleted", "true")
	}
	w.b = append(append(append(w.b, c.attrs...), '>'), c.content...)
	w.b = append(append(append(w.b, "</"...), name...), '>')
}

// free binds a namespace to a prefix that is not bound to another.
func free(prefix, uri string, taken ...[]binding) binding {
	b := binding{prefix, uri}
	clash := func(o binding) bool { return o.prefix == b.prefix && o.uri != uri }
	for n := 1; slices.ContainsFunc(taken, func(list []binding) bool { return slices.ContainsFunc(list, clash) }); n++ {
		b.prefix = prefix + strconv.Itoa(n)
	}
	return b
}

// freeSX binds the namespace of Simple Sharing to sx, unless that prefix means
// something else.
func freeSX(taken ...[]binding) binding {
	sx := binding{"sx", Namespace}
	for n := 1; slices.ContainsFunc(taken, func(list []binding) bool {
		return slices.ContainsFunc(list, func(b binding) bool {
			return b.prefix == sx.prefix && b.uri != Namespace && b.uri != namespaceHTTP
		})
	}); n++ {
		sx.prefix = "sx" + strconv.Itoa(n)
	}
	return sx
}

// itemSharing writes the sx:sharing.
func (w *writer) itemSharing(scope []binding) {
	if w.raw != nil {
		w.b = append(w.b, w.raw...)
		return
	}
	s := w.sharing
	if s == nil {
		return
	}
	w.b = append(w.b, "<sx:sharing"...)
	w.declare([]binding{{"sx", Namespace}}, scope)
	w.attr("since", FormatDate(s.Since))
	w.attr("until", FormatDate(s.Until))
	w.attr("version", SpecVersion)
	if s.Window > 0 {
		w.attr("window", strconv.Itoa(s.Window))
	}
	if len(s.Related) == 0 {
		w.b = append(w.b, "/>"...)
		return
	}
	w.b = append(w.b, '>')
	for _, r := range s.Related {
		w.b = append(w.b, "<sx:related"...)
		w.attr("link", r.Link)
		w.attr("type", r.Type)
		w.attr("title", r.Title)
		w.attr("since", FormatDate(r.Since))
		w.attr("until", FormatDate(r.Until))
		w.b = append(w.b, "/>"...)
	}
	w.b = append(w.b, "</sx:sharing>"...)
}

// SetSharing gives the document an sx:sharing, in the place of the one that it has.
// One without keeps none: only [New] makes a place for it.
func (d *Document) SetSharing(s *Sharing) { d.Sharing, d.sharing = s, nil }

// New gives a document without items, with a title and a place for an sx:sharing.
// In RSS it says what it links to and what it is, as RSS 2.0 demands.
func New(kind Kind, title, link, description string) *Document {
	ns := []binding{{"sx", Namespace}, {"lektor", LektorNamespace}}
	w := &writer{}
	w.b = append(w.b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"...)
	text := func(name, s string) {
		w.b = append(w.b, ("<" + name + ">" + Text(s) + "</" + name + ">\n")...)
	}
	d := &Document{Kind: kind, byID: map[string]*Item{}, scope: []binding{ns[1], ns[0]}}
	if kind == RSS {
		w.b = append(w.b, `<rss version="2.0"`...)
		w.declare(ns, nil)
		w.b = append(w.b, ">\n<channel>\n"...)
		text("title", title)
		text("link", link)
		text("description", description)
		d.head = []kid{{raw: w.b}, {item: sharingMark}, {raw: []byte("\n")}}
		d.tail = []kid{{raw: []byte("</channel>\n</rss>\n")}}
		return d
	}
	w.b = append(w.b, `<opml version="2.0"`...)
	w.declare(ns, nil)
	w.b = append(w.b, ">\n<head>\n"...)
	text("title", title)
	d.head = []kid{{raw: w.b}, {item: sharingMark}, {raw: []byte("\n</head>\n<body>\n")}}
	d.tail = []kid{{raw: []byte("</body>\n</opml>\n")}}
	return d
}

// Append adds items to an RSS document, or at the end of the body of an OPML
// document, each on a line of its own; their Parent says what they are in, and
// [Document.Arrange] puts them there. An item with an id that the document has
// replaces the other.
func (d *Document) Append(items ...*Item) {
	for _, it := range items {
		if old := d.byID[it.ID]; old != nil {
			d.replace(old, it)
			continue
		}
		c := it.clone()
		d.byID[it.ID] = c
		d.kids = append(d.kids, kid{item: c}, kid{raw: newline})
	}
}

var newline = []byte("\n")

// replace puts an item in the place of another with the same id, around what is
// within that one.
func (d *Document) replace(old, it *Item) {
	var within []kid
	for _, k := range old.kids {
		if k.isItem() {
			within = append(within, kid{raw: newline}, k)
		}
	}
	if len(within) > 0 {
		within = append(within, kid{raw: newline})
	}
	placed, circle := old.placed, old.circle
	*old = *it.clone()
	old.kids = append(old.kids, within...)
	old.placed, old.circle = placed, circle
}
