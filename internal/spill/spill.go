// Package spill puts into order what may be more than fits in memory.
package spill

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// Most is how many values a list has in memory where nothing else is said.
const Most = 4096

// List is values in an order. Of many, few are in memory at a time: the others lie in a
// file that has no name, sorted in parts. Equal ones stand in the order in which they
// came. Where there can be no file, or the disk is full, all are in memory. It is used
// by one goroutine at a time.
type List[T any] struct {
	how    How[T]
	total  int
	last   []T // the last part, which is in memory
	sorted bool
	parts  []span   // those in the file, each in order
	file   *os.File // nil for none
	end    int64
	whole  bool // nothing can be put into the file any more
}

// How says how values are ordered, and how they are written to the file.
type How[T any] struct {
	Order  func(a, b T) int // what comes first
	Encode func(b []byte, v T) []byte
	Decode func(s string) T // reads what Encode wrote; nobody else can have written it
	Most   int              // how many are in memory at once; 0 stands for [Most]
}

// span is a part of the file.
type span struct{ from, to int64 }

// New gives a list with nothing in it. Whoever has it closes it.
func New[T any](how How[T]) *List[T] {
	if how.Most == 0 {
		how.Most = Most
	}
	return &List[T]{how: how}
}

// Len is how many values there are.
func (l *List[T]) Len() int { return l.total }

// Close gives the file back.
func (l *List[T]) Close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// Add adds values.
func (l *List[T]) Add(some ...T) {
	l.last, l.sorted = append(l.last, some...), false
	l.total += len(some)
	if len(l.last) >= l.how.Most && !l.whole {
		l.spill()
	}
}

// sort puts into order what is in memory.
func (l *List[T]) sort() {
	if !l.sorted {
		slices.SortStableFunc(l.last, l.how.Order)
		l.sorted = true
	}
}

// spill brings what is in memory to the file. Where there can be none, it stays.
func (l *List[T]) spill() {
	if l.file == nil {
		if l.file = noName(); l.file == nil {
			l.whole = true
			return
		}
	}
	l.sort()
	w := bufio.NewWriterSize(io.NewOffsetWriter(l.file, l.end), 64<<10)
	var b, size []byte
	part := span{from: l.end, to: l.end}
	for _, v := range l.last {
		b = l.how.Encode(b[:0], v)
		size = binary.AppendUvarint(size[:0], uint64(len(b)))
		_, _ = w.Write(size)
		_, _ = w.Write(b)
		part.to += int64(len(size) + len(b))
	}
	if err := w.Flush(); err != nil {
		// A disk that is full: what is in memory can stay there.
		l.whole = true
		return
	}
	l.parts, l.end = append(l.parts, part), part.to
	clear(l.last)
	l.last = l.last[:0]
}

// All yields the values in order; those of the file are others each time. After an
// error, which is of the file, there are no more. Nothing is added meanwhile.
func (l *List[T]) All() iter.Seq2[T, error] { return l.From(0) }

// From is [List.All] without the first n.
func (l *List[T]) From(n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		l.sort()
		if len(l.parts) == 0 {
			for _, v := range l.last[min(n, len(l.last)):] {
				if !yield(v, nil) {
					return
				}
			}
			return
		}
		q := &heads[T]{order: l.how.Order}
		begin := func(h *head[T]) error {
			err := h.next(l)
			if h.there {
				heap.Push(q, h)
			}
			return err
		}
		for i, p := range l.parts {
			h := &head[T]{part: i, r: bufio.NewReaderSize(io.NewSectionReader(l.file, p.from, p.to-p.from), 8<<10)}
			if err := begin(h); err != nil {
				yield(none, err)
				return
			}
		}
		_ = begin(&head[T]{part: len(l.parts), list: l.last}) // which is in memory
		for ; q.Len() > 0; n-- {
			h := q.list[0]
			if n <= 0 && !yield(h.value, nil) {
				return
			}
			switch err := h.next(l); {
			case err != nil:
				yield(none, err)
				return
			case !h.there:
				heap.Pop(q)
			default:
				heap.Fix(q, 0)
			}
		}
	}
}

