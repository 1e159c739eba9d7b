package feedconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Stream writes a document whose entries need not be in memory all at once: the one that
// [EncodeAtom], [EncodeRSS] or [EncodeJSON] makes of a feed that has them. As the head of
// a document says something of its entries, each is shown to Survey before Begin, and
// given to Entry in the order of the document after it:
//
//	s, err := feedconv.NewStream(w, feedconv.Atom10)
//	for … { s.Survey(e) }
//	err = s.Begin(feed)
//	for … { err = s.Entry(e) }
//	err = s.End()
//
// Whatever a call has to write is written when it returns. It is used by one goroutine at a time. The
// errors are those of the encoders.
type Stream struct {
	x       *xmlWriter // nil for JSON
	w       io.Writer
	items   int    // of JSON, written so far
	tail    []byte // of JSON
	updated time.Time
	survey
}

// survey is what the head of a document needs of its entries.
type survey struct {
	any, podcast bool
	nameless     bool // an entry without an author
	newest       time.Time
	namespaces   []string // of extensions and attributes, in the order of their appearance
	seen         map[string]bool
}

// NewStream begins a document of the format Atom10, RSS20 or JSONFeed; any other is an
// error.
func NewStream(w io.Writer, format Format) (*Stream, error) {
	switch format {
	case Atom10, RSS20:
		return &Stream{x: newXMLWriter(w, format == Atom10)}, nil
	case JSONFeed:
		return &Stream{w: w}, nil
	}
	return nil, fmt.Errorf("no document of the format %q is written", format)
}

// Survey is shown each entry that is to come. It keeps nothing of it.
func (s *Stream) Survey(e *Entry) {
	s.any = true
	s.podcast = s.podcast || e.isPodcast()
	s.nameless = s.nameless || len(e.Authors) == 0
	if e.Updated.After(s.newest) {
		s.newest = e.Updated
	}
	s.declares(e.Attributes, e.Extensions)
}

// declares notes namespaces, as many as are declared at the root.
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

// Begin writes what the feed says of itself; its Entries are not looked at.
func (s *Stream) Begin(f *Feed) error {
	if s.x == nil {
		head, err := indented(jsonHead(f), "")
		// The list of entries is the last thing in it.
		end := bytes.LastIndexByte(head, ']')
		if err == nil {
			s.tail = head[end:]
			_, err = s.w.Write(head[:end])
		}
		return err
	}
	s.x.namespacesOf(f, &s.survey)
	s.updated = newest(&Feed{Updated: f.Updated, Published: f.Published, Entries: []Entry{{Updated: s.newest}}})
	if s.x.atom {
		s.x.feed(f, s.updated, !s.any || s.nameless)
	} else {
		s.x.rss(f)
	}
	return s.x.flush()
}

// Entry writes the next entry.
func (s *Stream) Entry(e *Entry) error {
	if s.x == nil {
		item, err := indented(jsonEntry(e), "    ")
		if err != nil {
			return err
		}
		separator := ",\n    "
		if s.items == 0 {
			separator = "\n    "
		}
		s.items++
		_, err = s.w.Write(append([]byte(separator), bytes.TrimSuffix(item, []byte("\n"))...))
		return err
	}
	if s.x.atom {
		s.x.atomEntry(e, s.updated)
	} else {
		s.x.rssItem(e)
	}
	return s.x.flush()
}

// End writes what stands after the entries.
func (s *Stream) End() error {
	if s.x == nil {
		tail := s.tail
		if s.items > 0 {
			tail = append([]byte("\n  "), tail...)
		}
		_, err := s.w.Write(tail)
		return err
	}
	if s.x.atom {
		s.x.end("feed")
	} else {
		s.x.end("channel")
		s.x.end("rss")
	}
	return s.x.flush()
}

// indented gives a value in JSON.
func indented(v any, prefix string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// encode writes a feed whose entries are in memory.
func encode(w io.Writer, format Format, f *Feed) error {
	s, err := NewStream(w, format)
	if err != nil {
		return err
	}
	for i := range f.Entries {
		s.Survey(&f.Entries[i])
	}
	err = s.Begin(f)
	for i := 0; i < len(f.Entries) && err == nil; i++ {
		err = s.Entry(&f.Entries[i])
	}
	if err == nil {
		err = s.End()
	}
	return err
}
