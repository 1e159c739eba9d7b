package feedconv

import (
	"slices"
	"strings"
	"sync"
)

// kind says how an element is treated.
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

// role says what the string of a text construct is.
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

// level is where an element stands, as far as that makes a difference.
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

// place tells of what the elements of a level are children: the feed, an
// entry, or neither.
func (l level) place() places {
	switch l {
	case inRoot, inFeed:
		return ofFeed
	case inEntry:
		return ofEntry
	}
	return 0
}

type class struct {
	kind kind
	role role
	out  string // name in the output
	ext  bool   // another vocabulary, read by gofeed as an extension
	ns   nsID   // to be declared; nsNone for native elements

	level level // of the children of what is transparent
}

// dropped is what is left out with all that is in it.
var dropped = class{kind: kText, role: roleDrop}

// The roles of the native elements that are not plain text.

var rssFeedRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleRSSLink, "docs": roleURL, "cloud": roleAttributes,
		"managingeditor": rolePerson, "webmaster": rolePerson, "author": rolePerson,
	}
})

var rssEntryRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleRSSLink, "comments": roleURL, "guid": roleID, "enclosure": roleEnclosure, "image": roleItemImage, "author": rolePerson,
		"description": roleHTML, "fullitem": roleHTML, "body": roleHTML, "content": roleHTML, "summary": roleHTML, "encoded": roleHTML,
	}
})

var atomRoles = sync.OnceValue(func() map[string]role {
	return map[string]role{
		"link": roleAtomLink, "category": roleTerm, "id": roleID,
		"icon": roleURL, "logo": roleURL, "uri": roleURL, "url": roleURL, "homepage": roleURL,
		"title": roleAtomText, "subtitle": roleAtomText, "tagline": roleAtomText, "summary": roleAtomText, "content": roleAtomText,
		"rights": roleAtomText, "copyright": roleAtomText, "info": roleAtomText,
	}
})

// among reports whether a name is one of a list.
func among(name, list string) bool { return slices.Contains(strings.Fields(list), name) }

func isAtomStruct(name string) bool { return among(name, "author contributor source") }

func isRSSStruct(name string) bool { return among(name, "image textinput skiphours skipdays") }

// isHead reports whether an element makes its document a feed, with entries or
// without: the channel of RSS, and in Atom an element of a feed, of Atom itself or of
// a vocabulary that has a field.
func (t *tidier) isHead(info *nameInfo, lvl level, c class) bool {
	switch {
	case c.kind == kFeed:
		return true
	case !t.isAtom || lvl != inFeed || c.role == roleDrop || c.kind == kForeign:
		return false
	}
	return c.ext || isAtomStruct(info.lower) || isAtomHead(info.lower)
}

func isAtomHead(name string) bool {
	return among(name, "title id updated modified link subtitle tagline generator icon logo rights copyright category info")
}

// Siblings are elements that cannot be inside of a title, a link or a date: one of
// these that is not closed ends where they begin.

func isRSSSibling(name string) bool {
	return among(name, `title link description guid pubdate author category comments enclosure item language
		generator lastbuilddate managingeditor webmaster image encoded creator docs copyright ttl`)
}

func isAtomSibling(name string) bool {
	return among(name, "title link id updated published modified issued summary content author category entry subtitle generator rights")
}

func (t *tidier) entryName() string {
	if t.isAtom {
		return "entry"
	}
	return "item"
}

// classify says what an element is in the place where it stands.
func (t *tidier) classify(info *nameInfo, lvl level) class {
	ns := t.resolve(info.prefix)
	if info.cached && info.cacheNS == ns && info.cacheLvl == lvl {
		return info.class
	}
	c := t.classifyIn(info, ns, lvl)
	if c.kind != kFeed { // the second channel is none
		info.cached, info.cacheNS, info.cacheLvl, info.class = true, ns, lvl, c
	}
	return c
}

