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

	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/httpmsg"
)

// Download says what to fetch into a file, of which a part may be there.
type Download struct {
	URL string // http or https
	// Origin is the URL of the document that named URL, as in [httpmsg.Request].
	Origin string
	// Have is how many bytes are there, and Validator and Total what [Piece] said of
	// them. Without a validator they are of no use.
	Have      int64
	Validator string
	Total     int64 // -1 where it is not known
}

// Piece is what an answer has of a file.
type Piece struct {
	At        int64  // its first byte; 0 begins anew, whatever is there
	Total     int64  // bytes of the whole file; -1 where nobody says
	Validator string // by which the rest can be asked for, "" where it cannot
}

// WriteError is a failure of the writer of a [Client.Download].
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the writer.
func (e *WriteError) Unwrap() error { return e.Err }

// CutError reports that an answer ended before its end. The bytes received are good, and the next
// [Client.Download] goes on with it.
type CutError struct {
	URL         string
	Have, Total int64 // Total -1 where it is not known
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

// maxPieces is how many answers a server may make of one file, and maxCuts how many of
// them may break off.
const maxPieces, maxCuts = 100, 3

// Download fetches a file, or the rest of one, by a request for a range that holds only
// while the file is the same (RFC 9110, sections 13.1.5 and 14). Each answer is told
// to begin, which returns its writer. An answer with another range or another file
// is not written: the file begins anew, once.
//
// It ends with nil when all is there, and at once if it was. Waiting for the host,
// limits, redirects and the refusal of private addresses are those of [Client.Get];
// but the deadline is for the time in which nothing comes. Errors are of the same
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
		if lost := (*CutError)(nil); errors.As(err, &lost) && cuts < maxCuts && at.piece.At > before && at.piece.Validator != "" {
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
	return statusError(feedurl.Display(u), http.StatusPartialContent, 0, "it comes in too many pieces")
}

// errAnotherRange reports an answer that does not continue the bytes present.
var errAnotherRange = errors.New("another range than was asked for")

// download is a file that is being fetched.
type download struct {
	c     *Client
	begin func(Piece) (io.Writer, error)
	piece Piece // the bytes that are present
	done  bool
}

// restart forgets what is there.
func (d *download) restart() { d.piece = Piece{Total: -1} }

// exchange asks for what is not there, following redirects.
func (d *download) exchange(ctx context.Context, u *url.URL, origin string) error {
	x := d.c.begin(ctx)
	defer x.end()
	x.privateOK = vouched(origin, u)
	first, user := withoutUser(u)
	return x.follow(first, origin, func(u *url.URL) (*url.URL, error) {
		req := d.c.request(u, "*/*", "identity") // a range is one of what is sent
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

// hop makes one request. It returns where the answer redirects to.
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
	length := resp.ContentLength // length of this answer
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusPartialContent:
		from, to, total, ok := contentRange(resp.Header.Get("Content-Range"))
		switch {
		case d.piece.At == 0:
			return nil, fail("a part, and the whole was asked for")
		case !ok, from != d.piece.At, total >= 0 && d.piece.Total >= 0 && total != d.piece.Total, length >= 0 && length != to-from+1, !d.same(resp.Header):
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
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return redirected(u, resp, fail)
	default:
		return nil, fail("")
	}
	if codings := codings(resp.Header); len(codings) > 0 {
		return nil, fail("it is compressed, which was not asked for (" + strings.Join(codings, ", ") + ")")
	}
	limit := &httpmsg.LimitError{URL: feedurl.Display(u), Limit: "bytes transferred", Max: x.c.cfg.MaxBytes, Flag: httpmsg.FlagMaxBytes}
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

// copy writes a body of so many bytes, -1 for one whose end says it.
func (d *download) copy(x *exchange, u *url.URL, w io.Writer, body io.Reader, length int64, limit error) error {
	buf := make([]byte, 64<<10)
	for left := length; left != 0; {
		part := buf
		if left > 0 {
			part = buf[:min(left, int64(len(buf)))]
		}
		n, err := body.Read(part)
		x.received += int64(n)
		// As long as something comes there is no hurry.
		x.pause()
		x.left = x.c.cfg.Deadline
		x.run()
		if d.piece.At+int64(n) > x.c.cfg.MaxBytes {
			return limit
		}
		if n > 0 {
			if _, werr := w.Write(part[:n]); werr != nil {
				return &WriteError{werr}
			}
			d.piece.At += int64(n)
		}
		if left > 0 {
			left -= int64(n)
		}
		switch {
		case err == io.EOF && left <= 0:
			return nil
		case err != nil && left == 0:
			return nil
		case err != nil && x.ctx.Err() != nil:
			return x.classify(u, err)
		case err != nil:
			return &CutError{URL: feedurl.Display(u), Have: d.piece.At, Total: d.piece.Total, Err: err}
		}
	}
	return nil
}

// same reports whether a part is of the file that is there, as far as its header says.
// A server that knows no If-Range sends a part of any.
func (d *download) same(h http.Header) bool {
	if strings.HasPrefix(d.piece.Validator, `"`) {
		tag := h.Get("Etag")
		return tag == "" || tag == d.piece.Validator
	}
	date := h.Get("Last-Modified")
	return date == "" || date == d.piece.Validator
}

// strong returns the validator of an answer by which a part can be gone on with: an
// entity tag that is not weak, or a date at which the file had been so for a while (RFC
// 9110, section 8.8.2.2).
func strong(h http.Header) string {
	if tag := httpmsg.Validator(h.Get("Etag")); strings.HasPrefix(tag, `"`) && len(tag) > 2 && strings.HasSuffix(tag, `"`) {
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

// modifiedAgo returns the age of a document when it was sent, in whole seconds of the
// server's own clock, if the header has both times.
func modifiedAgo(h http.Header) (time.Duration, bool) {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	now, err2 := http.ParseTime(h.Get("Date"))
	return now.Sub(modified), err == nil && err2 == nil
}

// contentRange reads "bytes 5-9/10"; total is -1 for "*".
func contentRange(v string) (from, to, total int64, ok bool) {
	unit, v, _ := strings.Cut(strings.TrimSpace(v), " ")
	span, size, ok1 := strings.Cut(v, "/")
	a, b, ok2 := strings.Cut(span, "-")
	number := func(s string) int64 {
		if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
			return -1
		}
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	from, to, total = number(a), number(b), number(size)
	ok = strings.EqualFold(unit, "bytes") && ok1 && ok2 && from >= 0 && to >= from && (size == "*" || total > to)
	return from, to, total, ok
}
