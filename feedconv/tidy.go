package feedconv

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tidied is one clean, bounded XML document in UTF-8: no XML declaration,
// DOCTYPE, comments or processing instructions; namespaces as fixed prefixes
// declared once at the root; each text construct one escaped string; URLs
// absolute.
//
// The document is made for gofeed, around three of its habits. Text is in
// CDATA sections where gofeed would otherwise decode it twice. A URL, or an
// Atom id, that gofeed would re-encode has a newline before it, which makes
// gofeed leave it alone and is trimmed when the entry is finished. And what gofeed
// has no field for is beside it, in kept, as are long texts, in aside; see
// asideMark.
type tidied struct {
	xml      []byte
	root     string // "rss", "rdf", "feed", "channel"
	atom03   bool
	entries  int    // entries in xml
	head     bool   // the feed says something of itself
	cut      bool   // the document ends too early
	lost     string // the first warning of what a limit left out, or empty
	warnings []Warning
	aside    []string // long texts, which xml has a mark for
	kept     keeper   // the extensions
}

// asideMark begins what stands in the document for a text that was set aside; the
// rest is its number. It is the whole text of its element, and a text of the
// document that begins like it is set aside as well.
const asideMark = "\uE000lektor:"

// asideFrom is the length in bytes from which on the contents and summaries of
// entries are set aside. gofeed gives them back unchanged, so that nothing is
// lost if it does not see them, and the greater part of its time is saved.
const asideFrom = 128

// asideElements are those whose text is set aside in an entry, where it is read
// by [tidied.text].
var asideElements = map[bool]map[string]bool{
	true:  {"content": true, "summary": true},             // of Atom
	false: {"description": true, "content:encoded": true}, // of RSS
}

// text gives the text that gofeed found for one of asideElements.
func (doc *tidied) text(s string) string {
	if number, ok := strings.CutPrefix(s, asideMark); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(doc.aside) {
			return doc.aside[n]
		}
	}
	return s
}

const metaPrefix = "lektor"

type frame struct {
	name    int32
	raw     []byte // the name as written
	class   class
	level   level // of its children
	runs    int   // pieces of text so far
	drop    bool  // taken out of the output when it closes
	outAt   int   // where it starts in the output
	srcAt   int
	undo    int // len(names.undo) before its declarations
	base    *url.URL
	person  bool // an Atom person, whose bare text is a name
	gap     gap
	hasKids bool
	repeats bool     // another element of its name stands before it
	single  string   // the name under which there can be one, or empty
	said    []string // of these, its children that say something
}

// tidier makes a clean document of tokens.
type tidier struct {
	*warnings
	*scanner
	*names
	writer

	root     string
	version  string // that the root says
	atom03   bool
	max      int
	entries  int
	nodes    int
	grow     int // how much resolving may still add
	rootBase *url.URL
	rootOver bool // the root has been closed
	rootAt   int
	channels int
	defects  *defects // nil as long as the document is well-formed
	cut      bool

	stack []frame
	over  []int32 // names of open elements beyond maxDepth

	txt     construct
	scratch []byte
	head    bool // the feed says something of itself
	reading *reading
	kept    keeper
}

// tidyXML makes a clean document of whatever text is. The error is a
// *NotFeedError.
func tidyXML(text []byte, opts Options) (*tidied, error) {
	if !utf8.Valid(text) {
		text, _ = mixed(text)
	}
	clean, mended, first := cleanChars(text)
	var list []Warning
	if mended > 0 {
		list = append(list, Warning{
			Line: 1 + bytes.Count(text[:first], []byte("\n")),
			Text: fmt.Sprintf("control characters were dropped or read as windows-1252, %d in all", mended),
		})
	}
	t := newTidier(clean, opts, list)
	name, self, err := t.openRoot()
	if err != nil {
		return nil, err
	}
	if t.rootOver = self; !self && !t.run() {
		// Anew, since what is open where it should not be changes how the rest is read.
		t = newTidier(clean, opts, list)
		if _, _, err := t.openRoot(); err != nil {
			return nil, err
		}
		t.defects = t.findDefects(name, t.rootAt)
		t.run()
	}
	t.finish()
	if t.root == "channel" && t.entries == 0 && t.looksCDF() {
		return nil, errCDF
	}
	head := t.header()
	xml := make([]byte, 0, len(head)+len(t.out)+32)
	xml = append(append(xml, head...), t.out...)
	if t.root == "channel" {
		xml = append(xml, "</channel>"...)
	}
	xml = append(append(append(xml, "</"...), t.rootElement()...), '>')
	return &tidied{
		xml: xml, root: t.root, atom03: t.atom03, entries: t.entries, head: t.head || t.root == "channel", cut: t.cut, lost: t.lost,
		warnings: t.all(), aside: t.aside, kept: t.kept,
	}, nil
}

