package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// Download describes a file to download, a part of which may be present.
type Download struct {
	URL string // http or https
	// Origin is the URL of the document that named URL, as in [httpmsg.Request].
	Origin string
	// Have is the number of bytes present. Validator and Total are those of the [Piece] that
	// brought them. Without a validator, the present bytes cannot be used.
	Have      int64
	Validator string
	Total     int64 // -1 if unknown
}

// Piece is the part of a file that a response contains.
type Piece struct {
	At        int64  // offset of its first byte; 0: the file starts again
	Total     int64  // size of the whole file in bytes; -1 if unknown
	Validator string // for requesting the rest; "": the rest cannot be requested
}

// WriteError is an error of the writer that receives a [Client.Download].
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the writer.
func (e *WriteError) Unwrap() error { return e.Err }

// CutError reports that a response was cut off. The bytes received are valid, and the next
// [Client.Download] continues after them.
type CutError struct {
	URL         string
	Have, Total int64 // Total is -1 if unknown
	Err         error
}

func (e *CutError) Error() string {
	if e.Total >= 0 {
		return fmt.Sprintf("%s: it was cut off after %d of %d bytes", feedurl.Brief(e.URL), e.Have, e.Total)
	}
	return fmt.Sprintf("%s: it was cut off after %d bytes (%v)", feedurl.Brief(e.URL), e.Have, e.Err)
}

// Unwrap returns the error that ended the response.
func (e *CutError) Unwrap() error { return e.Err }

// maxPieces is the maximum number of responses for one file, and maxCuts the maximum number of them
// that may be cut off.
const maxPieces, maxCuts = 100, 3

// Download fetches a file, or the rest of one with a range request that is valid only while the
// file is unchanged (RFC 9110, sections 13.1.5 and 14). It calls begin with each response before
// its first byte; begin returns the writer. A response with another range or of another file is not
// written; then Download requests the file from its beginning, once.
//
// Download returns nil if the file is complete, without a request if it was complete before. The
// rules for waiting for the host, limits, redirects and private addresses are those of
// [Client.Get], but the deadline starts again with each byte received. The errors are of the same
// types, or a [CutError] or a [WriteError].
func (c *Client) Download(ctx context.Context, d *Download, begin func(Piece) (io.Writer, error)) error {
	u, err := feedurl.Parse(d.URL)
	if err != nil {
		return err
	}
	at := &download{c: c, begin: begin, piece: Piece{At: d.Have, Total: d.Total, Validator: d.Validator}}
	if d.Have > 0 && d.Validator != "" && d.Have == d.Total {
		return nil
	}
	if d.Validator == "" || d.Have < 0 || d.Total >= 0 && d.Have > d.Total {
		at.restart()
	}
	cuts := 0
	for range maxPieces {
		before := at.piece.At
		err := at.exchange(ctx, u, d.Origin)
		if lost := (*CutError)(nil); errors.As(err, &lost) && cuts < maxCuts && at.piece.At > before &&
			at.piece.Validator != "" {
			cuts++
			continue
		}
		switch {
		case errors.Is(err, errAnotherRange) && before > 0:
			at.restart()
		case err != nil:
			return err
		case at.done:
			return nil
		}
	}
	return statusError(feedurl.Display(u), http.StatusPartialContent, 0, "the file came in too many pieces")
}

// errAnotherRange reports a response that does not continue the bytes present.
var errAnotherRange = errors.New("the response has another range than the request")

// download is a file that is being fetched.
type download struct {
	c     *Client
	begin func(Piece) (io.Writer, error)
	piece Piece // the bytes that are present
	done  bool
}

// restart discards the bytes present.
func (d *download) restart() { d.piece = Piece{Total: -1} }

// exchange requests the missing bytes, following redirects.
func (d *download) exchange(ctx context.Context, u *url.URL, origin string) error {
	x := d.c.begin(ctx)
	defer x.end()
	x.privateOK = vouched(origin, u)
	first, user := withoutUser(u)
	return x.follow(first, origin, func(u *url.URL) (*url.URL, error) {
		req := d.c.request(u, "*/*", "identity") // a range counts encoded bytes
		if feedurl.SameOriginURL(first, u) {
			authorize(req, user)
		}
		if d.piece.At > 0 {
			req.Header.Set("Range", "bytes="+strconv.FormatInt(d.piece.At, 10)+"-")
			req.Header.Set("If-Range", d.piece.Validator)
		}
		return d.hop(x, u, req)
	})
}

