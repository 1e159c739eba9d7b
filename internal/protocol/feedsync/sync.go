package feedsync

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"
)

// rest holds the unknown parts of an element.
type rest struct {
	attrs []xml.Attr
	kids  []node
}

func (r rest) empty() bool { return len(r.attrs)+len(r.kids) == 0 }

// attrsOf returns the attributes of an element, to take the known ones.
func attrsOf(e *element) rest { return rest{attrs: slices.Clone(e.attrs)} }

// take removes an attribute and returns its value, "" if there is none.
func (r *rest) take(namespace, name string) (value string) {
	r.attrs = slices.DeleteFunc(r.attrs, func(a xml.Attr) bool {
		found := a.Name.Local == name && a.Name.Space == namespace
		if found {
			value = a.Value
		}
		return found
	})
	return value
}

// extra holds the unknown parts of an sx:sync.
type extra struct {
	sync, history rest
	updates       map[Update]rest
}

// syncer parses an sx:sync.
type syncer struct {
	d   *Document // for warnings
	bad string
}

// setBad sets the reason why the item is invalid, unless there is one.
func (s *syncer) setBad(format string, args ...any) {
	if s.bad == "" {
		s.bad = fmt.Sprintf(format, args...)
	}
}

// noSync is the reason to skip an item without an sx:sync.
const noSync = "it has no sx:sync"

// sync parses an item: its sx:sync, content and parent. It returns the reason why the item is invalid, or "".
func (p *parser) sync(it *Item, e *element) string {
	var found *element
	twice := ""
	c := attrsOf(e)
	for _, k := range e.kids {
		switch {
		case k.element == nil || !k.is(Namespace, "sync"):
			c.kids = append(c.kids, k)
		case found == nil:
			found = k.element
		default:
			twice = "it has two sx:sync"
		}
	}
	if found == nil {
		return noSync
	}
	s := &syncer{d: p.d}
	s.sync(it, found)
	it.Parent = c.take(LektorNamespace, "parent")
	content := element{name: e.name, attrs: c.attrs, kids: c.kids}
	if it.Content = content.content(); len(it.Content) > MaxContent {
		s.setBad(tooLong)
	}
	return cmp.Or(s.bad, twice)
}

func (s *syncer) sync(it *Item, e *element) {
	x := extra{sync: attrsOf(e)}
	it.ID = x.sync.take("", "id")
	it.Deleted = s.boolean("deleted", x.sync.take("", "deleted"))
	it.Conflict = s.boolean("conflict", x.sync.take("", "conflict"))
	if id := it.ID; id == "" {
		s.bad = "sx:sync has no id"
	} else if !IsNSS(id) {
		it.ID = "" // the id may be long or contain control characters, so do not print it
		s.bad = fmt.Sprintf("the id %q is not a namespace specific string", brief(id))
	}
	if e.attr("", "version") == "" {
		s.setBad("sx:sync has no version")
	}
	it.Version = s.version("the version is", &x.sync)
	for _, k := range e.kids {
		if k.element != nil {
			s.child(it, &x, k)
		}
	}
	if len(it.History) == 0 {
		s.setBad("sx:sync has no sx:history")
	}
	if len(it.Conflicts) > MaxConflicts {
		it.Conflicts = reduce(it.Conflicts)
	}
	it.extra = x.orNil()
}

// child parses an element in an sx:sync.
func (s *syncer) child(it *Item, x *extra, k node) {
	switch {
	case k.is(Namespace, "history"):
		s.history(it, x, k.element)
	case k.is(Namespace, "conflicts"):
		for _, c := range k.kids {
			if c.element != nil && c.is(Namespace, "conflict") {
				s.conflict(it, c.element)
			}
		}
		if len(it.Conflicts) == 0 && s.bad == "" {
			s.d.problem(Problem{Line: k.line, ID: it.ID, Reason: "sx:conflicts has no sx:conflict", Warning: true})
		}
	case k.is(LektorNamespace, "settled"):
		if u, _ := s.update(k.element, "settled"); len(it.Settled) < KeepUpdates {
			it.Settled = append(it.Settled, u)
		}
	default:
		x.sync.kids = append(x.sync.kids, k)
	}
}

// earlier parses an earlier update, and adds its unknown parts to x.
func (s *syncer) earlier(it *Item, x *extra, e *element) {
	u, other := s.update(e, "update")
	if s.bad != "" || len(it.History) > KeepUpdates {
		return
	}
	it.History = append(it.History, u)
	if unknown := (rest{other, e.kids}); !unknown.empty() {
		if x.updates == nil {
			x.updates = map[Update]rest{}
		}
		x.updates[u] = unknown
	}
}

// orNil returns nil if there are no unknown parts.
func (x *extra) orNil() *extra {
	if x.sync.empty() && x.history.empty() && len(x.updates) == 0 {
		return nil
	}
	return x
}

func (s *syncer) history(it *Item, x *extra, e *element) {
	if it.History != nil {
		s.setBad("it has two sx:history")
		return
	}
	u, other := s.update(e, "history")
	it.History, x.history.attrs = []Update{u}, other
	for _, k := range e.kids {
		switch {
		case k.element == nil:
		case !k.is(Namespace, "update"):
			x.history.kids = append(x.history.kids, k)
		default:
			s.earlier(it, x, k.element)
		}
	}
}

