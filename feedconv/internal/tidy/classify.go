package tidy

import (
	"strings"
	"sync"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// kind is the way in which an element is handled.
type kind uint8

const (
	kText        kind = iota // a text construct: one string, child tags are markup in it
	kStruct                  // an element with children
	kTransparent             // its tags go, its children stay
	kEntry
	kFeed    // <channel>
	kForeign // an element of another vocabulary, kept as it is
	kRoot
)

// role is the meaning of the string of a text construct.
type role uint8

const (
	rolePlain role = iota
	roleURL
	roleID         // an identifier, kept byte for byte
	roleHTML       // HTML, in which URLs are resolved
	roleAtomText   // by its type attribute
	roleAtomLink   // <link href>
	roleTerm       // <category term>
	roleRSSLink    // <link>, or an Atom link without its namespace
	roleEnclosure  // <enclosure url>
	roleItemImage  // an <image> in an item: its URL
	rolePerson     // an author, as text or with children
	roleAttributes // attributes only
	roleDrop       // nothing
)

// level is the part of the document that contains an element, as far as classify distinguishes
// parts.
type level uint8

const (
	inRoot level = iota
	inFeed
	inList // in what only holds entries
	inEntry
	inCategories
	inStruct  // in a native element with children
	inExt     // in an element of another vocabulary that is read
	inForeign // in one that is kept
)

// place returns the place of the elements of a level: in the feed, in an entry, or neither.
func (l level) place() vocab.Place {
	switch l {
	case inRoot, inFeed:
		return vocab.OfFeed
	case inEntry:
		return vocab.OfEntry
	}
	return 0
}

// class describes an element in its place.
type class struct {
	kind kind
	role role // role of text; rolePerson also for an element of Atom whose bare text is a name
	name string
	ext  bool     // another vocabulary that has a field
	ns   vocab.NS // namespace of the node

	level level // level of the children of a transparent element
}

// inside returns the level of the children.
func (c class) inside() level {
	switch c.kind {
	case kTransparent:
		return c.level
	case kFeed:
		return inFeed
	case kEntry:
		return inEntry
	case kStruct:
		if c.ext {
			return inExt
		}
		return inStruct
	case kForeign:
		return inForeign
	}
	return inRoot
}

// dropped is the class of elements that are left out with their content.
var dropped = class{kind: kText, role: roleDrop}

// The roles of the native elements that are not plain text.

var rssFeedRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleRSSLink, "docs": roleURL, "cloud": roleAttributes,
		"managingeditor": rolePerson, "webmaster": rolePerson,
	}
})

var rssEntryRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleRSSLink, "comments": roleURL, "guid": roleID, "enclosure": roleEnclosure, "image": roleItemImage,
		"author":      rolePerson,
		"description": roleHTML, "fullitem": roleHTML, "body": roleHTML, "content": roleHTML, "summary": roleHTML,
		"encoded": roleHTML,
	}
})

var atomRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleAtomLink, "category": roleTerm, "id": roleID,
		"icon": roleURL, "logo": roleURL, "uri": roleURL, "url": roleURL, "homepage": roleURL,
		"title": roleAtomText, "subtitle": roleAtomText, "tagline": roleAtomText, "summary": roleAtomText,
		"content": roleAtomText,
		"rights":  roleAtomText, "copyright": roleAtomText, "info": roleAtomText,
	}
})

// among reports whether a name is one of a list.
func among(name, list string) bool {
	for word := range strings.FieldsSeq(list) {
		if word == name {
			return true
		}
	}
	return false
}

func isAtomStruct(name string) bool { return among(name, "author contributor source") }

func isRSSStruct(name string) bool { return among(name, "image textinput skiphours skipdays") }

// isHead reports whether an element makes its document a feed, with entries or
// without: the channel of RSS, and in Atom an element of a feed, of Atom itself or of
// a vocabulary that has a field.
func (n *names) isHead(info *nameInfo, lvl level, c class) bool {
	switch {
	case c.kind == kFeed:
		return true
	case !n.isAtom || lvl != inFeed || c.role == roleDrop || c.kind == kForeign:
		return false
	}
	return c.ext || isAtomStruct(info.lower) || isAtomHead(info.lower)
}

func isAtomHead(name string) bool {
	return among(name,
		"title id updated modified link subtitle tagline generator icon logo rights copyright category info")
}

// Siblings are elements that cannot be inside a title, a link or a date. An unclosed title, link or
// date ends where a sibling begins.

func isRSSSibling(name string) bool {
	return among(name, `title link description guid pubdate author category comments enclosure item language
		generator lastbuilddate managingeditor webmaster image encoded creator docs copyright ttl`)
}

func isAtomSibling(name string) bool {
	return among(name,
		"title link id updated published modified issued summary content author category entry subtitle generator rights")
}

func (n *names) entryName() string {
	if n.isAtom {
		return "entry"
	}
	return "item"
}

// classify returns the class of an element in its place.
func (n *names) classify(info *nameInfo, lvl level) class {
	ns := n.resolve(info.prefix)
	if info.cached && info.cacheNS == ns && info.cacheLvl == lvl {
		return info.class
	}
	c := n.classifyIn(info, ns, lvl)
	if c.kind != kFeed { // only the first channel is the feed
		info.cached, info.cacheNS, info.cacheLvl, info.class = true, ns, lvl, c
	}
	return c
}