// hop makes one request. It returns the target of a redirect, or nil after it has written the body.
func (d *download) hop(x *exchange, u *url.URL, req *http.Request) (*url.URL, error) {
	resp, done, err := x.send(req)
	if err != nil {
		return nil, err
	}
	defer done()
	fail := func(detail string) error {
		drain(resp)
		return statusError(feedurl.Display(u), resp.StatusCode, x.retryAfter(resp, x.c.cfg.Now()), detail)
	}
	piece := Piece{Total: resp.ContentLength, Validator: strong(resp.Header)}
	length := resp.ContentLength // length of this response
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusPartialContent:
		from, to, total, ok := contentRange(resp.Header.Get("Content-Range"))
		switch {
		case d.piece.At == 0:
			return nil, fail("a part, although the whole file was requested")
		case !ok, from != d.piece.At, total >= 0 && d.piece.Total >= 0 && total != d.piece.Total, length >= 0 &&
			length != to-from+1, !d.same(resp.Header):
			drain(resp)
			return nil, errAnotherRange
		}
		piece = Piece{At: from, Total: total, Validator: d.piece.Validator}
		if total < 0 {
			piece.Total = d.piece.Total
		}
		length = to - from + 1
	case http.StatusRequestedRangeNotSatisfiable:
		if d.piece.At == 0 {
			return nil, fail("")
		}
		drain(resp)
		return nil, errAnotherRange
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return redirected(u, resp, fail)
	default:
		return nil, fail("")
	}
	if codings := codings(resp.Header); len(codings) > 0 {
		return nil, fail("it is compressed, although that was not requested (" + strings.Join(codings, ", ") + ")")
	}
	limit := &httpmsg.LimitError{URL: feedurl.Display(u), Limit: "bytes transferred", Max: x.c.cfg.MaxBytes,
		Flag: httpmsg.FlagMaxBytes}
	if piece.Total > x.c.cfg.MaxBytes {
		return nil, limit
	}
	w, err := d.begin(piece)
	if err != nil {
		return nil, &WriteError{err}
	}
	d.piece = piece
	if err := d.copy(x, u, w, resp.Body, length, limit); err != nil {
		return nil, err
	}
	d.done = d.piece.Total < 0 || d.piece.At >= d.piece.Total
	return nil, nil
}

// copy writes a body of length bytes to w; -1 means up to the end of the body.
func (d *download) copy(x *exchange, u *url.URL, w io.Writer, body io.Reader, length int64, limit error) error {
	end := d.piece.At + length
	if length >= 0 {
		body = io.LimitReader(body, length)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		x.received += int64(n)
		// Every read restarts the deadline.
		x.pause()
		x.remaining = x.c.cfg.Deadline
		x.run()
		if d.piece.At+int64(n) > x.c.cfg.MaxBytes {
			return limit
		}
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return &WriteError{werr}
			}
			d.piece.At += int64(n)
		}
		switch {
		case length >= 0 && d.piece.At == end, length < 0 && err == io.EOF:
			return nil
		case err == nil:
		case x.ctx.Err() != nil:
			return x.classify(u, err)
		default:
			return &CutError{URL: feedurl.Display(u), Have: d.piece.At, Total: d.piece.Total, Err: err}
		}
	}
}

// same reports whether a partial response may belong to the file present. A server that ignores
// If-Range sends a part of any file.
func (d *download) same(h http.Header) bool {
	if strings.HasPrefix(d.piece.Validator, `"`) {
		tag := h.Get("Etag")
		return tag == "" || tag == d.piece.Validator
	}
	date := h.Get("Last-Modified")
	return date == "" || date == d.piece.Validator
}

// strong returns a validator with which the rest of the file can be requested: a strong entity tag,
// or a Last-Modified date that was at least a second old (RFC 9110, section 8.8.2.2).
func strong(h http.Header) string {
	if tag := httpmsg.Validator(h.Get("Etag")); strings.HasPrefix(tag, `"`) && len(tag) > 2 &&
		strings.HasSuffix(tag, `"`) {
		return tag
	}
	if h.Get("Etag") != "" {
		return ""
	}
	if age, ok := modifiedAgo(h); !ok || age < time.Second {
		return ""
	}
	return httpmsg.Validator(h.Get("Last-Modified"))
}

// modifiedAgo returns the time between Last-Modified and Date, both of the server's clock. ok is
// false if a header is missing.
func modifiedAgo(h http.Header) (age time.Duration, ok bool) {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	now, err2 := http.ParseTime(h.Get("Date"))
	return now.Sub(modified), err == nil && err2 == nil
}

// contentRange reads "bytes 5-9/10"; total is -1 for "*".
func contentRange(v string) (from, to, total int64, ok bool) {
	var size string
	n, _ := fmt.Sscanf(strings.ToLower(v), "bytes %d-%d/%s", &from, &to, &size)
	total, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		total = -1
	}
	return from, to, total, n == 3 && from >= 0 && to >= from && (size == "*" || total > to)
}
