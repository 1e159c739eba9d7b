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
	"unicode/utf8"

	"github.com/lektordir/lektor/lektordir"
)

// Query is a parsed query. The zero value is the empty query, which selects
// every entry.
type Query struct {
	root node // nil when empty
}

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

// node is a part of a query: all, any, not or *term.
type node interface{ print(b *strings.Builder) }

type (
	all []node // of at least two
	any []node // of at least two
	not struct{ of node }
)

// term is a key and a value. Exactly one of date, re and needle is used beside
// value, as the key and form say.
type term struct {
	key   key
	form  form
	value string // as written, without quotes, slashes and flags
	fold  bool   // of a regexp: flag i

	needle string         // value, folded
	re     *regexp.Regexp // of a regexp
	date   date           // of since, before, on
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
)

// keys are all the keys, in the order in which messages list them.
var keys = []key{
	keyFeed, keyAuthor, keyTitle, keyCategory, keyType, keyText, keyID, keyLink,
	keyIs, keyFlag, keyHas, keySince, keyBefore, keyOn,
}

// states are the values of is:, and whether naming one says what entries are
// wanted with respect to having been read.
var states = []struct {
	name  string
	state bool
}{
	{"unread", true}, {"read", true}, {"seen", true}, {"flagged", true}, {"trashed", true},
	{"new", true}, {"cur", true}, {"updated", false},
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

// NamesOnly reports whether the query can be decided without opening any entry.
func (q *Query) NamesOnly() bool { return q.Fields() == 0 }

// MentionsState reports whether the query itself says something of what a
// viewer records of an entry: that it was taken or read, or its flags. Where it
// does not, a viewer that is asked for nothing else shows what is unread.
func (q *Query) MentionsState() bool {
	found := false
	q.walk(func(t *term) {
		switch t.key {
		case keyFlag:
			found = true
		case keyIs:
			for _, s := range states {
				found = found || s.state && s.name == t.needle
			}
		}
	})
	return found
}

// walk visits every term.
func (q *Query) walk(visit func(*term)) {
	if q.Empty() {
		return
	}
	var step func(node)
	step = func(n node) {
		switch n := n.(type) {
		case all:
			for _, c := range n {
				step(c)
			}
		case any:
			for _, c := range n {
				step(c)
			}
		case not:
			step(n.of)
		case *term:
			visit(n)
		}
	}
	step(q.root)
}

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

// String writes the query in its plainest form; parsed again it is the same.
func (q *Query) String() string {
	if q.Empty() {
		return ""
	}
	var b strings.Builder
	q.root.print(&b)
	return b.String()
}

func (n all) print(b *strings.Builder) {
	for i, c := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		group(b, c)
	}
}

func (n any) print(b *strings.Builder) {
	for i, c := range n {
		if i > 0 {
			b.WriteString(" or ")
		}
		if c, ok := c.(all); ok {
			c.print(b) // binds more tightly
			continue
		}
		group(b, c)
	}
}

func (n not) print(b *strings.Builder) {
	b.WriteString("not:")
	group(b, n.of)
}

// group prints a node, in parentheses when it has several parts.
func group(b *strings.Builder, n node) {
	switch n.(type) {
	case all, any:
		b.WriteByte('(')
		n.print(b)
		b.WriteByte(')')
	default:
		n.print(b)
	}
}

func (t *term) print(b *strings.Builder) {
	if t.key != keyAny {
		b.WriteString(string(t.key) + ":")
	}
	switch {
	case t.form == pattern:
		b.WriteString("/" + strings.ReplaceAll(t.value, "/", `\/`) + "/")
		if t.fold {
			b.WriteByte('i')
		}
	case plain(t.key, t.value):
		b.WriteString(t.value)
	default:
		b.WriteByte('"')
		for _, r := range t.value {
			if r == '"' || r == '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		b.WriteByte('"')
	}
}

// plain reports whether a value can stand without quotes.
func plain(k key, v string) bool {
	if v == "" || !utf8.ValidString(v) || strings.IndexFunc(v, ends) >= 0 || v[0] == '/' {
		return false
	}
	if k != keyAny {
		return true
	}
	if _, _, ok := cutKey(v); ok || v[0] == '-' {
		return false
	}
	switch strings.ToLower(v) {
	case "or", "and", "not":
		return false
	}
	return true
}
