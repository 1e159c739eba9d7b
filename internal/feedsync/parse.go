package feedsync

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
)

// Limits of [Parse]. Trees that are deeper stay as they are, and take no part.
const maxDepth = 256 // outlines within each other

// NotSharedError tells that a document is none that items could be in.
type NotSharedError struct{ Reason string }

func (e *NotSharedError) Error() string { return e.Reason }

// errFeedSync names the successor of the specification, which counts otherwise.
var errFeedSync = &NotSharedError{"it is FeedSync 1.0, the successor of Simple Sharing, which is not read: its items count updates in another way"}

// Parse reads a document. An item that is not as the specification says, and all but
// the winner of several with one id, are skipped: they stay where they are, take no
// part, and stand in Problems. The document keeps data, which must not change.
//
// The error is a [*NotSharedError], or, where a document is cut off or not
// well-formed, a [*SyntaxError]. With that one comes the document as far as it could
// be read, to be merged into others and not to be written: it has the items that ended
// before that place. Of outlines within one that did not end those count whose parent
// is known, as its sx:sync stands before them.
func Parse(data []byte) (*Document, error) {
	data = asUTF8(data)
	p := &parser{scanner: scanner{data: data}, d: &Document{byID: map[string]*Item{}}, words: map[string]string{}}
	end, bad := p.characters()
	if bad != nil {
		p.data = data[:end]
	}
	err := p.document()
	if syntax := (*SyntaxError)(nil); errors.As(err, &syntax) {
		if bad != nil && p.pos >= len(p.data) {
			err = bad
		}
		p.rescue()
		return p.d, err
	}
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	return p.d, nil
}

// rescue makes a document of what was read before it broke off.
func (p *parser) rescue() {
	d := p.d
	d.broken = true
	d.adopt(d.kids, "")
	known := true
	for _, f := range p.frames {
		if f.role != roleItem {
			continue
		}
		it := f.item
		// Without an sx:sync it may have one behind what is within it.
		if known = known && f.bad == "" && it.sync != nil && len(it.History) > 0; !known {
			d.drop(it.kids)
			continue
		}
		d.adopt(it.kids, it.ID)
		d.kids = append(d.kids, it.kids...)
	}
}

// drop takes items out of the document, and those within them.
func (d *Document) drop(kids []kid) {
	for _, k := range kids {
		if !k.isItem() {
			continue
		}
		if d.byID[k.item.ID] == k.item {
			delete(d.byID, k.item.ID)
		}
		d.drop(k.item.kids)
	}
}

// asUTF8 gives a document in UTF-8, with a declaration that says so.
func asUTF8(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	head := data[:min(len(data), 200)]
	declaration, _, ok := bytes.Cut(head, []byte("?>"))
	utf16 := bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff})
	encoding := attribute(slices.Concat([]byte("<xml"), bytes.TrimPrefix(declaration, []byte("<?xml")), []byte("/>")), "", "encoding")
	other := ok && bytes.HasPrefix(declaration, []byte("<?xml")) && encoding != "" &&
		!strings.EqualFold(encoding, "utf-8") && !strings.EqualFold(encoding, "us-ascii")
	if !utf16 && !other {
		return data
	}
	text, _ := feedconv.DecodeText(data, "")
	data = bytes.TrimPrefix([]byte(text), []byte("\ufeff"))
	if rest, ok := bytes.CutPrefix(data, []byte("<?xml")); ok {
		if _, after, ok := bytes.Cut(rest, []byte("?>")); ok {
			data = append([]byte(`<?xml version="1.0" encoding="UTF-8"?>`), after...)
		}
	}
	return data
}

// role is what an element is to the parser.
type role uint8

const (
	roleRoot      role = iota + 1
	roleHead           // of OPML
	roleContainer      // channel or body
	roleItem
	roleSharing
	roleSync
	roleHistory
	roleUpdate
	roleConflicts
	roleConflict
	roleExtra // what is unknown in sx:sync and sx:history
)

// frame is an element that means something, and is open.
type frame struct {
	role  role
	depth int // of the element
	begin int // where its start tag begins
	inner int // and ends
	from  int // where the raw XML begins that belongs to no kid yet
	item  *Item
	bad   string // why the item is none
	syncs int
	over  bool // an sx:update beyond those that are kept
}

// usage is the prefixes of an item or a conflict that are bound outside of it, so that
// it can go to other documents by itself.
type usage struct {
	depth int // of its element
	list  []bound
}

