package feedsync

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// itemFrame is the item that is open.
func (p *parser) itemFrame() *frame {
	for i := len(p.frames) - 1; i >= 0; i-- {
		if p.frames[i].role == roleItem {
			return &p.frames[i]
		}
	}
	return &frame{item: &Item{}}
}

// blame says why the item is none; the first reason counts.
func (p *parser) blame(format string, args ...any) {
	f := p.itemFrame()
	f.bad = cmp.Or(f.bad, fmt.Sprintf(format, args...))
}

// startSync takes a start tag of Simple Sharing in an item.
func (p *parser) startSync(t token, name string, next frame) error {
	f := p.top()
	it := p.itemFrame().item
	next.item = it
	switch {
	case name == "sync" && f.role == roleItem:
		if f.syncs++; f.syncs > 1 {
			p.blame("it has two sx:sync")
			return p.use(t)
		}
		f.cut(p, t.begin)
		it.kids = append(it.kids, kid{item: syncMark})
		next.role = roleSync
		p.syncAttributes(t, it)
	case name == "history" && f.role == roleSync:
		if it.History != nil {
			p.blame("it has two sx:history")
			return p.use(t)
		}
		next.role = roleHistory
		it.History = append(make([]Update, 0, 1), p.update(t, name, func(a attr) {
			it.more().history = p.inside(it.more().history, a)
		}))
	case name == "update" && f.role == roleHistory:
		next.role = roleUpdate
		var attrs []byte
		u := p.update(t, name, func(a attr) { attrs = p.inside(attrs, a) })
		if next.over = len(it.History) > KeepUpdates; next.over {
			it.changed = true
			break
		}
		it.History = append(it.History, u)
		if attrs != nil {
			it.more().updates = append(it.more().updates, noted{Update: u, attrs: attrs})
		}
	case name == "conflicts" && f.role == roleSync:
		next.role = roleConflicts
	case name == "conflict" && f.role == roleConflicts:
		next.role = roleConflict
		c := &Conflict{}
		version := ""
		c.Update = p.update(t, name, func(a attr) {
			switch {
			case string(a.name) == "version":
				version = unescape(a.value, true)
			case p.is(a.name, LektorNamespace, "deleted", false):
				c.Deleted = unescape(a.value, true) == "true"
			case p.is(a.name, LektorNamespace, "parent", false):
				c.Parent = unescape(a.value, true)
			default:
				if _, declares := declared(a.name); !declares {
					c.attrs = appendRaw(c.attrs, a)
				}
			}
		})
		ok := false
		if c.Version, ok = parseVersion(version); !ok {
			p.blame("an sx:conflict has the version %q; versions are whole numbers from 1 to 2^53", brief(version))
		}
		p.frames = append(p.frames, next)
		p.pushUsage(next.depth)
		p.conflict = c
		return p.use(t)
	case f.role == roleSync || f.role == roleHistory:
		next.role = roleExtra
	default:
		return p.use(t)
	}
	p.frames = append(p.frames, next)
	return p.use(t)
}

// inside keeps an attribute of a tag within sx:sync that is not known, or binds a
// prefix for one.
func (p *parser) inside(to []byte, a attr) []byte {
	if prefix, declares := declared(a.name); declares {
		b := binding{string(prefix), unescape(a.value, true)}
		if b.prefix == "sx" && (b.uri == Namespace || b.uri == namespaceHTTP) {
			return to // it is bound where it is needed
		}
		x := p.itemFrame().item.more()
		x.inside = append(x.inside, b)
	}
	return appendRaw(to, a)
}

// appendRaw writes an attribute as it was read, but for its quotes.
func appendRaw(to []byte, a attr) []byte {
	return fmt.Appendf(to, ` %s="%s"`, a.name, bytes.ReplaceAll(a.value, []byte{'"'}, []byte("&quot;")))
}

// more gives what is unknown in the sx:sync of an item.
func (it *Item) more() *extra {
	if it.extra == nil {
		it.extra = &extra{}
	}
	return it.extra
}

// keep keeps what is unknown in sx:sync or sx:history.
func (p *parser) keep(r role, raw []byte) {
	x := p.itemFrame().item.more()
	if r == roleHistory {
		x.inHistory = append(x.inHistory, raw...)
	} else {
		x.inSync = append(x.inSync, raw...)
	}
}

