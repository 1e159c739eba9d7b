package tidy

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

// frame is an open element.
type frame struct {
	name   int32
	raw    []byte // the name as written
	class  class
	level  level // level of its children
	node   *Node // its node; nil if it is left out, the parent's node if it is transparent
	text   []byte
	srcAt  int
	undo   int // len(names.undo) before its declarations
	base   *url.URL
	gap    gap
	says   bool     // it has text or children
	single string   // the name under which there can be one, or empty
	said   []string // of these, its children that say something
}

// stack holds the open elements, the outermost first.
type stack []frame

func (s stack) top() *frame { return &s[len(s)-1] }

// parent returns the element around the innermost one.
func (s stack) parent() *frame { return &s[max(len(s)-2, 0)] }

// inside returns the outermost element of a kind that is open, or nil.
func (s stack) inside(k kind) *frame {
	for i := range s {
		if s[i].class.kind == k {
			return &s[i]
		}
	}
	return nil
}

// tidier builds a tree from tokens.
type tidier struct {
	*scan.Scanner
	warnings *warnings
	names    *names

	opts    Options
	doc     *Document
	outside []*Node // entries outside of the channel
	nodes   int     // elements and attributes so far
	grow    int     // how much resolving may still add

	defects  *defects // nil as long as the document is well-formed
	rootOver bool     // the root has been closed
	stack    stack
	over     []int32 // names of open elements beyond MaxDepth
	txt      construct
	ext      extensions
	scratch  []byte
}

// Read returns the tree of a document, which is valid UTF-8. The error is a *NotFeed.
func Read(text []byte, opts Options) (*Document, error) {
	clean, mended, first := markup.CleanChars(text)
	var list []Warning
	if mended > 0 {
		list = append(list, Warning{
			Line: 1 + bytes.Count(text[:first], []byte("\n")),
			Text: fmt.Sprintf("control characters were dropped or read as windows-1252, %d in all", mended),
		})
	}
	t := newTidier(clean, opts, list)
	root, err := t.openRoot()
	if err != nil {
		return nil, err
	}
	if t.rootOver = root.Self; !root.Self && !t.run() {
		// Read the document again: unclosed elements change how the rest is read.
		t = newTidier(clean, opts, list)
		if _, err := t.openRoot(); err != nil {
			return nil, err
		}
		t.defects = t.findDefects(root.Data, root.At)
		t.run()
	}
	t.finish()
	if t.doc.Root == "channel" && len(t.doc.Entries) == 0 && (bytes.Contains(clean, []byte("<SCHEDULE")) ||
		bytes.Contains(clean, []byte("<ABSTRACT"))) {
		return nil, errCDF
	}
	return t.doc, nil
}

func newTidier(clean []byte, opts Options, list []Warning) *tidier {
	w := &warnings{doc: clean, line: 1, list: slices.Clip(list)}
	return &tidier{
		warnings: w,
		Scanner:  scan.New(clean, func(d scan.Defect, pos int, name []byte) { w.warn(warnKind(d), pos, name) }),
		names:    newNames(w),
		opts:     opts,
		doc:      &Document{},
		grow:     len(clean)/2 + 1<<20,
		stack:    make(stack, 0, 16),
	}
}

// run reads everything behind the root's start tag. It stops and returns false if the document is
// not well-formed and its defects have not been collected yet.
func (t *tidier) run() bool {
	open := append(make([]int32, 0, 32), t.stack[0].name) // text constructs have their children here, too
	for {
		tk := t.Next(t.stack.top().raw)
		var id int32
		switch tk.Kind {
		case scan.End:
			return len(open) == 0 && t.warnings.warned[warnCDATA] == 0 || t.defects != nil
		case scan.Open, scan.Close, scan.Cut:
			id = t.names.intern(tk.Data)
		}
		if t.defects == nil {
			var ok bool
			if open, ok = balanced(open, tk, id); !ok {
				return false
			}
		}
		switch tk.Kind {
		case scan.Text:
			t.charData(tk.Data)
		case scan.CDATA:
			t.addCDATA(tk.Data)
		case scan.Open:
			t.startTag(id, tk)
		case scan.Close:
			t.endTag(id, tk)
		case scan.Cut:
			// "</channel" at the very end is as good as closed.
			if t.names.infos[id].open > 0 {
				t.endTag(id, tk)
			}
		}
	}
}

// balanced appends the name of a start tag to open, or removes that of an end tag. It returns false
// if the document is not well-formed, or nested too deeply to decide.
func balanced(open []int32, tk scan.Token, id int32) ([]int32, bool) {
	n := len(open)
	switch tk.Kind {
	case scan.Open:
		if tk.Self {
			return open, true
		}
		return append(open, id), n <= maxDefects
	case scan.Close:
		if n == 0 || open[n-1] != id {
			return open, false
		}
		return open[:n-1], true
	}
	return open, tk.Kind != scan.Cut
}