// bound is a binding in scope.
type bound struct {
	binding
	depth int
}

// parser reads a document.
type parser struct {
	scanner
	d      *Document
	frames []frame
	scope  []bound
	words  map[string]string // endpoints, of which there are few
	lastNS []binding

	conflict *Conflict
	// used are the prefixes of the item at hand that are bound outside of it,
	// a slice for each item that is open; conflicts have their own.
	used []usage
	deep bool // told of outlines that are too deep
	// The sx:sharing stands at this span, unless that is empty.
	sharingBegin, sharingEnd int
	tailAt                   int // where the end tag of the container is
}

func (p *parser) top() *frame {
	if len(p.frames) == 0 {
		return &frame{}
	}
	return &p.frames[len(p.frames)-1]
}

// declared gives the prefix that an attribute binds; "" for the default.
func declared(name []byte) ([]byte, bool) {
	if string(name) == "xmlns" {
		return nil, true
	}
	if prefix, ok := bytes.CutPrefix(name, []byte("xmlns:")); ok {
		return prefix, true
	}
	return name, false
}

// push takes what a start tag binds into scope.
func (p *parser) push(t token) {
	for _, a := range t.attrs {
		if len(a.name) < 5 || a.name[0] != 'x' {
			continue
		}
		if prefix, ok := declared(a.name); ok {
			p.scope = append(p.scope, bound{binding{p.word(prefix), unescape(a.value, true)}, p.depth()})
		}
	}
}

// leave takes out of scope what the element bound that has just ended.
func (p *parser) leave() {
	for n := len(p.scope); n > 0 && p.scope[n-1].depth > p.depth(); n-- {
		p.scope = p.scope[:n-1]
	}
}

// word gives a string that is kept once.
func (p *parser) word(b []byte) string {
	if s, ok := p.words[string(b)]; ok {
		return s
	}
	s := string(b)
	if p.words != nil && len(p.words) < 1000 {
		p.words[s] = s
	}
	return s
}

// lookup gives the binding of a prefix in scope, and at which depth it is.
func (p *parser) lookup(prefix []byte) (bound, bool) {
	for i := len(p.scope) - 1; i >= 0; i-- {
		if p.scope[i].prefix == string(prefix) {
			return p.scope[i], true
		}
	}
	return bound{binding: binding{prefix: string(prefix)}}, len(prefix) == 0
}

// split gives namespace and local name; an attribute without a prefix is of none.
func (p *parser) split(name []byte, element bool) (namespace, local string) {
	prefix, rest, ok := bytes.Cut(name, []byte{':'})
	if !ok {
		prefix, rest = nil, name
		if !element {
			return "", string(rest)
		}
	}
	if string(prefix) == "xml" {
		return namespaceXML, string(rest)
	}
	b, _ := p.lookup(prefix)
	return b.uri, string(rest)
}

// expand gives a name with its namespace in braces.
func (p *parser) expand(name []byte, element bool) string {
	ns, local := p.split(name, element)
	return "{" + ns + "}" + local
}

// is tells whether a name is one of a namespace.
func (p *parser) is(name []byte, namespace, local string, element bool) bool {
	if !bytes.HasSuffix(name, []byte(local)) {
		return false
	}
	ns, l := p.split(name, element)
	return ns == namespace && l == local
}

// sx gives the local name of an element of Simple Sharing, "" for another.
func (p *parser) sx(name []byte) string {
	prefix, local, ok := bytes.Cut(name, []byte{':'})
	if !ok {
		prefix, local = nil, name
	}
	b, ok := p.lookup(prefix)
	if ok && (b.uri == Namespace || b.uri == namespaceHTTP) {
		return p.word(local)
	}
	return ""
}

// use notes the prefixes of a tag for the item that it is in.
func (p *parser) use(t token) error {
	note := func(name []byte, element bool) error {
		prefix, _, ok := bytes.Cut(name, []byte{':'})
		if !ok {
			if prefix = nil; !element {
				return nil
			}
		}
		if string(prefix) == "xml" || string(prefix) == "xmlns" {
			return nil
		}
		b, ok := p.lookup(prefix)
		if !ok {
			return p.fail(t.begin, "the prefix %s: is not declared", brief(prefix))
		}
		if len(p.used) == 0 {
			return nil
		}
		p.note(b)
		return nil
	}
	if err := note(t.name, true); err != nil {
		return err
	}
	for _, a := range t.attrs {
		if _, declares := declared(a.name); declares {
			continue
		}
		if err := note(a.name, false); err != nil {
			return err
		}
	}
	return nil
}

