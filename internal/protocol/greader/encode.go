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
	if _, err := io.WriteString(w, xml.Header[:len(xml.Header)-1]); err != nil {
		return err
	}
	x := &xmlWriter{d: json.NewDecoder(r), e: xml.NewEncoder(w)}
	x.d.UseNumber()
	if err := x.value(""); err != nil {
		return err
	}
	if _, err := x.d.Token(); err != io.EOF {
		return errors.Join(errors.New("more than one value"), err)
	}
	return x.e.Close()
}

// maxDepth is the maximum depth of an answer.
const maxDepth = 100

// xmlWriter writes JSON as XML.
type xmlWriter struct {
	d     *json.Decoder
	e     *xml.Encoder
	depth int
}

// value writes the next value, which has a name in an object.
func (x *xmlWriter) value(name string) error {
	token, err := x.d.Token()
	if err != nil {
		return err
	}
	element, text := xml.StartElement{Name: xml.Name{Local: "string"}}, ""
	if name != "" {
		element.Attr = []xml.Attr{{Name: xml.Name{Local: "name"}, Value: name}}
	}
	switch t := token.(type) {
	case json.Delim:
		return x.nested(t, element)
	case string:
		text = t
	case json.Number:
		element.Name.Local, text = "number", t.String()
	case bool:
		element.Name.Local, text = "boolean", strconv.FormatBool(t)
	}
	return x.e.EncodeElement(text, element)
}

// nested writes an object or a list.
func (x *xmlWriter) nested(begin json.Delim, element xml.StartElement) error {
	if x.depth++; x.depth > maxDepth {
		return errors.New("the answer is nested too deeply")
	}
	element.Name.Local = map[json.Delim]string{'{': "object", '[': "list"}[begin]
	if err := x.e.EncodeToken(element); err != nil {
		return err
	}
	for x.d.More() {
		field := ""
		if begin == '{' {
			token, err := x.d.Token()
			if err != nil {
				return err
			}
			field, _ = token.(string)
		}
		if err := x.value(field); err != nil {
			return err
		}
	}
	if _, err := x.d.Token(); err != nil {
		return err
	}
	x.depth--
	return x.e.EncodeToken(element.End())
}
