package rsscloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// Limits of an XML-RPC message:
const (
	MaxMessage = 64 << 10 // bytes
	maxDepth   = 32       // nesting of elements
	maxValues  = 4096
)

// Value is an XML-RPC value. Scalars are kept as text, because peers omit types and write
// numbers as strings.
type Value struct {
	Text string // text of a scalar, without white space around it
	// Exact is the text with white space, for example for a password.
	Exact string
	// Binary reports whether the value was base64. Exact then holds the decoded bytes.
	Binary bool
	// List holds the elements of an array. IsList distinguishes an empty array from a
	// scalar.
	List   []Value
	IsList bool
	// Members are the members of a struct, or nil.
	Members map[string]Value
}

// Strings returns the texts of an array, or the text of a scalar as a list.
func (v Value) Strings() []string {
	if !v.IsList {
		if v.Text == "" {
			return nil
		}
		return []string{v.Text}
	}
	var out []string
	for _, e := range v.List {
		if e.Text != "" {
			out = append(out, e.Text)
		}
	}
	return out
}

// True reports whether a scalar is "1" or "true", in any case.
func (v Value) True() bool {
	return v.Text == "1" || strings.EqualFold(v.Text, "true")
}

// Message is a methodCall or a methodResponse.
type Message struct {
	// Method is the name of the called procedure; "" in a response.
	Method string
	Params []Value
	Fault  *Fault // in a response
}

// Fault is the error of an XML-RPC server.
type Fault struct {
	Code int
	Text string // text of the server, not cleaned
}

func (f *Fault) Error() string { return fmt.Sprintf("fault %d: %s", f.Code, termsafe.Brief(f.Text)) }

// SOAPError is the error for a peer that uses SOAP. No known rssCloud peer still does, so
// SOAP is not supported.
type SOAPError struct{}

func (*SOAPError) Error() string {
	return "SOAP is not supported, only http-post, https-post and xml-rpc"
}

// errTooDeep and errTooMany limit the cost of a message.
var (
	errTooDeep = fmt.Errorf("XML-RPC nested more than %d deep", maxDepth)
	errTooMany = fmt.Errorf("XML-RPC of more than %d values", maxValues)
)

// Decode decodes an XML-RPC message of at most [MaxMessage] bytes. It accepts values
// without a type, numbers as strings, and params without a value. Its time and memory are
// bounded for any input. A SOAP envelope is a [SOAPError].
func Decode(data []byte) (*Message, error) { return DecodeLong(data, MaxMessage) }

// DecodeLong is Decode with another limit, in bytes.
func DecodeLong(data []byte, most int) (*Message, error) {
	if len(data) > most {
		return nil, fmt.Errorf("XML-RPC of more than %d bytes", most)
	}
	in := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff"))))
	in.Strict = false
	in.CharsetReader = latin1
	d := xml.NewTokenDecoder(&bounded{in: in})
	d.Strict = false
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			err = errors.New("not XML-RPC: there is no element in it")
		}
		if err != nil {
			return nil, err
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch strings.ToLower(start.Name.Local) {
		case "methodcall", "methodresponse":
			var root xmlMessage
			if err := d.DecodeElement(&root, &start); err != nil {
				return nil, err
			}
			return root.message()
		case "envelope":
			return nil, &SOAPError{}
		}
		return nil, fmt.Errorf("not XML-RPC: the element is <%s>", termsafe.Brief(start.Name.Local))
	}
}

// latin1 reads all charsets but UTF-8 as Latin-1: in practice, XML-RPC is ASCII whatever
// its header says.
func latin1(_ string, in io.Reader) (io.Reader, error) {
	return charmap.ISO8859_1.NewDecoder().Reader(in), nil
}

// bounded passes on tokens while the message is within the limits.
type bounded struct {
	in                      *xml.Decoder
	depth, values, elements int
}

func (b *bounded) Token() (xml.Token, error) {
	t, err := b.in.Token()
	switch t := t.(type) {
	case xml.StartElement:
		if strings.EqualFold(t.Name.Local, "value") {
			b.values++
		}
		b.depth++
		b.elements++
	case xml.EndElement:
		b.depth--
	}
	switch {
	case b.depth > maxDepth:
		return nil, errTooDeep
	case b.values > maxValues, b.elements > 8*maxValues:
		return nil, errTooMany
	}
	return t, err
}

// xmlMessage is a message as encoding/xml reads it.
type xmlMessage struct {
	Method string `xml:"methodName"`
	Params []struct {
		Text   string     `xml:",chardata"`
		Values []xmlValue `xml:"value"`
	} `xml:"params>param"`
	Fault []xmlValue `xml:"fault>value"`
}

