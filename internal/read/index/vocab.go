package index

import (
	"bytes"
	"maps"
	"slices"
)

// The vocabulary is the set of all words. It turns a query for a part of a word into a query for
// the words that contain the part. The words are in blocks, each a [list]. For each three
// consecutive bytes of a word, the table gram has the blocks that contain them, so that few blocks
// are read. New words go to the end of the last block, and into blocks after it. Words whose
// entries are gone stay, and do no harm.

const (
	// blockSize is that of a list in a block, in bytes: two fit into a page.
	blockSize = 4000
	// grams is how many classes of three bytes there are.
	grams = 1 << 12
)

// list is a list of words. Each word is the number of bytes that it shares with the beginning of
// the word before it, and the rest. No byte of a word is less than firstByte, so the number ends
// the rest.
type list []byte

// firstByte is the smallest byte in a word: words consist of letters, marks and numbers.
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

// plain returns a list with a newline before and after each word.
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

// known removes from words those that the vocabulary has, and returns the last block.
func (s *session) known(words map[string]struct{}) (id int64, last lister) {
	r := s.c.query("SELECT id, words FROM vocab ORDER BY id")
	for r.next() {
		id = r.int(0)
		block := reader{rest: r.blob(1)}
		for block.next() {
			//lint:ignore S1033 few words are found, and a lookup takes half the time of a deletion
			if _, found := words[string(block.word)]; found {
				delete(words, string(block.word))
			}
		}
		last = lister{list: r.blob(1), last: block.word}
	}
	return id, last
}

// addWords puts words into the vocabulary. It removes those that are there already.
func (s *session) addWords(words map[string]struct{}) {
	if len(words) == 0 {
		return
	}
	id, block := s.known(words)
	if len(words) == 0 || s.c.err != nil {
		return
	}
	var where [grams][]byte // a bit for each block
	for r := s.c.query("SELECT id, blocks FROM gram"); r.next(); {
		if n := r.int(0); n >= 0 && n < grams {
			where[n] = slices.Clone(r.blob(1))
		}
	}
	changed := map[int]bool{}
	note := func(a, b, c byte) {
		n := gram(a, b, c)
		bits := &where[n]
		for int64(len(*bits)) <= id/8 {
			*bits = append(*bits, 0)
		}
		if (*bits)[id/8]&(1<<(id%8)) == 0 {
			(*bits)[id/8] |= 1 << (id % 8)
			changed[n] = true
		}
	}
	write := func() { s.c.exec("INSERT OR REPLACE INTO vocab (id, words) VALUES (?, ?)", id, []byte(block.list)) }
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if len(block.list)+len(word) >= blockSize {
			write()
			block = lister{}
			id++
		}
		block.add([]byte(word))
		a, b := byte(0), byte('\n')
		for _, c := range []byte(word) {
			if a != 0 {
				note(a, b, c)
			}
			a, b = b, c
		}
		note(a, b, '\n')
	}
	write()
	for n := range changed {
		s.c.exec("INSERT OR REPLACE INTO gram (id, blocks) VALUES (?, ?)", n, where[n])
	}
}

// wordsWith returns the words of the vocabulary that have a piece in them, at their
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

// blocksWith returns the blocks that may have a piece; known is false if the piece is shorter than
// 3 bytes.
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