func (n *names) classifyIn(info *nameInfo, ns vocab.NS, lvl level) class {
	if lvl == inForeign {
		return class{kind: kForeign, ns: ns}
	}
	// An entry in an unknown namespace is an entry, too, and elements in it belong to the format.
	if lvl <= inList && info.prefix == n.rootPfx && ns >= vocab.Known && ns != n.other &&
		(info.lower == n.entryName() || info.lower == "channel" && !n.isAtom) {
		n.ns[ns].native = true
	}
	switch {
	case !n.native(ns, info.prefix):
		return n.classifyModule(info.lower, ns, lvl)
	case lvl == inExt:
		c := class{kind: kText, name: info.lower, ext: true}
		switch info.lower {
		case "description", "body", "fullitem":
			c.role = roleHTML
		case "link", "url":
			c.role = roleURL
		}
		return c
	case n.isAtom:
		return classifyAtom(info.lower, lvl)
	}
	if ns == vocab.RSS09 || ns == vocab.RSS10 {
		n.ns[ns].native = true // as the version shows
	}
	return n.classifyRSS(info.lower, lvl)
}

// classifyModule returns the class of an element of another vocabulary.
func (n *names) classifyModule(name string, ns vocab.NS, lvl level) class {
	switch {
	case ns == vocab.RDF && lvl <= inList:
		return class{kind: kTransparent, level: inList}
	case ns == vocab.Podcast && name == "liveitem" && lvl == inFeed && !n.isAtom:
		return class{kind: kEntry, name: "item", ns: ns}
	case ns == vocab.XML: // has attributes only
		return dropped
	case lvl == inList, lvl == inCategories, lvl == inStruct:
		return dropped
	case ns == vocab.RSSCloud && name == "items" && !n.isAtom && (lvl == inEntry || lvl == inExt):
		return class{kind: kTransparent, level: lvl, ns: ns}
	}
	if place := lvl.place(); place != 0 && !vocab.HasField(ns, name, place, n.isAtom) {
		return class{kind: kForeign, ns: ns}
	}
	return n.classOfField(name, ns, lvl)
}

// classOfField returns the class of an element of another vocabulary that has a field, or is inside
// one that has.
func (n *names) classOfField(name string, ns vocab.NS, lvl level) class {
	c := class{kind: kStruct, ext: true, ns: ns, name: name}
	switch ns {
	case vocab.Atom10, vocab.Atom03:
		c.ns = vocab.Atom10
		switch {
		case name == "author", name == "contributor":
			c.role = rolePerson
		case !isAtomStruct(name) && name != "entry" && name != "feed":
			c.kind, c.role = kText, atomRoles()[name]
		}
	case vocab.DC, vocab.DCTerms:
		c.kind = kText
		if among(name, "creator author contributor publisher") {
			c.role = rolePerson
		}
	case vocab.Content:
		if name == "encoded" {
			c.kind, c.role = kText, roleHTML
			c.ext = n.isAtom || lvl != inEntry // it is the content of entries in RSS
		}
	case vocab.XHTML:
		c.kind, c.role = kText, roleHTML
	case vocab.ITunes:
		if !among(name, "owner image") {
			c.kind = kText
		}
	case vocab.Media:
		if among(name, "title description text copyright credit keywords rating") {
			c.kind, c.role = kText, roleAtomText
		}
	}
	return c
}

// belongs reports whether an element inside an element of another vocabulary is of that vocabulary,
// or is allowed in it: rssCloud:item has the children of an item.
func (n *names) belongs(outer, ns vocab.NS, prefix int32) bool {
	if ns == outer || n.ns[ns].family == vocab.Atom && n.ns[outer].family == vocab.Atom {
		return true
	}
	return outer != vocab.Media && n.native(ns, prefix)
}

func classifyAtom(name string, lvl level) class {
	switch {
	case name == "entry" && lvl <= inList:
		return class{kind: kEntry, name: name}
	case name == "feed" && lvl <= inList:
		return class{kind: kTransparent, level: inList}
	case name == "entry", name == "feed", lvl == inList:
		return dropped
	case name == "author", name == "contributor":
		return class{kind: kStruct, role: rolePerson, name: name}
	case name == "source" && lvl == inEntry:
		return class{kind: kStruct, name: name}
	}
	return class{kind: kText, role: atomRoles()[name], name: name}
}

func (n *names) classifyRSS(name string, lvl level) class {
	switch name {
	case "item":
		if lvl <= inList {
			return class{kind: kEntry, name: name}
		}
		return dropped
	case "channel":
		if lvl == inRoot && n.channelNext { // only the first channel is the feed
			return class{kind: kFeed, name: name}
		}
		fallthrough
	case "rss", "rdf", "items":
		if lvl > inList {
			return dropped
		}
		return class{kind: kTransparent, level: inList}
	}
	c := class{kind: kText, name: name}
	switch {
	case lvl == inList, lvl == inCategories && name != "category":
		return dropped
	case name == "categories" && lvl <= inEntry:
		return class{kind: kTransparent, level: inCategories}
	case isRSSStruct(name) && lvl <= inFeed:
		c.kind = kStruct
	case lvl == inFeed && name == "author":
		return class{kind: kText, role: rolePerson, name: name, ns: vocab.DC, ext: true}
	case lvl == inFeed:
		c.role = rssFeedRoles()[name]
	case lvl == inStruct && (name == "url" || name == "link"):
		c.role = roleURL
	case lvl != inStruct:
		c.role = rssEntryRoles()[name]
	}
	return c
}

func isURLAttr(name string) bool {
	switch name {
	case "href", "src", "url", "uri", "resource", "xmlUrl", "htmlUrl":
		return true
	}
	return false
}