// pushUsage begins the usage of an item or a conflict, in the room of one that ended.
func (p *parser) pushUsage(depth int) {
	n := len(p.used)
	if n == cap(p.used) {
		p.used = append(p.used, usage{})
	} else {
		p.used = p.used[:n+1]
	}
	p.used[n].depth, p.used[n].list = depth, p.used[n].list[:0]
}

// note notes a binding for what is at hand, if it is bound outside of it.
func (p *parser) note(b bound) {
	if u := &p.used[len(p.used)-1]; b.depth < u.depth && !slices.Contains(u.list, b) {
		u.list = append(u.list, b)
	}
}

// bindings gives a list of bindings, the same one for many items.
func (p *parser) bindings(used []bound) []binding {
	slices.SortFunc(used, func(a, b bound) int { return strings.Compare(a.prefix, b.prefix) })
	if !slices.EqualFunc(used, p.lastNS, func(a bound, b binding) bool { return a.binding == b }) {
		p.lastNS = make([]binding, len(used))
		for i, b := range used {
			p.lastNS[i] = b.binding
		}
	}
	return p.lastNS
}

// document reads all of it.
func (p *parser) document() error {
	for {
		t, err := p.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch t.kind {
		case startTag:
			p.push(t)
			if err := p.feedSync(t); err != nil {
				return err
			}
			err = p.start(t)
		case endTag:
			p.finish(t)
			p.leave()
		case comment:
			if f := p.top(); f.depth == p.depth() && (f.role == roleSync || f.role == roleHistory) {
				p.keep(f.role, p.data[t.begin:t.end])
			}
		}
		if err != nil {
			return err
		}
	}
	if p.d.head != nil {
		p.d.tail = p.around(p.tailAt, len(p.data))
		p.d.adopt(p.d.kids, "")
	}
	if p.d.head == nil {
		what := "channel"
		if p.d.Kind == OPML {
			what = "body"
		}
		return &NotSharedError{"it has no <" + what + ">"}
	}
	return nil
}

// feedSync is the error for what the successor of the specification has.
func (p *parser) feedSync(t token) error {
	for _, a := range t.attrs {
		switch _, declares := declared(a.name); {
		case declares && string(a.value) == namespaceFeedSync:
			return errFeedSync
		case string(a.name) == "updates" && p.sx(t.name) == "sync":
			return errFeedSync
		case string(a.name) == "sequence" && (p.sx(t.name) == "history" || p.sx(t.name) == "update"):
			return errFeedSync
		}
	}
	return nil
}

// start takes a start tag.
func (p *parser) start(t token) error {
	depth := p.depth()
	if depth == 1 {
		switch _, local := p.split(t.name, true); local {
		case "rss":
			p.d.Kind = RSS
		case "opml":
			p.d.Kind = OPML
		default:
			return &NotSharedError{fmt.Sprintf("it is neither RSS nor OPML, but begins with <%s>", brief(t.name))}
		}
		p.frames = append(p.frames, frame{role: roleRoot, depth: 1})
		return p.use(t)
	}
	f := p.top()
	if f.depth != depth-1 {
		return p.use(t)
	}
	next := frame{depth: depth, begin: t.begin, inner: t.end, from: t.end}
	sx := p.sx(t.name)
	plain := bytes.IndexByte(t.name, ':') < 0
	switch {
	case f.role == roleRoot && plain && p.d.head == nil && string(t.name) == map[Kind]string{RSS: "channel", OPML: "body"}[p.d.Kind]:
		next.role = roleContainer
		p.d.head = p.around(0, t.end)
		p.d.scope = p.inScope()
	case f.role == roleRoot && plain && string(t.name) == "head" && p.d.Kind == OPML:
		next.role = roleHead
	case sx == "sharing" && (f.role == roleRoot || f.role == roleHead || f.role == roleContainer && p.d.Kind == RSS):
		return p.startSharing(t, f, next)
	case sx == "related" && f.role == roleSharing:
		p.related(t)
		return p.use(t)
	case f.role == roleSync && p.is(t.name, LektorNamespace, "settled", true):
		it := p.itemFrame().item
		if u := p.update(t, "settled", func(attr) {}); len(it.Settled) < KeepUpdates {
			it.Settled = append(it.Settled, u)
		} else {
			it.changed = true
		}
		return p.use(t)
	case sx == "" && (f.role == roleSync || f.role == roleHistory):
		next.role = roleExtra
	case (f.role == roleContainer || f.role == roleItem && p.d.Kind == OPML) && plain && string(t.name) == p.d.Kind.String():
		if p.levels() >= maxDepth {
			if !p.deep {
				p.deep = true
				p.d.problem(Problem{Line: p.line.at(p.data, t.begin), Reason: fmt.Sprintf("outlines are within more than %d others", maxDepth)})
			}
			return p.use(t)
		}
		p.startItem(t, next)
		return p.use(t)
	case sx != "" && (f.role == roleItem || f.role == roleSync || f.role == roleHistory || f.role == roleConflicts):
		return p.startSync(t, sx, next)
	default:
		return p.use(t)
	}
	p.frames = append(p.frames, next)
	return p.use(t)
}

