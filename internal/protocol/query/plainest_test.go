package query

import (
	"strings"
	"unicode/utf8"
)

// plainest returns a query in its simplest notation. Parsed again, it is the same query.
func plainest(q *Query) string {
	if q.Empty() {
		return ""
	}
	return written(q.root)
}

func written(n node) string {
	switch n := n.(type) {
	case allOf:
		return join(n, " ")
	case anyOf:
		return join(n, " or ")
	case negation:
		return "not:" + group(n.of)
	}
	return writtenTerm(n.(*term))
}

func join(nodes []node, separator string) string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		if _, ok := n.(allOf); ok && separator != " " {
			parts[i] = written(n) // "not:" binds more tightly
		} else {
			parts[i] = group(n)
		}
	}
	return strings.Join(parts, separator)
}

// group returns the text of a node, in parentheses if it has several parts.
func group(n node) string {
	switch n.(type) {
	case allOf, anyOf:
		return "(" + written(n) + ")"
	}
	return written(n)
}

func writtenTerm(t *term) string {
	key := ""
	if t.key != keyAny {
		key = string(t.key) + ":"
	}
	switch {
	case t.re != nil && t.re.String() != t.value:
		return key + "/" + strings.ReplaceAll(t.value, "/", `\/`) + "/i"
	case t.re != nil:
		return key + "/" + strings.ReplaceAll(t.value, "/", `\/`) + "/"
	case plain(t.key, t.value):
		return key + t.value
	}
	return key + `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(t.value) + `"`
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
