package sharer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feedsync"
)

// set is a set of items: the subscriptions, which are a document, or the states.
type set interface {
	Item(id string) *feedsync.Item
	Append(items ...*feedsync.Item)
}

// states is the set of marks of entries. There may be a million, and a run looks into
// few of them: so items are kept as their texts, and read when they are asked for. The
// complete document is not even parsed, as an index tells what stands where.
type states struct {
	frame *feedsync.Document // what stands around the items of the complete document
	size  int                // of that document; 0 when there is none
	feeds map[string][]mark  // what it says, by feed and in order
	news  map[string]mark    // what is newer than it, by id

	since, until time.Time // of the complete document, and of the newest

	chunk []byte // room for texts
	index []byte // of the complete document, when the one on the disk is not its
	err   error  // an item could not be read
}

// mark is an item of the states. An item of another program has its id for a lineage,
// no flag, and belongs to the feed "".
type mark struct {
	lineage           string
	flag              byte
	deleted, conflict bool
	at                int // in the complete document
	text              []byte
}

// markOf gives the mark of an id, and its feed.
func markOf(id string) (feed string, m mark) {
	feed, lineage, flag, ok := splitState(id)
	if !ok {
		return "", mark{lineage: id}
	}
	return feed, mark{lineage: lineage, flag: flag}
}

// id gives the id of a mark of a feed.
func (m mark) id(feed string) string {
	if feed == "" {
		return m.lineage
	}
	return stateID(feed, m.lineage, m.flag)
}

// compare orders the marks of a feed.
func (m mark) compare(o mark) int {
	return cmp.Or(strings.Compare(m.lineage, o.lineage), cmp.Compare(m.flag, o.flag))
}

// find gives what the set has of an item.
func (s *states) find(id string) (mark, bool) {
	if m, ok := s.news[id]; ok {
		return m, true
	}
	feed, want := markOf(id)
	marks := s.feeds[feed]
	i, ok := slices.BinarySearchFunc(marks, want, mark.compare)
	if !ok {
		return mark{}, false
	}
	return marks[i], true
}

// Item gives an item, nil for one that there is not.
func (s *states) Item(id string) *feedsync.Item {
	m, ok := s.find(id)
	if !ok {
		return nil
	}
	return s.read(id, m)
}

// read reads an item. All that is in the set can be read; were it not so, nothing would
// be written of it.
func (s *states) read(id string, m mark) *feedsync.Item {
	it, err := s.frame.Read(m.text)
	if err == nil && it.ID != id {
		err = errors.New("it is another item")
	}
	if err != nil {
		if s.err == nil {
			s.err = fmt.Errorf("item %s of the set: %w", id, err)
		}
		return nil
	}
	return it
}

// Append puts items into the set, in the place of those with their ids.
func (s *states) Append(items ...*feedsync.Item) {
	for _, it := range items {
		s.put(it, nil)
	}
}

// put puts an item into the set that is from a document, or from none.
func (s *states) put(it *feedsync.Item, from *feedsync.Document) {
	_, m := markOf(it.ID)
	m.deleted, m.conflict, m.text = it.Deleted, it.Conflict, s.text(it, from)
	s.news[it.ID] = m
}

// text gives the text of an item: as it was read from a document that has the same
// prefixes, or as it would stand in ours.
func (s *states) text(it *feedsync.Item, from *feedsync.Document) []byte {
	if source := it.Source(); source != nil && from != nil && s.frame.SameScope(from) {
		return source
	}
	const size = 1 << 20 // many to an allocation
	if cap(s.chunk)-len(s.chunk) < size/64 {
		s.chunk = make([]byte, 0, size)
	}
	begin := len(s.chunk)
	s.chunk = s.frame.AppendText(s.chunk, it)
	return s.chunk[begin:len(s.chunk):len(s.chunk)]
}

// merge merges an incoming document into the set, and gives the ids of what changed.
func (s *states) merge(in *feedsync.Document, r feedsync.Rules) (changed []string) {
	same := s.frame.SameScope(in)
	for _, it := range in.Items() {
		m, ok := s.find(it.ID)
		switch {
		case !ok:
			s.put(it, in)
		case same && bytes.Equal(m.text, it.Source()):
			continue // nearly all items of nearly all documents
		default:
			local := s.read(it.ID, m)
			if local == nil {
				return changed
			}
			out := feedsync.Merge(local, it, r)
			if out.Item == local {
				continue
			}
			s.put(out.Item, in)
		}
		changed = append(changed, it.ID)
	}
	return changed
}

// byFeed gives the marks of each feed, feeds and marks in order.
func (s *states) byFeed() iter.Seq2[string, []mark] {
	news := map[string][]mark{}
	for id, m := range s.news {
		feed, _ := markOf(id)
		news[feed] = append(news[feed], m)
	}
	feeds := slices.AppendSeq(slices.Collect(maps.Keys(s.feeds)), maps.Keys(news))
	slices.Sort(feeds)
	feeds = slices.Compact(feeds)
	return func(yield func(string, []mark) bool) {
		for _, feed := range feeds {
			marks := s.feeds[feed]
			if more := news[feed]; len(more) > 0 {
				slices.SortFunc(more, mark.compare)
				marks = united(marks, more)
			}
			if !yield(feed, marks) {
				return
			}
		}
	}
}

// united merges marks in order; of two of one item the newer one stays.
func united(old, newer []mark) []mark {
	out := make([]mark, 0, len(old)+len(newer))
	for len(old) > 0 && len(newer) > 0 {
		c := old[0].compare(newer[0])
		if c < 0 {
			out = append(out, old[0])
		} else {
			out = append(out, newer[0])
			newer = newer[1:]
		}
		if c <= 0 {
			old = old[1:]
		}
	}
	return append(append(out, old...), newer...)
}

