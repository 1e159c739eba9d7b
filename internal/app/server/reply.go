package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

const (
	typeText = "text/plain; charset=utf-8"
	typeJSON = "application/json; charset=utf-8"
	typeXML  = "text/xml; charset=utf-8"
	typeAtom = "application/atom+xml; charset=utf-8"
	typeOPML = "text/x-opml; charset=utf-8"
)

// patience is how long a client with a valid token may take for a request and its answer.
const patience = 5 * time.Minute

// send answers with what write writes.
func (c *request) send(contentType string, write func(io.Writer) error) error {
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Add("Vary", "Accept-Encoding")
	if contentType == typeText || !httpserver.Accepts(c.r.Header.Get("Accept-Encoding"), "gzip") {
		return write(body{c})
	}
	h.Set("Content-Encoding", "gzip")
	return httpserver.Zip(body{c}, write)
}

// body writes the body of an answer, and records that it began.
type body struct{ c *request }

func (b body) Write(p []byte) (int, error) {
	b.c.sent = true
	n, err := b.c.w.Write(p)
	b.c.gone = b.c.gone || err != nil
	return n, err
}

// text answers with a text.
func (c *request) text(s string) error { return c.data(typeText, []byte(s)) }

// encode returns a value as JSON, in which characters that a terminal acts on are escaped: users
// look at answers with curl.
func encode(v any) ([]byte, error) {
	data, err := greader.JSON(v)
	return termsafe.JSON(data), err
}

// answer answers with the JSON that write writes, or with the same as XML if the client wants it.
func (c *request) answer(write func(io.Writer) error) error {
	if !c.wantsXML() {
		return c.send(typeJSON, write)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	data, err := asXML(b.Bytes())
	if err != nil {
		return err
	}
	return c.data(typeXML, data)
}

func (c *request) wantsXML() bool { return c.values.Get("output") == "xml" }

// json answers with a value, as JSON or in the form of output=xml, and an ETag.
func (c *request) json(v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	if !c.wantsXML() {
		return c.tagged(typeJSON, data)
	}
	if data, err = asXML(data); err != nil {
		return err
	}
	return c.tagged(typeXML, data)
}

// asXML returns JSON as XML.
func asXML(data []byte) ([]byte, error) {
	var b bytes.Buffer
	err := greader.XML(&b, bytes.NewReader(data))
	return termsafe.XML(b.Bytes()), err
}

// tagged answers with data and an ETag. If the client has the same, the answer to a GET request is
// 304.
func (c *request) tagged(contentType string, data []byte) error {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	c.w.Header().Set("ETag", "W/"+tag) // weak, as the answer may be compressed
	if c.r.Method != http.MethodPost && strings.Contains(c.r.Header.Get("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.data(contentType, data)
}

// data answers with data.
func (c *request) data(contentType string, data []byte) error {
	return c.send(contentType, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// extend allows a client with a valid token more time than a stranger: a phone may be slow.
func (c *request) extend() {
	until := time.Now().Add(patience)
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(until) // a connection that cannot do it keeps its deadline
	_ = control.SetWriteDeadline(until)
}
