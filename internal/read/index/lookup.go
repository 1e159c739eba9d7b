package index

import (
	"math/bits"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/protocol/query"
)

// lookup is a piece of text that a query searches for, with the set of entries that may have it.
// An entry outside the set does not have the text; one inside may have it, and has it if exact.
type lookup struct {
	v *View
	// void means that the index cannot decide for any entry; exact that the entries of set have the
	// text itself, and not only its words.
	void, exact bool
	set         idSet // entries that are found
	count       int
}

const (
	// manyWords is the maximum number of words of the vocabulary that are looked up for a segment
	// if other segments of the text narrow the result.
	manyWords = 64
	// tooManyWords is the number of words from which looking them up takes longer than reading
	// entries.
	tooManyWords = 1000
)

// idSet is a set of ids below some number, a bit for each. The nil set is empty.
type idSet []uint64

// In a damaged file an id can be any number.

func (s idSet) has(id int64) bool {
	return uint64(id)/64 < uint64(len(s)) && s[id/64]&(1<<(id%64)) != 0
}

func (s idSet) add(id int64) {
	if uint64(id)/64 < uint64(len(s)) {
		s[id/64] |= 1 << (id % 64)
	}
}

// both removes the ids that are not in t, a set of the same size. It leaves ids below from.
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

// lookup looks a folded text up, once.
func (v *View) lookup(text string) *lookup {
	n := v.lookups[text]
	if n == nil {
		n = &lookup{v: v}
		v.lookups[text] = n
		n.find(text)
		n.count = n.set.count()
	}
	return n
}

// find looks the words up.
func (l *lookup) find(text string) {
	var list []segment
	segments(text, true, func(s segment) { list = append(list, s) })
	l.void = true
	l.exact = len(list) == 1 && list[0].text == text
	most := manyWords
	if len(list) == 1 {
		most = tooManyWords
	}
	words := make([][]string, len(list))
	for i, s := range list {
		needed, ok := l.segment(s, most)
		if len(needed) == 1 {
			words[i] = needed[0]
		}
		for _, either := range needed {
			l.narrow(either, 0)
		}
		l.exact = l.exact && ok // the other words will do
	}
	// Entries with ids below from were indexed before the pairs, and have none.
	if pairs, from := l.neighbours(list, words); !l.void {
		for _, either := range pairs {
			l.narrow(either, from)
		}
	}
}

// narrow removes the entries with ids of at least from that have none of the words.
func (l *lookup) narrow(either []string, from int64) {
	set := make(idSet, l.v.size/64+1)
	for _, w := range either {
		l.v.s.withWord(w, set.add)
	}
	if l.void {
		l.set, l.void = set, false
	} else {
		l.set.both(set, from)
	}
}

// withWord calls f with the ids of the entries that have a word, in ascending order.
func (s *session) withWord(word string, f func(id int64)) {
	for r := s.c.query("SELECT rowid FROM words WHERE words MATCH ?", `"`+word+`"`); r.next(); {
		f(r.int(0))
	}
}

// segment returns lists of words. An entry with the segment has at least one word of each list. ok
// is false if a list would have more than most words.
func (l *lookup) segment(s segment, most int) (needed [][]string, ok bool) {
	count := utf8.RuneCountInString(s.text)
	switch {
	case s.class == dense && count >= 3:
		l.exact = l.exact && count == 3
		pieces(s, func(p string) { needed = append(needed, []string{p}) })
		return needed, true
	case s.class == dense:
		// Beside it are more of the same in the same words.
		s.start, s.end = false, false
	case count > longWord/2:
		// It may be cut apart.
		l.exact, s.end = false, false
		s.text = string([]rune(s.text)[:longWord/2])
	}
	if s.start && s.end {
		return [][]string{{s.text}}, true
	}
	words, ok := l.v.wordsWith(s, most)
	if !ok {
		return nil, false
	}
	return [][]string{words}, true
}

// neighbours returns lists of words for pairs of adjacent segments. An entry with the text has at
// least one word of each list, if its id is at least from; older entries have no pairs.
func (l *lookup) neighbours(list []segment, words [][]string) (all [][]string, from int64) {
	if len(list) < 2 {
		return nil, 0
	}
	r, ok := l.v.s.c.meta("paired")
	if !ok {
		return nil, 0
	}
	from = max(r.int(0), 0)
	common, _ := l.v.s.c.meta("common")
	set := wordSet(string(common.blob(0)))
	for i := 1; i < len(list); i++ {
		a, b := words[i-1], words[i]
		if list[i-1].class != alpha || list[i].class != alpha || len(a) == 0 || len(b) == 0 ||
			len(a)*len(b) > manyWords {
			continue
		}
		if utf8.RuneCountInString(list[i-1].text) > longWord/2 || utf8.RuneCountInString(list[i].text) > longWord/2 {
			continue
		}
		var both []string
		for _, x := range a {
			for _, y := range b {
				if set[x] && set[y] {
					both = append(both, pairOf(x, y))
				}
			}
		}
		if len(both) == len(a)*len(b) {
			all = append(all, both)
		}
	}
	return all, from
}

// has reports whether an entry has the text.
func (l *lookup) has(id int64) query.Verdict {
	switch {
	case l.void:
		return query.Maybe
	case !l.set.has(id):
		return query.No
	case l.exact:
		return query.Yes
	}
	return query.Maybe
}
