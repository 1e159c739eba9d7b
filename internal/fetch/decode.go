package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/httpmsg"
)

const (
	// acceptEncoding is what decoders knows.
	acceptEncoding = "gzip, br, zstd"
	// zstdWindow is the largest window that RFC 9659 lets a server use.
	zstdWindow = 8 << 20
	// maxCodings bounds the work that one body can make: each further coding
	// multiplies it.
	maxCodings = 3
)

// wireReader counts what comes from the network and ends it at max. It keeps
// the error that ended it, since decoders do not always hand it on.
type wireReader struct {
	r     io.Reader
	x     *exchange
	n     int64
	max   int64
	limit error // the error at max
	err   error
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	// One byte more than allowed is asked for, to tell a body of exactly max
	// bytes from a longer one.
	if left := w.max + 1 - w.n; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := w.r.Read(p)
	w.n += int64(n)
	if w.x != nil {
		w.x.received = w.n
	}
	if w.n > w.max {
		n -= int(w.n - w.max)
		w.n = w.max
		err = w.limit
	}
	w.err = err
	return n, err
}

// gzipReader reads all members of a gzip file and takes what follows the last
// for the padding that it is. The end of the network's stream after a whole
// member is the end, even when the server had announced more: servers send the
// length before compression, and the member's checksum knows better.
type gzipReader struct {
	br *bufio.Reader
	z  *gzip.Reader
}

func (g *gzipReader) Read(p []byte) (int, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g.br)
		if err != nil {
			return 0, noEOF(err)
		}
		z.Multistream(false)
		g.z = z
	}
	for {
		n, err := g.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if b, _ := g.br.Peek(2); !bytes.Equal(b, gzipMagic) {
			return 0, io.EOF
		}
		if err := g.z.Reset(g.br); err != nil {
			return 0, noEOF(err)
		}
		g.z.Multistream(false)
	}
}

// noEOF makes an end in the middle of a header recognisable as such.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// plausible reports whether a body that is said to be compressed with coding,
// but begins with b, was sent without compression. For gzip and zstd the first
// bytes say what it is not; for brotli, '<' cannot begin a stream. It returns false
// for other codings.
func plausible(coding string, b []byte) bool {
	switch coding {
	case "gzip":
		if bytes.HasPrefix(b, gzipMagic) {
			return false
		}
	case "zstd":
		// Skippable frames (0x184d2a5?) may come first.
		if bytes.HasPrefix(b, zstdMagic) || len(b) >= 4 && b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18 {
			return false
		}
	case "br":
	default:
		return false
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 {
		return false
	}
	return b[0] == '<' || coding != "br" && (b[0] == '{' || b[0] == '[')
}

// codings returns the codings of h in the order in which they were applied, with
// those that mean nothing left out.
func codings(h http.Header) []string {
	var out []string
	for _, v := range h.Values("Content-Encoding") {
		for c := range strings.SplitSeq(v, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "x-gzip":
				out = append(out, "gzip")
			// Servers confuse the header with others; these cannot mean a
			// compression.
			case "", "identity", "none", "utf-8", "utf8", "binary", "8bit":
			default:
				out = append(out, c)
			}
		}
	}
	return out
}

// body is what readBody made of a response.
type body struct {
	data     []byte
	wire     int64
	cut      error // why data is not all of it, or nil
	warnings []string
}

// readBody reads and decodes the body of resp under the limits. An error of
// the network or of the coding after the first decoded byte is not an error,
// but sets cut.
func (x *exchange) readBody(u *url.URL, resp *http.Response) (*body, error) {
	cfg := &x.c.cfg
	over := func(limit string, most int64, flag string) error {
		return &httpmsg.LimitError{URL: feedurl.Display(u), Limit: limit, Max: most, Flag: flag}
	}
	maxBytes, maxDecoded, flagBytes, flagDecoded := cfg.MaxBytes, cfg.MaxDecoded, httpmsg.FlagMaxBytes, httpmsg.FlagMaxDecoded
	if x.page && maxBytes > MaxPage {
		maxBytes, flagBytes = MaxPage, ""
	}
	if x.page && maxDecoded > MaxPage {
		maxDecoded, flagDecoded = MaxPage, ""
	}
	tooLong := over("bytes transferred", maxBytes, flagBytes)
	if resp.ContentLength > maxBytes {
		return nil, tooLong
	}
	wire := &wireReader{r: resp.Body, x: x, max: maxBytes, limit: tooLong}
	tooBig := over("bytes after decompression", maxDecoded, flagDecoded)
	b := &body{}
	cs := codings(resp.Header)
	if len(cs) > maxCodings {
		return nil, &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: strings.Join(cs, ", "), Err: errors.New("too many codings")}
	}
	d := &decoders{Reader: wire}
	defer d.close()
	for _, c := range slices.Backward(cs) {
		warning, err := d.undo(c, maxDecoded, tooBig)
		if err != nil {
			return nil, &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: c, Err: err}
		}
		b.warnings = append(b.warnings, warning...)
	}
	data, err := gather(&bigReader{r: d, x: x})
	b.data, b.wire = data, wire.n
	if err == nil && int64(len(data)) > maxDecoded {
		err = tooBig // no coding, and MaxDecoded below MaxBytes
	}
	// The decoders' own errors about a limit inside them are of no use.
	for _, s := range append(d.stages, wire) {
		if l, ok := errors.AsType[*httpmsg.LimitError](s.err); ok {
			return nil, l
		}
	}
	if err == nil {
		// Whatever stands behind the end of the compressed data must be read
		// for the connection to be used again.
		_, _ = io.CopyN(io.Discard, wire, 4<<10)
		return b, nil
	}
	return x.cut(u, b, wire, cs, err)
}

