package index

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/query"
)

// needle is a piece of text that a query looks for, and what the index knows of which
// entries have it. What it says no to has it not; yes it says only where it knows.
type needle struct {
	s *session
	// void tells that the index knows nothing; exact that what it finds has the needle,
	// and not only the words of it.
	void, exact bool
	bits        []uint64 // ids that are found
	count       int
	// floor is the least id that is decided; the rest is found when it is asked for.
	floor int64
	next  []search // those that are to find it, nil where nothing is left
	begun bool     // the first ids are found
}

// search is a query of the index for the ids from one on, below those of the last.
type search struct {
	match string
	from  int64
}

// firstIds is how many ids are found at first; then all. They come in one row, as to give
// rows takes longer than to find what is in them.
const firstIds = 1024

const (
	// manyWords is how many words of the vocabulary may stand for a piece of one; they
	// become one query of the index.
	manyWords = 64
	// tooManyWords is where that takes longer than to read entries.
	tooManyWords = 20000
	// manyFound is how many entries are looked for where there is no end in sight; most
	// queries want the newest, and these are found by reading the newest.
	manyFound = 200000
)

// needle gives what is known of a folded text.
func (v *View) needle(text string) *needle {
	n := v.needles[text]
	if n == nil {
		n = &needle{s: v.s}
		v.needles[text] = n
		n.waits(text)
		n.begin(text, v.limited)
	}
	return n
}

// begin looks the words up.
func (n *needle) begin(text string, limited bool) {
	var list []segment
	segments(text, true, func(s segment) { list = append(list, s) })
	if len(list) == 0 {
		n.void = true // signs and spaces are not in the index
		return
	}
	n.exact = len(list) == 1 && list[0].text == text
	var all []string // what has to be there, in the language of FTS5
	var words [][]string
	for _, s := range list {
		expr, found, ok := n.segment(s)
		words = append(words, found)
		switch {
		case !ok && len(list) == 1:
			n.each(found, limited)
			return
		case !ok:
			n.exact = false // the other words will do
		case expr == "":
			n.floor = 0 // no word has it, and no entry
			return
		default:
			all = append(all, expr)
		}
	}
	if len(all) == 0 {
		n.void = true
		return
	}
	n.floor = n.s.next
	// Entries that came before the pairs have none.
	if pairs, from := n.neighbours(list, words); len(pairs) > 0 {
		n.next = append(n.next, search{strings.Join(append(pairs, all...), " AND "), from})
	}
	n.next = append(n.next, search{strings.Join(all, " AND "), 0})
}

// segment gives the words that have a segment in them; ok is false where they are too
// many for one query. expr is empty where there are none.
func (n *needle) segment(s segment) (expr string, words []string, ok bool) {
	count := utf8.RuneCountInString(s.text)
	switch {
	case s.class == dense && count >= 3:
		n.exact = n.exact && count == 3
		var parts []string
		pieces(s, func(p string) { parts = append(parts, quoted(p)) })
		return "(" + strings.Join(parts, " AND ") + ")", nil, true
	case s.class == dense:
		// Beside it are more of the same in the same words.
		s.start, s.end = false, false
	case count > longWord/2:
		// It may be cut apart.
		n.exact, s.end = false, false
		s.text = string([]rune(s.text)[:longWord/2])
	}
	if s.start && s.end {
		return quoted(s.text), []string{s.text}, true
	}
	words, ok = n.s.wordsWith(s, tooManyWords)
	if len(words) > manyWords || !ok {
		if !ok {
			words = nil
		}
		return "", words, false
	}
	if len(words) == 0 {
		return "", nil, true
	}
	return either(words), words, true
}

func quoted(w string) string { return `"` + w + `"` }

func either(words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = quoted(w)
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// neighbours gives what has to be there because words stand side by side.
// They are known of the entries from an id on.
func (n *needle) neighbours(list []segment, words [][]string) (all []string, from int64) {
	if len(list) < 2 {
		return nil, 0
	}
	r, ok := n.s.c.one("SELECT value FROM meta WHERE key = 'paired'")
	if !ok {
		return nil, 0
	}
	from = r.int(0)
	common, _ := n.s.c.one("SELECT value FROM meta WHERE key = 'common'")
	set := wordSet(string(common.blob(0)))
	for i := 1; i < len(list); i++ {
		a, b := words[i-1], words[i]
		if list[i-1].class != alpha || list[i].class != alpha || len(a) == 0 || len(b) == 0 || len(a)*len(b) > manyWords {
			continue
		}
		if utf8.RuneCountInString(list[i-1].text) > longWord/2 || utf8.RuneCountInString(list[i].text) > longWord/2 {
			continue
		}
		var both []string
		known := true
		for _, x := range a {
			for _, y := range b {
				_, first := set[x]
				_, second := set[y]
				known = known && first && second
				both = append(both, pairOf(x, y))
			}
		}
		if known {
			all = append(all, either(both))
		}
	}
	return all, from
}

// each finds the entries of words one by one.
func (n *needle) each(words []string, limited bool) {
	if words == nil {
		n.void = true
		return
	}
	n.floor = 0
	for _, w := range words {
		r := n.s.c.query("SELECT rowid FROM words WHERE words MATCH ?", quoted(w))
		for r.next() {
			n.found(r.int(0))
		}
		if limited && n.count > manyFound {
			n.void = true
			return
		}
	}
}

func (n *needle) found(id int64) {
	if id < 0 || id >= n.s.next {
		n.s.c.fail(errInconsistent)
		return
	}
	if n.bits == nil {
		n.bits = make([]uint64, n.s.next/64+1)
	}
	if bit := uint64(1) << (id % 64); n.bits[id/64]&bit == 0 {
		n.bits[id/64] |= bit
		n.count++
	}
}

// step finds some more.
func (n *needle) step() {
	q := n.next[0]
	var r *rows
	var ok bool
	all := n.begun
	if n.begun = true; all {
		r, ok = n.s.c.one("SELECT group_concat(rowid, ' ') FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ?", q.match, q.from, n.floor)
	} else {
		r, ok = n.s.c.one("SELECT group_concat(id, ' ') FROM (SELECT rowid AS id FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC LIMIT ?)",
			q.match, q.from, n.floor, firstIds)
	}
	if !ok {
		n.next = nil
		return
	}
	count := 0
	for text := range strings.SplitSeq(r.text(0), " ") {
		if text == "" {
			break // none are found
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			n.s.c.fail(errInconsistent)
		}
		n.found(id)
		n.floor = min(n.floor, id)
		count++
	}
	if all || count < firstIds {
		n.floor = q.from
		n.next = n.next[1:]
	}
	if len(n.next) == 0 {
		n.next, n.floor = nil, 0
	}
}

// atLeast tells how many entries are found, and finds as many as limit; whole tells
// that there are no others.
func (n *needle) atLeast(limit int) (count int, whole bool) {
	for !n.void && n.next != nil && n.count < limit {
		n.step()
	}
	return n.count, !n.void && n.next == nil
}

// has tells of an entry whether it has the needle.
func (n *needle) has(id int64) query.Verdict {
	found := func() bool { return n.bits != nil && n.bits[id/64]&(1<<(id%64)) != 0 }
	if _, waits := n.s.pending[id]; waits {
		if found() {
			return query.Yes
		}
		return query.No
	}
	if n.void {
		return query.Maybe
	}
	for n.next != nil && id < n.floor {
		n.step()
	}
	switch {
	case !found():
		return query.No
	case n.exact:
		return query.Yes
	}
	return query.Maybe
}
