package feedconv

// The files have an order, in which each refers only to files of its own stage and of
// those above. TestStages reads it here.
//
//	base:   feedconv extension limits warnings reading
//	text:   text plaintext entities dates resolve charset charset_latin
//	scan:   scan jsonvalue
//	tidy:   names namespaces classify keep root tidy defects construct attributes single writer
//	finish: finish person
//	map:    xml rss atom json jsonrss jsonactivity
//	parse:  parse
//	encode: stream encode encodeext encodejson

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Parse reads a feed document to its end and gives the feed and its entries,
// in the order of the document.
//
// The error is a [*LimitError] for a document that is too large, a
// [*NotFeedError] for one that is no feed, or what reading r returned. A
// document that had to be mended is no error: see [Feed.Warnings]. A feed
// without entries is one that truly has none.
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
	// The last guard, for mistakes in this package and in gofeed: whoever
	// fetches a thousand feeds must not lose them to one document.
	defer func() {
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("the document could not be read: %v", p)
		}
	}()

	opts.reading = &reading{}
	text, warnings, err := decodeBytes(b, opts)
	if err != nil {
		return nil, err
	}
	f, err = parseText(text, opts)
	if err != nil {
		return nil, err
	}
	f.Warnings = append(warnings, f.Warnings...)
	if opts.reading.differs {
		f.readEarlier(b, opts)
	}
	return f, nil
}

// parseText parses a document in UTF-8.
func parseText(text []byte, opts Options) (*Feed, error) {
	if value, prefix := unwrapJSON(text); value != nil {
		// Behind something else it may be no JSON, but junk before a feed.
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
	f.Truncated = doc.cut
	f.Warnings = append(doc.warnings, f.Warnings...)
	return f, nil
}

// behind says of a feed that something stands before it.
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
	f.Warnings = slices.Insert(f.Warnings, 0, Warning{Line: 1, Text: "what stands before the feed was skipped"})
	return f
}

// checkEmpty refuses a document without entries that is no empty feed either: a
// program that took it for one would not look again until it changes.
func checkEmpty(f *Feed, doc *tidied) error {
	switch {
	case len(f.Entries) > 0:
	case doc.cut:
		return errCutOff(doc.lost)
	case doc.head || doc.entries > 0:
	case doc.root == "feed":
		return &NotFeedError{What: "a <feed> element with nothing in it"}
	default:
		return &NotFeedError{What: "an <" + doc.root + "> element without a channel"}
	}
	return nil
}

// readEarlier sets what the entries were for the first versions of this package.
func (f *Feed) readEarlier(b []byte, opts Options) {
	opts.reading = &reading{first: true}
	text, _, err := decodeBytes(b, opts)
	if err != nil {
		return
	}
	before, err := parseText(text, opts)
	if err != nil || len(before.Entries) != len(f.Entries) {
		return
	}
	for i := range f.Entries {
		f.Entries[i].Earlier = before.Entries[i].earlier(&f.Entries[i])
	}
}
