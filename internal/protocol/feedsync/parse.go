package feedsync

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/charset"
)

// Limits of [Parse].
const (
	maxDepth   = 256 // nesting of outlines; deeper ones are skipped
	maxNesting = 100 // nesting of elements in an item
)

const tooDeep = "an element is within more than 100 others"

// errFeedSync is the error for the successor of the specification, which counts updates
// differently.
var errFeedSync = errors.New(
	"it is FeedSync 1.0, the successor of Simple Sharing, which is not supported: its items count updates differently")

// Parse parses a document. Invalid items, and all but the winner of several items with one
// id, are skipped: they stay in the document, are not merged, and are in Problems.
//
// If the document is cut off or not well-formed, the error is a [*SyntaxError]. Then Parse
// returns the part before the error, to be merged but not written: the items that ended
// before it. Outlines inside an outline that did not end are included if their parent is
// known, because its sx:sync stands before them.
func Parse(data []byte) (*Document, error) { return ParseItems(data, nil) }

// ParseItems is [Parse] for a document that may be large: items of RSS are passed to take, unless it is nil,
// and not kept. If several items have one id, all are passed.
func ParseItems(data []byte, take func(*Item)) (*Document, error) {
	p := &parser{take: take, reader: newReader(asUTF8(data)), d: &Document{byID: map[string]*Item{}}}
	err := p.document()
	switch {
	case errors.As(err, new(*SyntaxError)):
		p.d.rescue()
	case err != nil:
		return nil, err
	case !p.contained:
		return nil, fmt.Errorf("it has no <%s>", p.d.Kind.container())
	}
	p.d.adopt()
	return p.d, err
}

// container returns the name of the element that holds the items.
func (k Kind) container() string { return [...]string{RSS: "channel", OPML: "body"}[k] }

