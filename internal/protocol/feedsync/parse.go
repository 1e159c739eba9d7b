package feedsync

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/charset"
)

// Limits of [Parse].
const (
	maxDepth   = 256 // nesting of outlines; deeper ones are skipped
	maxNesting = 100 // nesting of elements in an item
)

const tooDeep = "an element is within more than 100 others"

// NotSharedError is the error for a document that cannot hold items.
type NotSharedError struct{ Reason string }

func (e *NotSharedError) Error() string { return e.Reason }

// errFeedSync is the error for the successor of the specification, which counts updates
// differently.
var errFeedSync = &NotSharedError{"it is FeedSync 1.0, the successor of Simple Sharing, which is not supported: its items count updates differently"}

// Parse parses a document. Invalid items, and all but the winner of several items with one
// id, are skipped: they stay in the document, are not merged, and are in Problems.
//
// The error is a [*NotSharedError] or, if the document is cut off or not well-formed, a
// [*SyntaxError]. With a SyntaxError, Parse returns the part before the error, to be merged
// but not written: the items that ended before it. Outlines inside an outline that did not
// end are included if their parent is known, because its sx:sync stands before them.
func Parse(data []byte) (*Document, error) { return ParseItems(data, nil) }

// ParseItems is [Parse] for a document that may be large: items of RSS are passed to take, unless it is nil,
// and not kept. If several items have one id, all are passed.
func ParseItems(data []byte, take func(*Item)) (*Document, error) {
	p := &parser{take: take, reader: newReader(asUTF8(data)), d: &Document{byID: map[string]*Item{}}}
	err := p.document()
	if errors.As(err, new(*SyntaxError)) {
		p.rescue()
		return p.d, err
	}
	if err != nil {
		return nil, err
	}
	if !p.contained {
		return nil, &NotSharedError{"it has no <" + p.d.Kind.container() + ">"}
	}
	p.d.adopt(p.d.kids, "")
	return p.d, nil
}

// container returns the name of the element that holds the items.
func (k Kind) container() string {
	if k == OPML {
		return "body"
	}
	return "channel"
}

// rescue makes a document from the part before an error.
func (p *parser) rescue() {
	d, known := p.d, true
	d.adopt(d.kids, "")
	for _, o := range p.open {
		switch o.role {
		case roleContainer:
			d.kids = o.items
			d.adopt(d.kids, "")
		case roleItem:
			// An outline without an sx:sync may have it after its inner items.
			it := &Item{}
			if known = known && p.sync(it, o.element) == ""; !known {
				d.drop(o.items)
				continue
			}
			d.adopt(o.items, it.ID)
			d.kids = append(d.kids, o.items...)
		}
	}
}

// drop removes items from the document, with their inner items.
func (d *Document) drop(items []*Item) {
	for _, it := range items {
		if d.byID[it.ID] == it {
			delete(d.byID, it.ID)
		}
		d.drop(it.kids)
	}
}

// asUTF8 returns a document in UTF-8. Invalid bytes stay if it declares no other charset.
func asUTF8(data []byte) []byte {
	declaration, _, _ := bytes.Cut(data[:min(len(data), 200)], []byte("?>"))
	other := bytes.HasPrefix(declaration, []byte("<?xml")) && bytes.Contains(declaration, []byte("encoding")) &&
		!bytes.Contains(bytes.ToLower(declaration), []byte("utf-8"))
	utf16 := bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
	if utf16 || other && !utf8.Valid(data) {
		data, _ = charset.Decode(data, "")
	}
	return bytes.TrimPrefix(data, []byte("\ufeff"))
}

// role is the meaning of an element for the parser.
type role uint8

const (
	roleOther role = iota
	roleRoot
	roleHead      // OPML's head
	roleContainer // channel or body
	roleItem
)

// open is an element whose end tag was not read yet.
type open struct {
	*element
	role    role
	nesting int     // number of elements without a role around it
	level   int     // number of items around it, and itself
	items   []*Item // directly within
	tooDeep bool    // an element within was skipped
}

