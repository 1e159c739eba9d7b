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

// Int returns a value as a decimal number, 0 if it is not valid.
func (v *Values) Int(name string) (n int) {
	Field{Var: &n}.Parse(v.Get(name))
	return n
}

// Field is a variable with a name: a *string, *int, *bool or *time.Time. The text of a zero value is empty.
type Field struct {
	Name string
	Var  any
}

// Text returns the value as text: a time as RFC 3339 in UTC and whole seconds, true as "yes".
func (f Field) Text() string {
	switch v := f.Var.(type) {
	case *string:
		return *v
	case *int:
		if *v != 0 {
			return strconv.Itoa(*v)
		}
	case *bool:
		if *v {
			return "yes"
		}
	case *time.Time:
		if !v.IsZero() {
			return v.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// Parse sets the variable. A text that is not valid is the zero value.
func (f Field) Parse(text string) {
	switch v := f.Var.(type) {
	case *string:
		*v = text
	case *int:
		*v = 0
		if n, err := strconv.Atoi(text); err == nil { // else n may be the largest number
			*v = n
		}
	case *bool:
		*v = text != ""
	case *time.Time:
		*v, _ = time.Parse(time.RFC3339, text)
	}
}

// Read sets variables to the values of their names.
func (v *Values) Read(fields []Field) {
	for _, f := range fields {
		f.Parse(v.Get(f.Name))
	}
}

// Write sets values to those of variables.
func (v *Values) Write(fields []Field) {
	for _, f := range fields {
		v.Set(f.Name, f.Text())
	}
}

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