func (t *tidier) classifyIn(info *nameInfo, ns nsID, lvl level) class {
	if lvl == inForeign {
		return class{kind: kForeign, ns: ns}
	}
	name := info.lower
	// An entry in a namespace that nobody knows is still one, and so is what
	// is in it.
	if lvl <= inList && info.prefix == t.rootPfx && ns >= nsID(len(knownNamespaces)) && ns != t.other && !t.ns[ns].native &&
		(name == t.entryName() || name == "channel" && !t.isAtom) {
		t.ns[ns].native = true
	}
	if t.native(ns, info.prefix) {
		if ns == nsRSS09 || ns == nsRSS10 {
			t.ns[ns].native = true
		}
		if lvl == inExt {
			c := class{kind: kText, out: name, ext: true}
			switch name {
			case "description", "body", "fullitem":
				c.role = roleHTML
			case "link", "url":
				c.role = roleURL
			}
			return c
		}
		if t.isAtom {
			return t.classifyAtom(info, lvl)
		}
		return t.classifyRSS(info, lvl)
	}
	switch {
	case ns == nsRDF && lvl <= inList:
		return class{kind: kTransparent, level: inList}
	case ns == nsMeta, ns == nsXML: // ours to write; has attributes only
		return dropped
	case lvl == inList, lvl == inCategories, lvl == inStruct:
		return dropped
	}
	if place := lvl.place(); place != 0 && !hasField(ns, name, place, t.isAtom) {
		return class{kind: kForeign, ns: ns}
	}
	c := class{kind: kStruct, ext: true, ns: ns, out: t.ns[ns].prefix + ":" + name}
	switch ns {
	case nsAtom10, nsAtom03:
		if !isAtomStruct(name) && name != "entry" && name != "feed" {
			c.kind = kText
			c.role = atomRoles()[name]
		}
	case nsDC, nsDCTerms:
		c.kind = kText
		if name == "creator" || name == "author" || name == "contributor" || name == "publisher" {
			c.role = rolePerson
		}
	case nsContent:
		if name == "encoded" {
			c.kind, c.role = kText, roleHTML
			c.ext = t.isAtom || lvl != inEntry // gofeed reads it as content in RSS entries
		}
	case nsXHTML:
		c.kind, c.role = kText, roleHTML
	case nsITunes:
		if name != "owner" && name != "category" && name != "image" {
			c.kind = kText
		}
	case nsMedia:
		switch name {
		case "title", "description", "text", "copyright", "credit", "keywords", "rating":
			c.kind, c.role = kText, roleAtomText
		}
	}
	return c
}

// belongs tells whether an element inside of one of another vocabulary is of
// that, or may stand for it: rssCloud:item has the children of an item.
func (t *tidier) belongs(outer, ns nsID, prefix int32) bool {
	if ns == outer || t.ns[ns].family == famAtom && t.ns[outer].family == famAtom {
		return true
	}
	return outer != nsMedia && t.native(ns, prefix)
}

func (t *tidier) classifyAtom(info *nameInfo, lvl level) class {
	name := info.lower
	switch {
	case name == "entry" && lvl <= inList:
		return class{kind: kEntry, out: "entry"}
	case name == "feed" && lvl <= inList:
		return class{kind: kTransparent, level: inList}
	case name == "entry", name == "feed", lvl == inList:
		return dropped
	case isAtomStruct(name) && (name != "source" || lvl == inEntry):
		return class{kind: kStruct, out: name}
	}
	return info.text(atomRoles()[name])
}

func (t *tidier) classifyRSS(info *nameInfo, lvl level) class {
	name := info.lower
	switch {
	case name == "item" && lvl <= inList:
		return class{kind: kEntry, out: "item"}
	case name == "channel":
		if lvl == inRoot && t.channels == 0 && t.root != "channel" {
			return class{kind: kFeed, out: "channel"}
		}
		fallthrough
	case name == "rss", name == "rdf", name == "items":
		if lvl > inList {
			return dropped
		}
		return class{kind: kTransparent, level: inList}
	case name == "item", lvl == inList, lvl == inCategories && name != "category":
		return dropped
	case name == "categories" && lvl <= inEntry:
		return class{kind: kTransparent, level: inCategories}
	case isRSSStruct(name) && lvl <= inFeed:
		return class{kind: kStruct, out: name}
	}
	roles := rssEntryRoles()
	switch lvl {
	case inFeed:
		roles = rssFeedRoles()
		if name == "author" {
			// gofeed has no place for it, and looks here next.
			return class{kind: kText, role: rolePerson, out: "dc:author", ns: nsDC, ext: true}
		}
	case inEntry:
		if name == "author" {
			// gofeed has room for one; see rssEntry.
			return class{kind: kText, role: rolePerson, out: metaPrefix + ":author", ns: nsMeta, ext: true}
		}
	case inStruct:
		if name == "url" || name == "link" {
			return class{kind: kText, role: roleURL, out: name}
		}
		return class{kind: kText, out: name}
	}
	return info.text(roles[name])
}

// text returns the class of a native text construct. gofeed lists those that it does not
// know as they are spelled.
func (info *nameInfo) text(r role) class {
	if r == rolePlain {
		return class{kind: kText, out: info.local}
	}
	return class{kind: kText, role: r, out: info.lower}
}

func isURLAttr(name string) bool {
	switch name {
	case "href", "src", "url", "uri", "resource", "xmlUrl", "htmlUrl":
		return true
	}
	return false
}
