package greader

import (
	"bufio"
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

// writerSize is the number of bytes that [Refs] and [Items] collect before they write.
const writerSize = 64 << 10

// list writes a list while it is made. Its writer keeps the first error.
type list struct {
	out   *bufio.Writer
	comma string // before the next element
}

func newList(w io.Writer, begin ...[]byte) list {
	l := list{out: bufio.NewWriterSize(w, writerSize)}
	for _, b := range begin {
		_, _ = l.out.Write(b)
	}
	return l
}

func (l *list) begin() []byte {
	b := append(l.out.AvailableBuffer(), l.comma...)
	l.comma = ","
	return b
}

// End ends the answer, with a continuation unless it is 0, which means that there are no more items. It returns the
// first error of writing.
func (l *list) End(c ID) error {
	b := append(l.out.AvailableBuffer(), ']')
	if c != 0 {
		b = append(append(append(b, `,"continuation":"`...), c.Short()...), '"')
	}
	_, _ = l.out.Write(append(b, '}'))
	return l.out.Flush()
}

// Refs writes the answer of stream/items/ids while it is made.
type Refs struct {
	// Streams adds the feeds of items and the times of their delivery, for clients that ask for them: Readrops
	// fails on anything but the id.
	Streams bool
	list
}

// NewRefs begins an answer.
func NewRefs(w io.Writer) *Refs { return &Refs{list: newList(w, []byte(`{"itemRefs":[`))} }

// Add adds an item of a feed, which was delivered at a time in microseconds.
func (r *Refs) Add(id ID, feed string, micros int64) {
	b := append(r.begin(), `{"id":"`...)
	b = strconv.AppendUint(b, uint64(id), 10)
	if r.Streams {
		b = append(b, `","directStreamIds":["feed/`...)
		b = append(b, feed...)
		b = append(b, `"],"timestampUsec":"`...)
		b = strconv.AppendInt(b, micros, 10)
	}
	_, _ = r.out.Write(append(b, `"}`...))
}

// Items writes the answer of stream/contents and stream/items/contents while it is made.
type Items struct{ list }

// NewItems begins an answer with a [Head] in JSON.
func NewItems(w io.Writer, head []byte) *Items {
	return &Items{newList(w, bytes.TrimSuffix(head, []byte("}")), []byte(`,"items":[`))}
}

// Add adds an item, which is in JSON.
func (i *Items) Add(item []byte) {
	_, _ = i.out.Write(i.begin())
	_, _ = i.out.Write(item)
}

// maxDepth is the maximum depth of an answer.
const maxDepth = 100

// XML writes an answer in the form of output=xml: each value is an element that is named after its
// type, and has the name of the field as an attribute. The answer is read as JSON from r.
func XML(w io.Writer, r io.Reader) error {
	if _, err := io.WriteString(w, xml.Header[:len(xml.Header)-1]); err != nil {
		return err
	}
	d, e := json.NewDecoder(r), xml.NewEncoder(w)
	d.UseNumber()
	var open []xml.StartElement // objects and lists
	var field *string           // of the next value, if it is in an object
	for ended := false; ; ended = len(open) == 0 {
		token, err := d.Token()
		switch {
		case err == io.EOF && ended:
			return e.Close()
		case err != nil:
			return err
		case ended:
			return errors.New("more than one value")
		}
		kind, text := "string", ""
		switch t := token.(type) {
		case json.Delim:
			kind = map[json.Delim]string{'{': "object", '[': "list"}[t]
		case string:
			if len(open) > 0 && open[len(open)-1].Name.Local == "object" && field == nil {
				field = &t
				continue
			}
			text = t
		case json.Number:
			kind, text = "number", t.String()
		case bool:
			kind, text = "boolean", strconv.FormatBool(t)
		}
		element := xml.StartElement{Name: xml.Name{Local: kind}}
		if field != nil {
			element.Attr = []xml.Attr{{Name: xml.Name{Local: "name"}, Value: *field}}
			field = nil
		}
		switch kind {
		case "object", "list":
			if len(open) == maxDepth {
				return errors.New("the answer is nested too deeply")
			}
			open = append(open, element)
			err = e.EncodeToken(element)
		case "": // the end of one
			err = e.EncodeToken(open[len(open)-1].End())
			open = open[:len(open)-1]
		default:
			err = e.EncodeElement(text, element)
		}
		if err != nil {
			return err
		}
	}
}
