// Package rawjson reads JSON, as much of it as possible if it is malformed or cut off.
package rawjson

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/markup"
)

// Value is a JSON value, not yet decoded, as a slice of the document. Values that are not used take
// no memory, everything before a cut is found, and no recursion is needed, so deep nesting is
// harmless. An empty Value means that the value is absent. All methods return the zero value for a
// value of another type.
type Value []byte

// At returns the value that begins in b at i, and the index where it ends. complete is false if the
// document ends first.
func At(b []byte, i int) (v Value, end int, complete bool) {
	i = jsonSpace(b, i)
	start := i
	if i >= len(b) {
		return nil, i, false
	}
	switch b[i] {
	case '"':
		end, complete = jsonStringEnd(b, i)
	case '{', '[':
		end, complete = jsonContainerEnd(b, i)
	default:
		for i < len(b) && !strings.ContainsRune(",:]} \t\r\n\"", rune(b[i])) {
			i++
		}
		end, complete = i, i < len(b)
	}
	return Value(b[start:end]), end, complete
}

// Unwrap returns the JSON value in a document, nil if the document is not JSON, and the length of
// the prefix before the value: the guard )]}' against inclusion as a script, or a JSONP call, whose
// end is removed, too.
func Unwrap(b []byte) (value []byte, prefix int) {
	start := func(i int) bool { return i < len(b) && (b[i] == '{' || b[i] == '[') }
	i := jsonSpace(b, 0)
	if start(i) {
		return b, 0
	}
	if mark := bytes.TrimPrefix(b[i:], []byte(")]}'")); len(mark) < len(b)-i {
		if i = jsonSpace(b, len(b)-len(bytes.TrimPrefix(mark, []byte(",")))); start(i) {
			return b[i:], i
		}
		return nil, 0
	}
	call := jsonCall().FindIndex(b[i:min(len(b), i+maxCall)])
	if call == nil || !start(i+call[1]) {
		return nil, 0
	}
	i += call[1]
	v, end, complete := At(b, i)
	if complete && len(bytes.Trim(b[end:], ") ;\t\r\n")) == 0 {
		return v, i
	}
	return b[i:], i
}