// around gives the raw XML from one offset to another, with a mark for the sx:sharing.
func (p *parser) around(from, to int) []kid {
	if p.sharingEnd == 0 || p.sharingBegin < from || p.sharingEnd > to {
		return []kid{{raw: p.data[from:to:to]}}
	}
	return []kid{{raw: p.data[from:p.sharingBegin:p.sharingBegin]}, {item: sharingMark}, {raw: p.data[p.sharingEnd:to:to]}}
}

// inScope gives the bindings in scope, the innermost of each prefix.
func (p *parser) inScope() []binding {
	var out []binding
	for _, b := range slices.Backward(p.scope) {
		if !slices.ContainsFunc(out, func(o binding) bool { return o.prefix == b.prefix }) {
			out = append(out, b.binding)
		}
	}
	return out
}

// levels is how many outlines are open.
func (p *parser) levels() int {
	n := 0
	for i := range p.frames {
		if p.frames[i].role == roleItem {
			n++
		}
	}
	return n
}

func (p *parser) startItem(t token, next frame) {
	f := p.top()
	f.cut(p, t.begin)
	next.role = roleItem
	open := p.data[t.begin : t.end-1]
	if t.empty {
		open = p.data[t.begin : t.end-2]
	}
	next.item = &Item{open: open[:len(open):len(open)], line: p.line.at(p.data, t.begin)}
	next.item.kids = make([]kid, 0, 3)
	p.frames = append(p.frames, next)
	p.pushUsage(next.depth)
	for _, a := range t.attrs {
		if prefix, declares := declared(a.name); declares {
			next.item.more().declares = append(next.item.more().declares, binding{string(prefix), unescape(a.value, true)})
		}
	}
	isParent := func(a attr) bool { return p.is(a.name, LektorNamespace, "parent", false) }
	if i := slices.IndexFunc(t.attrs, isParent); i >= 0 {
		next.item.Parent, next.item.placed = unescape(t.attrs[i].value, true), true
		next.item.open = append([]byte("<"), t.name...)
		for k, a := range t.attrs {
			if k != i {
				next.item.open = appendRaw(next.item.open, a)
			}
		}
	}
}

// cut makes a kid of the raw XML up to an offset.
func (f *frame) cut(p *parser, to int) {
	if f.from >= to {
		return
	}
	raw := kid{raw: p.data[f.from:to:to]}
	if f.role == roleContainer {
		p.d.kids = append(p.d.kids, raw)
	} else {
		f.item.kids = append(f.item.kids, raw)
	}
	f.from = to
}

// finish takes an end tag.
func (p *parser) finish(t token) {
	f := p.top()
	if f.depth != p.depth()+1 || len(p.frames) == 0 {
		return
	}
	switch f.role {
	case roleContainer:
		f.cut(p, t.begin)
		p.tailAt = t.begin
	case roleItem:
		p.endItem(t)
		return
	case roleSharing:
		p.endSharing(t)
	case roleSync, roleUpdate, roleConflicts, roleConflict, roleExtra:
		p.endSync(f, t)
	}
	p.frames = p.frames[:len(p.frames)-1]
}