// startTag reads a start tag, whose attributes are in the scanner.
func (t *tidier) startTag(id int32, tk scan.Token) {
	info := &t.names.infos[id]
	gap := t.defects.at(tk.At)
	if t.txt.state != textNone {
		if t.stack.top().gap == closed || !t.leavesText(id, info) {
			inner := innerElement{id, vocab.Atom10, len(t.names.undo), t.txt.base}
			e := &inner
			if n := len(t.txt.inner); n > 0 {
				e.ns, e.base = t.txt.inner[n-1].ns, t.txt.inner[n-1].base
			}
			if !tk.Self && gap == closed {
				t.txt.inner = append(t.txt.inner, inner)
				e = &t.txt.inner[len(t.txt.inner)-1]
			}
			t.innerTag(tk.Data, id, tk.Self, e)
			return
		}
		t.warnings.warn(warnUnclosed, tk.At, t.stack.top().raw)
		t.pop()
	}
	if info.lower == t.names.entryName() && len(t.over) == 0 && t.names.native(t.names.resolve(info.prefix),
		info.prefix) {
		t.popToFeed(tk.At)
	}
	// Reserve two levels for the lists that are built from elements of an entry.
	if len(t.stack) >= MaxDepth-2 {
		t.warnings.warn(warnDepth, tk.At, tk.Data)
		if !tk.Self {
			t.over = append(t.over, id)
			info.open++
		}
		return
	}
	if t.rootOver {
		t.warnings.warn(warnAfter, tk.At, nil)
	}
	t.push(frame{name: id, raw: tk.Data, srcAt: tk.At, undo: len(t.names.undo), base: t.baseOf(t.stack.top().base),
		gap: gap})
	info.open++
	if tk.Self {
		t.pop()
	}
}

// baseOf returns the base URL inside the current tag, which may have an xml:base.
func (t *tidier) baseOf(base *url.URL) *url.URL {
	for _, a := range t.Attrs {
		if string(a.Key) == "xml:base" {
			base = markup.Base(base, t.attrValue(a.Val))
		}
	}
	return base
}

// push opens an element.
func (t *tidier) push(f frame) {
	if len(t.Attrs) > 0 {
		t.names.declare(t.Attrs, &t.Entities, t.Pos)
	}
	info, parent := &t.names.infos[f.name], t.stack.top()
	f.class = t.classOf(f.name, parent.level, f.srcAt, f.raw)
	f.level = f.class.inside()
	t.doc.Head = t.doc.Head || t.names.isHead(info, parent.level, f.class)
	f.single = singleName(f.class, parent.level, t.names.isAtom)
	repeats := f.single != "" && slices.Contains(parent.said, f.single)
	kept := t.spend(&f) && !repeats
	parent.says = true
	switch f.class.kind {
	case kTransparent:
		f.node = parent.node
	case kFeed:
		f.node = t.doc.Feed
		t.names.channelNext = false
	case kEntry:
		if len(t.doc.Entries)+len(t.outside) >= t.opts.MaxEntries {
			t.warnings.warn(warnEntries, f.srcAt, fmt.Appendf(nil, "%d", t.opts.MaxEntries))
		} else if kept {
			f.node = &Node{}
		}
	case kForeign:
		t.openForeign(&f, parent, kept)
	default:
		if kept && parent.node != nil && f.class.role != roleDrop {
			f.node = &Node{NS: f.class.ns, Name: f.class.name}
		}
	}
	if n := len(t.stack); n < cap(t.stack) {
		f.text = t.stack[:n+1][n].text[:0]
	}
	t.stack = append(t.stack, f)
	if f.class.kind != kForeign {
		t.openTag(t.stack.top())
	}
}

// classOf is classify, and considers the elements around the element.
func (t *tidier) classOf(id int32, lvl level, i int, name []byte) class {
	info := &t.names.infos[id]
	switch {
	case id == otherName:
		t.warnings.warn(warnNames, i, nil)
		return dropped
	case t.rootOver && !t.entryAfterEnd(info):
		return class{kind: kTransparent, level: inList}
	case lvl == inExt && !t.names.belongs(t.stack.top().class.ns, t.names.resolve(info.prefix), info.prefix):
		return dropped
	}
	c := t.names.classify(info, lvl)
	if lvl == inEntry && c.role == roleDrop && info.lower == t.names.entryName() {
		t.warnings.warn(warnNested, i, name)
	}
	return c
}

// spend counts the nodes of an element, and reports whether they are within the limit.
func (t *tidier) spend(f *frame) bool {
	cost := 1
	if f.class.ext || f.class.kind == kForeign {
		cost = 2
	}
	cost += (len(t.Attrs) + 3) / 4
	if t.nodes+cost > max(maxNodes, t.opts.MaxEntries*nodesPerEntry) {
		if k := f.class.kind; k == kTransparent || k == kFeed {
			return true
		}
		t.warnings.warn(warnNodes, f.srcAt, nil)
		return false
	}
	t.nodes += cost
	return true
}

// entryAfterEnd reports whether an element behind the end of the document is an entry, or in one.
func (t *tidier) entryAfterEnd(info *nameInfo) bool {
	return info.lower == t.names.entryName() || t.stack.inside(kEntry) != nil
}

