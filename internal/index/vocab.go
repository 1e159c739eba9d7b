package index

import (
	"bytes"
	"slices"
	"strings"
)

// The vocabulary is all words there are: to find those that have a piece in them is what
// makes a query for a part of a word one for words. They are sorted, in blocks, each a
// list (see [list]); and of each three bytes that follow one another in a word it is
// known in which blocks these are, so that few blocks are read. What has come since the
// blocks were made is in one more list, the fresh one, which is looked through as a
// whole. It may have words that the blocks have too, and so the words of a handful of
// entries are added without a look at a block; when it has grown it is compared with
// them, and when it has grown more the blocks are made anew. Words whose entries are
// gone stay, and do no harm.

const (
	// blockSize is that of a list in a block, in bytes: two fit into a page.
	blockSize = 4000
	// grams is how many classes of three bytes there are.
	grams = 1 << 12
	// freshSize is how large the fresh list becomes, and a part of the blocks more.
	freshSize = 64 << 10
	freshPart = 16
	// freshHurry is how many times larger it becomes where somebody waits.
	freshHurry = 4
)

// list is sorted words, each as how many bytes it begins with as the one before does,
// and the rest. No byte of a word is less than firstByte, so the number ends the rest.
type list []byte

// firstByte is the least that stands in a word, which has no sign but letters, marks
// and numbers.
const firstByte = '0'

// lister makes a list.
type lister struct {
	list list
	last []byte
}

// add adds a word behind the last one; one that is the same is not added.
func (l *lister) add(word []byte) {
	n := 0
	for n < min(len(l.last), len(word), firstByte-1) && l.last[n] == word[n] {
		n++
	}
	if len(l.list) > 0 && bytes.Equal(l.last, word) {
		return
	}
	l.list = append(append(l.list, byte(n)), word[n:]...)
	l.last = append(l.last[:n], word[n:]...)
}

// reader reads a list.
type reader struct {
	rest list
	word []byte // until the next call of next
}

func (r *reader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	n, end := min(int(r.rest[0]), len(r.word)), 1
	for end < len(r.rest) && r.rest[end] >= firstByte {
		end++
	}
	r.word = append(r.word[:n], r.rest[1:end]...)
	r.rest = r.rest[end:]
	return true
}

// plain gives a list with a newline before and after each word.
func (l list) plain() []byte {
	text := make([]byte, 1, 3*len(l)+1)
	text[0] = '\n'
	for r := (reader{rest: l}); r.next(); {
		text = append(append(text, r.word...), '\n')
	}
	return text
}

// gram is the class of three bytes.
func gram(a, b, c byte) int {
	return int((uint32(a)<<16|uint32(b)<<8|uint32(c))*2654435761>>16) & (grams - 1)
}

// fresh gives the fresh list.
func (s *session) fresh() list {
	if r, ok := s.c.meta("fresh"); ok {
		return r.blob(0)
	}
	return nil
}

func (s *session) setFresh(l list) {
	s.c.setMeta("fresh", []byte(l))
}

// addWords puts words, sorted, into the vocabulary. Common ones it has.
func (s *session) addWords(words []string, common map[string]struct{}) {
	if len(words) == 0 {
		return // what there is may be long
	}
	var l lister
	r := reader{rest: s.fresh()}
	more := r.next()
	grown := false
	for _, w := range words {
		for more && string(r.word) < w {
			l.add(r.word)
			more = r.next()
		}
		if more && string(r.word) == w {
			continue
		}
		if _, ok := common[w]; !ok {
			l.add([]byte(w))
			grown = true
		}
	}
	if !grown {
		return
	}
	for ; more; more = r.next() {
		l.add(r.word)
	}
	last, _ := s.c.one("SELECT max(id) FROM vocab")
	if s.c.err != nil {
		return
	}
	limit := freshSize + int(last.int(0))*blockSize/freshPart
	// All blocks are read for it, so what was compared with them before does not count.
	compared, _ := s.c.meta("compared")
	known := 0
	if compared.values != nil {
		known = int(compared.int(0))
	}
	if len(l.list) > max(limit, known+limit/2) {
		most := limit
		if s.hurry {
			most *= freshHurry
		}
		if l.list = s.unknown(l.list); len(l.list) > most {
			s.rebuild(l.list)
			l.list = nil
		}
		s.c.setMeta("compared", len(l.list))
	}
	s.setFresh(l.list)
}

// blocks calls f for every block, in order.
func (s *session) blocks(f func(list)) {
	r := s.c.query("SELECT words FROM vocab ORDER BY id")
	for r.next() {
		f(r.blob(0))
	}
}

// unknown gives the words of a list that no block has.
func (s *session) unknown(l list) list {
	var out lister
	r := reader{rest: l}
	more := r.next()
	s.blocks(func(block list) {
		for b := (reader{rest: block}); more && b.next(); {
			order := bytes.Compare(r.word, b.word)
			for ; more && order < 0; order = bytes.Compare(r.word, b.word) {
				out.add(r.word)
				if more = r.next(); !more {
					return
				}
			}
			if order == 0 {
				more = r.next()
			}
		}
	})
	for ; more; more = r.next() {
		out.add(r.word)
	}
	return out.list
}