func newTidier(clean []byte, opts Options, list []Warning) *tidier {
	w := &warnings{doc: clean, line: 1, list: slices.Clip(list)}
	return &tidier{
		warnings: w,
		scanner:  newScanner(clean, w),
		names:    newNames(w),
		writer:   writer{out: make([]byte, 0, len(clean)/3+512), asideFrom: cmp.Or(opts.asideFrom, asideFrom)}, // long texts are set aside
		grow:     len(clean)/2 + 1<<20,
		max:      opts.maxEntries(),
		rootBase: documentBase(opts),
		stack:    make([]frame, 0, 16),
		reading:  opts.reading,
	}
}

func (t *tidier) top() *frame { return &t.stack[len(t.stack)-1] }

// run reads everything behind the root's start tag. It returns false, and stops, when a
// document whose defects are not known proves not to be well-formed.
func (t *tidier) run() bool {
	open := append(make([]int32, 0, 32), t.stack[0].name) // text constructs have their children here, too
	for {
		var inside []byte
		if len(t.stack) > 0 {
			inside = t.top().raw
		}
		tk := t.next(inside)
		var id int32
		switch tk.kind {
		case tokenEnd:
			return len(open) == 0 && t.warned[warnCDATA] == 0 || t.defects != nil
		case tokenOpen, tokenClose, tokenCut:
			id = t.intern(tk.data)
		}
		if t.defects == nil {
			switch n := len(open); {
			case tk.kind == tokenOpen && tk.self:
			case tk.kind == tokenOpen && n <= maxDefects:
				open = append(open, id)
			case tk.kind == tokenClose && n > 0 && open[n-1] == id:
				open = open[:n-1]
			case tk.kind == tokenOpen, tk.kind == tokenClose, tk.kind == tokenCut:
				return false
			}
		}
		switch tk.kind {
		case tokenText:
			t.charData(tk.data)
		case tokenCDATA:
			t.addCDATA(tk.data)
		case tokenOpen:
			t.startTag(id, tk.data, tk.at, tk.self)
		case tokenClose:
			t.endTag(id, tk.data, tk.at)
		case tokenCut:
			// "</channel" at the very end is as good as closed.
			if t.infos[id].open > 0 {
				t.endTag(id, tk.data, tk.at)
			}
		}
	}
}

