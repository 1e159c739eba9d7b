// Package query implements the query language of the viewers, which lektor-query(7) describes.
//
//	query = [ any ]
//	any   = all { "or" all }
//	all   = term { [ "and" ] term }
//	term  = "not:" term | "(" any ")" | [ key ":" ] value
//	value = word | '"' phrase '"' | "/" regexp "/" [ "i" ]
//
// A term with the key query: is replaced by the saved query of that name, and one with the key label:
// by that of the flag with this name.
//
// A [Query] reports which fields of an entry it needs. Bound to a time it is a [Matcher], which decides
// as early as possible: from the name of the entry alone, or from some of its fields.
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

// String returns the query as it was written.
func (q *Query) String() string { return q.text }

// Error is the error of a text that is not a valid query.
type Error struct {
	Name   string // name of the saved query with the error; "" for the query itself
	Line   int    // line in a saved query of several lines, from 1; else 0
	Column int    // in characters, from 1
	Reason string
	Hint   string // text to write instead, or ""
}

func (e *Error) Error() string { return e.where() + ": " + e.Reason }

// node is a part of a query: allOf, anyOf, negation or *term.
type node any

type (
	allOf    []node // at least two
	anyOf    []node // at least two
	negation struct{ of node }
)

// term is a key and a value. Depending on the key, exactly one of date, re, choice,
// sizes and needle is used besides value.
type term struct {
	key   key
	rule  *rule
	value string // as written, without quotes, slashes and flags

	needle string         // value, folded
	re     *regexp.Regexp // set for a regexp
	date   date           // set for since, before, on, delivered, read
	choice *choice        // set for is and has
	sizes  sizes          // set for duration, episode, season
}

// key is the key of a term.
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
	keyLabel    key = "label"
	keyDuration key = "duration"
	keyEpisode  key = "episode"
	keySeason   key = "season"
)

// Empty reports whether the query has no terms, so that it selects everything.
func (q *Query) Empty() bool { return q == nil || q.root == nil }

// Fields returns the fields of an entry that the query may need.
func (q *Query) Fields() lektordir.Fields {
	var f lektordir.Fields
	q.walk(func(t *term) { f |= t.fields() })
	return f
}

// MentionsState reports whether the query has a term about flags, read entries or new/. If not, viewers
// show only unread entries by default.
func (q *Query) MentionsState() bool {
	return q.mentions(func(t *term) bool {
		return t.key == keyFlag || t.key == keyRead || t.choice != nil &&
			t.choice.state
	})
}

// MentionsTrash reports whether the query has a term about the flag T. If not, viewers do not list
// trashed entries.
func (q *Query) MentionsTrash() bool {
	return q.mentions(func(t *term) bool {
		return t.key == keyIs && t.needle == "trashed" || t.key == keyFlag && strings.Contains(t.value, "T")
	})
}

// MentionsWithdrawn reports whether the query has a term about withdrawn entries. If not, viewers do not
// list them.
func (q *Query) MentionsWithdrawn() bool {
	return q.mentions(func(t *term) bool { return t.choice != nil && t.choice.name == withdrawn })
}

// MentionsRepeat reports whether the query has a term about repeats.
func (q *Query) MentionsRepeat() bool { return q.mentions((*term).isRepeat) }

func (t *term) isRepeat() bool { return t.choice != nil && t.choice.name == repeat }

// mentions reports whether match returns true for a term of the query.
func (q *Query) mentions(match func(*term) bool) (found bool) {
	q.walk(func(t *term) { found = found || match(t) })
	return found
}

// walk visits every term.
func (q *Query) walk(visit func(*term)) {
	if !q.Empty() {
		walk(q.root, true, visit)
	}
}

// walk visits the terms of a node, those that are negated only if negated is true.
func walk(n node, negated bool, visit func(*term)) {
	switch n := n.(type) {
	case allOf:
		for _, c := range n {
			walk(c, negated, visit)
		}
	case anyOf:
		walk(allOf(n), negated, visit)
	case negation:
		if negated {
			walk(n.of, negated, visit)
		}
	case *term:
		visit(n)
	}
}

// fields returns the fields that the term needs.
func (t *term) fields() lektordir.Fields {
	if t.choice != nil {
		return t.choice.fields
	}
	return t.rule.fields
}
