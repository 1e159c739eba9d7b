// Package feedsync is Simple Sharing Extensions 0.91 for RSS and OPML: items that
// several endpoints edit, each in its own copy, and that become the same again by
// reading each other's documents. It has the model of sections 2 to 5, reads and
// writes documents, and merges them; it touches neither disk nor network, and knows
// nothing of feeds. Sections are those of the specification,
// https://www.microsoft.com/schemas/rss/sse.
//
// An [Item] is a value: [Create], [Item.Update], [Item.Resolve] and [Merge] give new
// ones, and change none. A [Document] is a tree of items with all that stands
// around them, kept as the bytes that were read: what is not changed is written as
// it came, unknown attributes, elements, comments and white space included.
//
// Nothing here is safe for concurrent use, unless it is only read.
package feedsync

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Namespaces of XML.
const (
	Namespace     = "https://www.microsoft.com/schemas/rss/sse" // section 1.1
	namespaceHTTP = "http://www.microsoft.com/schemas/rss/sse"  // as many write it
	// LektorNamespace is that of what the specification has no place for.
	LektorNamespace = "https://github.com/lektordir/lektor/share"

	namespaceXML      = "http://www.w3.org/XML/1998/namespace"
	namespaceFeedSync = "http://feedsync.org/2007/feedsync"
)

// SpecVersion is the version of the specification, for sx:sharing (section 2.1).
const SpecVersion = "0.91"

// MaxVersion is the greatest version of an item that is read: up to it all
// languages in which endpoints are written can count.
const MaxVersion = 1 << 53

// Limits of an item. Each is a function of the item alone, so that every endpoint cuts
// or skips the same.
const (
	// KeepUpdates is how many updates an item keeps behind the last (section 4.2, step 2.3).
	KeepUpdates = 25
	// MaxConflicts is how many conflicts an item keeps: the greatest, in the order of
	// section 5.2.
	MaxConflicts = 32
	// MaxContent is the length of the longest element that is read as a content, in bytes.
	MaxContent = 64 << 10
)

// BoundError is the error for an edit that would take an item beyond a limit.
type BoundError struct{ ID, Reason string }

func (e *BoundError) Error() string {
	if e.ID == "" {
		return e.Reason
	}
	return "item " + brief(e.ID) + ": " + e.Reason
}

// tooLong is the reason to skip a content.
const tooLong = "it is longer than 64 KiB"

// Kind is what a document is.
type Kind uint8

// The kinds of documents.
const (
	RSS  Kind = iota + 1 // items are item elements of a channel
	OPML                 // items are outlines of the body, at any depth
)

// String is the name of an item's element.
func (k Kind) String() string {
	if k == OPML {
		return "outline"
	}
	return "item"
}

// Update is who modified an item, and when: the attributes of sx:history and
// sx:update (sections 2.4, 2.5). One of the two may be absent.
type Update struct {
	When time.Time // of whole seconds, in UTC; zero when absent
	By   string    // the endpoint; "" when absent
}

// compare orders updates: when, then by, absent before all (section 4.4).
func (u Update) compare(o Update) int {
	return cmp.Or(u.When.Compare(o.When), strings.Compare(u.By, o.By))
}

// Conflict is a modification that lost against another (section 5.2).
type Conflict struct {
	Version uint64
	Update
	// Updates are those before it, newest first, so that whoever resolves the
	// conflict can tell that it knew of them.
	Updates []Update
	Deleted bool   // it was a deletion
	Parent  string // in OPML, the id of the parent; "" for the body
	// content is the loser's element, without its sx:sync, and what else stood
	// in the sx:conflict.
	content []byte
	ns      []binding // of prefixes in content and attrs
	attrs   []byte    // those that are not known, each with a space before it
}

