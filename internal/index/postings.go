package index

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Which entries have a word is read here from the tables that FTS5 keeps, without FTS5:
// to ask it takes several times longer than to read what it reads. The format is that of
// the comment at the head of fts5_index.c, with a version of its own. Where something is
// not as it should be nothing of it is believed, and FTS5 is asked after all.

const (
	// formatVersion is that of the format, partsRow the row with the list of its parts.
	formatVersion = 4
	partsRow      = 10
	// buriesMark stands in that list before what it has since there are graves.
	buriesMark = "\xff\x00\x00\x01"
	// mainTerm begins each word of the index itself, and not of one for prefixes.
	mainTerm = '0'
	// headSize is that of the head of a page: where on it the first id is that no word
	// stands before, and where the list of its words begins.
	headSize = 4
	maxParts = 2000
)

// idSet is a set of ids below some number, a bit for each. The nil set is empty.
type idSet []uint64

func (s idSet) has(id int64) bool { return s != nil && s[id/64]&(1<<(id%64)) != 0 }
func (s idSet) add(id int64)      { s[id/64] |= 1 << (id % 64) }

// both leaves in a set what is in another of the same size, too, or below an id.
func (s idSet) both(t idSet, from int64) {
	for i := from / 64; i < int64(len(s)); i++ {
		keep := t[i]
		if i == from/64 {
			keep |= 1<<(from%64) - 1
		}
		s[i] &= keep
	}
}