// conflict parses an sx:conflict.
func (s *syncer) conflict(it *Item, e *element) {
	u, other := s.update(e, "conflict")
	c, x := &Item{ID: it.ID, History: []Update{u}}, &extra{sync: rest{attrs: other}}
	c.Version = s.version("an sx:conflict has the version", &x.sync)
	c.Deleted = x.sync.take(LektorNamespace, "deleted") == "true"
	c.Parent = x.sync.take(LektorNamespace, "parent")
	size := 0
	for _, k := range e.kids {
		switch {
		case k.element == nil:
		case k.is(Namespace, "update"):
			(&syncer{d: s.d}).earlier(c, x, k.element)
		case c.Content == nil:
			k.tidy(true)
			c.Content = k.content()
			size += len(c.Content)
		default:
			raw := k.append(nil)
			size += len(raw)
			x.sync.kids = append(x.sync.kids, node{raw: raw})
		}
	}
	if size > 2*MaxContent {
		return
	}
	c.extra = x.orNil()
	if it.Conflicts = append(it.Conflicts, c); len(it.Conflicts) > 2*MaxConflicts {
		it.Conflicts = reduce(it.Conflicts)
	}
}

// boolean parses a value that is true, false or empty (section 2.3).
func (s *syncer) boolean(name, value string) bool {
	if value != "true" && value != "false" && value != "" {
		s.setBad("%s is %q, which is neither true nor false", name, brief(value))
	}
	return value == "true"
}

// update parses time and endpoint, and returns the other attributes.
func (s *syncer) update(e *element, name string) (u Update, other []xml.Attr) {
	rest := attrsOf(e)
	if text := strings.Trim(rest.take("", "when"), space); text != "" {
		var ok bool
		if u.When, ok = ParseDate(text); !ok {
			s.setBad("sx:%s has the date %q, which is not in the form of RFC 822", name, brief(text))
		} else if !inForm(text) {
			s.d.dateLine = cmp.Or(s.d.dateLine, e.line)
		}
	}
	// There are few endpoints, so the strings are shared.
	if u.By = unique.Make(rest.take("", "by")).Value(); u.By != "" && !IsNSS(u.By) {
		s.setBad("sx:%s is by %q, which is not a namespace specific string", name, brief(u.By))
	}
	if u == (Update{}) {
		s.setBad("sx:%s has neither when nor by", name)
	}
	return u, rest.attrs
}

// version parses the version of an item or a conflict (section 2.3).
func (s *syncer) version(name string, attrs *rest) uint64 {
	text := attrs.take("", "version")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < 1 || n > MaxVersion {
		s.setBad("%s %q; versions are whole numbers from 1 to 2^53", name, brief(text))
	}
	return n
}

// sharing parses an sx:sharing. It reports false for a second one.
func (p *parser) sharing(e *element, beside bool) bool {
	if p.d.Sharing != nil {
		p.d.problem(Problem{Line: e.line, Reason: "a second sx:sharing"})
		return false
	}
	s := &Sharing{}
	p.d.Sharing, p.d.sharing = s, e
	problem := func(warning bool, format string, args ...any) {
		p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf(format, args...), Warning: warning})
	}
	if beside {
		problem(true, "sx:sharing is beside the %s, not in it", map[Kind]string{RSS: "channel", OPML: "head"}[p.d.Kind])
	}
	s.Since, s.Until, s.Version = p.date(e, "since"), p.date(e, "until"), e.value("version")
	if window := e.value("window"); window != "" {
		days, err := strconv.ParseUint(window, 10, 31)
		if s.Window = int(days); err != nil {
			problem(false, "the window %q is not a number of days", brief(window))
			s.Window = 0
		}
	}
	if s.Version == "" {
		problem(true, "sx:sharing has no version")
	} else if s.Version != SpecVersion {
		problem(true, "sx:sharing has the version %q, and is read as %s", brief(s.Version), SpecVersion)
	}
	if !s.Since.IsZero() && !s.Until.IsZero() && s.Since.After(s.Until) {
		problem(false, "since is after until, so both are ignored")
		s.Since, s.Until = time.Time{}, time.Time{}
	}
	for _, k := range e.kids {
		if k.element != nil && k.is(Namespace, "related") {
			p.related(k.element)
		}
	}
	return true
}

// date parses a date of sx:sharing or sx:related. It returns the zero time for an invalid
// date.
func (p *parser) date(e *element, name string) time.Time {
	value := e.value(name)
	t, ok := ParseDate(value)
	if value == "" {
		return t
	} else if !ok {
		p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf("%s has the date %q, which is not in the form of RFC 822",
			name, brief(value))})
	} else if !inForm(value) {
		p.d.dateLine = cmp.Or(p.d.dateLine, e.line)
	}
	return t
}

// related parses an sx:related (section 2.2).
func (p *parser) related(e *element) {
	r := Related{Link: e.value("link"), Title: e.value("title"), Type: e.value("type"), Since: p.date(e, "since"),
		Until: p.date(e, "until")}
	bad := ""
	switch {
	case r.Link == "":
		bad = "sx:related has no link"
	case r.Type == "":
		bad = "sx:related has no type"
	case r.Type != "complete" && r.Type != "aggregated":
		bad = fmt.Sprintf("sx:related has the type %q, which is neither complete nor aggregated", brief(r.Type))
	}
	if bad != "" {
		p.d.problem(Problem{Line: e.line, Reason: bad})
		return
	}
	p.d.Sharing.Related = append(p.d.Sharing.Related, r)
}