// Item is an item of a document (section 2.3).
type Item struct {
	ID       string
	Version  uint64 // from 1
	Deleted  bool   // it is a tombstone
	Conflict bool
	// History has the last modification first, then those before it, as far as
	// they were kept.
	History []Update
	// Conflicts are the losers that are not resolved, in no order that means
	// anything.
	Conflicts []*Conflict
	// Settled are modifications that lost against this one without a conflict, as
	// they meant the same. The next edit puts them behind its own: an old copy of
	// one is no news to it.
	Settled []Update
	// Parent is, in OPML, the id of the item that this one is in, "" for the
	// body. It is as its last editor left it: what comes of several edits may be
	// a circle, see [Parents].
	Parent string

	line  int
	inert bool // it takes no part, and stands here because items are within it
	// placed tells, while a document is read, that Parent is not the item around.
	placed bool
	// circle tells that it is at the root as it would be within itself otherwise: that
	// is shown as a conflict, and is none of the item's.
	circle bool
	// changed tells, while a document is read, that limits took some of its sx:sync.
	changed bool
	open    []byte
	kids    []kid
	end     []byte    // the end tag
	sync    []byte    // the sx:sync as it was read; nil when it is to be written anew
	ns      []binding // of prefixes that the element has from outside
	extra   *extra
	source  []byte // the whole element as it was read; nil when anything was changed
}

// extra is what sx:sync has beyond what is known.
type extra struct {
	sync, history     []byte // attributes, each with a space before it
	inSync, inHistory []byte // children
	updates           []noted
	// inside are the bindings that stand in the tags of sx:sync, sx:history and
	// sx:update.
	inside []binding
	// declares are the bindings that stand in the element's own start tag.
	declares []binding
}

// noted is what an sx:update has beyond who and when.
type noted struct {
	Update
	attrs, within []byte
}

// notes gives what is unknown in the updates of an item.
func (it *Item) notes() []noted {
	if it.extra == nil {
		return nil
	}
	return it.extra.updates
}

// declares counts the bindings that stand in the element's own start tag.
func (it *Item) declares() int {
	if it.extra == nil {
		return 0
	}
	return len(it.extra.declares)
}

// kid is what stands in an element: an item, a mark, or else raw XML.
type kid struct {
	raw  []byte
	item *Item
}

func (k kid) isItem() bool { return k.item != nil && k.item != syncMark && k.item != sharingMark }

// The marks.
var (
	syncMark    = &Item{} // here is the sx:sync
	sharingMark = &Item{} // here is the sx:sharing
)

// binding binds a prefix to a namespace; "" to "" is that none is declared.
type binding struct{ prefix, uri string }

// Line is where the item was read, from 1; 0 for one that was made.
func (it *Item) Line() int { return it.line }

// Head is the last modification.
func (it *Item) Head() Update {
	if len(it.History) == 0 {
		return Update{}
	}
	return it.History[0]
}

// Children counts the items directly within, in the document.
func (it *Item) Children() int {
	n := 0
	for _, k := range it.kids {
		if k.isItem() {
			n++
		}
	}
	return n
}

// clone copies an item, without the items within it.
func (it *Item) clone() *Item {
	c := *it
	c.kids = it.own()
	c.source = nil
	return &c
}

// own gives what stands in the element but for other items, and the white space
// between those.
func (it *Item) own() []kid {
	between := it.Children() > 0
	return slices.DeleteFunc(slices.Clone(it.kids), func(k kid) bool {
		return k.isItem() || between && k.item == nil && len(bytes.Trim(k.raw, space)) == 0
	})
}

// size is the length of the item's content in bytes.
func (it *Item) size() int {
	n := len(it.open) + len(it.end)
	for _, k := range it.own() {
		n += len(k.raw)
	}
	return n
}

// Recast returns the item with another content that means the same. It is no edit.
func (it *Item) Recast(content []byte) (*Item, error) {
	next := it.clone()
	next.sync = nil
	return next, next.SetContent(content)
}

// Blank returns the item with another content, in its conflicts, too. It is no edit.
func (it *Item) Blank(content []byte) (*Item, error) {
	next := it.clone()
	next.sync, next.Conflicts = nil, nil
	for _, c := range it.Conflicts {
		c := &Conflict{Version: c.Version, Update: c.Update, Deleted: c.Deleted}
		c.content = content
		next.Conflicts = append(next.Conflicts, c)
	}
	return next, next.SetContent(content)
}

