// Package feedsync is Simple Sharing Extensions 0.91 for RSS and OPML: items that
// several endpoints edit, each in its own copy, and that become the same again by
// reading each other's documents. It has the model of sections 2 to 5, reads and
// writes documents, and merges them; it touches neither disk nor network, and knows
// nothing of feeds. Sections are those of the specification,
// https://www.microsoft.com/schemas/rss/sse.
//
// An [Item] is a value: [Create], [Item.Update], [Item.Resolve] and [Merge] give new
// ones, and change none. A [Document] is a tree of items with what stands around them.
// Unknown elements and attributes keep their names and contents; comments and white space
// between elements are dropped. A content is kept as the bytes that stand in a document:
// sx and lektor are bound at the root, other namespaces where they are used, to ns1, ns2
// and so on. Equal contents are therefore equal bytes.
//
// Nothing here is safe for concurrent use, unless it is only read.
package feedsync

import (
	"cmp"
	"errors"
	"fmt"
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
	Deleted bool    // it was a deletion
	Parent  string  // in OPML, the id of the parent; "" for the body
	content []byte  // the loser's element
	rest    rest    // what else stood in the sx:conflict
	notes   []noted // of its updates
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

	line    int
	inert   bool // it takes no part, and stands here because it was read
	stands  standing
	content []byte // the element without its sx:sync and without kids
	kids    []*Item
	extra   *extra
}

// standing is where an item of OPML stands in its document.
type standing uint8

const (
	inParent  standing = iota // in the item that Parent names
	elsewhere                 // in another, as that one is not here
	uncircled                 // at the root, as it would be within itself; this is shown as a conflict, and is none
)

// notes returns what is unknown in the updates of an item.
func (it *Item) notes() []noted {
	if it.extra == nil {
		return nil
	}
	return it.extra.updates
}

// Head is the last modification.
func (it *Item) Head() Update {
	if len(it.History) == 0 {
		return Update{}
	}
	return it.History[0]
}

// clone copies an item, without the items within it.
func (it *Item) clone() *Item {
	c := *it
	c.kids = nil
	return &c
}

// Recast returns the item with another content that means the same. It is no edit.
func (it *Item) Recast(content []byte) (*Item, error) {
	next := it.clone()
	return next, next.SetContent(content)
}

// Blank returns the item with another content, in its conflicts, too. It is no edit.
func (it *Item) Blank(content []byte) (*Item, error) {
	next, err := it.Recast(content)
	next.Conflicts = nil
	for _, c := range it.Conflicts {
		next.Conflicts = append(next.Conflicts, &Conflict{Version: c.Version, Update: c.Update, Deleted: c.Deleted, content: next.content})
	}
	return next, err
}

// SetContent sets the content of an item: a well-formed element, item or outline. The
// prefixes sx and lektor are bound; it declares the other namespaces that it uses. An
// sx:sync in it is an error.
func (it *Item) SetContent(content []byte) error {
	e, err := readElement(content)
	if err != nil {
		return err
	}
	for _, k := range e.kids {
		if k.element != nil && k.is(Namespace, "sync") {
			return errors.New("a content has no sx:sync")
		}
	}
	return it.PutContent(e.content())
}

// PutContent is [Item.SetContent] for a content in the form that [Canonical] returns,
// which is not read again.
func (it *Item) PutContent(content []byte) error {
	if len(content) > MaxContent {
		return &BoundError{it.ID, tooLong}
	}
	it.content = content
	return nil
}

// Content returns the element without its sx:sync and without items in it. The prefixes sx
// and lektor are bound around it, as in each document.
func (it *Item) Content() []byte { return it.content }

// Content returns the element of the modification that lost.
func (c *Conflict) Content() []byte { return c.content }

// Canonical returns content in the form that is equal for contents that mean the same, ""
// for one that cannot be read.
func Canonical(content []byte) string {
	e, err := readElement(content)
	if err != nil {
		return ""
	}
	return string(e.content())
}

// Value returns an attribute of the item's element, "" when there is none: one of a
// namespace, or "" for those of none.
func (it *Item) Value(namespace, name string) string {
	e, err := readElement(it.content)
	if err != nil {
		return ""
	}
	return e.attr(namespace, name)
}

// ChildText returns the text of the first child of the item's element with a name,
// and whether there is one. It does not look into items within.
func (it *Item) ChildText(namespace, name string) (string, bool) {
	var found string
	ok := false
	_ = EachChild(it.content, func(ns, n, text string) {
		if !ok && ns == namespace && n == name {
			found, ok = text, true
		}
	})
	return found, ok
}

// EachChild calls f for each child of an element, with its namespace, its name and
// the text that is directly in it.
func EachChild(content []byte, f func(namespace, name, text string)) error {
	e, err := readElement(content)
	if err != nil {
		return err
	}
	for _, k := range e.kids {
		if k.element != nil {
			f(k.name.Space, k.name.Local, k.element.text())
		}
	}
	return nil
}

// Problem is what is wrong with a part of a document that is otherwise good.
type Problem struct {
	Line   int
	ID     string // of the item, if it has one
	Reason string
	// Warning reports that nothing is skipped for it.
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

// Document is a document with items.
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
	// Known is the number of items that [ParseNews] has not kept.
	Known int

	root, container element  // without what stands below
	head            *element // of OPML
	sharing         *element // as it was read; nil when it is written anew
	kids            []*Item
	byID            map[string]*Item
}

// Item returns the item with an id, or nil.
func (d *Document) Item(id string) *Item { return d.byID[id] }

// Len is the number of items.
func (d *Document) Len() int { return len(d.byID) }

// Items lists the items in the order of the document.
func (d *Document) Items() []*Item {
	out := make([]*Item, 0, len(d.byID))
	var down func(kids []*Item)
	down = func(kids []*Item) {
		for _, it := range kids {
			if !it.inert {
				out = append(out, it)
			}
			down(it.kids)
		}
	}
	down(d.kids)
	return out
}

// maxProblems is how many problems of a document are kept.
const maxProblems = 1000

func (d *Document) problem(p Problem) {
	if len(d.Problems) >= maxProblems {
		d.MoreProblems++
		return
	}
	d.Problems = append(d.Problems, p)
}