// endItem decides whether an item takes part.
func (p *parser) endItem(t token) {
	f := *p.top()
	f.cut(p, t.begin)
	used := p.used[len(p.used)-1].list
	p.used = p.used[:len(p.used)-1]
	p.frames = p.frames[:len(p.frames)-1]
	it := f.item
	it.end = p.data[t.begin:t.end:t.end]
	if t.begin == t.end { // of <a/>
		it.end = []byte("</" + string(t.name) + ">")
	}
	it.ns = p.bindings(used)
	it.source = p.data[f.begin:t.end:t.end]
	if f.bad == "" && f.syncs > 0 && len(it.History) == 0 {
		f.bad = "sx:sync has no sx:history"
	}
	if f.bad == "" && f.syncs > 0 && it.size() > MaxContent {
		f.bad = tooLong
	}
	if f.bad != "" {
		p.d.problem(Problem{Line: it.line, ID: it.ID, Reason: f.bad})
	}
	if f.syncs == 0 {
		p.d.Plain++
	}
	if len(it.Conflicts) > MaxConflicts {
		it.Conflicts, it.changed = reduce(it.Conflicts), true
	}
	if it.changed {
		it.sync, it.source, it.changed = nil, nil, false
	}
	it.inert = f.bad != "" || f.syncs == 0
	if !it.inert {
		p.known(it)
	}
	if it.inert && it.Children() == 0 {
		return // a part of the raw XML of what it is in
	}
	parent := p.top()
	parent.from = t.end
	if parent.role == roleContainer {
		p.d.kids = append(p.d.kids, kid{item: it})
	} else {
		parent.item.kids = append(parent.item.kids, kid{item: it})
	}
}

// known takes an item into the document, unless it is one of several with an id and
// not the winner.
func (p *parser) known(it *Item) {
	old := p.d.byID[it.ID]
	if old == nil {
		p.d.byID[it.ID] = it
		return
	}
	loser := it
	if c := compareItems(it, old); c > 0 || c == 0 && Canonical(it.Content()) > Canonical(old.Content()) {
		loser = old
		p.d.byID[it.ID] = it
	}
	loser.inert = true
	p.d.problem(Problem{Line: loser.line, ID: it.ID, Reason: "another item has the same id, and is the winner"})
}

// adopt gives each item the item that it is in. It is called when it is known which
// take part.
func (d *Document) adopt(kids []kid, parent string) {
	for _, k := range kids {
		if !k.isItem() {
			continue
		}
		within := parent
		if it := k.item; !it.inert {
			within = it.ID
			switch {
			case !it.placed:
				it.Parent = parent
			case it.Parent == rootParent:
				it.Parent = ""
			}
			if it.placed && len(it.Conflicts) == 0 {
				it.circle, it.Conflict, it.sync, it.source = it.Conflict, false, nil, nil
			}
			it.placed = it.Parent != parent
		}
		d.adopt(k.item.kids, within)
	}
}

// rootParent stands for the body where an attribute says what the parent is. It is no
// id.
const rootParent = "/"

// fragment reads a content as an item that has no sx:sync.
func (p *parser) fragment() (*Item, error) {
	if _, err := p.characters(); err != nil {
		return nil, err
	}
	it := &Item{}
	for {
		t, err := p.next()
		if errors.Is(err, io.EOF) {
			return it, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case t.kind == startTag:
			p.push(t)
			if name := p.sx(t.name); name == "sync" && p.depth() == 2 {
				return nil, p.fail(t.begin, "a content has no sx:sync")
			}
			if p.depth() == 1 {
				it.ns = p.bare(t, it)
				it.kids = []kid{{raw: p.data[t.end:]}}
			}
		case t.kind == endTag && p.depth() == 0:
			it.end = []byte("</" + string(t.name) + ">")
			if t.begin == t.end {
				it.kids = nil
			} else if raw := &it.kids[0].raw; true {
				if *raw = (*raw)[:len(*raw)-(len(p.data)-t.begin)]; len(*raw) == 0 {
					it.kids = nil
				}
			}
		}
	}
}

// bare takes the declarations out of the start tag of a content, and gives them.
func (p *parser) bare(t token, it *Item) []binding {
	open := append(append(make([]byte, 0, t.end-t.begin+8), '<'), t.name...)
	var ns []binding
	for _, a := range t.attrs {
		if prefix, declares := declared(a.name); declares {
			ns = append(ns, binding{string(prefix), unescape(a.value, true)})
			continue
		}
		open = append(append(append(open, ' '), a.name...), `="`...)
		open = append(append(open, escapeAttr.Replace(unescape(a.value, true))...), '"')
	}
	if !slices.ContainsFunc(ns, func(b binding) bool { return b.prefix == "" }) && bytes.IndexByte(t.name, ':') < 0 {
		ns = append(ns, binding{})
	}
	slices.SortFunc(ns, func(a, b binding) int { return strings.Compare(a.prefix, b.prefix) })
	it.open = open
	return ns
}

// parseVersion reads a version (section 2.3).
func parseVersion(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n >= 1 && n <= MaxVersion && strings.Trim(s, "0123456789") == ""
}
