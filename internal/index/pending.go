package index

import (
	"bytes"
	"strings"
)

// To put an entry's words into FTS5 costs more than to read the entry, and for a hundred
// entries little less than for a thousand. So the entries that a query finds to have come
// wait with their texts, which queries look through, until they are many.

// pendingSize is how many bytes of texts wait before more are put where they belong.
const pendingSize = 2 << 20

// waiting gives the texts of the entries that wait, as [doc] has them, by id.
func (s *session) waiting() map[int64][]byte {
	if s.pending == nil {
		s.pending = map[int64][]byte{}
		for r := s.c.query("SELECT id, folded FROM pending"); r.next(); {
			s.pending[r.int(0)] = r.blob(1)
		}
	}
	return s.pending
}

// room reports whether so many more entries can wait.
func (u *update) room(more int) bool {
	if !u.deadline.IsZero() && more <= u.x.o.Pending {
		r, ok := u.c.one("SELECT count(*), coalesce(sum(length(folded)), 0) FROM pending")
		return ok && int(r.int(0))+more <= u.x.o.Pending && r.int(1) <= pendingSize
	}
	return false
}

// admit puts what waits into words.
func (u *update) admit() error {
	r := u.c.query("SELECT id, folded FROM pending ORDER BY id")
	type text struct {
		id     int64
		folded string
	}
	var all []text
	for r.next() {
		all = append(all, text{r.int(0), string(r.blob(1))})
	}
	if len(all) == 0 {
		return u.c.err
	}
	if u.common == nil {
		b := newBag(nil)
		u.chooseCommon(func(yield func([]string) bool) {
			for _, t := range all {
				words, _ := b.of(t.folded)
				if !yield(words) {
					return
				}
			}
		})
	}
	b := newBag(u.common)
	for _, t := range all {
		words, text := b.of(t.folded)
		u.addText(t.id, words, text)
	}
	u.c.exec("DELETE FROM pending")
	u.pending = nil
	return u.c.err
}

// addText puts the words of an entry into the index.
func (u *update) addText(id int64, words []string, text string) {
	u.c.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, text)
	for _, w := range words {
		if _, ok := u.words[w]; !ok {
			u.words[strings.Clone(w)] = struct{}{} // and not all that it is a part of
		}
	}
}

// waits looks for a needle in what waits.
func (n *needle) waits(text string) {
	for id, folded := range n.s.waiting() {
		if bytes.Contains(folded, []byte(text)) {
			n.found(id)
		}
	}
}
