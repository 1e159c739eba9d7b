package feedsync

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/text/xmltext"
)

// with appends an attribute without a namespace, unless it has no value.
func (e *element) with(name, value string) *element { return e.in("", name, value) }

// in appends an attribute in a namespace, unless it has no value.
func (e *element) in(namespace, name, value string) *element {
	if value != "" {
		e.attrs = append(e.attrs, xml.Attr{Name: xml.Name{Space: namespace, Local: name}, Value: value})
	}
	return e
}

// add appends a child.
func (e *element) add(kid *element) { e.kids = append(e.kids, node{element: kid}) }

func sx(name string) *element { return &element{name: xml.Name{Space: Namespace, Local: name}} }

// update returns the element of an update.
func (u Update) element(e *element) *element {
	return e.with("when", FormatDate(u.When)).with("by", u.By)
}

// put adds the unknown parts of an element.
func (e *element) put(r rest) {
	e.attrs, e.kids = append(e.attrs, r.attrs...), append(e.kids, r.kids...)
}

// addUpdates adds the updates before the last one, with their unknown parts.
func (e *element) addUpdates(list []Update, unknown map[Update]rest) {
	for _, u := range list {
		up := u.element(sx("update"))
		up.put(unknown[u])
		e.add(up)
	}
}

// syncElement returns the sx:sync of an item, with conflict if it is at the root because of a cycle.
func (it *Item) syncElement(inCycle bool) *element {
	x := cmp.Or(it.extra, &extra{})
	e := sx("sync").with("id", it.ID).with("version", strconv.FormatUint(it.Version, 10))
	if it.Deleted {
		e.with("deleted", "true")
	}
	if it.Conflict || inCycle {
		e.with("conflict", "true")
	}
	h := it.Head().element(sx("history"))
	h.addUpdates(it.earlierUpdates(), x.updates)
	h.put(x.history)
	e.add(h)
	if len(it.Conflicts) > 0 {
		list := sx("conflicts")
		for _, c := range it.Conflicts {
			list.add(c.conflictElement())
		}
		e.add(list)
	}
	for _, u := range it.Settled {
		e.add(u.element(&element{name: xml.Name{Space: LektorNamespace, Local: "settled"}}))
	}
	e.put(x.sync)
	return e
}

// conflictElement returns the sx:conflict of a loser.
func (c *Item) conflictElement() *element {
	x := cmp.Or(c.extra, &extra{})
	e := c.Head().element(sx("conflict")).with("version", strconv.FormatUint(c.Version, 10))
	if e.in(LektorNamespace, "parent", c.Parent); c.Deleted {
		e.in(LektorNamespace, "deleted", "true")
	}
	if c.Content != nil {
		e.kids = append(e.kids, node{raw: c.Content})
	}
	e.addUpdates(c.earlierUpdates(), x.updates)
	e.put(x.sync)
	return e
}

// append appends the item in the form of a document, with its inner items. If t is nil, it has none, and is in
// its Parent.
func (it *Item) append(b []byte, t *layout) []byte {
	// A content has > only at the end of a tag.
	open, end := bytes.IndexByte(it.Content, '>'), bytes.LastIndex(it.Content, []byte("</"))
	b = append(b, it.Content[:open]...)
	var inner []*Item
	inCycle := false
	if t != nil {
		inner, inCycle = t.inside[it], !it.inert && slices.Contains(t.cycle, it.ID)
		if it.inert && it.Parent != "" || !it.inert && it.Parent != t.parent[it.ID] {
			b = append(append(append(b, ` lektor:parent="`...), xmltext.Attr(cmp.Or(it.Parent, rootParent))...), '"')
		}
	}
	b = append(b, it.Content[open:end]...)
	if it.Version > 0 { // the content of a skipped item includes its sx:sync
		b = it.syncElement(inCycle).append(b)
		if len(inner) > 0 {
			b = append(b, '\n')
		}
	}
	for _, k := range inner {
		b = append(k.append(b, t), '\n')
	}
	return append(b, it.Content[end:]...)
}

// Append appends the item in the form of a document, without inner items.
func (it *Item) Append(b []byte) []byte { return it.append(b, nil) }

// Flat reports whether the item has neither Conflicts nor unknown elements. Then its
// exported fields are all of it.
func (it *Item) Flat() bool { return len(it.Conflicts) == 0 && it.extra == nil }