// SetContent gives an item its content: a well-formed element, item or outline, with
// the namespaces that it uses declared. An sx:sync or an item in it is an error.
func (it *Item) SetContent(element []byte) error {
	p := &parser{scanner: scanner{data: element}}
	c, err := p.fragment()
	if err != nil {
		return err
	}
	if len(c.open) == 0 {
		return errors.New("a content is an element")
	}
	if c.size() > MaxContent {
		return &BoundError{it.ID, tooLong}
	}
	it.source = nil
	it.open, it.kids, it.end, it.ns = c.open, append(c.kids, kid{item: syncMark}), c.end, c.ns
	if it.declares() > 0 {
		x := *it.extra
		x.declares = nil
		it.extra = &x
	}
	return nil
}

// Content gives the element without its sx:sync and without items in it, with the
// namespaces declared that it uses.
func (it *Item) Content() []byte {
	w := &writer{}
	// What sx:sync alone uses is of no use here.
	w.element(it.open, slices.DeleteFunc(slices.Clone(it.ns), func(b binding) bool {
		prefix := []byte(b.prefix + ":")
		uses := func(k kid) bool { return k.item == nil && bytes.Contains(k.raw, prefix) }
		return b.prefix != "" && !bytes.Contains(it.open, prefix) && !slices.ContainsFunc(it.kids, uses)
	}))
	for _, k := range it.own() {
		if k.item == nil {
			w.b = append(w.b, k.raw...)
		}
	}
	w.b = append(w.b, it.end...)
	return w.b
}

// Content gives the element of the modification that lost.
func (c *Conflict) Content() []byte {
	first, _, err := firstElement(c.content, c.ns)
	if err != nil {
		return nil
	}
	return first
}

// Canonical gives content in a form that is equal for documents that mean the same:
// names with their namespaces, attributes in order, no comments, and no white space
// between elements.
func Canonical(content []byte) string {
	p := &parser{scanner: scanner{data: content}}
	var b strings.Builder
	for {
		t, err := p.next()
		if err != nil {
			return b.String()
		}
		switch t.kind {
		case startTag:
			p.push(t)
			b.WriteString("<" + p.expand(t.name, true))
			var attrs []string
			for _, a := range t.attrs {
				if name, declares := declared(a.name); !declares {
					attrs = append(attrs, " "+p.expand(name, false)+`="`+escapeAttr.Replace(unescape(a.value, true))+`"`)
				}
			}
			slices.Sort(attrs)
			b.WriteString(strings.Join(attrs, "") + ">")
		case endTag:
			p.leave()
			b.WriteString("</>")
		case charData, cdata:
			if text := p.textOf(t); strings.Trim(text, space) != "" {
				b.WriteString(escapeText.Replace(text))
			}
		}
	}
}

// Value gives an attribute of the item's element, "" when there is none: one of a
// namespace, or "" for those of none.
func (it *Item) Value(namespace, name string) string {
	return attribute(it.Content(), namespace, name)
}

// attribute gives an attribute of the first element.
func attribute(element []byte, namespace, name string) string {
	p := &parser{scanner: scanner{data: element}}
	t, err := p.next()
	if err != nil || t.kind != startTag {
		return ""
	}
	p.push(t)
	for _, a := range t.attrs {
		if p.is(a.name, namespace, name, false) {
			return unescape(a.value, true)
		}
	}
	return ""
}

// ChildText gives the text of the first child of the item's element with a name,
// and whether there is one. It does not look into items within.
func (it *Item) ChildText(namespace, name string) (string, bool) {
	var found string
	ok := false
	_ = EachChild(it.Content(), func(ns, n, text string) {
		if !ok && ns == namespace && n == name {
			found, ok = text, true
		}
	})
	return found, ok
}