// items reads the items that are wanted.
func (s *states) items(want func(mark) bool) iter.Seq[*feedsync.Item] {
	return func(yield func(*feedsync.Item) bool) {
		for feed, marks := range s.byFeed() {
			for _, m := range marks {
				if !want(m) {
					continue
				}
				if it := s.read(m.id(feed), m); it != nil && !yield(it) {
					return
				}
			}
		}
	}
}

func every(mark) bool        { return true }
func inConflict(m mark) bool { return m.conflict }

// loadStates reads the set of states.
func (h *share) loadStates() error {
	s := &states{frame: h.empty(feedsync.RSS), feeds: map[string][]mark{}, news: map[string]mark{}}
	h.states = s
	data, err := atomicfile.Read(h.path(completeFile), maxDocument)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h.needs(int(ownWeight * float64(len(data))))
	if s.size = len(data); err == nil {
		index, _ := atomicfile.Read(h.path(indexFile), maxDocument)
		if !s.readIndex(data, index) {
			doc, err := h.parseOwn(completeFile, data, feedsync.RSS)
			if err != nil {
				return err
			}
			h.needs(int((parsedWeight - ownWeight) * float64(len(data))))
			s.take(doc, data)
		}
	}
	if s.frame.Sharing != nil {
		s.since = s.frame.Sharing.Until
		s.until = s.since
	}
	partial, err := h.read(partialFile, feedsync.RSS)
	if err != nil {
		return err
	}
	if p := partial.Sharing; p != nil {
		if p.Until.Before(s.until) {
			return nil // the complete one was written after it, and has all of it
		}
		s.until = p.Until
	}
	for _, it := range partial.Items() {
		s.put(it, partial)
	}
	return nil
}

// take takes over the complete document, which was parsed.
func (s *states) take(doc *feedsync.Document, data []byte) {
	items := doc.Items()
	if doc.Sharing == nil || !s.frame.SameScope(doc) {
		// It was written by hand, and is written anew with the next change.
		for _, it := range items {
			s.put(it, nil)
		}
		s.frame.SetSharing(doc.Sharing)
		return
	}
	before, after := doc.Frame()
	s.frame, _ = feedsync.Parse(slices.Concat(before, after))
	end, plain := 0, true
	for _, it := range items {
		feed, m := markOf(it.ID)
		m.deleted, m.conflict, m.text = it.Deleted, it.Conflict, s.text(it, doc)
		gap := bytes.Index(data[end:], m.text)
		// What stands between items would be lost.
		plain = plain && gap >= 0 && (end == 0 || len(bytes.TrimSpace(data[end:end+gap])) == 0)
		m.at = end + max(gap, 0)
		end = m.at + len(m.text)
		s.feeds[feed] = append(s.feeds[feed], m)
	}
	for _, marks := range s.feeds {
		slices.SortFunc(marks, mark.compare)
	}
	if plain {
		out := &summed{w: io.Discard}
		_, _ = out.Write(data)
		s.index = s.makeIndex(out)
	}
}

// saveStates writes what is newer than the complete document, and that one if it has
// grown out of proportion to it.
func (h *share) saveStates() error {
	s := h.states
	until := h.next(s.until)
	var text []byte
	if s.size > 0 {
		text = h.partial(until)
	}
	if s.size == 0 || len(text) > max(s.size/4, minPartial) {
		if err := h.saveComplete(until); err != nil {
			return err
		}
		text = h.partial(until)
	}
	s.until = until
	_, err := h.private(h.path(partialFile), text)
	return err
}

// saveComplete writes the complete document.
func (h *share) saveComplete(until time.Time) error {
	s := h.states
	s.frame.SetSharing(&feedsync.Sharing{Until: until, Version: feedsync.SpecVersion, Related: h.aggregated(partialFile)})
	feeds := map[string][]mark{}
	out := &summed{}
	h.change()
	err := atomicfile.WritePrivateFrom(h.path(completeFile), func(w io.Writer) error {
		out.w = w
		return s.write(out, func(feed string, m mark) { feeds[feed] = append(feeds[feed], m) })
	})
	if err != nil {
		return err
	}
	s.size, s.since = out.n, until
	s.feeds, s.news = feeds, map[string]mark{}
	s.index = s.makeIndex(out)
	return nil
}

// write writes all items with what stands around them, and tells where each stands.
func (s *states) write(out *summed, told func(feed string, m mark)) error {
	before, after := s.frame.Frame()
	b := before
	flush := func(least int) error {
		if len(b) < least {
			return nil
		}
		_, err := out.Write(b)
		b = b[:0]
		return err
	}
	for feed, marks := range s.byFeed() {
		for _, m := range marks {
			m.at = out.n + len(b)
			told(feed, m)
			b = append(append(b, m.text...), '\n')
			if err := flush(1 << 18); err != nil {
				return err
			}
		}
	}
	b = append(b, after...)
	return flush(0)
}

// partial gives the document of what is newer than the complete one.
func (h *share) partial(until time.Time) []byte {
	doc := h.empty(feedsync.RSS)
	s := &feedsync.Sharing{Since: h.states.since, Until: until, Version: feedsync.SpecVersion}
	if !s.Since.IsZero() {
		s.Window = int(until.Sub(s.Since)/(24*time.Hour)) + 1
	}
	s.Related = append([]feedsync.Related{{Link: completeFile, Type: "complete", Until: h.states.since}}, h.aggregated(partialFile)...)
	doc.SetSharing(s)
	b, after := doc.Frame()
	for _, id := range slices.Sorted(maps.Keys(h.states.news)) {
		b = append(append(b, h.states.news[id].text...), '\n')
	}
	return append(b, after...)
}
