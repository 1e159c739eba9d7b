package query

import (
	"slices"
	"strings"
	"time"
)

// The functions of this file narrow down which entries a query can select, before any entry is read. An
// index uses them. Each result covers all entries that the query selects, and possibly others.

// Span is the time from From until before To. A zero time means no limit.
type Span struct{ From, To time.Time }

// Span returns a span that holds the [Date] of every entry that the query selects.
func (m *Matcher) Span() Span { return m.span(m.root) }

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

// Needle is a folded text, see [Fold], that a query searches for in the title, the author and the text
// of the content. If InFeed is set, it also searches the title and the alias of the feed, and if ByFeed
// is set, the author of the feed for entries without one.
type Needle struct {
	Text           string
	InFeed, ByFeed bool
}

// Cover returns needles such that every entry that the query selects has at least one of them; nil if
// there are none. size estimates the number of entries with a text; Cover minimizes the sum.
func (m *Matcher) Cover(size func(text string) int) []Needle {
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

// OnlyUnread reports whether the query selects only unread entries.
func (q *Query) OnlyUnread() bool {
	return q.demands(func(t *term) bool {
		return t.choice != nil && t.key == keyIs && (t.needle == "unread" || t.needle == "new")
	})
}

// OnlyMarked reports whether the query selects only entries with a flag other than S.
func (q *Query) OnlyMarked() bool {
	return q.demands(func(t *term) bool {
		return t.choice != nil && t.key == keyIs && (t.needle == "flagged" || t.needle == "trashed") ||
			t.key == keyFlag && strings.Trim(t.value, "S") != ""
	})
}

// OnlyRepeats reports whether the query selects only repeats.
func (q *Query) OnlyRepeats() bool { return q.demands((*term).isRepeat) }

// demands reports whether every entry that the query selects matches a term for which one returns true.
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

// AsksFeeds reports whether the query has a term that depends on the feed, including its folders.
func (q *Query) AsksFeeds() bool {
	return q.asks(keyAny, keyFeed, keyFolder, keyAuthor, keyCategory)
}

// AsksNames reports whether the query depends on the names of feeds, and AsksAbout whether it depends on
// other data of feeds, for example the author.
func (q *Query) AsksNames() bool { return q.asks(keyAny, keyFeed) }
func (q *Query) AsksAbout() bool { return q.asks(keyFeed, keyAuthor) }

func (q *Query) asks(keys ...key) bool {
	return q.mentions(func(t *term) bool { return slices.Contains(keys, t.key) })
}

// Words returns the folded texts of the words without a key that are not negated. Sorting by relevance
// counts them.
func (q *Query) Words() (list []string) {
	if q.Empty() {
		return nil
	}
	walk(q.root, false, func(t *term) {
		switch t.key {
		case keyAny, keyTitle, keyText:
			if t.re == nil {
				list = append(list, t.needle)
			}
		}
	})
	return list
}