// leavesText reports whether a start tag ends an unclosed text construct: that of an entry always
// does, and siblings end a title or a date.
func (t *tidier) leavesText(id int32, info *nameInfo) bool {
	isEntry := info.lower == t.names.entryName()
	if lvl := t.stack.parent().level; !isEntry && (id == t.stack.top().name || lvl != inEntry && lvl != inFeed ||
		t.mayHoldTags()) {
		return false
	}
	ns := t.names.resolve(info.prefix)
	switch native := t.names.native(ns, info.prefix); {
	case isEntry:
		return native
	case t.names.isAtom:
		return native && isAtomSibling(info.lower)
	default:
		return isRSSSibling(info.lower) && (native || ns == vocab.Content || ns == vocab.DC)
	}
}

// mayHoldTags reports whether the open text construct may contain elements.
func (t *tidier) mayHoldTags() bool {
	f := t.stack.top()
	c := f.class
	if t.txt.state == textMarkup || c.ext && c.role != rolePlain {
		return true
	}
	switch c.role {
	case roleHTML, rolePerson, roleItemImage, roleEnclosure, roleAttributes, roleDrop:
		return true
	case roleAtomText:
		typ, raw := strings.ToLower(f.node.Attr("type")), strings.ToLower(string(f.raw))
		return strings.Contains(typ, "xml") || strings.Contains(typ, "xhtml") || raw[0] == 'c' || raw == "summary"
	}
	return false
}

// popToFeed closes open elements without an end tag, down to the level where an entry is allowed.
// It stops at an element that has an end tag, or that is of another vocabulary and cut off by the
// end of the document: this element contains the entry.
func (t *tidier) popToFeed(i int) {
	for len(t.stack) > 1 {
		switch f := t.stack.top(); {
		case f.gap == closed, f.level <= inList, f.gap == cutOff && f.class.kind == kForeign:
			return
		}
		t.warnings.warn(warnUnclosed, i, t.stack.top().raw)
		t.pop()
	}
}

// endTag closes the innermost element of that name, and the elements in it.
func (t *tidier) endTag(id int32, tk scan.Token) {
	if t.txt.state != textNone {
		if n := len(t.txt.inner); n > 0 && t.txt.inner[n-1].name == id {
			t.names.unwind(t.txt.inner[n-1].undo)
			t.txt.inner = t.txt.inner[:n-1]
			t.innerEnd(id)
			return
		}
		if id == t.stack.top().name {
			t.pop()
			return
		}
	}
	if t.names.infos[id].open == 0 {
		if t.txt.state == textMarkup {
			t.innerEnd(id)
		} else if !t.rootOver {
			t.warnings.warn(warnStray, tk.At, tk.Data)
		}
		return
	}
	for len(t.over) > 0 {
		last := t.over[len(t.over)-1]
		t.over = t.over[:len(t.over)-1]
		t.names.infos[last].open--
		if last == id {
			return
		}
	}
	for len(t.stack) > 1 {
		top := t.stack.top()
		match := top.name == id
		if !match {
			t.warnings.warn(warnUnclosed, tk.At, top.raw)
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
	f, parent := t.stack.top(), t.stack.parent()
	says := f.says
	switch f.class.kind {
	case kText:
		says = t.closeText(f)
	case kStruct:
		if f.node != nil {
			f.node.Text = string(bytes.TrimSpace(f.text))
		}
	case kForeign:
		t.closeForeign(f, parent)
	case kEntry:
		t.closeEntry(f)
	}
	if f.node != nil && parent.node != nil && (f.class.kind == kText || f.class.kind == kStruct) {
		parent.node.Children = append(parent.node.Children, f.node)
		if says && f.single != "" {
			parent.said = append(parent.said, f.single)
		}
	}
	t.names.unwind(f.undo)
	t.names.infos[f.name].open--
	t.stack = t.stack[:len(t.stack)-1]
}

// closeEntry adds an entry to those of the document.
func (t *tidier) closeEntry(f *frame) {
	t.ext.entry = budget{}
	switch {
	case f.node == nil:
	case t.stack.inside(kFeed) != nil:
		t.doc.Entries = append(t.doc.Entries, f.node)
	default:
		t.outside = append(t.outside, f.node)
	}
}

// finish closes the elements that are open at the end of the document. An entry that is cut off is
// dropped.
func (t *tidier) finish() {
	entry := t.stack.inside(kEntry)
	if entry != nil {
		entry.node = nil
	}
	switch {
	case !t.rootOver:
		t.doc.Cut = true
		t.warnings.warn(warnCut, len(t.Src), t.stack.top().raw)
	case entry != nil:
		t.doc.Cut = true
		t.warnings.warn(warnCut, len(t.Src), entry.raw)
	}
	t.over = nil
	for len(t.stack) > 1 {
		t.pop()
	}
	if root := t.stack[0].node; root != t.doc.Feed {
		t.doc.Image = root.Child("image")
	}
	t.doc.Entries = append(t.doc.Entries, t.outside...)
	t.doc.Version = t.doc.version(t.names)
	t.doc.Lost, t.doc.Warnings, t.doc.ns = t.warnings.lost, t.warnings.all(), t.names.ns
}
