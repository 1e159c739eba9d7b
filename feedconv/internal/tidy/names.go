package tidy

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

type namespace struct {
	uri    string
	family vocab.Family
	native bool // an unknown namespace that stands for the format's own
}

// nameInfo is an element name, interned: elements are compared by its index.
type nameInfo struct {
	prefix int32 // index into names.bound
	local  string
	lower  string
	open   int // how many are open now
	// The class is remembered for the place where the name was seen last.
	cached   bool
	cacheNS  vocab.NS
	cacheLvl level
	class    class
}

// names holds the names of elements and prefixes of a document, and the namespace to which each
// prefix is bound at the current position.
type names struct {
	warns    *warnings
	byName   map[string]int32 // element names, as written and in lower case
	infos    []nameInfo
	prefixes map[string]int32
	bound    []vocab.NS // by prefix; -1 where none is
	pfxNames []string   // by prefix
	undo     []binding
	ns       []namespace
	byURI    map[string]vocab.NS
	other    vocab.NS // stands for those beyond the limits

	// Facts about the root, which decide which elements are native.
	isAtom      bool
	channelNext bool // the first channel, which is the feed, is still to come
	rootNS      vocab.NS
	rootPfx     int32
}

func newNames(w *warnings) *names {
	n := &names{
		warns:    w,
		byName:   make(map[string]int32, 64),
		infos:    make([]nameInfo, 1, 64),
		prefixes: map[string]int32{"": 0},
		bound:    []vocab.NS{vocab.None, -1},
		pfxNames: []string{"", "?"},
		ns:       make([]namespace, vocab.Known, vocab.Known+8),
		byURI:    map[string]vocab.NS{},
	}
	n.infos[otherName] = nameInfo{local: "_", lower: "_"}
	n.other = n.namespace("urn:lektor:other")
	for i := range n.ns[:vocab.Known] {
		ns := vocab.NS(i)
		n.ns[i] = namespace{uri: ns.URI(), family: ns.Family()}
	}
	return n
}

// otherName stands for all names that are too long or too many.
const otherName = 0

// otherPrefix stands for all prefixes beyond maxNames.
const otherPrefix = 1

type binding struct {
	prefix int32
	old    vocab.NS
}

// intern returns the number of a name. Names that differ only in case share a number, so that
// <Title> … </title> is an element.
func (n *names) intern(name []byte) int32 {
	if id, ok := n.byName[string(name)]; ok {
		return id
	}
	if len(name) > maxNameLen || len(n.byName) >= maxNames || len(name) == 0 {
		return otherName
	}
	raw := string(name)
	lower := strings.ToLower(raw)
	if id, ok := n.byName[lower]; ok {
		n.byName[raw] = id
		return id
	}
	info := nameInfo{local: raw}
	prefix := ""
	if before, after, ok := strings.Cut(raw, ":"); ok {
		prefix, info.local = before, after
	}
	info.prefix = n.prefixID(prefix)
	info.local = cleanName(info.local)
	info.lower = strings.ToLower(info.local)
	n.infos = append(n.infos, info)
	id := int32(len(n.infos) - 1)
	n.byName[raw] = id
	n.byName[lower] = id
	return id
}

// cleanName returns s with the characters replaced that are not valid in an ASCII name.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && r != ':' && scan.IsNameByte(byte(r)) {
			return r
		}
		return '_'
	}, s)
	if s == "" || !scan.IsNameStart(s[0]) {
		return "_" + s
	}
	return s
}

// prefixID returns the number of a prefix. A well-known prefix that is never declared has its usual
// namespace.
func (n *names) prefixID(prefix string) int32 {
	prefix = strings.ToLower(prefix)
	if id, ok := n.prefixes[prefix]; ok {
		return id
	}
	if len(n.bound) >= maxNames {
		return otherPrefix
	}
	id := int32(len(n.bound))
	n.prefixes[prefix] = id
	n.pfxNames = append(n.pfxNames, prefix)
	ns, ok := vocab.ByPrefix(prefix)
	if !ok {
		ns = -1 // not bound
	}
	n.bound = append(n.bound, ns)
	return id
}

// resolve returns the namespace that a prefix is bound to here.
func (n *names) resolve(prefix int32) vocab.NS {
	if ns := n.bound[prefix]; ns >= 0 {
		return ns
	}
	ns := n.namespace("undeclared:" + n.pfxNames[prefix])
	n.bound[prefix] = ns
	return ns
}

// namespace finds a namespace by its name.
func (n *names) namespace(uri string) vocab.NS {
	norm := vocab.Normal(uri)
	if norm == "" {
		return vocab.None
	}
	if id, ok := vocab.Find(norm); ok {
		return id
	}
	if id, ok := n.byURI[norm]; ok {
		return id
	}
	uri = strings.TrimSpace(uri)
	id := vocab.NS(len(n.ns))
	if id > vocab.Known+maxNamespaces {
		return n.other
	}
	n.byURI[norm] = id
	n.ns = append(n.ns, namespace{uri: uri})
	return id
}

// declare reads the namespace declarations among the attributes of the element at pos.
func (n *names) declare(attrs []scan.Attr, ents *markup.Entities, pos int) {
	for _, a := range attrs {
		if len(a.Key) < 5 || a.Key[0]|0x20 != 'x' || !bytes.EqualFold(a.Key[:5], []byte("xmlns")) {
			continue
		}
		prefix := ""
		if len(a.Key) > 5 {
			if a.Key[5] != ':' || len(a.Key) == 6 {
				continue
			}
			prefix = string(a.Key[6:])
		}
		if len(prefix) > maxNameLen {
			n.warns.warn(warnNames, pos, nil)
			continue
		}
		p := n.prefixID(prefix)
		if prefix == "xml" {
			continue
		}
		ns := n.other // which has no meaning, so that no element is taken for another
		if len(n.undo) < maxDeclarations && len(a.Val) <= maxURILen {
			ns = n.namespace(string(ents.Decode(nil, a.Val)))
		}
		if ns == n.other {
			n.warns.warn(warnDecls, pos, nil)
		}
		n.undo = append(n.undo, binding{p, n.bound[p]})
		n.bound[p] = ns
	}
}

// unwind undoes the declarations beyond the first keep.
func (n *names) unwind(keep int) {
	for len(n.undo) > keep {
		b := n.undo[len(n.undo)-1]
		n.undo = n.undo[:len(n.undo)-1]
		n.bound[b.prefix] = b.old
	}
}

// native reports whether an element belongs to the format itself.
func (n *names) native(ns vocab.NS, prefix int32) bool {
	if ns == vocab.None || n.ns[ns].native {
		return true
	}
	if ns == n.rootNS && prefix == n.rootPfx && ns != vocab.RDF {
		return true
	}
	if n.isAtom {
		return n.ns[ns].family == vocab.Atom
	}
	return n.ns[ns].family == vocab.RSS
}