// endSync takes an end tag of Simple Sharing in an item.
func (p *parser) endSync(f *frame, t token) {
	it := f.item
	switch f.role {
	case roleSync:
		it.sync = p.data[f.begin:t.end:t.end]
		p.itemFrame().from = t.end
	case roleUpdate:
		if t.begin == f.inner || t.begin == t.end || f.over {
			break
		}
		u, x := it.History[len(it.History)-1], it.more()
		if n := len(x.updates); n == 0 || x.updates[n-1].Update != u {
			x.updates = append(x.updates, noted{Update: u})
		}
		x.updates[len(x.updates)-1].within = p.data[f.inner:t.begin:t.begin]
	case roleConflicts:
		if len(it.Conflicts) == 0 {
			p.d.problem(Problem{Line: p.line.at(p.data, f.begin), ID: it.ID, Reason: "sx:conflicts has no sx:conflict", Warning: true})
		}
	case roleConflict:
		used := p.used[len(p.used)-1].list
		p.used = p.used[:len(p.used)-1]
		p.frames = p.frames[:len(p.frames)-1]
		for _, b := range used {
			p.note(b)
		}
		c := p.conflict
		c.ns = p.bindings(used)
		if t.begin > f.inner {
			c.content = p.data[f.inner:t.begin:t.begin]
			c.Updates = p.conflictUpdates(c)
		}
		if len(c.content) > 2*MaxContent {
			it.changed = true
		} else if it.Conflicts = append(it.Conflicts, c); len(it.Conflicts) > 2*MaxConflicts {
			it.Conflicts, it.changed = reduce(it.Conflicts), true
		}
		p.frames = append(p.frames, frame{}) // for finish to take off
	case roleExtra:
		p.keep(p.frames[len(p.frames)-2].role, p.data[f.begin:t.end])
	}
}

// conflictUpdates reads the sx:update that stand directly in a conflict.
func (p *parser) conflictUpdates(c *Conflict) []Update {
	if !bytes.Contains(c.content, []byte("update")) {
		return nil
	}
	var out []Update
	q := &parser{scanner: scanner{data: wrapped(c.content, c.ns)}, d: &Document{}}
	for {
		t, err := q.next()
		if err != nil {
			return out
		}
		switch t.kind {
		case startTag:
			if q.push(t); q.depth() == 2 && q.sx(t.name) == "update" {
				u := q.update(t, "update", func(attr) {})
				if u != (Update{}) && len(out) < KeepUpdates {
					out = append(out, u)
				}
			}
		case endTag:
			q.leave()
		}
	}
}

// wrapped gives a content a root that declares its namespaces.
func wrapped(content []byte, ns []binding) []byte {
	w := &writer{}
	w.element([]byte("<r"), ns)
	w.b = append(w.b, content...)
	return append(w.b, "</r>"...)
}

func (p *parser) syncAttributes(t token, it *Item) {
	id, version := "", ""
	for _, a := range t.attrs {
		value := unescape(a.value, true)
		switch string(a.name) {
		case "id":
			id = value
		case "version":
			version = value
		case "deleted":
			it.Deleted = p.boolean("deleted", value)
		case "conflict":
			it.Conflict = p.boolean("conflict", value)
		default:
			it.more().sync = p.inside(it.more().sync, a)
		}
	}
	it.ID = id
	switch {
	case id == "":
		p.blame("sx:sync has no id")
	case !IsNSS(id):
		it.ID = "" // not to be printed
		p.blame("the id %q is no namespace specific string", brief(id))
	}
	var ok bool
	if it.Version, ok = parseVersion(version); !ok && version == "" {
		p.blame("sx:sync has no version")
	} else if !ok {
		p.blame("the version is %q; versions are whole numbers from 1 to 2^53", brief(version))
	}
}

// boolean reads a value that is true, false or empty (section 2.3).
func (p *parser) boolean(name, value string) bool {
	if value != "true" && value != "false" && value != "" {
		p.blame("%s is %q, and neither true nor false", name, brief(value))
	}
	return value == "true"
}

