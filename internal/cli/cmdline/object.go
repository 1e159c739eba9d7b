package cmdline

import (
	"bytes"
	"fmt"
)

// Object is a value with named parts, in order. Formats without room for all parts print the first.
type Object []Member

// Member is a part of an [Object]: a string or a number; nil means unknown.
type Member struct {
	Name  string // lower-case letters and digits
	Value any
}

// String returns the first part.
func (o Object) String() string {
	if len(o) == 0 {
		return ""
	}
	return text(o[0].Value)
}

// MarshalJSON returns the known parts.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := o.write(&b)
	return b.Bytes(), err
}

// write writes the known parts as JSON.
func (o Object) write(b *bytes.Buffer) error {
	sep := byte('{')
	for _, m := range o {
		if m.Value == nil {
			continue
		}
		value, err := marshal(m.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		fmt.Fprintf(b, "%c%q:%s", sep, m.Name, value)
		sep = ','
	}
	if sep == '{' {
		b.WriteByte(sep)
	}
	b.WriteByte('}')
	return nil
}

// object is an [Object] for templates: {{.url}} is a part, "" if unknown, and {{.}} the first. The
// empty key holds the Object.
type object map[string]any

func (o object) whole() Object { whole, _ := o[""].(Object); return whole }

// String returns the first part.
func (o object) String() string { return o.whole().String() }

// MarshalJSON returns the known parts.
func (o object) MarshalJSON() ([]byte, error) { return o.whole().MarshalJSON() }

func objects(list []Object) []object {
	out := make([]object, len(list))
	for i, whole := range list {
		out[i] = object{"": whole}
		for _, m := range whole {
			if out[i][m.Name] = m.Value; m.Value == nil {
				out[i][m.Name] = ""
			}
		}
	}
	return out
}