// jsonCall matches the beginning of a call of JSONP, up to its argument.
var jsonCall = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/\*[^*]*\*/\s*)?(?:typeof\s+[\w$.]+\s*===?\s*['"]function['"]\s*&&\s*)?[A-Za-z_$][\w$.\[\]'"]*\s*\(\s*`)
})

// maxCall is the maximum length in bytes of the beginning of a call.
const maxCall = 512

// jsonSpace skips white space and control characters.
func jsonSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// jsonStringEnd finds the quote that ends a string: the first with an even
// number of backslashes before it.
func jsonStringEnd(b []byte, i int) (end int, complete bool) {
	for from := i + 1; ; {
		quote := bytes.IndexByte(b[from:], '"')
		if quote < 0 {
			return len(b), false
		}
		quote += from
		start := quote
		for start > from && b[start-1] == '\\' {
			start--
		}
		from = quote + 1
		if (quote-start)%2 == 0 {
			return from, true
		}
	}
}

// jsonContainerEnd finds the end of an object or array. Brackets are counted,
// not matched: in a malformed document the difference is a guess anyway.
func jsonContainerEnd(b []byte, i int) (end int, complete bool) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i, complete = jsonStringEnd(b, i)
			if !complete {
				return i, false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return len(b), false
}

func (v Value) kind() byte {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// IsObject reports whether a value is an object.
func (v Value) IsObject() bool { return v.kind() == '{' }

// IsArray reports whether a value is an array.
func (v Value) IsArray() bool { return v.kind() == '[' }

// IsString reports whether a value is a string.
func (v Value) IsString() bool { return v.kind() == '"' }

// Fields calls f for each member of an object until f returns false. If the value of a member is
// cut off, it is passed only if it is an object or array, for the part before the cut.
func (v Value) Fields(f func(name string, value Value) bool) {
	if !v.IsObject() {
		return
	}
	for i := 1; ; {
		for i = jsonSpace(v, i); i < len(v) && v[i] != '"'; i++ {
			if v[i] == '}' {
				return
			}
		}
		if i >= len(v) {
			return
		}
		end, complete := jsonStringEnd(v, i)
		if !complete {
			return
		}
		name := Value(v[i:end]).Str()
		i = jsonSpace(v, end)
		if i >= len(v) {
			return
		}
		if v[i] != ':' {
			continue // no value: go on to the next name
		}
		value, next, complete := At(v, i+1)
		if !complete && !value.IsObject() && !value.IsArray() {
			return
		}
		if len(value) > 0 && !f(name, value) {
			return
		}
		i = max(next, i+1)
	}
}

// Each calls f for each element of an array until f returns false. For a value that is not an
// array, it calls f once with the value. An element that is cut off is left out.
func (v Value) Each(f func(element Value) bool) {
	if !v.IsArray() {
		if len(v) > 0 && !v.IsNull() {
			f(v)
		}
		return
	}
	for i := 1; ; {
		i = jsonSpace(v, i)
		if i >= len(v) || v[i] == ']' {
			return
		}
		if v[i] == ',' || v[i] == '}' || v[i] == ':' {
			i++
			continue
		}
		element, next, complete := At(v, i)
		if !complete || len(element) > 0 && !f(element) {
			return
		}
		i = max(next, i+1)
	}
}

// List calls f for the first most+1 elements of an array.
func (v Value) List(most int, f func(element Value)) {
	n := 0
	v.Each(func(element Value) bool {
		f(element)
		n++
		return n <= most
	})
}

// IsNull reports whether a value is null.
func (v Value) IsNull() bool { return string(v) == "null" }

// Object is an object whose members have been found.
type Object []Member

// Member is a member of an object.
type Member struct {
	Name  string
	Value Value
}

// maxMembers is the maximum number of members of an object that are read.
const maxMembers = 10000

// Object returns the members of an object, in their order.
func (v Value) Object() Object {
	if !v.IsObject() {
		return nil
	}
	o := make(Object, 0, 16)
	for name, value := range v.Fields {
		if o = append(o, Member{name, value}); len(o) == maxMembers {
			break
		}
	}
	return o
}

// Get returns the member with the first of names that exists and is not null. If a name is
// repeated, the last one counts.
func (o Object) Get(names ...string) Value {
	for _, name := range names {
		for i := len(o) - 1; i >= 0; i-- {
			if o[i].Name == name && !o[i].Value.IsNull() {
				return o[i].Value
			}
		}
	}
	return nil
}

// All returns the members of these names, in the order of the document.
func (o Object) All(names ...string) []Value {
	var out []Value
	for _, m := range o {
		if slices.Contains(names, m.Name) {
			out = append(out, m.Value)
		}
	}
	return out
}

// Text returns the member that Get returns, as text.
func (o Object) Text(names ...string) string { return o.Get(names...).Scalar() }

// Text returns a member of an object as text; see [Object.Text].
func (v Value) Text(names ...string) string { return v.Object().Text(names...) }

// Scalar returns a string, or a number as it is written: identifiers are numbers in some feeds, and
// may be too long for a float64.
func (v Value) Scalar() string {
	switch k := v.kind(); {
	case k == '"':
		return v.Str()
	case k >= '0' && k <= '9' || k == '-':
		return string(v)
	}
	return ""
}

// IsTrue reports whether a value is true, 1, "true", "yes" or "1".
func (v Value) IsTrue() bool {
	s := strings.Trim(string(v[:min(len(v), 8)]), `"`)
	return s == "true" || s == "1" || strings.EqualFold(s, "yes")
}

// Str decodes a string. The result is valid UTF-8 without control characters other than tab and
// newline.
func (v Value) Str() string {
	if !v.IsString() {
		return ""
	}
	in := v[1:]
	if n := len(in); n > 0 && in[n-1] == '"' {
		in = in[:n-1]
	}
	i := 0
	for i < len(in) && in[i] != '\\' && in[i] >= 0x20 && in[i] < utf8.RuneSelf {
		i++
	}
	if i == len(in) {
		return string(in)
	}
	out := make([]byte, i, len(in))
	copy(out, in)
	for i < len(in) {
		if in[i] != '\\' {
			run := bytes.IndexByte(in[i:], '\\')
			if run < 0 {
				run = len(in) - i
			}
			out = append(out, in[i:i+run]...)
			i += run
			continue
		}
		r, n := jsonEscape(in[i:])
		i += n
		out = utf8.AppendRune(out, r)
	}
	return markup.Clean(strings.ToValidUTF8(string(out), "\uFFFD"))
}

// jsonEscape decodes the escape that b begins with. An unknown escape stands
// for its character without the backslash.
func jsonEscape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return utf8.RuneError, len(b)
	}
	switch b[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b', 'f':
		return ' ', 2
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return utf8.RuneError, 2
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := hex4(b[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	r, n = utf8.DecodeRune(b[1:])
	return r, 1 + n
}

func hex4(b []byte) (rune, bool) {
	v, err := strconv.ParseUint(string(b[:min(len(b), 4)]), 16, 16)
	return rune(v), err == nil && len(b) >= 4
}
