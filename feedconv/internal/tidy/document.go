// Package tidy makes a clean, bounded tree of an XML document, even if it is malformed.
//
// It reads tokens from package scan. Elements get classes by their namespace, name and place
// (classify.go); those of the format and of vocabularies that have a field become nodes with text
// (construct.go) and attributes (attributes.go), and the others are kept unchanged (foreign.go). If
// a document turns out not to be well-formed, it is read again, and elements without an end tag are
// closed by the elements that follow (defects.go). The tree is written as XML for gofeed (xml.go).
package tidy

import (
	"net/url"
	"slices"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// Options are the options of [Read].
type Options struct {
	Base       *url.URL // base of relative references, nil if it is not known
	MaxEntries int
}

// Document is a document as a tree. Its text is valid UTF-8 without control characters, and its
// URLs are absolute if a base is known.
type Document struct {
	Root     string // the name of the root: rss, rdf, feed or channel
	Version  string // version of RSS
	Atom03   bool
	Feed     *Node // the channel, or the feed of Atom
	Image    *Node // that of RSS 1.0, which stands beside the channel; nil if there is none
	Entries  []*Node
	Head     bool   // the feed says something of itself
	Cut      bool   // the document ends too early
	Lost     string // the first warning of what a limit left out
	Warnings []Warning

	ns []namespace
}

// URI returns the name of a namespace in the document.
func (d *Document) URI(ns vocab.NS) string { return d.ns[ns].uri }

// NotFeed is the error for a document that is not a feed.
type NotFeed struct {
	What string // a noun phrase
	HTML bool
}

func (e *NotFeed) Error() string { return "not a feed: it is " + e.What }

// Node is an element. A nil Node means that the element is absent.
type Node struct {
	// NS is None for elements of the format itself, and Atom10 for all versions of Atom. Foreign is
	// true for an element that has no field, and for everything inside it; elements and attributes
	// in it have their own namespaces.
	NS      vocab.NS
	Foreign bool
	// Name is in lower case, except for foreign elements. It is empty for a piece of text between
	// the children of a foreign element.
	Name     string
	Attrs    []Attr
	Text     string
	Children []*Node
}

// Attr is an attribute. Attributes of feeds and entries are foreign, except rdf:about and xml:lang.
type Attr struct {
	NS          vocab.NS
	Name, Value string
}

// Attr returns an attribute without a namespace.
func (n *Node) Attr(name string) string { return n.AttrNS(vocab.None, name) }

// AttrNS returns an attribute of a namespace.
func (n *Node) AttrNS(ns vocab.NS, name string) string {
	if n != nil {
		for i := range n.Attrs {
			if a := &n.Attrs[i]; a.Name == name && a.NS == ns {
				return a.Value
			}
		}
	}
	return ""
}

// Value returns the text of an element.
func (n *Node) Value() string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Child returns the last child that has one of names and belongs to the format itself.
func (n *Node) Child(names ...string) *Node {
	if n != nil {
		for i := len(n.Children) - 1; i >= 0; i-- {
			if c := n.Children[i]; c.NS == vocab.None && !c.Foreign {
				for _, name := range names {
					if c.Name == name {
						return c
					}
				}
			}
		}
	}
	return nil
}

// All returns the children of a name that have a field.
func (n *Node) All(ns vocab.NS, name string) []*Node {
	var list []*Node
	if n != nil {
		for _, c := range n.Children {
			if c.Name == name && c.NS == ns {
				list = append(list, c)
			}
		}
	}
	return list
}

// has reports whether there is an attribute.
func (n *Node) has(ns vocab.NS, name string) bool {
	return slices.ContainsFunc(n.Attrs, func(a Attr) bool { return a.Name == name && a.NS == ns })
}

// set sets an attribute, unless it is set already.
func (n *Node) set(ns vocab.NS, name, value string) {
	if n.has(ns, name) {
		return
	}
	if n.Attrs == nil {
		n.Attrs = make([]Attr, 0, 4)
	}
	n.Attrs = append(n.Attrs, Attr{ns, name, value})
}

// replace sets an attribute and overwrites an old value; an empty value counts as absent.
func (n *Node) replace(ns vocab.NS, name, value string) {
	n.Attrs = slices.DeleteFunc(n.Attrs, func(a Attr) bool { return a.Name == name && a.NS == ns })
	if value != "" {
		n.set(ns, name, value)
	}
}
