// Package httpmsg is requests for documents, the responses and errors that come of them, and
// their header fields, as values: for packages that keep and judge them. Package fetch makes
// the exchanges; this one has no client, so that a program without one links none.
package httpmsg

import (
	"crypto/sha256"
	"fmt"
	"net/textproto"
	"time"
)

// Request says what to fetch.
type Request struct {
	// URL is an http or https URL, "file:" and an absolute path, or "exec:"
	// and a command for /bin/sh. A user and password in an http URL are sent
	// as basic authorization to its own origin only.
	URL string
	// ETag and LastModified are the validators of the document that the
	// caller has, exactly as a [Response] gave them, or empty. Validated is
	// the FinalURL of that response, or "" when it was URL. They mean nothing
	// to any other, and are sent when the exchange comes to that one, be it
	// after redirects.
	ETag, LastModified, Validated string
	// Header is sent to the URL's own origin only: the same scheme, host and
	// port, or https on the default port where the URL has http on its own.
	// Fields that belong to the protocol are left out, see [ParseHeaders].
	Header textproto.MIMEHeader
	// Origin is the URL of the document that named URL, be it a link, an offer
	// or a list; "" when the user did. A document at a public host cannot have
	// private addresses asked, except for its own host's.
	Origin string
	// Stranger tells that nobody here chose the URL: private addresses are refused
	// from the beginning.
	Stranger bool
	// Page tells that the URL is that of a page for people: HTML is asked for, of at most
	// MaxPage bytes, and anything else is a [TypeError].
	Page bool
	// Hold keeps the place of a body over a megabyte, of which there are few, until
	// [Response.Done] is called, so that what waits to be parsed counts, too.
	Hold bool
	// AllowExec permits exec: URLs. Set it only for a command that nobody but the
	// user can have written.
	AllowExec bool
	// Env is added to the environment of a command, "NAME=value" each.
	Env []string
	// Last tells that no further request to the URL's host is to be expected soon:
	// the connection is closed after this one, as RFC 9112, section 9.6, asks for.
	Last bool
}

// Response is a document, or the news that it has not changed.
type Response struct {
	// Status is 200 (or 203), or 304 when the document has not changed since
	// the validators of the request; then NotModified is true and Body empty.
	// Files and commands have these, too.
	Status      int
	NotModified bool
	Header      textproto.MIMEHeader // never nil
	// ETag and LastModified are the validators to send next time, opaque
	// bytes; empty when the server sent none or none that could be sent back.
	// A date is no validator yet in the second that it names, if it is all there is.
	ETag, LastModified string
	// Body is the document after decompression.
	Body []byte
	// FinalURL is where the answer came from, without userinfo; relative
	// references in the document are resolved against it.
	FinalURL string
	// Permanent is where the redirects led as long as they were permanent
	// (301, 308), counted from the first, and not from https to http. It is
	// empty when the first redirect is none of these, or there is none.
	Permanent string
	// WireBytes counts the body as transferred.
	WireBytes int64
	// Truncated means that Body is the beginning of a document that was cut
	// off or damaged; what can be read of it is good. The caller may set it
	// when the document itself shows that its end is missing: validators of
	// such a document are not kept (see [State.Succeeded]).
	Truncated bool
	// Short means that the document was read and has more than the limits let
	// through (see [State].Limits). The caller sets it.
	Short bool
	// Warnings are one-line messages for the user.
	Warnings []string
	// Received is when the answer began, by the clock of the client.
	Received time.Time

	// Leave gives up the place of Body; nil if it has none. See [Response.Done].
	Leave func()

	digest string // of Body, once it was asked for
}

// Done gives up the place that a big body has, see [Request].Hold. It may be called
// again, and on nil.
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
