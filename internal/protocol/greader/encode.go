package greader

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
)

// JSON returns a value as JSON, without escapes that only web pages need.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// flushAt is the number of bytes that [Refs] and [Items] collect before they write.
const flushAt = 64 << 10

// writer collects bytes, and keeps the first error of writing.
type writer struct {
	w   io.Writer
	b   []byte
	err error
}

func (w *writer) flush() {
	if w.err == nil && len(w.b) > 0 {
		_, w.err = w.w.Write(w.b)
	}
	w.b = w.b[:0]
}

// end writes the end of an answer, with a continuation unless it is 0.
func (w *writer) end(c ID) error {
	w.b = append(w.b, ']')
	if c != 0 {
		w.b = append(w.b, `,"continuation":"`...)
		w.b = strconv.AppendUint(w.b, uint64(c), 10)
		w.b = append(w.b, '"')
	}
	w.b = append(w.b, '}')
	w.flush()
	return w.err
}

// Refs writes the answer of stream/items/ids while it is made.
type Refs struct {
	// Streams adds the feeds of items and the times of their delivery, for clients that ask for them: Readrops
	// fails on anything but the id.
	Streams bool

	out writer
	n   int
}

// NewRefs begins an answer.
func NewRefs(w io.Writer) *Refs {
	return &Refs{out: writer{w: w, b: append(make([]byte, 0, flushAt+256), `{"itemRefs":[`...)}}
}

// Add adds an item of a feed, which was delivered at a time in microseconds.
func (r *Refs) Add(id ID, feed string, micros int64) {
	b := r.out.b
	if r.n > 0 {
		b = append(b, ',')
	}
	r.n++
	b = append(b, `{"id":"`...)
	b = strconv.AppendUint(b, uint64(id), 10)
	if r.Streams {
		b = append(b, `","directStreamIds":["feed/`...)
		b = append(b, feed...)
		b = append(b, `"],"timestampUsec":"`...)
		b = strconv.AppendInt(b, micros, 10)
	}
	b = append(b, `"}`...)
	r.out.b = b
	if len(b) >= flushAt {
		r.out.flush()
	}
}

// End ends the answer. It returns the first error of writing. A continuation of 0 means that
// there are no more items.
func (r *Refs) End(c ID) error { return r.out.end(c) }

// Items writes the answer of stream/contents and stream/items/contents while it is made.
type Items struct {
	out writer
	n   int
}

// NewItems begins an answer with a [Head] in JSON.
func NewItems(w io.Writer, head []byte) *Items {
	return &Items{out: writer{w: w, b: append(bytes.TrimSuffix(head, []byte("}")), `,"items":[`...)}}
}

// Add adds an item, which is in JSON.
func (i *Items) Add(item []byte) {
	if i.n > 0 {
		i.out.b = append(i.out.b, ',')
	}
	i.n++
	if i.out.b = append(i.out.b, item...); len(i.out.b) >= flushAt {
		i.out.flush()
	}
}

// End ends the answer. It returns the first error of writing. A continuation of 0 means that
// there are no more items.
func (i *Items) End(c ID) error { return i.out.end(c) }

// XML writes an answer in the form of output=xml: each value is an element that is named after its
// type, and has the name of the field as an attribute. The answer is read as JSON from r.
func XML(w io.Writer, r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	x := &xmlWriter{w: w}
	x.text(xml.Header[:len(xml.Header)-1])
	x.value(d, "")
	if x.err == nil {
		if _, err := d.Token(); err != io.EOF {
			x.err = errors.Join(errors.New("more than one value"), err)
		}
	}
	return x.err
}

// maxDepth is the maximum depth of an answer.
const maxDepth = 100

// xmlWriter writes JSON as XML.
type xmlWriter struct {
	w     io.Writer
	depth int
	err   error
}

func (x *xmlWriter) text(s string) {
	if x.err == nil {
		_, x.err = io.WriteString(x.w, s)
	}
}

func (x *xmlWriter) escaped(s string) {
	if x.err == nil {
		x.err = xml.EscapeText(x.w, []byte(s))
	}
}

// open writes the begin of an element.
func (x *xmlWriter) open(element, name string) {
	x.text("<" + element)
	if name != "" {
		x.text(` name="`)
		x.escaped(name)
		x.text(`"`)
	}
	x.text(">")
}

// value writes the next value, which has a name in an object.
func (x *xmlWriter) value(d *json.Decoder, name string) {
	if x.err != nil {
		return
	}
	token, err := d.Token()
	if err != nil {
		x.err = err
		return
	}
	element, text := "string", ""
	switch t := token.(type) {
	case json.Delim:
		x.nested(d, t, name)
		return
	case string:
		text = t
	case json.Number:
		element, text = "number", t.String()
	case bool:
		element, text = "boolean", strconv.FormatBool(t)
	}
	x.open(element, name)
	x.escaped(text)
	x.text("</" + element + ">")
}

// nested writes an object or a list.
func (x *xmlWriter) nested(d *json.Decoder, begin json.Delim, name string) {
	if x.depth++; x.depth > maxDepth {
		x.err = errors.New("the answer is nested too deeply")
		return
	}
	element := "object"
	if begin == '[' {
		element = "list"
	}
	x.open(element, name)
	for x.err == nil && d.More() {
		field := ""
		if begin == '{' {
			token, err := d.Token()
			if x.err = err; err != nil {
				return
			}
			field, _ = token.(string)
		}
		x.value(d, field)
	}
	if x.err == nil {
		_, x.err = d.Token()
	}
	x.text("</" + element + ">")
	x.depth--
}
