package entries

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// Collecting says how entries are collected.
type Collecting struct {
	Order func(a, b *Record) int // what comes first
	// Keep is called for each on all cores, and reads what Order needs; what it does not
	// keep is left out.
	Keep func(*Record) bool
	// Note is called for each that is kept, one by one and in no order, unless it is nil;
	// and Again before all of them are told once more.
	Note  func(*Record)
	Again func()
	// Most is how many are in memory at once; 0 stands for a few thousand.
	Most int
}

// Collection is the entries of a selection in an order. Of many, few are in memory at a
// time: the others lie in a file that has no name, sorted in parts.
type Collection struct {
	s     *Store
	c     Collecting
	total int
	list  []*Record // the last part, which is in memory
	parts []span    // those in the file, each in order
	file  *os.File  // nil for none
	end   int64

	feeds  []*lektordir.Feed // what records have, by number less 1
	feedNo map[*lektordir.Feed]uint64
	hashes []string
	hashNo map[string]uint64
}

// span is a part of the file.
type span struct{ from, to int64 }

// mostCollected is how many entries a collection has in memory, and collectedAtOnce how
// many are looked at on all cores.
const (
	mostCollected   = 4096
	collectedAtOnce = 512
)

// Collect gives the entries of a selection as [Store.Select] does, in order. Whoever has
// them closes them. The error is the context's, or that of the file.
func (s *Store) Collect(ctx context.Context, sel Selection, c Collecting) (*Collection, error) {
	if c.Most == 0 {
		c.Most = mostCollected
	}
	l := &Collection{s: s, c: c}
	l.reset()
	if sel.Newest > 0 {
		found, err := s.Select(ctx, sel)
		if err == nil {
			err = l.add(ctx, found)
		}
		slices.SortStableFunc(l.list, c.Order)
		return l, err
	}
	var failed error
	var some []*Record
	flush := func() {
		if failed == nil {
			failed = l.add(ctx, some)
		}
		some = some[:0]
		if failed == nil && len(l.list) >= l.c.Most {
			l.spill()
		}
	}
	err := s.each(ctx, sel, taker{
		take: func(r *Record) {
			if some = append(some, r); len(some) >= collectedAtOnce {
				flush()
			}
		},
		again: func() {
			some = nil
			l.reset()
		},
	})
	flush()
	if err == nil {
		err = failed
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	slices.SortStableFunc(l.list, c.Order)
	return l, nil
}

func (l *Collection) reset() {
	l.total, l.list, l.parts, l.end = 0, nil, nil, 0
	l.feeds, l.feedNo, l.hashes, l.hashNo = nil, map[*lektordir.Feed]uint64{}, nil, map[string]uint64{}
	if l.c.Again != nil {
		l.c.Again()
	}
}

// add takes entries, and none of the list itself.
func (l *Collection) add(ctx context.Context, some []*Record) error {
	kept, err := Filter(ctx, some, l.c.Keep)
	for _, r := range kept {
		if l.c.Note != nil {
			l.c.Note(r)
		}
	}
	l.list = append(l.list, kept...)
	l.total += len(kept)
	return err
}

// Len is how many entries there are.
func (l *Collection) Len() int { return l.total }

// Close gives the file back.
func (l *Collection) Close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// spill brings what is in memory to the file. Where there can be none, it stays.
func (l *Collection) spill() {
	if l.file == nil {
		f, err := os.CreateTemp("", "lektor-list-")
		if err != nil {
			l.c.Most = math.MaxInt
			return
		}
		_ = os.Remove(f.Name())
		l.file = f
	}
	slices.SortStableFunc(l.list, l.c.Order)
	w := bufio.NewWriterSize(io.NewOffsetWriter(l.file, l.end), 64<<10)
	var b, size []byte
	part := span{from: l.end, to: l.end}
	for _, r := range l.list {
		b = l.encode(b[:0], r)
		size = binary.AppendUvarint(size[:0], uint64(len(b)))
		_, _ = w.Write(size)
		_, _ = w.Write(b)
		part.to += int64(len(size) + len(b))
	}
	if err := w.Flush(); err != nil {
		// A disk that is full: what is in memory can stay there.
		l.c.Most = math.MaxInt
		return
	}
	l.parts, l.end = append(l.parts, part), part.to
	clear(l.list)
	l.list = l.list[:0]
}

// All yields the entries in order. Records are others each time, and those of the file
// have what an index knows, and read the rest when they are asked. After an error,
// which is of the file, there are no more.
func (l *Collection) All() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		q := &heads{order: l.c.Order}
		begin := func(h *head) error {
			err := h.next(l)
			if h.record != nil {
				heap.Push(q, h)
			}
			return err
		}
		for i, p := range l.parts {
			h := &head{part: i, r: bufio.NewReaderSize(io.NewSectionReader(l.file, p.from, p.to-p.from), 8<<10)}
			if err := begin(h); err != nil {
				yield(nil, err)
				return
			}
		}
		_ = begin(&head{part: len(l.parts), list: l.list}) // which is in memory
		for q.Len() > 0 {
			h := q.list[0]
			if !yield(h.record, nil) {
				return
			}
			switch err := h.next(l); {
			case err != nil:
				yield(nil, err)
				return
			case h.record == nil:
				heap.Pop(q)
			default:
				heap.Fix(q, 0)
			}
		}
	}
}

