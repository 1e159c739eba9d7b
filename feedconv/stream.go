package feedconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"
)

// Encode writes a document of the format Atom10, RSS20 or JSONFeed without holding all entries in
// memory. The document is the same as that of [EncodeAtom], [EncodeRSS] or [EncodeJSON]. entries is
// iterated twice, first for the head, which depends on the entries, and then to write them. If
// entries is nil, the Entries of the feed are written, which are otherwise ignored.
//
// The head, each entry and the end are written with one call of w.Write each. Encode fails if the
// encoder, w or entries fails.
func Encode(w io.Writer, format Format, f *Feed, entries iter.Seq2[*Entry, error]) error {
	if entries == nil {
		entries = f.entries
	}
	var b bytes.Buffer
	var doc encoder
	switch format {
	case Atom10, RSS20:
		doc = newXMLWriter(&b, format == Atom10)
	case JSONFeed:
		doc = &jsonWriter{b: &b}
	default:
		return fmt.Errorf("no document of the format %q is written", format)
	}
	var s survey
	for e, err := range entries {
		if err != nil {
			return err
		}
		s.add(e)
	}
	write := func(err error) error {
		if err == nil {
			_, err = w.Write(b.Bytes())
		}
		b.Reset()
		return err
	}
	if err := write(doc.begin(f, &s)); err != nil {
		return err
	}
	for e, err := range entries {
		if err == nil {
			err = write(doc.entry(e))
		}
		if err != nil {
			return err
		}
	}
	return write(doc.end())
}

// encoder writes the pieces of a document into a buffer.
type encoder interface {
	begin(f *Feed, s *survey) error // writes the head: the fields of the feed
	entry(e *Entry) error
	end() error
}

// entries calls yield for each entry.
func (f *Feed) entries(yield func(*Entry, error) bool) {
	for i := range f.Entries {
		if !yield(&f.Entries[i], nil) {
			return
		}
	}
}

// survey is the data about the entries that the head of a document needs.
type survey struct {
	any, podcast, replies bool
	nameless              bool // an entry without an author
	newest                time.Time
	namespaces            []string // namespaces of extensions and attributes, in the order of their appearance
	seen                  map[string]bool
}

// add counts an entry.
func (s *survey) add(e *Entry) {
	s.any = true
	s.podcast = s.podcast || e.isPodcast()
	s.replies = s.replies || len(e.InReplyTo) > 0
	s.nameless = s.nameless || len(e.Authors) == 0
	if e.Updated.After(s.newest) {
		s.newest = e.Updated
	}
	s.declares(e.Attributes, e.Extensions)
}

// declares adds namespaces, at most as many as are declared at the root.
func (s *survey) declares(attributes []Attribute, list []Extension) {
	use := func(uri string) {
		if s.seen[uri] || len(s.namespaces) >= maxRootNamespaces {
			return
		}
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[uri] = true
		s.namespaces = append(s.namespaces, uri)
	}
	for _, a := range attributes {
		use(a.Namespace)
	}
	for i := range list {
		use(list[i].Namespace)
		s.declares(list[i].Attributes, list[i].Children)
	}
}

func (x *xmlWriter) begin(f *Feed, s *survey) error {
	x.namespacesOf(f, s)
	x.updated = newest(f, s)
	if x.atom {
		x.feed(f, !s.any || s.nameless)
	} else {
		x.rss(f)
	}
	return x.err
}

func (x *xmlWriter) entry(e *Entry) error {
	if x.atom {
		x.atomEntry(e)
	} else {
		x.rssItem(e)
	}
	return x.err
}

func (x *xmlWriter) end() error {
	if x.atom {
		x.close("feed")
	} else {
		x.close("channel")
		x.close("rss")
	}
	return x.err
}

// jsonWriter writes a JSON Feed.
type jsonWriter struct {
	b     *bytes.Buffer
	items int
	tail  []byte // the text after the list of entries, the end of the head
}

func (x *jsonWriter) begin(f *Feed, _ *survey) error {
	head, err := indented(jsonHead(f), "")
	if err != nil {
		return err
	}
	end := bytes.LastIndexByte(head, ']')
	x.b.Write(head[:end])
	x.tail = head[end:]
	return nil
}

func (x *jsonWriter) entry(e *Entry) error {
	if x.items++; x.items > 1 {
		x.b.WriteByte(',')
	}
	x.b.WriteString("\n    ")
	item, err := indented(jsonEntry(e), "    ")
	x.b.Write(bytes.TrimSuffix(item, []byte("\n")))
	return err
}

func (x *jsonWriter) end() error {
	if x.items > 0 {
		x.b.WriteString("\n  ")
	}
	x.b.Write(x.tail)
	return nil
}

// indented returns a value as indented JSON.
func indented(v any, prefix string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
