// Package feedsync implements Simple Sharing Extensions 0.91 for RSS and OPML: several
// endpoints edit copies of the same items, and make them equal again by reading each
// other's documents. The package has the model of sections 2 to 5, reads and writes
// documents, and merges them. It uses neither disk nor network, and knows nothing of feeds.
// Section numbers are those of the specification,
// https://www.microsoft.com/schemas/rss/sse.
//
// An [Item] is a value: [Create], [Item.Update], [Item.Resolve] and [Merge] return new
// ones. A [Document] is a tree of items with the elements around them. Unknown elements and
// attributes are kept; comments and white space between elements are dropped. A content is
// kept as the bytes of a document: the prefixes sx and lektor are bound at the root, other
// namespaces at their use as ns1, ns2 and so on. Equal contents are therefore equal bytes.
//
// Values may be read by several goroutines, but not while one changes them.
package feedsync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// XML namespaces:
const (
	Namespace     = "https://www.microsoft.com/schemas/rss/sse" // section 1.1
	namespaceHTTP = "http://www.microsoft.com/schemas/rss/sse"  // in many documents
	// LektorNamespace is the namespace of our extensions.
	LektorNamespace = "https://github.com/lektordir/lektor/share"

	namespaceXML      = "http://www.w3.org/XML/1998/namespace"
	namespaceFeedSync = "http://feedsync.org/2007/feedsync"
)

// SpecVersion is the version of the specification, for sx:sharing (section 2.1).
const SpecVersion = "0.91"

// MaxVersion is the greatest version of an item that is accepted. A float64, the number of
// many languages, represents all versions exactly.
const MaxVersion = 1 << 53

// Limits of an item. Each depends on the item alone, so all endpoints apply it in the same
// way.
const (
	// KeepUpdates is the number of updates that an item keeps besides the last (section 4.2,
	// step 2.3).
	KeepUpdates = 25
	// MaxConflicts is the number of conflicts that an item keeps: the greatest in the order
	// of section 5.2.
	MaxConflicts = 32
	// MaxContent is the maximum length of a content, in bytes.
	MaxContent = 64 << 10
)

// BoundError is the error for an edit that would exceed a limit of an item.
type BoundError struct{ ID, Reason string }

func (e *BoundError) Error() string { return "item " + brief(e.ID) + ": " + e.Reason }

// tooLong is the reason to skip a content.
const tooLong = "it is longer than 64 KiB"

// Kind is the kind of a document.
type Kind uint8

// The kinds of documents.
const (
	RSS  Kind = iota + 1 // items are item elements of a channel
	OPML                 // items are outlines of the body, at any depth
)

// String returns the name of an item's element.
func (k Kind) String() string { return [...]string{RSS: "item", OPML: "outline"}[k] }

// Update is an edit: its time and endpoint, the attributes of sx:history and sx:update
// (sections 2.4, 2.5). One of the two may be absent.
type Update struct {
	When time.Time // whole seconds, in UTC; zero if absent
	By   string    // endpoint; "" if absent
}

// compare orders updates by time, oldest first, then by endpoint. Absent values come first
// (section 4.4).
func (u Update) compare(o Update) int {
	return cmp.Or(u.When.Compare(o.When), strings.Compare(u.By, o.By))
}

// Item is an item of a document (section 2.3).
type Item struct {
	ID       string
	Version  uint64 // from 1
	Deleted  bool   // the item is a tombstone
	Conflict bool
	// History has the last update first, then the earlier ones that were kept.
	History []Update
	// Conflicts are the unresolved losers (section 5.2), in no particular order. A loser's
	// earlier updates show that a resolution of the conflict knew them. It has no content if
	// its sx:conflict has none.
	Conflicts []*Item
	// Settled are edits that lost without a conflict, because they meant the same. The next
	// edit adds them to its history, so that their old copies do not conflict with it.
	Settled []Update
	// Parent is, in OPML, the id of the item that holds this one, "" for the body. Edits by
	// several endpoints may make a cycle, see [Parents].
	Parent string
	// Content is the element, item or outline, without its sx:sync and inner items. The prefixes sx and lektor
	// are bound at the root of each document.
	Content []byte

	line       int
	inert      bool  // not merged, and kept only to be written again
	unfinished bool  // an error is inside it, so it is not an item
	within     *Item // the outline around it in the document that was read, nil for the body
	extra      *extra
}