// heads is a heap of those that have a value, whose first is that of the first one in
// the order, and of equal ones that of the earlier part. See container/heap.
type heads[T any] struct {
	list  []*head[T]
	order func(a, b T) int
}

func (q *heads[T]) Len() int      { return len(q.list) }
func (q *heads[T]) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *heads[T]) Push(h any)    { q.list = append(q.list, h.(*head[T])) }

func (q *heads[T]) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	return cmp.Or(q.order(a.value, b.value), cmp.Compare(a.part, b.part)) < 0
}

func (q *heads[T]) Pop() any {
	h := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return h
}

// head is the first value of a part that was not yielded yet.
type head[T any] struct {
	part  int
	value T
	there bool // false at the end
	r     *bufio.Reader
	list  []T // instead of r
	buf   []byte
}

func (h *head[T]) next(l *List[T]) error {
	var none T
	h.value, h.there = none, false
	if h.r == nil {
		if len(h.list) > 0 {
			h.value, h.list, h.there = h.list[0], h.list[1:], true
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
	h.value, h.there = l.how.Decode(string(h.buf)), true
	return nil
}

// Encoder appends values to what is written of one.
type Encoder []byte

// Text appends a text, Texts several, Uint a number, Int one that may be negative, Bool a
// truth, and Time a time, of which it tells whether it is in UTC or local.
func (e *Encoder) Text(s string) {
	*e = append(binary.AppendUvarint(*e, uint64(len(s))), s...)
}

// Uint is described at [Encoder.Text].
func (e *Encoder) Uint(n uint64) { *e = binary.AppendUvarint(*e, n) }

// Int is described at [Encoder.Text].
func (e *Encoder) Int(n int64) { *e = binary.AppendVarint(*e, n) }

// Bool is described at [Encoder.Text].
func (e *Encoder) Bool(b bool) {
	n := byte(0)
	if b {
		n = 1
	}
	*e = append(*e, n)
}

// Texts is described at [Encoder.Text].
func (e *Encoder) Texts(list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.Text(s)
	}
}

// Time is described at [Encoder.Text].
func (e *Encoder) Time(t time.Time) {
	e.Int(t.Unix())
	e.Uint(uint64(t.Nanosecond()))
	e.Bool(t.Location() == time.UTC)
}

// Decoder reads what an [Encoder] has appended, in the same order.
type Decoder struct {
	s  string
	in strings.Reader
}

// NewDecoder gives one for what was written of a value.
func NewDecoder(s string) *Decoder {
	d := &Decoder{s: s}
	d.in.Reset(s)
	return d
}

// Text gives a part of what was written.
func (d *Decoder) Text() string {
	n := int(d.Uint())
	at := len(d.s) - d.in.Len()
	_, _ = d.in.Seek(int64(n), io.SeekCurrent)
	return d.s[at : at+n]
}

// Uint reads a number.
func (d *Decoder) Uint() uint64 {
	n, _ := binary.ReadUvarint(&d.in)
	return n
}

// Int reads a number that may be negative.
func (d *Decoder) Int() int64 {
	n, _ := binary.ReadVarint(&d.in)
	return n
}

// Bool reads a truth.
func (d *Decoder) Bool() bool {
	b, _ := d.in.ReadByte()
	return b != 0
}

// Texts reads several texts, nil where there are none.
func (d *Decoder) Texts() (list []string) {
	for range d.Uint() {
		list = append(list, d.Text())
	}
	return list
}

// Time reads a time.
func (d *Decoder) Time() time.Time {
	sec, nsec := d.Int(), d.Uint()
	t := time.Unix(sec, int64(nsec))
	if d.Bool() {
		t = t.UTC()
	}
	return t
}
