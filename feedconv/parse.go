package feedconv

// A document goes through packages and files in this order, and none refers to a later
// one. TestStages holds the order of the files.
//
//	internal/text/charset       bytes → UTF-8
//	internal/text/markup        text of XML and HTML: references, plain text, URLs
//	internal/text/scan          XML → tokens; the URLs in HTML
//	internal/{dates,vocab} dates; namespaces, and which elements have a field
//	internal/rawjson       JSON → values
//	internal/tidy          tokens → a clean, bounded tree, and its XML for gofeed
//
//	base:   feedconv extension limits text reading
//	finish: finish person
//	map:    xml rss atom json jsonrss jsonactivity
//	parse:  parse
//	encode: stream encode encodeext encodejson
//
// The map files turn gofeed's structs, or JSON, into drafts. finish sets each field by rules that
// are the same for all formats.

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lektordir/lektor/feedconv/internal/rawjson"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/internal/text/charset"
	"github.com/lektordir/lektor/internal/text/markup"
)

// Parse reads a feed document to its end and returns the feed and its entries,
// in the order of the document.
//
// The error is a [*LimitError] for a document that is too large, a [*NotFeedError] for a document
// that is not a feed, or the error of r. A malformed document that could be corrected is not an
// error: see [Feed.Warnings]. If Parse returns a feed without entries, the document has no entries.
func Parse(r io.Reader, opts Options) (*Feed, error) {
	limit := opts.maxBytes()
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	return ParseBytes(raw, opts)
}

// ParseBytes is [Parse] for a document that is in memory. It neither changes
// b nor keeps a reference to it.
func ParseBytes(b []byte, opts Options) (f *Feed, err error) {
	// Recover from a panic of this package or of gofeed: a program that fetches a thousand feeds
	// must not crash because of one document.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("the document could not be read: %v", p)
		}
	}()

	text, warnings, err := decodeBytes(b, opts)
	if err != nil {
		return nil, err
	}
	f, err = parseText(text, opts)
	if err != nil {
		return nil, err
	}
	f.Warnings = append(warnings, f.Warnings...)
	return f, nil
}

// parseText parses a document in UTF-8.
func parseText(text []byte, opts Options) (*Feed, error) {
	if value, prefix := rawjson.Unwrap(text); value != nil {
		// A value behind a prefix may be junk before an XML feed, not JSON.
		if f, err := parseJSON(value, opts); prefix == 0 || err == nil {
			return f.behind(text[:prefix]), err
		}
	}
	doc, err := tidyXML(text, opts)
	if err != nil {
		return nil, err
	}
	f, err := parseXML(doc, opts)
	if err != nil {
		return nil, err
	}
	if err := checkEmpty(f, doc); err != nil {
		return nil, err
	}
	f.Truncated = doc.Cut
	warnings := make([]Warning, 0, len(doc.Warnings))
	for _, w := range doc.Warnings {
		warnings = append(warnings, Warning(w))
	}
	f.Warnings = append(warnings, f.Warnings...)
	return f, nil
}

// tidyXML makes a tree of a document. The error is a *NotFeedError.
func tidyXML(text []byte, opts Options) (*tidy.Document, error) {
	doc, err := tidy.Read(text, tidy.Options{
		Base: markup.DocumentBase(opts.URL, opts.ContentLocation), MaxEntries: opts.maxEntries(),
	})
	if no, ok := errors.AsType[*tidy.NotFeed](err); ok {
		return nil, &NotFeedError{What: no.What, HTML: no.HTML}
	}
	return doc, err
}

// behind adds the warning that prefix stands before the feed, and corrects the line numbers of the
// other warnings.
func (f *Feed) behind(prefix []byte) *Feed {
	if f == nil || len(prefix) == 0 {
		return f
	}
	lines := bytes.Count(prefix, []byte{'\n'})
	for i := range f.Warnings {
		if f.Warnings[i].Line > 0 {
			f.Warnings[i].Line += lines
		}
	}
	f.Warnings = slices.Insert(f.Warnings, 0, Warning{Line: 1, Text: "content before the feed was skipped"})
	return f
}

// checkEmpty returns an error for a document without entries that is not an empty feed: a program
// that accepted it would not read it again until it changes.
func checkEmpty(f *Feed, doc *tidy.Document) error {
	switch {
	case len(f.Entries) > 0:
	case doc.Cut:
		return errCutOff(doc.Lost)
	case doc.Head || len(doc.Entries) > 0 || doc.Root == "channel":
	case doc.Root == "feed":
		return &NotFeedError{What: "a <feed> element with nothing in it"}
	default:
		return &NotFeedError{What: "an <" + doc.Root + "> element without a channel"}
	}
	return nil
}

// decodeBytes caps, gunzips and converts the document to UTF-8 without BOM.
// A document over the cap is a *LimitError, an empty one a *NotFeedError. The
// result is valid UTF-8; it may share memory with raw.
func decodeBytes(raw []byte, opts Options) (text []byte, warnings []Warning, err error) {
	limit := opts.maxBytes()
	if int64(len(raw)) > limit {
		return nil, nil, &LimitError{Limit: "bytes", Max: limit}
	}
	if len(raw) >= 3 && raw[0] == 0x1f && raw[1] == 0x8b && raw[2] == 8 {
		plain, err := gunzip(raw, limit)
		switch {
		case int64(len(plain)) > limit:
			return nil, nil, &LimitError{Limit: "bytes after decompression", Max: limit}
		case err != nil && len(plain) == 0:
			return nil, nil, &NotFeedError{What: "damaged gzip data"}
		case err != nil:
			warnings = append(warnings,
				Warning{Text: "the gzip data ends early or is damaged; what could be read is used"})
		}
		raw = plain
	}
	text, problems := charset.Decode(raw, opts.ContentType)
	for _, p := range problems {
		warnings = append(warnings, Warning{Line: p.Line, Text: p.Text})
	}
	if markup.Blank(text) {
		return nil, warnings, &NotFeedError{What: "an empty document"}
	}
	return text, warnings, nil
}

// gunzip decompresses up to one byte more than the limit. If it fails, it also returns the bytes
// before the error, so that the entries before a cut are not lost.
func gunzip(raw []byte, limit int64) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	// Do not trust the declared size of a gzip member; grow with the data.
	var buf bytes.Buffer
	_, err = io.Copy(&buf, io.LimitReader(zr, limit+1))
	return buf.Bytes(), err
}
