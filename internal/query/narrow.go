package query

import (
	"slices"
	"strings"
	"time"
)

// What follows tells, before any entry is looked at, where those must be that a query
// selects. It is for those who know many entries and can begin at the right ones: each
// answer takes in every entry that the query selects, and others too.

// Span is a time from From to before To; zero stands for no end.
type Span struct{ From, To time.Time }

// Span gives the time in which the [Date] of all entries is that the query selects.
func (m *Matcher) Span() Span {
	if m.root == nil {
		return Span{}
	}
	return m.span(m.root)
}

func (m *Matcher) span(n node) Span {
	switch n := n.(type) {
	case allOf:
		var all Span
		for _, c := range n {
			s := m.span(c)
			if s.From.After(all.From) {
				all.From = s.From
			}
			if !s.To.IsZero() && (all.To.IsZero() || s.To.Before(all.To)) {
				all.To = s.To
			}
		}
		return all
	case anyOf:
		hull := m.span(n[0])
		for _, c := range n[1:] {
			s := m.span(c)
			if s.From.Before(hull.From) {
				hull.From = s.From
			}
			if s.To.IsZero() || !hull.To.IsZero() && s.To.After(hull.To) {
				hull.To = s.To
			}
		}
		return hull
	case *term:
		switch n.key {
		case keySince:
			return Span{From: m.dates[n].from}
		case keyBefore:
			return Span{To: m.dates[n].from}
		case keyOn:
			return Span{m.dates[n].from, m.dates[n].to}
		}
	}
	return Span{}
}

// Needle is a folded text, see [Fold], that a query looks for in the title, the author
// and the text of the content. InFeed tells that the name and the alias of the feed
// count too, and ByFeed that its author does for an entry that has none.
type Needle struct {
	Text           string
	InFeed, ByFeed bool
}

// Cover gives needles of which every entry has at least one that the query selects;
// nil where there are no such. Of several choices it takes the one for which size
// gives the least in all; size tells of a text how many entries may have it.
func (m *Matcher) Cover(size func(text string) int) []Needle {
	if m.root == nil {
		return nil
	}
	list, _ := cover(m.root, size)
	return list
}

func cover(n node, size func(string) int) (list []Needle, total int) {
	switch n := n.(type) {
	case allOf:
		for _, c := range n {
			if l, s := cover(c, size); l != nil && (list == nil || s < total) {
				list, total = l, s
			}
		}
	case anyOf:
		for _, c := range n {
			l, s := cover(c, size)
			if l == nil {
				return nil, 0
			}
			list, total = append(list, l...), total+s
		}
	case *term:
		if n.re != nil {
			return nil, 0
		}
		switch n.key {
		case keyAny, keyTitle, keyText, keyAuthor:
			return []Needle{{Text: n.needle, InFeed: n.key == keyAny, ByFeed: n.key == keyAuthor}}, size(n.needle)
		}
	}
	return list, total
}

// OnlyUnread reports whether the query selects nothing but what is unread, and
// OnlyMarked whether nothing but what has a flag other than S.
func (q *Query) OnlyUnread() bool {
	return q.demands(func(t *term) bool {
		return t.choice != nil && t.key == keyIs && (t.needle == "unread" || t.needle == "new")
	})
}

// OnlyMarked is described at [Query.OnlyUnread].
func (q *Query) OnlyMarked() bool {
	return q.demands(func(t *term) bool {
		return t.choice != nil && t.key == keyIs && (t.needle == "flagged" || t.needle == "trashed") || t.key == keyFlag && strings.Trim(t.value, "S") != ""
	})
}

// demands reports whether everything that the query selects fits one of some terms.
func (q *Query) demands(one func(*term) bool) bool { return !q.Empty() && demands(q.root, one) }

func demands(n node, one func(*term) bool) bool {
	switch n := n.(type) {
	case allOf:
		for _, c := range n {
			if demands(c, one) {
				return true
			}
		}
	case anyOf:
		for _, c := range n {
			if !demands(c, one) {
				return false
			}
		}
		return true
	case *term:
		return one(n)
	}
	return false
}

// AsksFeeds reports whether the query says anything that a feed can decide, its
// folders among it.
func (q *Query) AsksFeeds() bool {
	return q.asks(keyAny, keyFeed, keyFolder, keyAuthor, keyCategory)
}

// AsksNames reports whether it matters to the query what feeds are called, and AsksAbout
// whether anything else does that they say of themselves, as who writes them.
func (q *Query) AsksNames() bool { return q.asks(keyAny, keyFeed) }
func (q *Query) AsksAbout() bool { return q.asks(keyFeed, keyAuthor) }

func (q *Query) asks(keys ...key) bool {
	return q.mentions(func(t *term) bool { return slices.Contains(keys, t.key) })
}

// Words are the texts, folded, that the query looks for in words of its own, and not
// by not:. Order by relevance counts them.
func (q *Query) Words() []string {
	if q.Empty() {
		return nil
	}
	return wanted(q.root, nil)
}

func wanted(n node, list []string) []string {
	switch n := n.(type) {
	case allOf:
		for _, c := range n {
			list = wanted(c, list)
		}
	case anyOf:
		return wanted(allOf(n), list)
	case *term:
		switch n.key {
		case keyAny, keyTitle, keyText:
			if n.re == nil {
				list = append(list, n.needle)
			}
		}
	}
	return list
}