// parser parses a document or, without d, a single element of any kind.
type parser struct {
	*reader
	d         *Document
	open      []open
	root      *element
	take      func(*Item) // argument of ParseItems
	contained bool        // the container was read
	deep      bool        // the problem of outlines that are too deep was reported
}

// document parses the whole document.
func (p *parser) document() error {
	for {
		tok, line, err := p.next(len(p.open) == 0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if err := p.start(t, line); err != nil {
				return err
			}
		case xml.EndElement:
			p.end()
		case xml.CharData:
			p.text(t)
		}
	}
}

// text adds text to the open element.
func (p *parser) text(t xml.CharData) {
	o := &p.open[len(p.open)-1]
	if o.role != roleOther && len(bytes.Trim(t, space)) == 0 {
		return
	}
	// Text that a comment or CDATA divides is joined.
	if n := len(o.kids); n > 0 && o.kids[n-1].element == nil {
		o.kids[n-1].text += string(t)
		return
	}
	o.kids = append(o.kids, node{text: string(t)})
}

// start handles a start tag.
func (p *parser) start(t xml.StartElement, line int) error {
	if len(p.open) == 0 && p.d != nil && t.Name.Space != Namespace && t.Name.Space != namespaceHTTP &&
		t.Name.Space != LektorNamespace {
		p.reader.root = t.Name.Space
	}
	e, err := p.element(t, line)
	if err != nil {
		return err
	}
	next := open{element: e}
	switch {
	case len(p.open) == 0:
		next.role = roleRoot
		if err := p.kind(e); err != nil {
			return err
		}
	case p.d != nil:
		if err := p.feedSync(e); err != nil {
			return err
		}
		next.role = p.roleOf(e)
	}
	if n := len(p.open); n > 0 && next.role == roleOther {
		if next.nesting = p.open[n-1].nesting + 1; p.open[n-1].role == roleItem && e.is(Namespace, "sync") {
			next.nesting = -10 // a content may become a conflict, which is nested deeper
		}
		switch {
		case p.d == nil && next.nesting > 2*maxNesting:
			return p.fail(line, tooDeep)
		case p.d != nil && next.nesting > maxNesting:
			p.tooDeep(line)
			return p.check(p.Skip())
		}
	}
	if len(p.open) > 0 {
		next.level = p.open[len(p.open)-1].level
	}
	if next.role == roleItem {
		next.level++
	}
	if next.level > maxDepth {
		if !p.deep {
			p.deep = true
			p.d.problem(Problem{Line: line, Reason: fmt.Sprintf("outlines are within more than %d others", maxDepth)})
		}
		return p.check(p.Skip())
	}
	p.open = append(p.open, next)
	return nil
}

// kind sets the kind of the document by its root element.
func (p *parser) kind(e *element) error {
	switch {
	case p.d == nil:
	case e.is("", "rss"):
		p.d.Kind = RSS
	case e.is("", "opml"):
		p.d.Kind = OPML
	default:
		return &NotSharedError{fmt.Sprintf("it is neither RSS nor OPML, but begins with <%s>", brief(e.name.Local))}
	}
	return nil
}

// roleOf returns the role of an element inside the open one.
func (p *parser) roleOf(e *element) role {
	if e.name.Space != "" {
		return roleOther
	}
	around := p.open[len(p.open)-1].role
	switch {
	case around == roleRoot && !p.contained && e.name.Local == p.d.Kind.container():
		p.contained = true
		return roleContainer
	case around == roleRoot && p.d.Kind == OPML && e.name.Local == "head":
		return roleHead
	case (around == roleContainer || around == roleItem && p.d.Kind == OPML) && e.name.Local == p.d.Kind.String():
		return roleItem
	}
	return roleOther
}