// startTag takes the tag that parseTag has read, which stands at i.
func (t *tidier) startTag(id int32, name []byte, i int, self bool) {
	info := &t.infos[id]
	gap := t.defects.at(i)
	if t.txt.active {
		if t.top().gap == closed || !t.leavesText(id, info) {
			if !self && gap == closed {
				t.txt.inner = append(t.txt.inner, id)
			}
			t.innerTag(name, id, self)
			return
		}
		t.warn(warnUnclosed, i, t.top().raw)
		t.pop()
	}
	if info.lower == t.entryName() && len(t.over) == 0 && t.native(t.resolve(info.prefix), info.prefix) {
		t.popToFeed(i)
	}
	// Two are kept for what tidy itself puts around and into elements.
	if len(t.stack) >= maxDepth-2 {
		t.warn(warnDepth, i, name)
		if !self {
			t.over = append(t.over, id)
			info.open++
		}
		return
	}
	if t.rootOver {
		t.warn(warnAfter, i, nil)
	}
	undo := len(t.undo)
	base := t.top().base
	for _, a := range t.attrs {
		if len(a.key) == 8 && string(a.key) == "xml:base" {
			base = childBase(base, t.attrValue(a.val))
		}
	}
	if len(t.attrs) > 0 {
		t.declare(t.attrs, &t.ents, t.pos)
	}
	lvl := t.top().level
	c := t.classOf(id, lvl, i, name)
	f := frame{
		name: id, raw: name, class: c, outAt: len(t.out), srcAt: i, undo: undo, base: base, gap: gap,
	}
	switch c.kind {
	case kTransparent:
		f.level = c.level
	case kFeed:
		f.level = inFeed
		t.channels++
	case kEntry:
		f.level = inEntry
		if t.entries >= t.max {
			f.drop = true
			t.warn(warnEntries, i, fmt.Appendf(nil, "%d", t.max))
		}
	case kStruct:
		f.level = inStruct
		if c.ext {
			f.level = inExt
		}
		f.person = t.isAtomPerson(info, c)
	case kForeign:
		f.level = inForeign
	}
	t.head = t.head || t.isHead(info, lvl, c)
	f.single = singleName(c, lvl, t.isAtom)
	if f.single != "" && slices.Contains(t.top().said, f.single) {
		f.repeats = lvl != inEntry || t.reading.newer()
	}
	t.spend(&f, c)
	if c.kind == kForeign {
		t.foreignTag(&f, c.ns, lvl)
	} else if c.ns != nsNone {
		t.ns[c.ns].used = true
	}
	t.top().hasKids = true
	info.open++
	t.stack = append(t.stack, f)
	t.openTag(t.top())
	if self {
		t.pop()
	}
}

// classOf is classify with what stands around the element.
func (t *tidier) classOf(id int32, lvl level, i int, name []byte) class {
	info := &t.infos[id]
	switch {
	case id == otherName:
		t.warn(warnNames, i, nil)
		return dropped
	case t.rootOver && !t.entryAfterEnd(info):
		return class{kind: kTransparent, level: inList}
	case lvl == inExt && !t.belongs(t.top().class.ns, t.resolve(info.prefix), info.prefix):
		return dropped
	}
	c := t.classify(info, lvl)
	if lvl == inEntry && c.role == roleDrop && info.lower == t.entryName() {
		t.warn(warnNested, i, name)
	}
	return c
}

// isAtomPerson tells elements whose bare text is taken for a name.
func (t *tidier) isAtomPerson(info *nameInfo, c class) bool {
	return (info.lower == "author" || info.lower == "contributor") && (t.isAtom && !c.ext || c.ns == nsAtom10 || c.ns == nsAtom03)
}

// spend counts what an element will cost. What is beyond the limit is taken
// out again when it closes.
func (t *tidier) spend(f *frame, c class) {
	cost := 1
	if c.ext || c.kind == kForeign {
		cost = 2
	}
	cost += (len(t.attrs) + 3) / 4
	if t.nodes+cost > max(maxNodes, t.max*(maxNodes/DefaultMaxEntries)) {
		if c.kind != kTransparent && c.kind != kFeed && c.kind != kRoot {
			t.warn(warnNodes, f.srcAt, nil)
			f.drop = true
		}
		return
	}
	t.nodes += cost
}

// entryAfterEnd reports whether an element behind the end of the document is
// worth having: an entry, or in one.
func (t *tidier) entryAfterEnd(info *nameInfo) bool {
	return info.lower == t.entryName() || slices.ContainsFunc(t.stack, func(f frame) bool { return f.class.kind == kEntry })
}

