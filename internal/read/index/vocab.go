package index

import "bytes"

// The vocabulary is the set of all words. It turns a query for a part of a word into a query for the words that
// contain the part. Each row of the table vocab is a text with a newline before and after each word. New words go to
// the end of the last row, and into rows after it. Words whose entries are gone stay, and do no harm.

// rowSize is the size in bytes from which on a row of the vocabulary takes no more words.
const rowSize = 32 << 10

// forgetKnown removes from words those that the vocabulary has. It returns the last row, and its id.
func forgetKnown[V any](s *session, words map[string]V) (id int64, last []byte) {
	for r := s.c.query("SELECT id, words FROM vocab ORDER BY id"); r.next(); {
		id, last = r.int(0), r.blob(1)
		for word := range bytes.SplitSeq(last, []byte{'\n'}) {
			//lint:ignore S1033 few words are found, and a lookup takes half the time of a deletion
			if _, found := words[string(word)]; found {
				delete(words, string(word))
			}
		}
	}
	return id, last
}

// addWords puts words into the vocabulary. It removes those that are there already.
func (s *session) addWords(words map[string]struct{}) {
	if len(words) == 0 {
		return
	}
	id, row := forgetKnown(s, words)
	write := func() { s.c.exec("INSERT OR REPLACE INTO vocab (id, words) VALUES (?, ?)", id, row) }
	for word := range words {
		if len(row) >= rowSize {
			write()
			id, row = id+1, nil
		}
		if len(row) == 0 {
			row = append(row, '\n')
		}
		row = append(append(row, word...), '\n')
	}
	if len(words) > 0 {
		write()
	}
}

// wordsWith returns the words of the vocabulary that have a piece in them, at their beginning or end if the segment
// says so; ok is false if they are more than limit.
func (v *View) wordsWith(seg segment, limit int) (words []string, ok bool) {
	piece := []byte(seg.text)
	if seg.start {
		piece = append([]byte{'\n'}, piece...)
	}
	if seg.end {
		piece = append(piece, '\n')
	}
	if v.vocab == nil {
		for r := v.s.c.query("SELECT words FROM vocab"); r.next(); {
			v.vocab = append(v.vocab, r.blob(0))
		}
	}
	for _, row := range v.vocab {
		if words = wordsAround(words, row, piece, limit); len(words) > limit {
			return words, false
		}
	}
	return words, true
}

// wordsAround adds the words of a row that have a piece, until they are more than limit.
func wordsAround(words []string, row, piece []byte, limit int) []string {
	text := bytes.Trim(piece, "\n") // is found sooner, as newlines are frequent
	for len(words) <= limit {
		i := bytes.Index(row, text)
		if i < 0 {
			break
		}
		begin := bytes.LastIndexByte(row[:i], '\n') + 1
		word, _, _ := bytes.Cut(row[begin:], []byte{'\n'})
		end := begin + len(word)
		if bytes.Contains(row[max(begin-1, 0):min(end+1, len(row))], piece) {
			words = append(words, string(word))
		}
		row = row[end:]
	}
	return words
}
