// Package query is the language in which viewers select entries; its manual is
// lektor-query(7).
//
//	query = [ any ]
//	any   = all { "or" all }
//	all   = term { [ "and" ] term }
//	term  = "not:" term | "(" any ")" | [ key ":" ] value
//	value = word | '"' phrase '"' | "/" regexp "/" [ "i" ]
//
// A [Query] knows which files of an entry it needs. Bound to a moment it
// becomes a [Matcher], which decides as early as it can: from the entry's name
// alone, or from some of its files.
package query

import (
	"fmt"
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
	Query  string
	Column int // in characters, from 1
	Reason string
	Hint   string // what to write instead, or ""
}

func (e *Error) Error() string {
	return fmt.Sprintf("query, column %d: %s", e.Column, e.Reason)
}

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

// term is a key and a value. Exactly one of date, re and needle is used beside
// value, as the key and form say.
type term struct {
	key   key
	form  form
	value string // as written, without quotes, slashes and flags

	needle string         // value, folded
	re     *regexp.Regexp // of a regexp
	date   date           // of since, before, on, delivered, read
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
)

// keys are all the keys, in the order in which messages list them.
var keys = []key{
	keyFeed, keyAuthor, keyTitle, keyCategory, keyType, keyText, keyID, keyLink,
	keyFolder, keyIs, keyFlag, keyHas, keySince, keyBefore, keyOn, keyDelivery, keyRead,
}

// states are the values of is:, and whether naming one says what entries are
// wanted with respect to having been read.
var states = []struct {
	name  string
	state bool
}{
	{"unread", true}, {"read", true}, {"seen", true}, {"flagged", true}, {"trashed", true},
	{"new", true}, {"cur", true}, {"updated", false}, {"withdrawn", true},
}

// things are the values of has:, with the fields they need.
var things = []struct {
	name   string
	fields lektordir.Fields
}{
	{"enclosure", lektordir.FieldEnclosures},
	{"audio", lektordir.FieldEnclosures},
	{"video", lektordir.FieldEnclosures},
	{"image", lektordir.FieldEnclosures},
	{"title", lektordir.FieldTitle},
	{"author", lektordir.FieldAuthor},
	{"date", lektordir.FieldPubDate},
	{"link", lektordir.FieldLink | lektordir.FieldID},
	{"category", lektordir.FieldCategories},
	{"summary", lektordir.FieldSummary},
	{"comments", lektordir.FieldComments},
	{"content", lektordir.FieldContent},
}

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
	found := false
	q.walk(func(t *term) {
		switch t.key {
		case keyFlag, keyRead:
			found = true
		case keyIs:
			for _, s := range states {
				found = found || s.state && s.name == t.needle
			}
		}
	})
	return found
}

// MentionsTrash reports whether the query itself asks about the flag T. Where it
// does not, a viewer lists nothing that has it.
func (q *Query) MentionsTrash() bool {
	found := false
	q.walk(func(t *term) {
		found = found || t.key == keyIs && t.needle == "trashed" || t.key == keyFlag && strings.Contains(t.value, "T")
	})
	return found
}

// MentionsWithdrawn reports whether the query itself asks about what feeds have
// withdrawn. Where it does not, a viewer lists none of that.
func (q *Query) MentionsWithdrawn() bool {
	found := false
	q.walk(func(t *term) { found = found || t.key == keyIs && t.needle == "withdrawn" })
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
	switch t.key {
	case keyAny:
		return lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldType | lektordir.FieldContent
	case keyAuthor:
		return lektordir.FieldAuthor
	case keyTitle:
		return lektordir.FieldTitle
	case keyCategory:
		return lektordir.FieldCategories
	case keyType:
		return lektordir.FieldType
	case keyText:
		return lektordir.FieldType | lektordir.FieldContent
	case keyID:
		return lektordir.FieldID
	case keyLink:
		return lektordir.FieldLink | lektordir.FieldID
	case keySince, keyBefore, keyOn:
		return lektordir.FieldPubDate
	case keyIs:
		if t.needle == "updated" {
			return lektordir.FieldReplaces
		}
	case keyHas:
		for _, th := range things {
			if th.name == t.needle {
				return th.fields
			}
		}
	}
	return 0
}