// heads is a heap of those that have an entry, whose first is that of the first one in
// the order, and of equal ones that of the earlier part. See container/heap.
type heads struct {
	list  []*head
	order func(a, b *Record) int
}

func (q *heads) Len() int      { return len(q.list) }
func (q *heads) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *heads) Push(h any)    { q.list = append(q.list, h.(*head)) }

func (q *heads) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	return cmp.Or(q.order(a.record, b.record), cmp.Compare(a.part, b.part)) < 0
}

func (q *heads) Pop() any {
	h := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return h
}

// head is the first entry of a part that was not yielded yet.
type head struct {
	part   int
	record *Record // nil at the end
	r      *bufio.Reader
	list   []*Record // instead of r
	buf    []byte
}

func (h *head) next(l *Collection) error {
	h.record = nil
	if h.r == nil {
		if len(h.list) > 0 {
			h.record, h.list = h.list[0], h.list[1:]
		}
		return nil
	}
	size, err := binary.ReadUvarint(h.r)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		h.buf = slices.Grow(h.buf[:0], int(size))[:size]
		_, err = io.ReadFull(h.r, h.buf)
	}
	if err != nil {
		return err
	}
	h.record = l.decode(string(h.buf))
	return nil
}

// kept is what a record has in the file: what an index knows of it. The rest is read
// again.
const kept = lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldType |
	lektordir.FieldCategories | lektordir.FieldEnclosures | lektordir.FieldReplaces

func number[T comparable](of map[T]uint64, list *[]T, v T) uint64 {
	n, ok := of[v]
	if !ok {
		*list = append(*list, v)
		n = uint64(len(*list))
		of[v] = n
	}
	return n
}

func (l *Collection) encode(b []byte, r *Record) []byte {
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	feed := uint64(0)
	if r.feed != nil {
		feed = number(l.feedNo, &l.feeds, r.feed)
	}
	flags := uint64(r.Ref.Place) << 2
	if r.Ref.Bare {
		flags |= 1
	}
	if r.damaged {
		flags |= 2
	}
	for _, n := range []uint64{feed, number(l.hashNo, &l.hashes, r.Ref.Feed), flags, uint64(r.have & kept)} {
		b = binary.AppendUvarint(b, n)
	}
	text(r.Ref.Unique)
	text(r.Ref.Info)
	e := &r.entry
	text(e.Title)
	text(e.Author)
	text(e.Type)
	text(e.Replaces)
	if e.PubDate.IsZero() {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(binary.AppendVarint(append(b, 1), e.PubDate.Unix()), uint64(e.PubDate.Nanosecond()))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Categories)))
	for _, c := range e.Categories {
		text(c)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Enclosures)))
	for _, enc := range e.Enclosures {
		text(enc.URL)
		text(enc.Type)
		b = binary.AppendVarint(b, enc.Length)
	}
	return b
}

// decode reads what encode wrote; nobody else can have written it.
func (l *Collection) decode(s string) *Record {
	in := strings.NewReader(s)
	read := func() uint64 {
		n, _ := binary.ReadUvarint(in)
		return n
	}
	signed := func() int64 {
		n, _ := binary.ReadVarint(in)
		return n
	}
	text := func() string {
		n := int(read())
		at := len(s) - in.Len()
		_, _ = in.Seek(int64(n), io.SeekCurrent)
		return s[at : at+n]
	}
	r := &Record{s: l.s}
	if n := read(); n > 0 {
		r.feed = l.feeds[n-1]
	}
	r.Ref.Feed = l.hashes[read()-1]
	flags := read()
	r.Ref.Place, r.Ref.Bare, r.damaged = lektordir.Place(flags>>2), flags&1 != 0, flags&2 != 0
	r.have = lektordir.Fields(read())
	r.Ref.Unique, r.Ref.Info = text(), text()
	e := &r.entry
	e.Title, e.Author, e.Type, e.Replaces = text(), text(), text(), text()
	if read() == 1 {
		sec := signed()
		e.PubDate = time.Unix(sec, int64(read())).UTC()
	}
	for range read() {
		e.Categories = append(e.Categories, text())
	}
	for range read() {
		enc := lektordir.Enclosure{URL: text(), Type: text()}
		enc.Length = signed()
		e.Enclosures = append(e.Enclosures, enc)
	}
	return r
}
