// Package query is the language in which viewers select entries; its manual is
// lektor-query(7).
//
//	query = [ any ]
//	any   = all { "or" all }
//	all   = term { [ "and" ] term }
//	term  = "not:" term | "(" any ")" | [ key ":" ] value
//	value = word | '"' phrase '"' | "/" regexp "/" [ "i" ]
//
// In the place of a term with the key query: stands the saved query of that name.
//
// A [Query] knows which files of an entry it needs. Bound to a moment it
// becomes a [Matcher], which decides as early as it can: from the entry's name
// alone, or from some of its files.
package query

import (
	"regexp"
	"strings"

	"github.com/lektordir/lektor/lektordir"
)

// Query is a parsed query. The zero value is the empty query, which selects
// every entry.
type Query struct {
	root node // nil when empty
	text string
}

// String gives the query as it was written.
func (q *Query) String() string { return q.text }

// Error says where and why a text is no query.
type Error struct {
	Query  string // the whole of it
	Name   string // of a saved query, "" for what was asked
	Line   int    // of a saved query that has several, from 1; else 0
	Column int    // in characters, from 1
	Reason string
	Hint   string // what to write instead, or ""
}

func (e *Error) Error() string { return e.where() + ": " + e.Reason }

// node is a part of a query: allOf, anyOf, negation or *term.
type node interface {
	// walk visits every term.
	walk(visit func(*term))
}

type (
	allOf    []node // at least two
	anyOf    []node // at least two
	negation struct{ of node }
)

// term is a key and a value. Exactly one of date, re, choice and needle is used beside
// value, as the key and form say.
type term struct {
	key   key
	rule  *rule
	form  form
	value string // as written, without quotes, slashes and flags

	needle string         // value, folded
	re     *regexp.Regexp // of a regexp
	date   date           // of since, before, on, delivered, read
	choice *choice        // of is and has
}

// form is how a value was written; a phrase and a word mean the same.
type form uint8

const (
	word form = iota
	pattern
)

// key is what a term is about.
type key string

const (
	keyAny      key = "" // a word by itself
	keyFeed     key = "feed"
	keyAuthor   key = "author"
	keyTitle    key = "title"
	keyCategory key = "category"
	keyType     key = "type"
	keyText     key = "text"
	keyID       key = "id"
	keyLink     key = "link"
	keyIs       key = "is"
	keyFlag     key = "flag"
	keyHas      key = "has"
	keySince    key = "since"
	keyBefore   key = "before"
	keyOn       key = "on"
	keyFolder   key = "folder"
	keyDelivery key = "delivered"
	keyRead     key = "read"
	keySaved    key = "query"
)

// Empty reports whether the query selects everything because it says nothing.
func (q *Query) Empty() bool { return q == nil || q.root == nil }

// Fields are the files of an entry that the query may need.
func (q *Query) Fields() lektordir.Fields {
	var f lektordir.Fields
	q.walk(func(t *term) { f |= t.fields() })
	return f
}

// MentionsState reports whether the query itself says something of what a
// viewer records of an entry: that it was taken or read, or its flags. Where it
// does not, a viewer that is asked for nothing else shows what is unread.
func (q *Query) MentionsState() bool {
	return q.mentions(func(t *term) bool { return t.key == keyFlag || t.key == keyRead || t.choice != nil && t.choice.state })
}

// MentionsTrash reports whether the query itself asks about the flag T. Where it
// does not, a viewer lists nothing that has it.
func (q *Query) MentionsTrash() bool {
	return q.mentions(func(t *term) bool {
		return t.key == keyIs && t.needle == "trashed" || t.key == keyFlag && strings.Contains(t.value, "T")
	})
}

// MentionsWithdrawn reports whether the query itself asks about what feeds have
// withdrawn. Where it does not, a viewer lists none of that.
func (q *Query) MentionsWithdrawn() bool {
	return q.mentions(func(t *term) bool { return t.choice != nil && t.choice.name == withdrawn })
}

// mentions reports whether a term is one of those.
func (q *Query) mentions(those func(*term) bool) (found bool) {
	q.walk(func(t *term) { found = found || those(t) })
	return found
}

func (q *Query) walk(visit func(*term)) {
	if !q.Empty() {
		q.root.walk(visit)
	}
}

func (n allOf) walk(visit func(*term)) {
	for _, c := range n {
		c.walk(visit)
	}
}

func (n anyOf) walk(visit func(*term))    { allOf(n).walk(visit) }
func (n negation) walk(visit func(*term)) { n.of.walk(visit) }
func (t *term) walk(visit func(*term))    { visit(t) }

// fields are the files the term needs.
func (t *term) fields() lektordir.Fields {
	if t.choice != nil {
		return t.choice.fields
	}
	return t.rule.fields
}