// update reads who and when; other is called for the other attributes.
func (p *parser) update(t token, name string, other func(attr)) Update {
	var u Update
	for _, a := range t.attrs {
		switch string(a.name) {
		case "when":
			if text := strings.Trim(unescape(a.value, true), space); text != "" {
				var ok bool
				if u.When, ok = ParseDate(text); !ok {
					p.blame("sx:%s has the date %q, which is none of RFC 822", name, brief(text))
				}
			}
		case "by":
			if u.By = p.word(a.value); strings.Contains(u.By, "&") {
				u.By = unescape(a.value, true)
			}
			if u.By != "" && !IsNSS(u.By) {
				p.blame("sx:%s is by %q, which is no namespace specific string", name, brief(u.By))
			}
		default:
			other(a)
		}
	}
	if u == (Update{}) {
		p.blame("sx:%s has neither when nor by", name)
	}
	return u
}

// startSharing takes an sx:sharing.
func (p *parser) startSharing(t token, f *frame, next frame) error {
	line := p.line.at(p.data, t.begin)
	if p.d.Sharing != nil {
		p.d.problem(Problem{Line: line, Reason: "a second sx:sharing"})
		return p.use(t)
	}
	s := &Sharing{}
	p.d.Sharing = s
	warn := func(format string, args ...any) {
		p.d.problem(Problem{Line: line, Reason: fmt.Sprintf(format, args...), Warning: true})
	}
	if f.role == roleRoot {
		place := "channel"
		if p.d.Kind == OPML {
			place = "head"
		}
		warn("sx:sharing stands beside the %s, not in it", place)
	}
	for _, a := range t.attrs {
		value := strings.Trim(unescape(a.value, true), space)
		switch string(a.name) {
		case "since":
			s.Since = p.sharingDate(line, "since", value)
		case "until":
			s.Until = p.sharingDate(line, "until", value)
		case "version":
			s.Version = value
		case "window":
			n, err := strconv.Atoi(value)
			if value != "" && (err != nil || n < 0) {
				p.d.problem(Problem{Line: line, Reason: fmt.Sprintf("the window %q is no number of days", brief(value))})
				n = 0
			}
			s.Window = n
		}
	}
	switch s.Version {
	case SpecVersion:
	case "":
		warn("sx:sharing has no version")
	default:
		warn("sx:sharing is of version %q, and read as %s", brief(s.Version), SpecVersion)
	}
	if !s.Since.IsZero() && !s.Until.IsZero() && s.Since.After(s.Until) {
		p.d.problem(Problem{Line: line, Reason: "since is after until, and neither counts"})
		s.Since, s.Until = time.Time{}, time.Time{}
	}
	if f.role == roleContainer {
		f.cut(p, t.begin)
		p.d.kids = append(p.d.kids, kid{item: sharingMark})
	}
	next.role = roleSharing
	p.frames = append(p.frames, next)
	return p.use(t)
}

// sharingDate reads a date of sx:sharing or sx:related; a wrong one is absent.
func (p *parser) sharingDate(line int, name, value string) time.Time {
	if value == "" {
		return time.Time{}
	}
	t, ok := ParseDate(value)
	if !ok {
		p.d.problem(Problem{Line: line, Reason: fmt.Sprintf("%s has the date %q, which is none of RFC 822", name, brief(value))})
	}
	return t
}

func (p *parser) endSharing(t token) {
	f := p.top()
	p.d.sharing = p.data[f.begin:t.end:t.end]
	if parent := &p.frames[len(p.frames)-2]; parent.role == roleContainer {
		parent.from = t.end
	} else {
		p.sharingBegin, p.sharingEnd = f.begin, t.end
	}
}

// related takes an sx:related (section 2.2).
func (p *parser) related(t token) {
	line := p.line.at(p.data, t.begin)
	var r Related
	for _, a := range t.attrs {
		value := strings.Trim(unescape(a.value, true), space)
		switch string(a.name) {
		case "link":
			r.Link = value
		case "title":
			r.Title = value
		case "type":
			r.Type = value
		case "since":
			r.Since = p.sharingDate(line, "since", value)
		case "until":
			r.Until = p.sharingDate(line, "until", value)
		}
	}
	bad := ""
	switch {
	case r.Link == "":
		bad = "sx:related has no link"
	case r.Type == "":
		bad = "sx:related has no type"
	case r.Type != "complete" && r.Type != "aggregated":
		bad = fmt.Sprintf("sx:related has the type %q, and is neither complete nor aggregated", brief(r.Type))
	}
	if bad != "" {
		p.d.problem(Problem{Line: line, Reason: bad})
		return
	}
	p.d.Sharing.Related = append(p.d.Sharing.Related, r)
}
