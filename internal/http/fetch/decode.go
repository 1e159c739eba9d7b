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

	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

const (
	// acceptEncoding lists the codings that decoder supports.
	acceptEncoding = "gzip, br, zstd"
	// zstdWindow is the largest window that RFC 9659 lets a server use.
	zstdWindow = 8 << 20
	// maxCodings limits the work for one body, which each coding multiplies.
	maxCodings = 3
)

// wireReader counts the bytes that it reads, and returns limit after max bytes. It records its
// error, since decoders do not always return the error of their reader.
type wireReader struct {
	r     io.Reader
	n     int64
	max   int64
	limit error // returned for more than max bytes
	err   error
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	// Ask for one byte more than max, to distinguish a body of exactly max bytes from a longer one.
	if remaining := w.max + 1 - w.n; int64(len(p)) > remaining {
		p = p[:remaining]
	}
	n, err := w.r.Read(p)
	w.n += int64(n)
	if w.n > w.max {
		n -= int(w.n - w.max)
		w.n = w.max
		err = w.limit
	}
	w.err = err
	return n, err
}

// gzipReader reads all members of a gzip file, and ignores bytes after the last member as padding.
// It returns EOF after a complete member even if Content-Length promised more: some servers send
// the length before compression, and the checksum of the member proves that it is whole.
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

// noEOF returns ErrUnexpectedEOF for EOF, which in a header means that the stream was cut off.
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

// plausible reports whether a body with the Content-Encoding coding, which begins with b, was
// probably sent without compression: it lacks the magic number of gzip or zstd and begins like XML
// or JSON. A brotli stream cannot begin with <. plausible returns false for other codings.
func plausible(coding string, b []byte) bool {
	switch coding {
	case "gzip":
		if bytes.HasPrefix(b, gzipMagic) {
			return false
		}
	case "zstd":
		// Skippable frames (0x184d2a5?) may come first.
		if bytes.HasPrefix(b, zstdMagic) || len(b) >= 4 && b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d &&
			b[3] == 0x18 {
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

// codings returns the codings of h in the order in which they were applied, without those that
// change nothing.
func codings(h http.Header) []string {
	var out []string
	for _, v := range h.Values("Content-Encoding") {
		for c := range strings.SplitSeq(v, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "x-gzip":
				out = append(out, "gzip")
			// Some servers put a charset or transfer encoding here, which is not a compression.
			case "", "identity", "none", "utf-8", "utf8", "binary", "8bit":
			default:
				out = append(out, c)
			}
		}
	}
	return out
}

// readBody reads and decodes the body of resp into res, under the limits. If the network or a decoder fails
// after the first decoded byte, res has the data so far, with Truncated set.
func (x *exchange) readBody(u *url.URL, resp *http.Response, res *httpmsg.Response) error {
	cfg := &x.c.cfg
	limited := func(limit string, most int64, flag string) (int64, error) {
		if x.page && most > MaxPage {
			most, flag = MaxPage, ""
		}
		return most, &httpmsg.LimitError{URL: feedurl.Display(u), Limit: limit, Max: most, Flag: flag}
	}
	maxBytes, tooLong := limited("bytes transferred", cfg.MaxBytes, httpmsg.FlagMaxBytes)
	maxDecoded, tooBig := limited("bytes after decompression", cfg.MaxDecoded, httpmsg.FlagMaxDecoded)
	if resp.ContentLength > maxBytes {
		return tooLong
	}
	wire := &wireReader{r: resp.Body, max: maxBytes, limit: tooLong}
	cs := codings(resp.Header)
	if len(cs) > maxCodings {
		return &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: strings.Join(cs, ", "),
			Err: errors.New("too many codings")}
	}
	d := &decoders{Reader: wire}
	defer d.close()
	for _, c := range slices.Backward(cs) {
		warning, err := d.undo(c, maxDecoded, tooBig)
		if err != nil {
			return &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: c, Err: err}
		}
		res.Warnings = append(res.Warnings, warning...)
	}
	data, err := gather(&bigReader{r: d, x: x})
	x.received = wire.n
	if err == nil && int64(len(data)) > maxDecoded {
		err = tooBig // without a coding, no stage checks MaxDecoded
	}
	// If a limit was exceeded, return the limit's error instead of the decoder's.
	for _, s := range append(d.stages, wire) {
		if l, ok := errors.AsType[*httpmsg.LimitError](s.err); ok {
			return l
		}
	}
	res.Body, res.WireBytes = data, wire.n
	if err == nil {
		// Read the bytes after the end of the compressed data, so that the connection can be
		// reused.
		_, _ = io.CopyN(io.Discard, wire, 4<<10)
		return nil
	}
	return x.cut(u, res, wire, cs, err)
}

// decoders undo the codings of a body.
type decoders struct {
	io.Reader
	stages  []*wireReader // readers of decoded data, which may exceed a limit
	closers []io.Closer
}

// undo adds a decoder for coding, which returns limit after most decoded bytes. If the body is not
// compressed, undo adds no decoder and returns a warning.
func (d *decoders) undo(coding string, most int64, limit error) (warning []string, err error) {
	br := bufio.NewReader(d.Reader)
	if head, _ := br.Peek(64); plausible(coding, head) {
		d.Reader = br
		return []string{fmt.Sprintf("the document is not compressed, although the server says so (%q)", coding)}, nil
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

// cut marks a response whose body ended with err as truncated. If it has no data, cut returns an error.
func (x *exchange) cut(u *url.URL, res *httpmsg.Response, wire *wireReader, cs []string, err error) error {
	switch {
	case x.ctx.Err() != nil:
		return x.classify(u, err)
	case errors.As(err, new(*httpmsg.LimitError)):
		return err
	case len(res.Body) > 0:
		res.Truncated = true
		res.Warnings = append(res.Warnings, fmt.Sprintf("the document was cut off or damaged after %d bytes (%v)",
			len(res.Body), err))
		return nil
	case wire.err != nil && wire.err != io.EOF || len(cs) == 0:
		return &httpmsg.NetError{URL: feedurl.Display(u), Kind: httpmsg.KindProtocol,
			Err: fmt.Errorf("it was cut off before the document began: %w", err)}
	case wire.n == 0:
		return nil // an empty body with a Content-Encoding
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("it needs a window of more than the %d bytes that RFC 9659 allows", zstdWindow)
	}
	return &httpmsg.DecodeError{URL: feedurl.Display(u), Encoding: strings.Join(cs, ", "), Err: err}
}

// decoder returns a reader that decodes r.
func decoder(coding string, r io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		return io.NopCloser(&gzipReader{br: bufio.NewReader(r)}), nil
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		// One goroutine and small buffers, as many feeds are decoded concurrently. The window limit
		// bounds the memory.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, errors.New("lektor accepts only " + acceptEncoding)
}

// bigBody is the size in bytes from which a body needs a place, see bigBodies.
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

// gather is [io.ReadAll] for a reader with limits. It collects chunks and joins them only if no
// limit was exceeded, so a refused body is never copied.
func gather(r io.Reader) ([]byte, error) {
	var chunks [][]byte
	for size := int64(16 << 10); ; size = min(2*size, 1<<20) {
		chunk := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		_, err := io.CopyN(chunk, r, size)
		chunks = append(chunks, chunk.Bytes())
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