// EachChild calls f for each child of an element, with its namespace, its name and
// the text that is directly in it.
func EachChild(element []byte, f func(namespace, name, text string)) error {
	p := &parser{scanner: scanner{data: element}}
	var ns, name string
	var text strings.Builder
	for {
		t, err := p.next()
		if err != nil {
			if _, bad := err.(*SyntaxError); bad {
				return err
			}
			return nil
		}
		switch t.kind {
		case startTag:
			p.push(t)
			if p.depth() == 2 || p.depth() == 1 {
				ns, name = p.split(t.name, true)
				text.Reset()
			}
		case charData, cdata:
			if p.depth() == 2 {
				text.WriteString(p.textOf(t))
			}
		case endTag:
			if p.leave(); p.depth() == 1 {
				f(ns, name, text.String())
			}
		}
	}
}

// Problem is what is wrong with a part of a document that is otherwise good.
type Problem struct {
	Line   int
	ID     string // of the item, if it has one
	Reason string
	// Warning tells that nothing is skipped for it.
	Warning bool
}

func (p Problem) String() string {
	s := fmt.Sprintf("line %d: ", p.Line)
	if p.ID != "" {
		s += "item " + brief(p.ID) + ": "
	}
	s += p.Reason
	if !p.Warning {
		s += "; skipped"
	}
	return s
}

// Sharing is the sx:sharing of a document (section 2.1). Zero times are absent.
type Sharing struct {
	Since, Until time.Time
	Version      string
	Window       int // days; 0 when absent
	Related      []Related
}

// Related is a feed that is related to a document (section 2.2).
type Related struct {
	Link, Title  string
	Type         string // complete or aggregated
	Since, Until time.Time
}

// Document is a document with items. It is kept as it was read.
type Document struct {
	Kind Kind
	// Sharing is nil in a document without one; see [Document.SetSharing].
	Sharing *Sharing
	// Problems are the first of what is wrong with it, MoreProblems the number of
	// the others.
	Problems     []Problem
	MoreProblems int
	// Plain is the number of items without an sx:sync, which take no part.
	Plain int

	head    []kid // up to and with the start tag of the channel or body
	kids    []kid
	tail    []kid  // from its end tag on
	sharing []byte // as it was read; nil when it is to be written anew
	scope   []binding
	byID    map[string]*Item
	broken  bool // it was not read to its end
}

// Item gives the item with an id, or nil.
func (d *Document) Item(id string) *Item { return d.byID[id] }

// Len is the number of items.
func (d *Document) Len() int { return len(d.byID) }

// Items lists the items in the order of the document.
func (d *Document) Items() []*Item {
	out := make([]*Item, 0, len(d.byID))
	var down func(kids []kid)
	down = func(kids []kid) {
		for _, k := range kids {
			if !k.isItem() {
				continue
			}
			if !k.item.inert {
				out = append(out, k.item)
			}
			down(k.item.kids)
		}
	}
	down(d.kids)
	return out
}

// maxProblems is how many problems of a document are told.
const maxProblems = 1000

func (d *Document) problem(p Problem) {
	if len(d.Problems) >= maxProblems {
		d.MoreProblems++
		return
	}
	d.Problems = append(d.Problems, p)
}

// firstElement gives the first element of a content that has no root, with the
// namespaces declared that it uses, and the offset behind it.
func firstElement(content []byte, ns []binding) ([]byte, int, error) {
	// A root makes a document of it.
	const root = "<r>"
	s := scanner{data: slices.Concat([]byte(root), content, []byte("</r>"))}
	begin, name := -1, 0
	ns = slices.Clone(ns)
	for {
		t, err := s.next()
		if err != nil {
			return nil, 0, err
		}
		switch {
		case t.kind == startTag && s.depth() == 2:
			begin, name = t.begin, len(t.name)
			for _, a := range t.attrs {
				if prefix, declares := declared(a.name); declares {
					ns = slices.DeleteFunc(ns, func(b binding) bool { return b.prefix == string(prefix) })
				}
			}
		case t.kind == endTag && s.depth() == 1 && begin >= 0:
			w := &writer{}
			w.element(s.data[begin:begin+1+name], ns)
			// The tag goes on where the name ends.
			w.b = bytes.TrimSuffix(w.b, []byte(">"))
			w.b = append(w.b, s.data[begin+1+name:t.end]...)
			return w.b, t.end - len(root), nil
		}
	}
}
