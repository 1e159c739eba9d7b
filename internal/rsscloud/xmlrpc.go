package rsscloud

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/termsafe"
)

// The limits of what is read as XML-RPC.
const (
	MaxMessage = 64 << 10 // bytes
	maxDepth   = 32       // elements within elements
	maxValues  = 4096
)

// Value is an XML-RPC value as a peer wrote it. Scalars are kept as text: peers
// leave out types and write numbers as strings, so what a text means is for
// who needs it to say.
type Value struct {
	Text string // of a scalar, without white space around it
	// Exact is the same with it, as a password may have it.
	Exact string
	// List holds the elements of an array; IsList tells an empty one from a
	// scalar.
	List   []Value
	IsList bool
	// Members are those of a struct, or nil.
	Members map[string]Value
}

// Strings gives the texts of an array, and of a scalar in the place of one.
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

// True reports whether a scalar says yes: "1" or "true" in any case.
func (v Value) True() bool {
	return v.Text == "1" || strings.EqualFold(v.Text, "true")
}

// Message is a methodCall, or a methodResponse.
type Message struct {
	// Method is the procedure that is called; empty in a response.
	Method string
	Params []Value
	Fault  *Fault // of a response
}

// Fault is the error that an XML-RPC server answers with.
type Fault struct {
	Code int
	Text string // the server's own words, not cleaned
}

func (f *Fault) Error() string { return fmt.Sprintf("fault %d: %s", f.Code, termsafe.Brief(f.Text)) }

// SOAPError tells that a peer speaks SOAP, or wants to be spoken to in it. No
// rssCloud peer that is alive does, so neither does lektor.
type SOAPError struct{}

func (*SOAPError) Error() string {
	return "SOAP is not supported, only http-post, https-post and xml-rpc"
}

// errTooDeep and errTooMany keep a message from costing more than it is worth.
var (
	errTooDeep = fmt.Errorf("XML-RPC nested more than %d deep", maxDepth)
	errTooMany = fmt.Errorf("XML-RPC of more than %d values", maxValues)
)

// Decode reads an XML-RPC message of at most [MaxMessage] bytes. It is tolerant
// of what peers do (values without a type, numbers as strings, params without
// value), and bounded in time and memory whatever the bytes are. A SOAP envelope
// is a [SOAPError].
func Decode(data []byte) (*Message, error) { return DecodeLong(data, MaxMessage) }

// DecodeLong is Decode with another limit, in bytes.
func DecodeLong(data []byte, most int) (*Message, error) {
	if len(data) > most {
		return nil, fmt.Errorf("XML-RPC of more than %d bytes", most)
	}
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\ufeff"))))
	d.Strict = false
	d.CharsetReader = latin1
	r := &reader{d: d}
	for {
		t, err := r.token()
		if err != nil {
			return nil, badXML(err)
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch strings.ToLower(start.Name.Local) {
		case "methodcall", "methodresponse":
			return r.message()
		case "envelope":
			return nil, &SOAPError{}
		}
		return nil, fmt.Errorf("not XML-RPC: the element is <%s>", termsafe.Brief(start.Name.Local))
	}
}

func badXML(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("not XML-RPC: there is no element in it")
	}
	return err
}

// latin1 reads all charsets but UTF-8 byte by byte: XML-RPC is ASCII in
// practice, whatever its header says, and URLs are.
func latin1(_ string, in io.Reader) (io.Reader, error) {
	return charmap.ISO8859_1.NewDecoder().Reader(in), nil
}

type reader struct {
	d      *xml.Decoder
	depth  int
	values int
}

// token is the next token, with the depth kept within bounds.
func (r *reader) token() (xml.Token, error) {
	t, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case xml.StartElement:
		if r.depth++; r.depth > maxDepth {
			return nil, errTooDeep
		}
	case xml.EndElement:
		r.depth--
	}
	return t, nil
}

// children calls f for each element in the one that was just opened, with its
// name in lower case, and returns the text between them. f reads its element
// to the end.
func (r *reader) children(f func(name string) error) (string, error) {
	var text strings.Builder
	for {
		t, err := r.token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			return text.String(), nil
		case xml.StartElement:
			if err := f(strings.ToLower(t.Name.Local)); err != nil {
				return "", err
			}
		}
	}
}

func (r *reader) skip() error {
	_, err := r.children(func(string) error { return r.skip() })
	return err
}

func (r *reader) text() (string, error) {
	return r.children(func(string) error { return r.skip() })
}

