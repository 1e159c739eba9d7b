package feedsync

import (
	"cmp"
	"encoding/xml"
	"fmt"
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

// updateExtra holds the unknown parts of an sx:update.
type updateExtra struct {
	Update
	rest
}

// extra holds the unknown parts of an sx:sync.
type extra struct {
	sync, history rest
	updates       []updateExtra
}

// syncer parses an sx:sync.
type syncer struct {
	bad  string
	date bool // a date is not in the form of section 1.2
}

// setBad sets the reason why the item is invalid, unless there is one.
func (s *syncer) setBad(format string, args ...any) {
	if s.bad == "" {
		s.bad = fmt.Sprintf(format, args...)
	}
}

// noSync is the reason to skip an item without an sx:sync.
const noSync = "it has no sx:sync"

// sync parses the sx:sync of an item, and returns the reason why the item is invalid, or
// "".
func (p *parser) sync(it *Item, e *element) string {
	var found *element
	s := &syncer{}
	for _, k := range e.kids {
		if k.element == nil || !k.is(Namespace, "sync") {
			continue
		}
		if found != nil {
			s.setBad("it has two sx:sync")
			continue
		}
		found = k.element
	}
	if found == nil {
		return noSync
	}
	twice := s.bad
	s.bad = ""
	if s.sync(it, found); s.date {
		p.d.dateLine = cmp.Or(p.d.dateLine, found.line)
	}
	for _, k := range found.kids {
		if k.element != nil && k.is(Namespace, "conflicts") && len(it.Conflicts) == 0 && s.bad == "" {
			p.d.problem(Problem{Line: k.line, ID: it.ID, Reason: "sx:conflicts has no sx:conflict", Warning: true})
		}
	}
	return cmp.Or(s.bad, twice)
}

func (s *syncer) sync(it *Item, e *element) {
	var x extra
	version := ""
	for _, a := range e.attrs {
		switch a.Name {
		case xml.Name{Local: "id"}:
			it.ID = a.Value
		case xml.Name{Local: "version"}:
			version = a.Value
		case xml.Name{Local: "deleted"}:
			it.Deleted = s.boolean("deleted", a.Value)
		case xml.Name{Local: "conflict"}:
			it.Conflict = s.boolean("conflict", a.Value)
		default:
			x.sync.attrs = append(x.sync.attrs, a)
		}
	}
	switch id := it.ID; {
	case id == "":
		s.bad = "sx:sync has no id"
	case !IsNSS(id):
		it.ID = "" // the id may be long or contain control characters, so do not print it
		s.bad = fmt.Sprintf("the id %q is not a namespace specific string", brief(id))
	}
	var ok bool
	if it.Version, ok = parseVersion(version); !ok && version == "" {
		s.setBad("sx:sync has no version")
	} else if !ok {
		s.setBad("the version is %q; versions are whole numbers from 1 to 2^53", brief(version))
	}
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
	it.setUnknown(&x)
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
	case k.is(LektorNamespace, "settled"):
		if u, _ := s.update(k.element, "settled"); len(it.Settled) < KeepUpdates {
			it.Settled = append(it.Settled, u)
		}
	default:
		x.sync.kids = append(x.sync.kids, k)
	}
}

// addUpdate adds an earlier update, and its unknown parts to x.
func (it *Item) addUpdate(x *extra, u Update, unknown rest) {
	if len(it.History) > KeepUpdates {
		return
	}
	it.History = append(it.History, u)
	if !unknown.empty() {
		x.updates = append(x.updates, updateExtra{u, unknown})
	}
}

// setUnknown sets the unknown parts of the item.
func (it *Item) setUnknown(x *extra) {
	if !x.sync.empty() || !x.history.empty() || len(x.updates) > 0 {
		it.extra = x
	}
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
			u, other := s.update(k.element, "update")
			it.addUpdate(x, u, rest{other, k.kids})
		}
	}
}

