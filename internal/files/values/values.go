// Package values reads and writes small files of named values: a line for each, with name,
// separator and value. Users may edit such files, so lines with unknown names stay where
// they are, and so do lines without a name, such as notes and empty lines.
//
// The caller replaces the file, with [github.com/lektordir/lektor/internal/files/atomicfile].
package values

import (
	"strconv"
	"strings"
	"time"
)

// Values holds the lines of a file. It is not safe for concurrent use.
type Values struct {
	sep   byte
	lines []line
}

// line is a line of the file. A line without a name has its whole text as the value.
type line struct{ name, value string }

// New returns an empty file with a separator.
func New(sep byte) *Values { return &Values{sep: sep} }

// Parse parses the text of a file with a separator. A line without a separator, or that
// begins with it, has no name. If a name occurs more than once, the last value counts.
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

// Get returns the value of a name, "" if there is none.
func (v *Values) Get(name string) string {
	for _, l := range v.lines {
		if l.name == name && name != "" {
			return l.value
		}
	}
	return ""
}

// Set sets the value of a name; "" removes the line. A new name is added at the end. Line
// breaks become spaces and NUL is removed, so that the value stays on one line.
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

// Time returns a value as a time (RFC 3339), zero if it is not valid.
func (v *Values) Time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339, v.Get(name))
	return t
}

// SetTime sets a value to a time, in UTC and whole seconds. A zero time removes it.
func (v *Values) SetTime(name string, t time.Time) {
	if t.IsZero() {
		v.Set(name, "")
		return
	}
	v.Set(name, t.UTC().Format(time.RFC3339))
}

// Int returns a value as a decimal number, 0 if it is not valid.
func (v *Values) Int(name string) int {
	n, err := strconv.Atoi(v.Get(name))
	if err != nil {
		return 0
	}
	return n
}

// SetInt sets a value to a number, including 0.
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