// feedSync returns an error if an element has attributes of FeedSync.
func (p *parser) feedSync(e *element) error {
	for _, a := range e.attrs {
		switch {
		case a.Name == xml.Name{Local: "updates"} && e.is(Namespace, "sync"),
			a.Name == xml.Name{Local: "sequence"} && (e.is(Namespace, "history") || e.is(Namespace, "update")):
			return errFeedSync
		}
	}
	return nil
}

// tooDeep reports that an element is skipped because it is nested too deep.
func (p *parser) tooDeep(line int) {
	for i := len(p.open) - 1; i >= 0; i-- {
		if o := &p.open[i]; o.role == roleItem {
			o.tooDeep = true
			return
		}
	}
	p.d.problem(Problem{Line: line, Reason: tooDeep})
}

// end handles an end tag.
func (p *parser) end() {
	n := len(p.open) - 1
	o := p.open[n]
	p.open = p.open[:n]
	if o.role == roleOther {
		o.tidy(false)
	}
	if n == 0 {
		if p.root = o.element; p.d != nil {
			p.d.root = *o.element
		}
		return
	}
	parent := &p.open[n-1]
	switch {
	case o.role == roleContainer:
		p.d.container, p.d.kids = *o.element, o.items
	case o.role == roleItem:
		if it := p.item(&o); it != nil {
			parent.items = append(parent.items, it)
		}
	case p.d != nil && o.is(Namespace, "sharing") && (parent.role == roleRoot || parent.role == roleHead ||
		parent.role == roleContainer && p.d.Kind == RSS) && p.sharing(o.element, parent.role):
	case o.role == roleHead && p.d.head == nil:
		p.d.head = o.element
	default:
		parent.kids = append(parent.kids, node{element: o.element})
	}
}

// item returns the item of an element, nil for one that was taken, and decides whether it is
// merged.
func (p *parser) item(o *open) *Item {
	it := &Item{line: o.line, kids: o.items}
	bad := p.sync(it, o.element)
	if bad == "" && o.tooDeep {
		bad = tooDeep
	}
	switch {
	case bad == noSync:
		p.d.Plain++
		p.d.plainLine = cmp.Or(p.d.plainLine, it.line)
	case bad != "":
		p.d.problem(Problem{Line: it.line, ID: it.ID, Reason: bad})
	case p.take != nil && p.d.Kind == RSS:
		p.take(it)
		p.d.Taken++
		return nil
	default:
		p.add(it)
		return it
	}
	*it = Item{line: it.line, kids: o.items, inert: true, Content: o.content()}
	return it
}

// add adds an item to the document, unless another one with the same id wins.
func (p *parser) add(it *Item) {
	old := p.d.byID[it.ID]
	if old == nil {
		p.d.byID[it.ID] = it
		return
	}
	loser := it
	if c := Compare(it, old); c > 0 || c == 0 && bytes.Compare(it.Content, old.Content) > 0 {
		loser = old
		p.d.byID[it.ID] = it
	}
	loser.inert = true
	p.d.problem(Problem{Line: loser.line, ID: it.ID, Reason: "another item with the same id wins"})
}

// adopt sets the parents of items, after all valid items are known.
func (d *Document) adopt(items []*Item, parent string) {
	for _, it := range items {
		within := parent
		if !it.inert {
			within = it.ID
			switch {
			case it.stands == inParent:
				it.Parent = parent
			case it.Parent == rootParent:
				it.Parent = ""
			}
			switch {
			case it.Parent == parent:
				it.stands = inParent
			case it.Conflict && len(it.Conflicts) == 0:
				it.stands, it.Conflict = cycleRoot, false
			default:
				it.stands = elsewhere
			}
		}
		d.adopt(it.kids, within)
	}
}

// rootParent is the attribute value for the body as parent. It is not a valid id.
const rootParent = "/"

// parseVersion reads a version (section 2.3).
func parseVersion(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n >= 1 && n <= MaxVersion && strings.Trim(s, "0123456789") == ""
}