// rescue removes the items that an error is inside. Those in an outline that did not end stay if that is known
// to be an item: its sx:sync may stand after its inner items.
func (d *Document) rescue() {
	d.items = slices.DeleteFunc(d.items, func(it *Item) bool {
		for around := it; around != nil; around = around.within {
			if around.unfinished && (around == it || around.ID == "") {
				if d.byID[it.ID] == it {
					delete(d.byID, it.ID)
				}
				return true
			}
		}
		return false
	})
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

// parser parses a document or, without d, a single element of any kind.
type parser struct {
	*reader
	d         *Document
	root      *element
	take      func(*Item) // argument of ParseItems
	contained bool        // the container was read
	level     int         // number of items that were begun
	cut       bool        // an element in the last of these was skipped
	deep      bool        // the problem of outlines that are too deep was reported
}

// document parses the whole document.
func (p *parser) document() error {
	tok, line, err := p.next(true)
	if err != nil {
		return err
	}
	t := tok.(xml.StartElement)
	if p.d != nil && t.Name.Space != Namespace && t.Name.Space != namespaceHTTP && t.Name.Space != LektorNamespace {
		p.reader.root = t.Name.Space
	}
	if p.root, err = p.element(t, line); err != nil {
		return err
	}
	child := func(k *element) error { return p.attach(p.root, k, 1, false) }
	if p.d != nil {
		switch child = p.part; {
		case p.root.is("", "rss"):
			p.d.Kind = RSS
		case p.root.is("", "opml"):
			p.d.Kind = OPML
		default:
			return fmt.Errorf("it is neither RSS nor OPML, but begins with <%s>", brief(p.root.name.Local))
		}
	}
	if err := p.inside(p.root, false, child); err != nil {
		return err
	}
	if p.d != nil {
		p.d.root = *p.root
	}
	if _, _, err = p.next(true); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// inside reads the inside of an element. It adds texts, but those of white space only if spaces is true, and
// calls child for each start tag.
func (p *parser) inside(e *element, spaces bool, child func(k *element) error) error {
	for {
		tok, line, err := p.next(false)
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.EndElement:
			return nil
		case xml.CharData:
			if !spaces && len(bytes.Trim(t, space)) == 0 {
				continue
			}
			// Text that a comment or CDATA divides is joined.
			if n := len(e.kids); n > 0 && e.kids[n-1].element == nil {
				e.kids[n-1].text += string(t)
			} else {
				e.kids = append(e.kids, node{text: string(t)})
			}
		case xml.StartElement:
			k, err := p.element(t, line)
			if err == nil {
				err = p.feedSync(k)
			}
			if err == nil {
				err = child(k)
			}
			if err != nil {
				return err
			}
		}
	}
}

// attach reads an element, and adds it to the one around it. nesting is the number of elements around it in an
// item. shared means that it may be the sx:sharing of the document.
func (p *parser) attach(around, e *element, nesting int, shared bool) error {
	switch {
	case p.d == nil && nesting > 2*maxNesting:
		return p.fail(e.line, tooDeep)
	case p.d != nil && nesting > maxNesting:
		if p.cut = true; p.level == 0 {
			p.d.problem(Problem{Line: e.line, Reason: tooDeep})
		}
		return p.check(p.Skip())
	}
	err := p.inside(e, true, func(k *element) error { return p.attach(e, k, nesting+1, false) })
	if err != nil {
		return err
	}
	if e.tidy(false); !shared || !e.is(Namespace, "sharing") || !p.sharing(e, around == p.root) {
		around.add(e)
	}
	return nil
}

// part reads a child of the root element.
func (p *parser) part(e *element) error {
	switch {
	case e.is("", p.d.Kind.container()) && !p.contained:
		p.contained = true
		err := p.inside(e, false, func(k *element) error {
			if k.is("", p.d.Kind.String()) {
				return p.item(k, nil)
			}
			return p.attach(e, k, 1, p.d.Kind == RSS)
		})
		p.d.container = *e
		return err
	case e.is("", "head") && p.d.Kind == OPML:
		err := p.inside(e, false, func(k *element) error { return p.attach(e, k, 1, true) })
		if p.d.head == nil {
			p.d.head = e
		} else {
			p.root.add(e)
		}
		return err
	}
	return p.attach(p.root, e, 1, true)
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

// item reads an item, decides whether it is merged, and adds it to the document, unless it is taken.
func (p *parser) item(e *element, within *Item) error {
	if p.level == maxDepth {
		if !p.deep {
			p.deep = true
			p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf("outlines are within more than %d others", maxDepth)})
		}
		return p.check(p.Skip())
	}
	it, around := &Item{line: e.line, within: within}, p.cut
	p.d.items = append(p.d.items, it)
	p.level++
	p.cut = false
	err := p.inside(e, false, func(k *element) error {
		switch {
		case p.d.Kind == OPML && k.is("", "outline"):
			return p.item(k, it)
		case k.is(Namespace, "sync"):
			return p.attach(e, k, -10, false) // a content may become a conflict, which is nested deeper
		}
		return p.attach(e, k, 1, false)
	})
	cut := p.cut
	p.level--
	p.cut = around
	bad := p.sync(it, e)
	if bad == "" && cut {
		bad = tooDeep
	}
	switch {
	case err != nil:
		if it.unfinished = true; bad != "" {
			it.ID = ""
		}
		return err
	case bad == noSync:
		p.d.Plain++
		p.d.plainLine = cmp.Or(p.d.plainLine, it.line)
	case bad != "":
		p.d.problem(Problem{Line: it.line, ID: it.ID, Reason: bad})
	case p.take != nil && p.d.Kind == RSS:
		p.d.items = p.d.items[:len(p.d.items)-1]
		p.take(it)
		p.d.Taken++
	default:
		p.add(it)
	}
	if bad != "" {
		*it = Item{line: it.line, within: within, inert: true, Content: e.content()}
	}
	return nil
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
func (d *Document) adopt() {
	for _, it := range d.items {
		if it.inert {
			continue
		}
		within := it.within.around()
		switch it.Parent {
		case "":
			it.Parent = within
		case rootParent:
			it.Parent = ""
		}
		if it.Parent != within && len(it.Conflicts) == 0 {
			it.Conflict = false // it was written for an item that would be inside itself
		}
	}
}

// rootParent is the attribute value for the body as parent. It is not a valid id.
const rootParent = "/"
