// Package httpmsg holds requests for documents, their responses and errors, and functions for
// header fields, as values. Package fetch makes the exchanges. This package has no client, so a
// program that only keeps and compares such values does not link one.
package httpmsg

import (
	"crypto/sha256"
	"fmt"
	"net/textproto"
	"time"
)

// Request is a request for a document.
type Request struct {
	// URL is an http or https URL, "file:" and an absolute path, or "exec:" and a command for
	// /bin/sh. User and password of an http URL are sent as basic authorization, to its own origin
	// only.
	URL string
	// ETag and LastModified are the validators of the caller's document, as in its [Response], or
	// empty. Validated is the FinalURL of that response; "" means URL. They are sent only to that
	// URL, possibly after redirects.
	ETag, LastModified, Validated string
	// Header is sent only to the URL's origin: the same scheme, host and port, or https on the
	// default port for an http URL on its default port. Fields of the protocol must not be in it,
	// see [ParseHeaders].
	Header textproto.MIMEHeader
	// Origin is the URL of the document that named URL; "" means the user. A document at a public
	// host must not name private addresses, except that of its own host.
	Origin string
	// Stranger means that the user did not choose the URL: private addresses are refused from the
	// first request.
	Stranger bool
	// Page requests a page for people: HTML of at most MaxPage bytes. Any other type is a
	// [TypeError].
	Page bool
	// Hold keeps the place of a body over a megabyte until [Response.Done] is called, so that the
	// limit also covers bodies that wait to be parsed.
	Hold bool
	// AllowExec permits exec: URLs. Set it only for a command that nobody except the user can have
	// written.
	AllowExec bool
	// Env is added to the environment of a command, each "NAME=value".
	Env []string
	// Last means that no other request to the URL's host is expected soon: the connection is closed
	// after this one, as in RFC 9112, section 9.6.
	Last bool
}

// Move is the result of permanent redirects (301, 308).
type Move struct {
	// To is the URL after the permanent redirects before any other redirect, but not from https to
	// http. It is empty if the first redirect is not permanent, or there is none.
	To string
	// Public means that a server with a public address redirected, so the user did not choose To.
	Public bool
}

// Response is a document, or the information that it has not changed.
type Response struct {
	// Status is 200 (or 203), or 304 if the document has not changed since the validators of the
	// request; then NotModified is set and Body is empty. Files and commands have a Status too.
	Status      int
	NotModified bool
	Header      textproto.MIMEHeader // never nil
	// ETag and LastModified are the validators for the next request, opaque bytes; empty if the
	// server sent none that can be sent back. If the only validator is a date of the current second, it does not count.
	ETag, LastModified string
	// Body is the document after decompression.
	Body []byte
	// FinalURL is the URL of the response after redirects, without userinfo, to resolve relative
	// references.
	FinalURL string
	Moved    Move
	// WireBytes is the size of the body as transferred.
	WireBytes int64
	// Truncated means that Body is the intact beginning of a document that was cut off or damaged.
	// The caller may set it if the document itself shows that its end is missing. Validators of
	// such a document must not be stored.
	Truncated bool
	// Short means that the document was parsed and exceeds the limits for parsing. The caller sets
	// it.
	Short bool
	// Warnings are one-line messages for the user.
	Warnings []string
	// Received is the time when the response began, by the clock of the client.
	Received time.Time

	// Leave gives up the place of Body; nil if it has none. See [Response.Done].
	Leave func()

	digest string // digest of Body, once it was asked for
}

// Done frees the place of a big body, see [Request].Hold. Later calls, and calls on nil, do
// nothing.
func (r *Response) Done() {
	if r != nil && r.Leave != nil {
		r.Leave()
		r.Leave = nil
	}
}

// Digest is the SHA-256 of the body, in hexadecimal. It is computed once, so
// Body must not change afterwards.
func (r *Response) Digest() string {
	if r.digest == "" {
		r.digest = fmt.Sprintf("%x", sha256.Sum256(r.Body))
	}
	return r.digest
}
