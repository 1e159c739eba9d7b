package entries

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/lektordir"
)

// Collecting says how entries are collected.
type Collecting struct {
	Order func(a, b *Record) int // what comes first
	// First is called for each one by one, as they are found, unless it is nil; what it
	// does not keep is left out before anything of it is read.
	First func(*Record) bool
	// Keep is called for each on all cores, and reads what Order needs; what it does not
	// keep is left out. It may be nil.
	Keep func(*Record) bool
	// Note is called for each that is kept, one by one and in no order, unless it is nil;
	// and Again before all of them are told once more.
	Note  func(*Record)
	Again func()
	// Most is how many are in memory at once; 0 stands for what the store has.
	Most int
}

// Collection is the entries of a selection in an order. Of many, few are in memory at a
// time, see [spill.List].
type Collection struct {
	*spill.List[*Record]
	s *Store
	c Collecting

	feeds  []*lektordir.Feed // what records have, by number less 1
	feedNo map[*lektordir.Feed]uint64
	hashes []string
	hashNo map[string]uint64
}

// collectedAtOnce is how many entries are looked at on all cores.
const collectedAtOnce = 512

// Collect gives the entries of a selection as [Store.Select] does, in order. Whoever has
// them closes them. Those that come from the file have what an index knows, and read the
// rest when they are asked. The error is the context's.
func (s *Store) Collect(ctx context.Context, sel Selection, c Collecting) (*Collection, error) {
	if sel.Newest > 0 {
		c.Most = math.MaxInt // they are in memory anyway
	}
	l := s.collection(c)
	if sel.Newest > 0 {
		found, err := s.Select(ctx, sel)
		if err == nil {
			err = l.add(ctx, found)
		}
		return l, err
	}
	var failed error
	var some []*Record
	flush := func() {
		if failed == nil {
			failed = l.add(ctx, some)
		}
		some = some[:0]
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
	if err = cmp.Or(err, failed); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// CollectThese is [Store.Collect] for records that come from elsewhere.
func (s *Store) CollectThese(ctx context.Context, list iter.Seq2[*Record, error], c Collecting) (*Collection, error) {
	l := s.collection(c)
	for some, err := range InParts(list, collectedAtOnce) {
		if err == nil {
			err = l.add(ctx, some)
		}
		if err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}

func (s *Store) collection(c Collecting) *Collection {
	c.Most = cmp.Or(c.Most, s.Most)
	l := &Collection{s: s, c: c}
	l.reset()
	return l
}

func (l *Collection) reset() {
	if l.List != nil {
		l.Close()
	}
	l.List = spill.New(spill.How[*Record]{Order: l.c.Order, Encode: l.encode, Decode: l.decode, Most: l.c.Most})
	l.feeds, l.feedNo, l.hashes, l.hashNo = nil, map[*lektordir.Feed]uint64{}, nil, map[string]uint64{}
	if l.c.Again != nil {
		l.c.Again()
	}
}

// add takes entries, and none of the list itself.
func (l *Collection) add(ctx context.Context, some []*Record) error {
	if l.c.First != nil {
		some = slices.DeleteFunc(some, func(r *Record) bool { return !l.c.First(r) })
	}
	kept, err := some, error(nil)
	if l.c.Keep != nil {
		kept, err = Filter(ctx, some, l.c.Keep)
	}
	for _, r := range kept {
		if l.c.Note != nil {
			l.c.Note(r)
		}
	}
	l.Add(kept...)
	return err
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
	out := spill.Encoder(b)
	feed := uint64(0)
	if r.feed != nil {
		feed = number(l.feedNo, &l.feeds, r.feed)
	}
	flags := uint64(r.Ref.Place) << 3
	if r.Ref.Bare {
		flags |= 1
	}
	if r.damaged {
		flags |= 2
	}
	if r.Mark {
		flags |= 4
	}
	for _, n := range []uint64{feed, number(l.hashNo, &l.hashes, r.Ref.Feed), flags, uint64(r.have & kept)} {
		out.Uint(n)
	}
	out.Text(r.Ref.Unique)
	out.Text(r.Ref.Info)
	e := &r.entry
	out.Text(e.Title)
	out.Text(e.Author)
	out.Text(e.Type)
	out.Text(e.Replaces)
	out.Time(e.PubDate.UTC())
	out.Texts(e.Categories)
	out.Uint(uint64(len(e.Enclosures)))
	for _, enc := range e.Enclosures {
		out.Text(enc.URL)
		out.Text(enc.Type)
		out.Int(enc.Length)
	}
	return out
}

func (l *Collection) decode(s string) *Record {
	in := spill.NewDecoder(s)
	r := &Record{s: l.s}
	if n := in.Uint(); n > 0 {
		r.feed = l.feeds[n-1]
	}
	r.Ref.Feed = l.hashes[in.Uint()-1]
	flags := in.Uint()
	r.Ref.Place, r.Ref.Bare, r.damaged, r.Mark = lektordir.Place(flags>>3), flags&1 != 0, flags&2 != 0, flags&4 != 0
	r.have = lektordir.Fields(in.Uint())
	r.Ref.Unique, r.Ref.Info = in.Text(), in.Text()
	e := &r.entry
	e.Title, e.Author, e.Type, e.Replaces = in.Text(), in.Text(), in.Text(), in.Text()
	e.PubDate, e.Categories = in.Time(), in.Texts()
	for range in.Uint() {
		e.Enclosures = append(e.Enclosures, lektordir.Enclosure{URL: in.Text(), Type: in.Text(), Length: in.Int()})
	}
	return r
}

// InParts gives so many of a list at once, the last ones before an error with it.
func InParts[T any](list iter.Seq2[T, error], n int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var part []T
		for r, err := range list {
			if err != nil {
				yield(part, err)
				return
			}
			if part = append(part, r); len(part) == n {
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// While gives a list until ctx ends, and then its cause as the error.
func While[T any](ctx context.Context, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