// xmlValue is a value as encoding/xml reads it.
type xmlValue struct {
	Text  string `xml:",chardata"` // of a value without a type
	Array []struct {
		Values []xmlValue `xml:"data>value"`
	} `xml:"array"`
	Struct []struct {
		Members []struct {
			Name  string   `xml:"name"`
			Value xmlValue `xml:"value"`
		} `xml:"member"`
	} `xml:"struct"`
	Base64 []string `xml:"base64"`
	Scalar []string `xml:",any"`
}

func (m *xmlMessage) message() (*Message, error) {
	out := &Message{Method: strings.TrimSpace(m.Method)}
	for _, p := range m.Params {
		v := Value{Text: strings.TrimSpace(p.Text)}
		if len(p.Values) > 0 {
			var err error
			if v, err = p.Values[0].value(); err != nil {
				return nil, err
			}
		}
		out.Params = append(out.Params, v)
	}
	for _, f := range m.Fault {
		v, err := f.value()
		if err != nil {
			return nil, err
		}
		code, _ := strconv.Atoi(v.Members["faultCode"].Text)
		out.Fault = &Fault{Code: code, Text: v.Members["faultString"].Text}
	}
	return out, nil
}

// value reads a value. It fails if base64 is invalid.
func (x *xmlValue) value() (v Value, err error) {
	switch {
	case len(x.Array) > 0:
		v.IsList = true
		for _, e := range x.Array[0].Values {
			inner, bad := e.value()
			v.List, err = append(v.List, inner), cmp.Or(err, bad)
		}
	case len(x.Struct) > 0:
		v.Members = map[string]Value{}
		for _, m := range x.Struct[0].Members {
			inner, bad := m.Value.value()
			v.Members[strings.TrimSpace(m.Name)], err = inner, cmp.Or(err, bad)
		}
	case len(x.Base64) > 0:
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(x.Base64[0]), ""))
		if err != nil {
			return Value{}, errors.New("invalid base64")
		}
		return Value{Text: strings.TrimSpace(string(b)), Exact: string(b), Binary: true}, nil
	default:
		v.Exact = append(x.Scalar, x.Text)[0]
		v.Text = strings.TrimSpace(v.Exact)
	}
	return v, err
}

// EncodeCall returns a methodCall. Parameters are strings, ints, bools and []string.
func EncodeCall(method string, params ...any) []byte {
	var all strings.Builder
	for _, p := range params {
		all.WriteString("<param>" + encode(p) + "</param>")
	}
	return []byte(xml.Header + "<methodCall><methodName>" + xmltext.Text(method) + "</methodName><params>" +
		all.String() + "</params></methodCall>\n")
}

// EncodeResponse returns a methodResponse with one value, of a type as for [EncodeCall].
func EncodeResponse(value any) []byte {
	return []byte(xml.Header + "<methodResponse><params><param>" + encode(value) +
		"</param></params></methodResponse>\n")
}

// EncodeFault returns a methodResponse with a fault.
func EncodeFault(code int, text string) []byte {
	return []byte(xml.Header + "<methodResponse><fault><value><struct><member><name>faultCode</name>" + encode(code) +
		"</member><member><name>faultString</name>" + encode(text) +
		"</member></struct></value></fault></methodResponse>\n")
}

func encode(v any) string {
	var text strings.Builder
	kind := "string"
	switch v := v.(type) {
	case int:
		kind = "int"
		text.WriteString(strconv.Itoa(v))
	case bool:
		kind = "boolean"
		text.WriteString(map[bool]string{false: "0", true: "1"}[v])
	case []string:
		kind = "array"
		text.WriteString("<data>")
		for _, s := range v {
			text.WriteString(encode(s))
		}
		text.WriteString("</data>")
	default:
		text.WriteString(xmltext.Text(fmt.Sprint(v)))
	}
	return "<value><" + kind + ">" + text.String() + "</" + kind + "></value>"
}

// unreadableError is the error for a successful answer that is not XML-RPC.
type unreadableError struct{ error }

// Call calls a procedure of an XML-RPC server and returns its result. The error is a
// [Fault] of the server, or one of package fetch. server holds the URL and options; Call
// sets its body.
func Call(ctx context.Context, c *fetch.Client, server fetch.Post, method string, params ...any) (Value, error) {
	server.ContentType, server.Body = "text/xml", EncodeCall(method, params...)
	a, err := c.Post(ctx, &server)
	if err != nil {
		return Value{}, err
	}
	m, err := Decode(a.Body)
	switch {
	case err != nil && !a.Success():
		return Value{}, a.Error("not an answer to " + method)
	case err != nil:
		return Value{}, &unreadableError{fmt.Errorf("%s: the answer to %s: %w", a.FinalURL, method, err)}
	case m.Fault != nil:
		return Value{}, m.Fault
	case !a.Success():
		return Value{}, a.Error("not an answer to " + method)
	case len(m.Params) == 0:
		return Value{}, nil
	}
	return m.Params[0], nil
}