// decoders undo the codings of a body.
type decoders struct {
	io.Reader
	stages  []*wireReader // each of which may end at a limit
	closers []io.Closer
}

// undo undoes one more coding, of a body that may have most bytes then and fails with limit
// at more. There is a warning if the body does not have the coding.
func (d *decoders) undo(coding string, most int64, limit error) (warning []string, err error) {
	br := bufio.NewReader(d.Reader)
	if head, _ := br.Peek(64); plausible(coding, head) {
		d.Reader = br
		return []string{fmt.Sprintf("the server says that the document is compressed (%q), which it is not", coding)}, nil
	}
	decoded, err := decoder(coding, br)
	if err != nil {
		return nil, err
	}
	stage := &wireReader{r: decoded, max: most, limit: limit}
	d.Reader, d.stages, d.closers = stage, append(d.stages, stage), append(d.closers, decoded)
	return nil, nil
}

func (d *decoders) close() {
	for _, c := range d.closers {
		c.Close()
	}
}

// cut returns what came of a body that was not read to its end because of err, or the error
// if nothing came.
func (x *exchange) cut(u *url.URL, b *body, wire *wireReader, cs []string, err error) (*body, error) {
	switch {
	case x.ctx.Err() != nil:
		return nil, x.classify(u, err)
	case errors.As(err, new(*httpmsg.LimitError)):
		return nil, err
	case len(b.data) > 0:
		b.cut = err
		return b, nil
	case wire.err != nil && wire.err != io.EOF || len(cs) == 0:
		return nil, &httpmsg.NetError{URL: feedurl.Display(u), Kind: httpmsg.KindProtocol, Err: fmt.Errorf("it broke off before the document: %w", err)}
	case wire.n == 0:
		return b, nil // an empty body, said to be compressed
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("it asks for a window of more than the %d bytes that RFC 9659 allows", zstdWindow)
	}
	return nil, &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: strings.Join(cs, ", "), Err: err}
}

// decoder returns a reader that undoes a coding.
func decoder(coding string, r io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		return io.NopCloser(&gzipReader{br: bufio.NewReader(r)}), nil
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		// One goroutine and small buffers: many feeds are decoded at
		// once. The window limit bounds the memory.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, errors.New("lektor asked for " + acceptEncoding)
}

// bigBody is the size in bytes from which a body needs one of a few places.
const bigBody = 1 << 20

// bigReader waits for a place before it reads more than bigBody bytes.
type bigReader struct {
	r io.Reader
	x *exchange
	n int
}

func (b *bigReader) Read(p []byte) (int, error) {
	if b.n >= bigBody && !b.x.held {
		if err := b.x.enterBig(); err != nil {
			return 0, err
		}
	}
	n, err := b.r.Read(p)
	b.n += n
	return n, err
}

// gather is [io.ReadAll] for what may end at a limit: bytes are gathered in chunks, and
// joined only if no limit was exceeded, so that a body that is refused takes its size once.
func gather(r io.Reader) ([]byte, error) {
	const first, last = 16 << 10, 1 << 20 // sizes of chunks
	var chunks [][]byte
	for size := first; ; size = min(2*size, last) {
		chunk := make([]byte, 0, size)
		var err error
		for err == nil && len(chunk) < size {
			var n int
			n, err = r.Read(chunk[len(chunk):size])
			chunk = chunk[:len(chunk)+n]
		}
		chunks = append(chunks, chunk)
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			err = nil
		case errors.As(err, new(*httpmsg.LimitError)):
			return nil, err
		}
		return bytes.Join(chunks, nil), err
	}
}