func (r *reader) message() (*Message, error) {
	m := &Message{}
	param := func(name string) error {
		if name != "param" {
			return r.skip()
		}
		found := false
		var v Value
		text, err := r.children(func(name string) (err error) {
			if name != "value" || found {
				return r.skip()
			}
			found = true
			v, err = r.value()
			return err
		})
		if err != nil {
			return err
		}
		if !found {
			v.Text = strings.TrimSpace(text)
		}
		m.Params = append(m.Params, v)
		return nil
	}
	_, err := r.children(func(name string) error {
		switch name {
		case "methodname":
			text, err := r.text()
			m.Method = strings.TrimSpace(text)
			return err
		case "params":
			_, err := r.children(param)
			return err
		case "fault":
			var v Value
			_, err := r.children(func(name string) (err error) {
				if name == "value" {
					v, err = r.value()
					return err
				}
				return r.skip()
			})
			code, _ := strconv.Atoi(v.Members["faultCode"].Text)
			m.Fault = &Fault{Code: code, Text: v.Members["faultString"].Text}
			return err
		}
		return r.skip()
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// value reads what is in a <value>, which was just opened.
func (r *reader) value() (Value, error) {
	var v Value
	if r.values++; r.values > maxValues {
		return v, errTooMany
	}
	typed := false
	text, err := r.children(func(name string) (err error) {
		if typed {
			return r.skip()
		}
		typed = true
		switch name {
		case "array":
			v.IsList = true
			_, err = r.children(func(name string) error {
				if name != "data" {
					return r.skip()
				}
				_, err := r.children(func(name string) error {
					if name != "value" {
						return r.skip()
					}
					e, err := r.value()
					v.List = append(v.List, e)
					return err
				})
				return err
			})
		case "struct":
			v.Members = map[string]Value{}
			_, err = r.children(func(name string) error {
				if name != "member" {
					return r.skip()
				}
				var key string
				var member Value
				_, err := r.children(func(name string) (err error) {
					switch name {
					case "name":
						key, err = r.text()
					case "value":
						member, err = r.value()
					default:
						err = r.skip()
					}
					return err
				})
				v.Members[strings.TrimSpace(key)] = member
				return err
			})
		default:
			v.Exact, err = r.text()
			v.Text = strings.TrimSpace(v.Exact)
		}
		return err
	})
	if !typed {
		v.Text, v.Exact = strings.TrimSpace(text), text
	}
	return v, err
}

// EncodeCall writes a methodCall. Parameters are strings, ints, bools and
// []string.
func EncodeCall(method string, params ...any) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<methodCall><methodName>")
	escape(&b, method)
	b.WriteString("</methodName><params>")
	for _, p := range params {
		b.WriteString("<param>")
		encode(&b, p)
		b.WriteString("</param>")
	}
	b.WriteString("</params></methodCall>\n")
	return b.Bytes()
}

// EncodeResponse writes a methodResponse with one value, as [EncodeCall] does.
func EncodeResponse(value any) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<methodResponse><params><param>")
	encode(&b, value)
	b.WriteString("</param></params></methodResponse>\n")
	return b.Bytes()
}

// EncodeFault writes a methodResponse that is an error.
func EncodeFault(code int, text string) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header + "<methodResponse><fault><value><struct><member><name>faultCode</name>")
	encode(&b, code)
	b.WriteString("</member><member><name>faultString</name>")
	encode(&b, text)
	b.WriteString("</member></struct></value></fault></methodResponse>\n")
	return b.Bytes()
}

func encode(b *bytes.Buffer, v any) {
	b.WriteString("<value>")
	switch v := v.(type) {
	case int:
		fmt.Fprintf(b, "<int>%d</int>", v)
	case bool:
		n := 0
		if v {
			n = 1
		}
		fmt.Fprintf(b, "<boolean>%d</boolean>", n)
	case []string:
		b.WriteString("<array><data>")
		for _, s := range v {
			encode(b, s)
		}
		b.WriteString("</data></array>")
	default:
		b.WriteString("<string>")
		escape(b, fmt.Sprint(v))
		b.WriteString("</string>")
	}
	b.WriteString("</value>")
}

func escape(b *bytes.Buffer, s string) { _ = xml.EscapeText(b, []byte(s)) } // a Buffer does not fail

// Call calls a procedure of an XML-RPC server and gives what it returns. The
// error is a [Fault] when the server says so, one of package fetch's when there
// was no answer. server is where to, and how; its body is made here.
func Call(ctx context.Context, c *fetch.Client, server fetch.Post, method string, params ...any) (Value, error) {
	server.ContentType, server.Body = "text/xml", EncodeCall(method, params...)
	a, err := c.Post(ctx, &server)
	if err != nil {
		return Value{}, err
	}
	m, err := Decode(a.Body)
	switch {
	case err != nil && !a.Success():
		return Value{}, a.Error("and that is no answer to " + method)
	case err != nil:
		return Value{}, fmt.Errorf("%s: the answer to %s: %w", a.FinalURL, method, err)
	case m.Fault != nil:
		return Value{}, m.Fault
	case !a.Success():
		return Value{}, a.Error("and that is no answer to " + method)
	case len(m.Params) == 0:
		return Value{}, nil
	}
	return m.Params[0], nil
}