func (s idSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// part is one of several that the index is made of: each has words and their entries,
// sorted, on pages from the first to the last.
type part struct {
	id, first, last uint64
	// graves is on how many pages those of its entries are that were removed.
	graves uint64
	buried map[uint64]grave // those that have been read
}

// postings are the entries of words, at one moment of the file.
type postings struct {
	c     *conn
	next  int64 // id of the next entry: all are below
	parts []part
	known bool // what parts there are is
	ids   []int64

	// They read from the tables; tests have others.
	page  func(row int64) []byte                // nil for none
	start func(part uint64, term []byte) uint64 // the page that the term may be on, 0 for the first
}

func (s *session) postings() *postings {
	c := s.c
	p := &postings{c: c, next: s.next}
	p.page = func(row int64) []byte {
		r, ok := c.one("SELECT block FROM words_data WHERE id = ?", row)
		if !ok {
			return nil
		}
		return r.blob(0)
	}
	p.start = func(part uint64, term []byte) uint64 {
		r, ok := c.one("SELECT pgno >> 1 FROM words_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1", int64(part), term)
		if !ok {
			return 0
		}
		return uint64(r.int(0))
	}
	if r, ok := c.one("SELECT block, (SELECT v FROM words_config WHERE k = 'version') FROM words_data WHERE id = ?", partsRow); ok && r.int(1) == formatVersion {
		p.parts, p.known = partsOf(r.blob(0))
	}
	return p
}

// any gives the entries that have one of some words; ok is false if these are more than
// limit.
func (p *postings) any(words []string, limit int) (set idSet, ok bool) {
	set = make(idSet, p.next/64+1)
	count := 0
	for _, w := range words {
		for _, id := range p.of(w) {
			if !set.has(id) {
				set.add(id)
				count++
			}
		}
		if count > limit {
			return nil, false
		}
	}
	return set, true
}

// of gives the entries that have a word, until it is called again.
func (p *postings) of(word string) []int64 {
	if p.read(word) || p.c.err != nil {
		return p.ids
	}
	p.ids = p.ids[:0]
	r := p.c.query("SELECT rowid FROM words WHERE words MATCH ?", quoted(word))
	for r.next() {
		if id := r.int(0); id > 0 && id < p.next {
			p.ids = append(p.ids, id)
		} else {
			p.c.fail(errInconsistent)
		}
	}
	return p.ids
}

// read finds the entries of a word without FTS5. It reports false for what it does not
// understand.
func (p *postings) read(word string) bool {
	p.ids = p.ids[:0]
	if !p.known {
		return false
	}
	term := append(append(make([]byte, 0, 64), mainTerm), word...)
	for i, c := range term {
		if c >= 'A' && c <= 'Z' { // as its tokenizer does
			term[i] += 'a' - 'A'
		}
	}
	for i := range p.parts {
		if !p.readPart(&p.parts[i], term) {
			return false
		}
	}
	return true
}

// readPart adds what a part has of a term.
func (p *postings) readPart(in *part, term []byte) bool {
	at := max(p.start(in.id, term), in.first)
	if at > in.last {
		return false
	}
	l, ok := leafOf(p.page(pageRow(in.id, at)))
	if !ok {
		return false
	}
	docs, more, ok := l.find(term)
	if !ok || docs == nil {
		return ok
	}
	for last := uint64(0); ; {
		if last, ok = p.readIDs(in, docs, last); !ok {
			return false
		}
		if !more || at == in.last {
			return true
		}
		at++
		if l, ok = leafOf(p.page(pageRow(in.id, at))); !ok {
			return false
		}
		if docs, more, ok = l.rest(); !ok {
			return false
		}
	}
}

// readIDs adds the ids on a page: the first is whole, of others it is told how much they
// are above the one before. Those of a word ascend from page to page.
func (p *postings) readIDs(in *part, docs []byte, last uint64) (newLast uint64, ok bool) {
	for base := uint64(0); len(docs) > 0; base = last {
		n, size := number(docs)
		// A zero would say that the one before is to be removed; what has graves has none.
		if size == 0 || n == 0 || n >= uint64(p.next) {
			return 0, false
		}
		docs = docs[size:]
		if n += base; n <= last || n >= uint64(p.next) {
			return 0, false
		}
		last = n
		gone, ok := p.isBuried(in, n)
		if !ok {
			return 0, false
		}
		if !gone {
			p.ids = append(p.ids, int64(n))
		}
	}
	return last, true
}

// pageRow is the row of a page of a part.
func pageRow(part, page uint64) int64 { return int64(part<<37 | page) }

// graveRow is that of a page of what was removed.
func graveRow(part, page uint64) int64 { return pageRow(part+1<<16, page) }

// partsOf reads the list of parts.
func partsOf(b []byte) (parts []part, ok bool) {
	// Four bytes change with each change of the list.
	if len(b) < 4 || !bytes.HasPrefix(b[4:], []byte(buriesMark)) {
		return nil, false
	}
	r := numbers{rest: b[4+len(buriesMark):]}
	levels, total := r.next(), r.next()
	r.next() // how often it was written
	if levels > maxParts || total > maxParts {
		return nil, false
	}
	for range levels {
		r.next() // how many of them are being made one
		for n := r.next(); n > 0 && !r.failed; n-- {
			p := part{id: r.next(), first: r.next(), last: r.next()}
			r.next() // from which
			r.next() // to which commit it has entries
			p.graves = r.next()
			r.next() // how many are in them
			r.next() // and how many it has
			if p.id == 0 || p.id >= 1<<16 || p.last < p.first || p.last >= 1<<31 || p.graves >= 1<<31 {
				return nil, false
			}
			total--
			if p.first > 0 { // else all of it is in another one already
				parts = append(parts, p)
			}
		}
	}
	return parts, !r.failed && total == 0 && len(r.rest) == 0
}

// numbers reads numbers that follow one another.
type numbers struct {
	rest   []byte
	failed bool
}

func (r *numbers) next() uint64 {
	n, size := number(r.rest)
	r.rest, r.failed = r.rest[size:], r.failed || size == 0
	return n
}

// number reads a number as SQLite writes it, seven bits in a byte, the highest first; its
// size is 0 where it is cut off.
func number(b []byte) (n uint64, size int) {
	for i, c := range b {
		if i == 8 {
			return n<<8 | uint64(c), 9
		}
		n = n<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// leaf is a page with words and their entries.
type leaf struct {
	text  []byte // but for the list of words
	words []byte // where they are, each as how far behind the last one
}

func leafOf(page []byte) (leaf, bool) {
	if len(page) < headSize {
		return leaf{}, false
	}
	end := int(binary.BigEndian.Uint16(page[2:]))
	if end < headSize || end > len(page) {
		return leaf{}, false
	}
	return leaf{page[:end], page[end:]}, true
}

// rest gives the entries of the last word of the page before, and whether there may be
// more of them on the next.
func (l leaf) rest() (docs []byte, more, ok bool) {
	if len(l.words) == 0 {
		return l.text[headSize:], true, len(l.text) > headSize
	}
	to, size := number(l.words)
	if size == 0 || to < headSize || to > uint64(len(l.text)) {
		return nil, false, false
	}
	return l.text[headSize:to], false, true
}

// find gives the entries of a term, nil if it is not there.
func (l leaf) find(term []byte) (docs []byte, more, ok bool) {
	index := numbers{rest: l.words}
	var word []byte
	for at := uint64(0); len(index.rest) > 0; {
		first := at == 0
		if at += index.next(); index.failed || at < headSize || at > uint64(len(l.text)) {
			return nil, false, false
		}
		head := numbers{rest: l.text[at:]}
		same := uint64(0)
		if !first {
			same = head.next()
		}
		size := head.next()
		if head.failed || same > uint64(len(word)) || size > uint64(len(head.rest)) {
			return nil, false, false
		}
		word = append(word[:same], head.rest[:size]...)
		order := bytes.Compare(word, term)
		if order > 0 {
			return nil, false, true
		}
		if order < 0 {
			continue
		}
		from, to := uint64(len(l.text)-len(head.rest))+size, uint64(len(l.text))
		more = len(index.rest) == 0
		if !more {
			to = at + index.next()
		}
		if index.failed || to < from || to > uint64(len(l.text)) {
			return nil, false, false
		}
		return l.text[from:to:to], more, true
	}
	return nil, false, true
}

// grave is a page of entries that were removed: a table of their ids, each at the place
// that it gives itself, or behind it.
type grave []byte

// isBuried reports whether an entry was removed from a part.
func (p *postings) isBuried(in *part, id uint64) (gone, ok bool) {
	if in.graves == 0 {
		return false, true
	}
	at := id % in.graves
	g, read := in.buried[at]
	if !read {
		if g = p.page(graveRow(in.id, at)); len(g) < 16 {
			return false, false
		}
		if in.buried == nil {
			in.buried = map[uint64]grave{}
		}
		in.buried[at] = g
	}
	return g.has(id, id/in.graves), true
}

func (g grave) has(id, place uint64) bool {
	size := 8
	if g[0] == 4 {
		size = 4
	}
	slots := g[8:]
	if len(g) == 16 {
		slots = slots[:size]
	}
	for n := len(slots) / size; n > 0; n-- {
		slot := slots[int(place%uint64(len(slots)/size))*size:]
		var have uint64
		if size == 4 {
			have = uint64(binary.BigEndian.Uint32(slot))
		} else {
			have = binary.BigEndian.Uint64(slot)
		}
		if have == 0 || have == id {
			return have == id
		}
		place++
	}
	return false
}