// rebuild makes the blocks anew, with the words of a list that they do not have.
func (s *session) rebuild(l list) {
	var blocks []list
	var where [grams][]byte // a bit for each block
	var out lister
	add := func(word []byte) {
		if len(out.list)+len(word) >= blockSize {
			blocks = append(blocks, out.list)
			out = lister{}
		}
		out.add(word)
		id := len(blocks)
		note := func(a, b, c byte) {
			bits := &where[gram(a, b, c)]
			for len(*bits) <= id/8 {
				*bits = append(*bits, 0)
			}
			(*bits)[id/8] |= 1 << (id % 8)
		}
		a, b := byte(0), byte('\n')
		for _, c := range word {
			if a != 0 {
				note(a, b, c)
			}
			a, b = b, c
		}
		note(a, b, '\n')
	}
	r := reader{rest: l}
	more := r.next()
	s.blocks(func(block list) {
		for b := (reader{rest: block}); b.next(); {
			for more && bytes.Compare(r.word, b.word) < 0 {
				add(r.word)
				more = r.next()
			}
			add(b.word)
		}
	})
	for ; more; more = r.next() {
		add(r.word)
	}
	if len(out.list) > 0 {
		blocks = append(blocks, out.list)
	}
	s.c.exec("DELETE FROM vocab")
	s.c.exec("DELETE FROM gram")
	for id, block := range blocks {
		s.c.exec("INSERT INTO vocab (id, words) VALUES (?, ?)", id, []byte(block))
	}
	for id, bits := range where {
		if len(bits) > 0 {
			s.c.exec("INSERT INTO gram (id, blocks) VALUES (?, ?)", id, bits)
		}
	}
}

// tidyWords leaves nothing in the fresh list.
func (s *session) tidyWords() {
	if l := s.unknown(s.fresh()); len(l) > 0 {
		s.rebuild(l)
	}
	s.setFresh(nil)
	s.c.setMeta("compared", 0)
}

// wordsWith gives the words of the vocabulary that have a piece in them, at their
// beginning or end where the segment says so; ok is false where they are more than
// limit.
func (s *session) wordsWith(seg segment, limit int) (words []string, ok bool) {
	piece := seg.text
	if seg.start {
		piece = "\n" + piece
	}
	if seg.end {
		piece += "\n"
	}
	ok = true
	search := func(l list) {
		if ok {
			words = wordsAround(words, l.plain(), []byte(piece), limit)
			ok = len(words) <= limit
		}
	}
	search(s.fresh())
	if in, known := s.blocksWith(piece); !known {
		// There is no end of words where the piece is so short: they are read one by one.
		r := s.c.query("SELECT words FROM vocab")
		defer r.close()
		for ok && r.next() {
			search(r.blob(0))
		}
	} else {
		for _, id := range in {
			if r, there := s.c.one("SELECT words FROM vocab WHERE id = ?", id); there {
				search(r.blob(0))
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words), ok
}

// blocksWith gives the blocks in which a piece may be; known is false where it is too
// short to tell.
func (s *session) blocksWith(piece string) (in []int, known bool) {
	if len(piece) < 3 {
		return nil, false
	}
	var all []byte
	for i := 0; i+3 <= len(piece); i++ {
		r, ok := s.c.one("SELECT blocks FROM gram WHERE id = ?", gram(piece[i], piece[i+1], piece[i+2]))
		if !ok {
			return nil, true
		}
		bits := r.blob(0)
		if i == 0 {
			all = slices.Clone(bits)
			continue
		}
		all = all[:min(len(all), len(bits))]
		for k := range all {
			all[k] &= bits[k]
		}
	}
	for k, b := range all {
		for bit := range 8 {
			if b&(1<<bit) != 0 {
				in = append(in, 8*k+bit)
			}
		}
	}
	return in, true
}

// wordsAround adds the words of a plain list in which a piece is, until they are more
// than limit.
func wordsAround(words []string, text, piece []byte, limit int) []string {
	for at := 0; len(words) <= limit; {
		i := bytes.Index(text[at:], piece)
		if i < 0 {
			break
		}
		// The word around it: from behind the last newline to the next.
		if i += at; piece[0] == '\n' {
			i++
		}
		from := bytes.LastIndexByte(text[:i], '\n') + 1
		to := i + bytes.IndexByte(text[i:], '\n')
		words = append(words, string(text[from:to]))
		at = to
	}
	return words
}

// vocabulary is all of it, for a check.
type vocabulary struct {
	firsts []string
	texts  [][]byte
	fresh  []byte
}

func (s *session) vocabulary() *vocabulary {
	v := &vocabulary{fresh: s.fresh().plain()}
	s.blocks(func(l list) {
		text := l.plain()
		first, _, _ := strings.Cut(string(text[1:]), "\n")
		v.firsts, v.texts = append(v.firsts, first), append(v.texts, text)
	})
	return v
}

// has reports whether a word is in it.
func (v *vocabulary) has(word string) bool {
	line := []byte("\n" + word + "\n")
	i, found := slices.BinarySearch(v.firsts, word)
	return found || i > 0 && bytes.Contains(v.texts[i-1], line) || bytes.Contains(v.fresh, line)
}
