// Package values is the text of small files that hold named values: a line each, of the
// name, a separator and the value. Such files may be changed by hand, so a line with a name
// that a program does not know, of another version or the user's own, stays where it is, and
// so does a line that names nothing, such as a note or an empty line.
//
// How the file is replaced, and whether it must be durable, is for the caller, with
// [github.com/lektordir/lektor/internal/atomicfile].
package values

import (
	"strconv"
	"strings"
	"time"
)

// Values are the lines of a file. They belong to one goroutine.
type Values struct {
	sep   byte
	lines []line
}

// line is a line of the file. If it names nothing, the value is all of it.
type line struct{ name, value string }

// New returns an empty file with the separator sep.
func New(sep byte) *Values { return &Values{sep: sep} }

// Parse reads the text of a file with the separator sep. A line without a separator, or with
// nothing before it, names nothing. If a name is there more than once, the last line counts.
func Parse(text []byte, sep byte) *Values {
	v := New(sep)
	for l := range strings.Lines(string(text)) {
		l = strings.TrimRight(l, "\r\n")
		if name, value, ok := strings.Cut(l, string(sep)); ok && name != "" {
			v.Set(name, value)
		} else {
			v.lines = append(v.lines, line{"", l})
		}
	}
	return v
}

// Get returns a value, "" if there is none.
func (v *Values) Get(name string) string {
	for _, l := range v.lines {
		if l.name == name && name != "" {
			return l.value
		}
	}
	return ""
}

// Set sets a value; "" removes it. A new name goes to the end. Line breaks become blanks
// and NUL goes, so that a value stays on its line.
func (v *Values) Set(name, value string) {
	value = oneLine.Replace(value)
	for i, l := range v.lines {
		switch {
		case l.name != name:
		case value == "":
			v.lines = append(v.lines[:i], v.lines[i+1:]...)
			return
		default:
			v.lines[i].value = value
			return
		}
	}
	if value != "" {
		v.lines = append(v.lines, line{name, value})
	}
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\x00", "")

// Time returns a value that is a time (RFC 3339), zero if it is none.
func (v *Values) Time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339, v.Get(name))
	return t
}

// SetTime sets a value to a time, in seconds and UTC; a zero time removes it.
func (v *Values) SetTime(name string, t time.Time) {
	if t.IsZero() {
		v.Set(name, "")
		return
	}
	v.Set(name, t.UTC().Format(time.RFC3339))
}

// Int returns a value that is a decimal number, 0 if it is none.
func (v *Values) Int(name string) int {
	n, err := strconv.Atoi(v.Get(name))
	if err != nil {
		return 0
	}
	return n
}

// SetInt sets a value to a number, which is written even if it is 0.
func (v *Values) SetInt(name string, n int) { v.Set(name, strconv.Itoa(n)) }

// Text returns the text of the file.
func (v *Values) Text() []byte {
	var b []byte
	for _, l := range v.lines {
		if l.name != "" {
			b = append(append(b, l.name...), v.sep)
		}
		b = append(append(b, l.value...), '\n')
	}
	return b
}
