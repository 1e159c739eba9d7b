package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lektordir/lektor/lektordir"
)

// library returns the saved queries of a map.
func library(m map[string]string) Saved {
	return func(name string) (string, error) {
		text, ok := m[name]
		if !ok {
			return "", &Error{Reason: "there is no " + name, Hint: "write it"}
		}
		return text, nil
	}
}

// A saved query means what its text means in parentheses.
func TestSaved(t *testing.T) {
	saved := library(map[string]string{
		"either": "wolf or quick", "Long reads": "# what is long\n  query:either\n  # and old\n\tbefore:now\n",
		"ticks": `title:"a # b" or #x`, "trash": "is:trashed", "gone": "is:withdrawn", "state": "not:query:trash",
	})
	for text, same := range map[string]string{
		"query:either":              "wolf or quick",
		"query:either fox":          "(wolf or quick) fox",
		"not:query:either":          "not:(wolf or quick)",
		`QUERY:"Long reads"`:        "(wolf or quick) before:now",
		"query:ticks":               `title:"a # b" or #x`,
		"(query:trash or x)":        "is:trashed or x",
		"query:state":               "not:is:trashed",
		"query:gone query:either y": "is:withdrawn (wolf or quick) y",
		`"query:either"`:            `"query:either"`,
	} {
		q, err := ParseWith(text, saved)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want, err := Parse(same)
		if err != nil {
			t.Fatal(err)
		}
		if !sameMeaning(q, want) {
			t.Errorf("%s is %s, not %s", text, plainest(q), plainest(want))
		}
		if q.String() != text {
			t.Errorf("%s is shown as %s", text, q)
		}
	}
	q, err := ParseWith(SavedTerm("Long reads"), saved)
	if err != nil || q.String() != `query:"Long reads"` {
		t.Errorf("got %v, %v; want err == nil and q.String() == `query:\"Long reads\"`", q, err)
	}
}

// sameMeaning reports whether two queries match the same entries and report the same properties.
func sameMeaning(a, b *Query) bool {
	s := subject()
	return a.Fields() == b.Fields() && a.MentionsState() == b.MentionsState() && a.MentionsTrash() == b.MentionsTrash() &&
		a.MentionsWithdrawn() == b.MentionsWithdrawn() && a.Bind(now).Match(s, lektordir.AllFields) == b.Bind(now).Match(s, lektordir.AllFields)
}

func TestSavedErrors(t *testing.T) {
	many := map[string]string{"z0": "x"}
	for i := 1; i < 40; i++ {
		many[fmt.Sprint("z", i)] = fmt.Sprintf("query:z%d query:z%d", i-1, i-1)
	}
	deep := map[string]string{"d0": "x"}
	for i := 1; i < 300; i++ {
		deep[fmt.Sprint("d", i)] = fmt.Sprintf("query:d%d", i-1)
	}
	m := map[string]string{
		"self": "x query:self", "a": "query:b", "b": "y\nnot:(\n query:c)", "c": "query:a", "bad": "titel:x", "bad2": "# one\nfeed:x\n  (is:odd)",
		"uses": "z query:bad", "empty": " \n", "comment": "# nothing", "latin": "caf\xe9", "open": "(a", "close": "a)",
	}
	for _, more := range []map[string]string{many, deep} {
		for k, v := range more {
			m[k] = v
		}
	}
	for text, want := range map[string]string{
		"query:none":            "query, column 1: there is no none",
		"x or query:none":       "query, column 6: there is no none",
		"query:self":            "saved query self, column 3: the saved query self is a part of itself (self has self)",
		"query:b":               "saved query a, column 1: the saved query b is a part of itself (b has c has a has b)",
		"query:bad":             "saved query bad, column 1: there is no key titel:",
		"query:uses":            "saved query bad, column 1: there is no key titel:",
		"query:bad2":            "saved query bad2, line 3, column 7: there is no is:odd",
		"query:empty":           "query, column 1: the saved query empty is empty",
		"query:comment":         "query, column 1: the saved query comment is empty",
		"query:latin":           "saved query latin, column 4: this is not UTF-8",
		"query:open":            "saved query open, column 1: this ( is not closed",
		"query:close":           "saved query close, column 2: this ) closes nothing",
		"query:":                "query, column 7: a value is missing after query:",
		"query:a/b":             "query, column 7: a saved query has no / in its name",
		"query:../etc/passwd":   "query, column 7: a saved query has no / in its name",
		"query:..":              "query, column 7: the name of a saved query does not begin with a dot",
		"query:old~":            "query, column 7: the name of a saved query does not end with ~",
		"query:\"a\x07\"":       "query, column 7: a saved query has no control characters in its name",
		"query:\" a\"":          "query, column 7: the name of a saved query does not begin or end with a space",
		"query:/x/":             "query, column 7: a saved query has no / in its name",
		"query:z39":             "more than 1000 saved queries within each other",
		"query:d299":            "more than 100 levels",
		"query:" + long(256):    "query, column 7: the name of a saved query has at most 255 bytes",
		"(query:a or query:bad": "the saved query a is a part of itself (a has b has c has a)",
	} {
		_, err := ParseWith(text, library(m))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, not %s", text, err, want)
		}
	}
	if _, err := Parse("query:a"); err == nil || !strings.Contains(err.Error(), "cannot be used here") {
		t.Error(err)
	}
	if _, err := ParseWith(SavedTerm("../x"), library(m)); err == nil {
		t.Error("a path is accepted as a name")
	}
	_, err := ParseWith("query:none", func(string) (string, error) { return "", errors.New("it cannot be read") })
	if err == nil || err.Error() != "query, column 1: it cannot be read" {
		t.Error(err)
	}
}

func long(n int) string { return strings.Repeat("x", n) }

// FuzzSaved: for any saved queries, parsing ends, and a query with them is equal to the query
// with their text in parentheses.
func FuzzSaved(f *testing.F) {
	f.Add("query:a", "x or query:b", "not:y")
	f.Add("query:a query:b", "query:b\nquery:b", "#\n z")
	f.Add("query:a", "query:b", "query:a")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		q, err := ParseWith(text, library(map[string]string{"a": a, "b": b}))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Column < 1 || e.Reason == "" {
				t.Fatalf("%q: got %#v; want errors.As(err, &e) and e.Column >= 1 and e.Reason != \"\"", text, err)
			}
			return
		}
		again, err := Parse(plainest(q))
		if err != nil || !sameMeaning(q, again) {
			t.Fatalf("%q is %q: %v", text, plainest(q), err)
		}
	})
}