// Head returns the last update.
func (it *Item) Head() Update {
	if len(it.History) == 0 {
		return Update{}
	}
	return it.History[0]
}

// clone returns a copy of the item that is in no document.
func (it *Item) clone() *Item {
	c := *it
	c.within = nil
	return &c
}

// WithContent returns the item with another content of the same meaning, which is not an edit. The content
// is an element, item or outline, in the form of [Canonical], without an sx:sync.
func (it *Item) WithContent(content []byte) (*Item, error) {
	if len(content) > MaxContent {
		return nil, &BoundError{it.ID, tooLong}
	}
	next := it.clone()
	next.Content = content
	return next, nil
}

// Blank is [Item.WithContent] with the content also in the conflicts of the item.
func (it *Item) Blank(content []byte) *Item {
	next := it.clone()
	next.Content, next.Conflicts = content, nil
	for _, c := range it.Conflicts {
		next.Conflicts = append(next.Conflicts, &Item{ID: c.ID, Version: c.Version, Deleted: c.Deleted,
			History: c.History[:1], Content: content})
	}
	return next
}

// Canonical returns content in canonical form, "" if it cannot be parsed. Contents with the
// same meaning have the same form.
func Canonical(content []byte) string {
	e, err := readElement(content)
	if err != nil {
		return ""
	}
	return string(e.content())
}

// Value returns an attribute of the item's element, "" if it is missing. namespace is ""
// for attributes without one.
func (it *Item) Value(namespace, name string) string {
	e, err := readElement(it.Content)
	if err != nil {
		return ""
	}
	return e.attr(namespace, name)
}

// Children returns the texts of the children of the item's element with a name, without those of inner
// items.
func (it *Item) Children(namespace, name string) (texts []string) {
	e, err := readElement(it.Content)
	if err != nil {
		return nil
	}
	for _, k := range e.kids {
		if k.element != nil && k.is(namespace, name) {
			texts = append(texts, k.element.text())
		}
	}
	return texts
}

// Problem is a defect of a part of a document.
type Problem struct {
	Line   int
	ID     string // id of the item, if it has one
	Reason string
	// Warning is true if nothing was skipped because of the problem.
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
	// Problems are the first problems, MoreProblems is the number of further ones.
	Problems     []Problem
	MoreProblems int
	// Plain is the number of items without an sx:sync, which are not merged.
	Plain int
	// Taken is the number of items that [ParseItems] has passed on.
	Taken int

	plainLine, dateLine int // lines of the first item without an sx:sync, and of the first date not [inForm]

	root, container element  // without inner elements
	head            *element // head of OPML
	sharing         *element // sx:sharing that was read; nil to write Sharing
	items           []*Item  // the inert ones, too; those of one parent in order
	byID            map[string]*Item
}

// Item returns the item with an id, or nil.
func (d *Document) Item(id string) *Item { return d.byID[id] }

// Len returns the number of items.
func (d *Document) Len() int { return len(d.byID) }

// Items returns the items. Those of one parent are in the order of the document.
func (d *Document) Items() []*Item {
	return slices.DeleteFunc(slices.Clone(d.items), func(it *Item) bool { return it.inert })
}

// Faults returns Problems, and warnings of breaches of the specification that the parser tolerates. An
// item often has the same breach as all others, so only the first one is named.
func (d *Document) Faults() []Problem {
	out := slices.Clip(d.Problems)
	if d.Plain > 0 {
		out = append(out, Problem{Line: d.plainLine, Warning: true,
			Reason: fmt.Sprintf("%s without sx:sync (section 2.3), not merged",
				humanize.Count(d.Plain, d.Kind.String()))})
	}
	if d.dateLine > 0 {
		out = append(out, Problem{Line: d.dateLine, Warning: true,
			Reason: "a date is not in GMT with a year of four digits (section 1.2)"})
	}
	return out
}

// maxProblems is the maximum number of problems that are kept.
const maxProblems = 1000

func (d *Document) problem(p Problem) {
	if len(d.Problems) >= maxProblems {
		d.MoreProblems++
		return
	}
	d.Problems = append(d.Problems, p)
}