// leavesText reports whether a start tag inside a text construct is none of
// it when the construct is not closed: an entry always, and the elements that
// follow a title or a date.
func (t *tidier) leavesText(id int32, info *nameInfo) bool {
	if info.lower == t.entryName() {
		return t.native(t.resolve(info.prefix), info.prefix)
	}
	top := t.top()
	if t.txt.markup || top.class.ext && top.class.role != rolePlain || id == top.name {
		return false
	}
	switch top.class.role {
	case roleHTML, rolePerson, roleItemImage, roleEnclosure, roleAttributes, roleDrop:
		return false
	case roleAtomText:
		if strings.Contains(strings.ToLower(t.txt.typ), "xhtml") || strings.Contains(strings.ToLower(t.txt.typ), "xml") ||
			top.raw[0]|0x20 == 'c' || top.raw[0]|0x20 == 's' && top.raw[1]|0x20 == 'u' && len(top.raw) == 7 {
			return false // content, summary
		}
	}
	if len(t.stack) < 2 {
		return false
	}
	if lvl := t.stack[len(t.stack)-2].level; lvl != inEntry && lvl != inFeed {
		return false
	}
	ns := t.resolve(info.prefix)
	if t.isAtom {
		return isAtomSibling(info.lower) && t.native(ns, info.prefix)
	}
	return isRSSSibling(info.lower) && (t.native(ns, info.prefix) || ns == nsContent || ns == nsDC)
}

// popToFeed closes what is open and has no end tag, down to where an entry may
// stand. What has one holds the entry, and so does an element of another
// vocabulary that the end of the document cuts off.
func (t *tidier) popToFeed(i int) {
	for len(t.stack) > 1 {
		switch f := t.top(); {
		case f.gap == closed, f.level <= inList, f.gap == cutOff && f.class.kind == kForeign:
			return
		}
		t.warn(warnUnclosed, i, t.top().raw)
		t.pop()
	}
}

// endTag closes down to the element of that name.
func (t *tidier) endTag(id int32, name []byte, i int) {
	if t.txt.active {
		if n := len(t.txt.inner); n > 0 && t.txt.inner[n-1] == id {
			t.txt.inner = t.txt.inner[:n-1]
			t.innerEnd(id)
			return
		}
		if id == t.top().name {
			t.pop()
			return
		}
	}
	if t.infos[id].open == 0 {
		if t.txt.active && t.txt.markup {
			t.innerEnd(id)
			return
		}
		if !t.rootOver {
			t.warn(warnStray, i, name)
		}
		return
	}
	for len(t.over) > 0 {
		last := t.over[len(t.over)-1]
		t.over = t.over[:len(t.over)-1]
		t.infos[last].open--
		if last == id {
			return
		}
	}
	for len(t.stack) > 1 {
		top := t.top()
		match := top.name == id
		if !match {
			t.warn(warnUnclosed, i, top.raw)
		}
		t.pop()
		if match {
			return
		}
	}
	if t.stack[0].name == id {
		// Entries may still follow; the root is closed at the end.
		t.rootOver = true
	}
}

// pop closes the innermost element.
func (t *tidier) pop() {
	f := t.top()
	says := f.hasKids || f.runs > 0
	if t.txt.active {
		says = t.closeText(f)
	} else {
		switch f.class.kind {
		case kEntry:
			t.end(f.class.out)
			t.kept.endEntry(t.entries, !f.drop)
			if !f.drop {
				t.entries++
			}
		case kFeed, kStruct:
			t.end(f.class.out)
		case kForeign:
			t.kept.pop()
		}
	}
	if f.drop || f.repeats {
		t.out = t.out[:f.outAt]
	}
	t.unwind(f.undo)
	t.infos[f.name].open--
	t.stack = t.stack[:len(t.stack)-1]
	if len(t.stack) > 0 && says && !f.drop && !f.repeats && f.single != "" {
		t.top().said = append(t.top().said, f.single)
	}
}

// finish closes what the end of the document leaves open. An entry that was
// cut off is not delivered by half.
func (t *tidier) finish() {
	entry := slices.IndexFunc(t.stack, func(f frame) bool { return f.class.kind == kEntry })
	if entry >= 0 {
		t.stack[entry].drop = true
	}
	switch {
	case !t.rootOver:
		t.cut = true
		t.warn(warnCut, len(t.src), t.top().raw)
	case entry >= 0:
		t.cut = true
		t.warn(warnCut, len(t.src), t.stack[entry].raw)
	}
	t.over = nil
	for len(t.stack) > 1 {
		t.pop()
	}
}

func (t *tidier) looksCDF() bool {
	return bytes.Contains(t.src, []byte("<SCHEDULE")) || bytes.Contains(t.src, []byte("<ABSTRACT"))
}
