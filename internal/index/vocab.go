package index

import (
	"bytes"
	"slices"
	"strings"
)

// The vocabulary is all words there are, sorted, in blocks: a newline, and each word
// with a newline after it. To find the words that have a piece in them all blocks are
// searched, which takes milliseconds, where a row for each word would take seconds.
// Words whose entries are gone stay, and do no harm.

// blockSize is that of a block after it was split, in bytes; it is split at twice that.
const blockSize = 8 << 10

// addWords puts words, sorted, into the vocabulary.
func (c *conn) addWords(words []string) {
	var b block
	for _, w := range words {
		if b.words == "" || b.next != "" && w >= b.next {
			b.store(c)
			b.load(c, w)
		}
		if c.err != nil {
			return
		}
		if !strings.Contains(b.words, "\n"+w+"\n") {
			b.more = append(b.more, w)
		}
	}
	b.store(c)
}

// block is one that is worked on.
type block struct {
	id    int64
	words string
	next  string   // the first word of the next one, "" for none
	more  []string // words to be put into it, sorted
}

// load takes the block in which a word belongs.
func (b *block) load(c *conn, w string) {
	*b = block{words: "\n"}
	if r, ok := c.one("SELECT id, words FROM vocab WHERE first <= ? ORDER BY first DESC LIMIT 1", []byte(w)); ok {
		b.id, b.words = r.int(0), string(r.blob(1))
	}
	if r, ok := c.one("SELECT first FROM vocab WHERE first > ? ORDER BY first LIMIT 1", []byte(w)); ok {
		b.next = string(r.blob(0))
	}
}

// store writes the block if there is more in it, in several parts if it is large.
func (b *block) store(c *conn) {
	if len(b.more) == 0 {
		return
	}
	all := append(strings.Split(strings.Trim(b.words, "\n"), "\n"), b.more...)
	slices.Sort(all)
	all = slices.Compact(all)
	if all[0] == "" {
		all = all[1:]
	}
	size := 0
	for _, w := range all {
		size += len(w) + 1
	}
	limit := 2 * blockSize
	if size > limit {
		limit = blockSize
	}
	for first := true; len(all) > 0; first = false {
		var text strings.Builder
		text.WriteByte('\n')
		n := 0
		for n < len(all) && (n == 0 || text.Len()+len(all[n]) < limit) {
			text.WriteString(all[n])
			text.WriteByte('\n')
			n++
		}
		if first && b.id != 0 {
			c.exec("UPDATE vocab SET words = ? WHERE id = ?", []byte(text.String()), b.id)
		} else {
			c.exec("INSERT INTO vocab (first, words) VALUES (?, ?)", []byte(all[0]), []byte(text.String()))
		}
		all = all[n:]
	}
	b.more = nil
}

// wordsWith gives the words of the vocabulary that have a piece in them, at their
// beginning or end where the segment says so; ok is false where they are more than
// limit.
func (c *conn) wordsWith(s segment, limit int) (words []string, ok bool) {
	piece := []byte(s.text)
	if s.start {
		piece = append([]byte{'\n'}, piece...)
	}
	if s.end {
		piece = append(piece, '\n')
	}
	r := c.query("SELECT words FROM vocab")
	defer r.close()
	if s.start {
		// Sorted, they stand together.
		r.close()
		r = c.query("SELECT words FROM vocab WHERE first >= coalesce((SELECT max(first) FROM vocab WHERE first <= ?), x'') AND first <= ?", []byte(s.text), append([]byte(s.text), 0xff))
	}
	for r.next() {
		block := r.blob(0)
		for at := 0; ; {
			i := bytes.Index(block[at:], piece)
			if i < 0 {
				break
			}
			i += at
			// The word around it: from behind the last newline to the next.
			if s.start {
				i++
			}
			from := bytes.LastIndexByte(block[:i], '\n') + 1
			to := bytes.IndexByte(block[i:], '\n')
			if to < 0 {
				break
			}
			words = append(words, string(block[from:i+to]))
			if len(words) > limit {
				return words, false
			}
			at = i + to
		}
	}
	return words, true
}