// ReadItem parses an item that [Item.Append] wrote.
func ReadItem(text []byte) (*Item, error) {
	e, err := readElement(text)
	if err != nil {
		return nil, err
	}
	p := &parser{d: &Document{}}
	it := &Item{}
	if bad := p.sync(it, e); bad != "" {
		return nil, errors.New(bad)
	}
	return it, nil
}

// Write writes the document.
func (d *Document) Write(to io.Writer) error {
	t := d.layout()
	return d.write(to, slices.Values(t.inside[nil]), t)
}

// WriteItems writes the document with other items.
func (d *Document) WriteItems(to io.Writer, items iter.Seq[*Item]) error {
	return d.write(to, items, nil)
}

func (d *Document) write(to io.Writer, items iter.Seq[*Item], t *layout) error {
	out := bufio.NewWriterSize(to, 1<<18) // keeps the first error
	b, after := d.frame()
	_, _ = out.Write(b)
	for it := range items {
		b = append(it.append(b[:0], t), '\n')
		_, _ = out.Write(b)
	}
	_, _ = out.Write(after)
	return out.Flush()
}

// Bytes returns the document as it is written.
func (d *Document) Bytes() []byte {
	var b bytes.Buffer
	_ = d.Write(&b) // a Buffer never fails
	return b.Bytes()
}

// frame returns the bytes before and after the items of a document.
func (d *Document) frame() (before, after []byte) {
	b := []byte(xml.Header)
	open := func(e *element, name, declare string) {
		only := &element{name: xml.Name{Local: name}, attrs: e.attrs}
		foreign := only.foreign(nil)
		b = append(append(only.start(b, foreign, foreign), declare...), ">\n"...)
	}
	kids := func(e *element) {
		for _, k := range e.kids {
			if k.element != nil {
				b = append(k.append(b), '\n')
			} else {
				b = append(append(b, xmltext.Text(strings.Trim(k.text, space))...), '\n')
			}
		}
	}
	sharing := func() {
		if s := d.sharingElement(); s != nil {
			b = append(s.append(b), '\n')
		}
	}
	root, container := "rss", d.Kind.container()
	if d.Kind == OPML {
		root = "opml"
	}
	open(&d.root, root, bindings)
	if head := d.head; d.Kind == OPML && (head != nil || d.Sharing != nil) {
		if head == nil {
			head = &element{}
		}
		open(head, "head", "")
		kids(head)
		sharing()
		b = append(b, "</head>\n"...)
	}
	kids(&d.root)
	open(&d.container, container, "")
	kids(&d.container)
	if d.Kind == RSS {
		sharing()
	}
	return b, []byte("</" + container + ">\n</" + root + ">\n")
}

// sharingElement returns the sx:sharing, nil if there is none.
func (d *Document) sharingElement() *element {
	s := d.Sharing
	if s == nil || d.sharing != nil {
		return d.sharing
	}
	e := sx("sharing").with("since", FormatDate(s.Since)).with("until", FormatDate(s.Until)).with("version",
		SpecVersion)
	if s.Window > 0 {
		e.with("window", strconv.Itoa(s.Window))
	}
	for _, r := range s.Related {
		e.add(sx("related").with("link", r.Link).with("type", r.Type).with("title", r.Title).with("since",
			FormatDate(r.Since)).with("until", FormatDate(r.Until)))
	}
	return e
}

// SetSharing replaces the sx:sharing of the document.
func (d *Document) SetSharing(s *Sharing) { d.Sharing, d.sharing = s, nil }

// New returns a document without items. RSS 2.0 requires title, link and description; OPML
// uses the title only.
func New(kind Kind, title, link, description string) *Document {
	d := &Document{Kind: kind, byID: map[string]*Item{}}
	d.root.with("version", "2.0")
	text := func(name, s string) node {
		return node{element: &element{name: xml.Name{Local: name}, kids: []node{{text: s}}}}
	}
	if kind == OPML {
		d.head = &element{kids: []node{text("title", title)}}
	} else {
		d.container.kids = []node{text("title", title), text("link", link), text("description", description)}
	}
	return d
}

// Append adds items to a document, in OPML as the last ones in their Parent. An item replaces another with
// the same id.
func (d *Document) Append(items ...*Item) {
	for _, it := range items {
		if old := d.byID[it.ID]; old != nil {
			d.replace(old, it)
			continue
		}
		c := it.clone()
		d.byID[it.ID] = c
		d.items = append(d.items, c)
	}
}

// replace replaces an item by another with the same id, at its place.
func (d *Document) replace(old, it *Item) {
	within := old.within
	*old = *it.clone()
	old.within = within
}