// conflict parses an sx:conflict.
func (s *syncer) conflict(it *Item, e *element) {
	c, x := &Item{ID: it.ID}, &extra{}
	version := ""
	u, other := s.update(e, "conflict")
	c.History = []Update{u}
	for _, a := range other {
		switch a.Name {
		case xml.Name{Local: "version"}:
			version = a.Value
		case xml.Name{Space: LektorNamespace, Local: "deleted"}:
			c.Deleted = a.Value == "true"
		case xml.Name{Space: LektorNamespace, Local: "parent"}:
			c.Parent = a.Value
		default:
			x.sync.attrs = append(x.sync.attrs, a)
		}
	}
	ok := false
	if c.Version, ok = parseVersion(version); !ok {
		s.setBad("an sx:conflict has the version %q; versions are whole numbers from 1 to 2^53", brief(version))
	}
	size := 0
	for _, k := range e.kids {
		switch {
		case k.element == nil:
		case k.is(Namespace, "update"):
			quiet := &syncer{}
			if u, other := quiet.update(k.element, "update"); quiet.bad == "" {
				c.addUpdate(x, u, rest{other, k.kids})
			}
		case c.content == nil:
			k.tidy(true)
			c.content = k.content()
			size += len(c.content)
		default:
			raw := k.append(nil)
			size += len(raw)
			x.sync.kids = append(x.sync.kids, node{raw: raw})
		}
	}
	if size > 2*MaxContent {
		return
	}
	c.setUnknown(x)
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
	for _, a := range e.attrs {
		switch a.Name {
		case xml.Name{Local: "when"}:
			if text := strings.Trim(a.Value, space); text != "" {
				var ok bool
				if u.When, ok = ParseDate(text); !ok {
					s.setBad("sx:%s has the date %q, which is not in the form of RFC 822", name, brief(text))
				}
				s.date = s.date || ok && !inForm(text)
			}
		case xml.Name{Local: "by"}:
			// There are few endpoints, so the strings are shared.
			if u.By = unique.Make(a.Value).Value(); u.By != "" && !IsNSS(u.By) {
				s.setBad("sx:%s is by %q, which is not a namespace specific string", name, brief(u.By))
			}
		default:
			other = append(other, a)
		}
	}
	if u == (Update{}) {
		s.setBad("sx:%s has neither when nor by", name)
	}
	return u, other
}

// sharing parses an sx:sharing. It reports false for a second one.
func (p *parser) sharing(e *element, around role) bool {
	if p.d.Sharing != nil {
		p.d.problem(Problem{Line: e.line, Reason: "a second sx:sharing"})
		return false
	}
	s := &Sharing{}
	p.d.Sharing, p.d.sharing = s, e
	warn := func(format string, args ...any) {
		p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf(format, args...), Warning: true})
	}
	if around == roleRoot {
		place := "channel"
		if p.d.Kind == OPML {
			place = "head"
		}
		warn("sx:sharing is beside the %s, not in it", place)
	}
	value := func(name string) string { return strings.Trim(e.attr("", name), space) }
	s.Since, s.Until, s.Version = p.date(e, "since"), p.date(e, "until"), value("version")
	if window := value("window"); window != "" {
		var err error
		if s.Window, err = strconv.Atoi(window); err != nil || s.Window < 0 {
			p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf("the window %q is not a number of days",
				brief(window))})
			s.Window = 0
		}
	}
	switch s.Version {
	case SpecVersion:
	case "":
		warn("sx:sharing has no version")
	default:
		warn("sx:sharing has the version %q, and is read as %s", brief(s.Version), SpecVersion)
	}
	if !s.Since.IsZero() && !s.Until.IsZero() && s.Since.After(s.Until) {
		p.d.problem(Problem{Line: e.line, Reason: "since is after until, so both are ignored"})
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
	value := strings.Trim(e.attr("", name), space)
	if value == "" {
		return time.Time{}
	}
	t, ok := ParseDate(value)
	if !ok {
		p.d.problem(Problem{Line: e.line, Reason: fmt.Sprintf("%s has the date %q, which is not in the form of RFC 822",
			name, brief(value))})
	} else if !inForm(value) {
		p.d.dateLine = cmp.Or(p.d.dateLine, e.line)
	}
	return t
}

// related parses an sx:related (section 2.2).
func (p *parser) related(e *element) {
	value := func(name string) string { return strings.Trim(e.attr("", name), space) }
	r := Related{Link: value("link"), Title: value("title"), Type: value("type"), Since: p.date(e, "since"),
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
